//! `abide work`: goals that an agent works on.

use std::path::Path;

use abide_api::Client;
use abide_api::types::{
    LimitsView, TodoState, TodoView, WorkItemBlock, WorkItemComplete, WorkItemCreate, WorkItemUpdate, WorkItemView,
};

use super::agent::{read, stdin, usage_text};
use super::plane::{self, Plane};
use crate::budget::limits;
use crate::cli::{OneItem, PlaceArgs, WorkCommand, WorkCreateArgs, WorkUpdateArgs};
use crate::connection::{self, block_on};
use crate::output::{Cell, Failed, Output, gist, one_line, quoted, table};
use crate::span;

const PLANE: Plane<WorkItemView> = Plane {
    route: "work-items",
    titles: &["state", "readiness", "todo", "objective"],
    id: |item| item.work_item_id.as_str(),
    row: |item, _| {
        let state = if item.current { "current" } else { item.state.as_str() };
        let blocker = item.blocked_by.as_ref().map(|by| format!("; blocked by {}", gist(by, 60))).unwrap_or_default();
        let objective = format!("{}{blocker}", gist(&item.objective, 80));
        vec![Cell::status(state), item.readiness.as_str().into(), progress(item).into(), objective.into()]
    },
    empty: "has no such work items; `abide work create --agent ID OBJECTIVE` makes one",
};

pub fn run(command: &WorkCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        WorkCommand::List { of, filter } => {
            let query = filter.map(|filter| format!("&filter={filter}")).unwrap_or_default();
            plane::list_fitting(&PLANE, &query, of, place, out)
        }
        WorkCommand::Show(one) => show(one, place, out),
        WorkCommand::Create(args) => create(args, place, out),
        WorkCommand::Pick(one) => pick(one, place, out),
        WorkCommand::Update(args) => update(args, place, out),
        WorkCommand::Block { one, by, recheck } => {
            let block = WorkItemBlock { blocked_by: by.clone(), recheck_after_ms: recheck.map(span::as_ms) };
            block_item(one, &block, place, out)
        }
        WorkCommand::Complete { one, report } => complete(one, report, place, out),
    }
}

/// `2/5`: entries that are done, and all of them.
fn progress(item: &WorkItemView) -> String {
    let done = item.todo.iter().filter(|entry| entry.state == TodoState::Completed).count();
    if item.todo.is_empty() { "-".to_owned() } else { format!("{done}/{}", item.todo.len()) }
}

async fn named(client: &Client, one: &OneItem) -> anyhow::Result<String> {
    plane::named(&PLANE, client, &one.of.agent, &one.item).await
}

fn show(one: &OneItem, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let item = block_on(async {
        let id = named(&client, one).await?;
        Ok(client.work_item(one.of.agent.as_str(), &id).await?)
    })?;
    out.result(&item, || described(&item, out))
}

fn described(item: &WorkItemView, out: &Output) -> String {
    let state = if item.current { format!("{}, current", item.state) } else { item.state.to_string() };
    let mut rows = vec![
        ("work item", item.work_item_id.to_string()),
        ("objective", item.objective.clone()),
        ("state", state),
        ("readiness", item.readiness.to_string()),
        ("revision", item.revision.to_string()),
    ];
    rows.extend(item.plan_status.map(|status| ("plan is", status.to_string())));
    rows.extend(item.blocked_by.clone().map(|by| ("blocked by", by)));
    rows.extend(item.recheck_at.map(|at| ("recheck", out.time(at))));
    rows.extend(item.budget.as_ref().and_then(limits).map(|limits| ("budget", limits)));
    rows.extend(item.used.as_ref().and_then(usage_text).map(|used| ("used", used)));
    let mut text = table(&rows);
    for (number, entry) in item.todo.iter().enumerate() {
        let sign = match entry.state {
            TodoState::Pending => ' ',
            TodoState::InProgress => '>',
            TodoState::Completed => 'x',
        };
        text.push_str(&format!("{:>3}. [{sign}] {}\n", number + 1, one_line(&entry.text)));
    }
    for (title, long) in [("plan", &item.plan), ("report", &item.report)] {
        if let Some(long) = long.as_ref().filter(|long| !long.is_empty()) {
            text.push_str(&format!("\n{title}:\n{}", quoted(long)));
        }
    }
    text
}

fn read_plan(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    file.map(read).transpose()
}

fn pending(texts: &[String]) -> impl Iterator<Item = TodoView> + '_ {
    texts.iter().map(|text| TodoView { text: text.clone(), state: TodoState::Pending })
}

fn create(args: &WorkCreateArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let agent = &args.of.agent;
    let new = WorkItemCreate {
        objective: args.objective.clone(),
        plan: read_plan(args.plan.as_deref())?,
        plan_status: args.plan_status,
        todo: pending(&args.todo).collect(),
        budget: (!args.budget.is_empty()).then(|| args.budget.over(&LimitsView::default())),
    };
    let client = connection::find(place)?;
    let made = block_on(async { Ok(client.create_work_item(agent.as_str(), &new).await?) })?;
    out.result(&made, || format!("made {}; it is {}\n", made.work_item_id, made.readiness))?;
    out.hint(&format!("{agent} is offered it in its turn; see `abide why {agent}`"));
    Ok(())
}

fn pick(one: &OneItem, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let agent = one.of.agent.as_str();
    let item = block_on(async { Ok(client.pick_work_item(agent, &named(&client, one).await?).await?) })?;
    out.result(&item, || format!("{} is the current work item of {agent}\n", item.work_item_id))
}

fn update(args: &WorkUpdateArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let changes_todo = !args.todo.is_empty() || !args.done.is_empty() || args.doing.is_some();
    let WorkUpdateArgs { objective, plan: file, plan_status, unblock, budget, .. } = args;
    let unsaid = objective.is_none() && file.is_none() && plan_status.is_none() && !unblock && budget.is_empty();
    if !changes_todo && unsaid {
        let what =
            "say what changes: --objective, --plan, --plan-status, --todo, --done, --doing, --unblock or --max-…";
        return Err(Failed::Usage(what.to_owned()).into());
    }
    if let Some(number) = args.doing.filter(|number| args.done.contains(number)) {
        return Err(Failed::Usage(format!("entry {number} is either done or worked on; leave one out")).into());
    }
    let plan = read_plan(file.as_deref())?;
    let client = connection::find(place)?;
    let agent = args.one.of.agent.as_str();
    let item = block_on(async {
        let id = named(&client, &args.one).await?;
        let known = match changes_todo || !budget.is_empty() {
            true => Some(client.work_item(agent, &id).await?),
            false => None,
        };
        // A change replaces all of its limits: what is not said is what it was.
        let limits = known.as_ref().filter(|_| !budget.is_empty());
        let limits = limits.map(|item| budget.over(&item.budget.clone().unwrap_or_default()));
        let todo = match known.filter(|_| changes_todo) {
            Some(item) => Some(changed(item.todo, args)?),
            None => None,
        };
        let update = WorkItemUpdate {
            objective: objective.clone(),
            plan,
            plan_status: *plan_status,
            todo,
            blocked_by: unblock.then_some(None),
            recheck_after_ms: None,
            budget: limits,
        };
        Ok(client.update_work_item(agent, &id, &update).await?)
    })?;
    out.result(&item, || format!("{} is at revision {}, {}\n", item.work_item_id, item.revision, item.readiness))
}

/// The todo list with what was said about it.
fn changed(mut todo: Vec<TodoView>, args: &WorkUpdateArgs) -> anyhow::Result<Vec<TodoView>> {
    todo.extend(pending(&args.todo));
    let all = todo.len();
    let done = args.done.iter().map(|number| (*number, TodoState::Completed));
    for (number, state) in done.chain(args.doing.map(|number| (number, TodoState::InProgress))) {
        let entry = number.checked_sub(1).and_then(|index| todo.get_mut(index));
        let missing = || Failed::Usage(format!("its todo list has no entry {number}: there are {all}"));
        entry.ok_or_else(missing)?.state = state;
    }
    // One at most is worked on.
    if let Some(doing) = args.doing {
        let others = todo.iter_mut().enumerate().filter(|(index, _)| index + 1 != doing);
        others.filter(|(_, entry)| entry.state == TodoState::InProgress).for_each(|(_, entry)| {
            entry.state = TodoState::Pending;
        });
    }
    Ok(todo)
}

fn block_item(one: &OneItem, block: &WorkItemBlock, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let agent = one.of.agent.as_str();
    let item = block_on(async { Ok(client.block_work_item(agent, &named(&client, one).await?, block).await?) })?;
    out.result(&item, || {
        let recheck = match item.recheck_at {
            Some(at) => format!("{agent} is reminded {}", out.time(at)),
            None => format!("nothing reminds {agent} of it"),
        };
        format!("{} is blocked; {recheck}\n", item.work_item_id)
    })?;
    out.hint(&format!("when it is free again: abide work update --agent {agent} {} --unblock", item.work_item_id));
    Ok(())
}

fn complete(one: &OneItem, report: &str, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let report = if report == "-" { stdin()? } else { report.to_owned() };
    let client = connection::find(place)?;
    let agent = one.of.agent.as_str();
    let complete = WorkItemComplete { report };
    let item = block_on(async { Ok(client.complete_work_item(agent, &named(&client, one).await?, &complete).await?) })?;
    out.result(&item, || format!("{} is completed\n", item.work_item_id))
}
