//! Work items: what people give an agent to do, and what they say of it.

use std::ops::Bound;

use abide_api::types::{
    LimitsView, TodoView, WorkItemBlock, WorkItemComplete, WorkItemCreate, WorkItemUpdate, WorkItemView,
};
use abide_api::{ErrorCode, Problem};
use abide_kernel::AgentState;
use abide_kernel::budget::Limits;
use abide_kernel::id::{AgentId, WorkItemId};
use abide_kernel::input::Input;
use abide_kernel::time::Time;
use abide_kernel::todo::Todo;
use abide_kernel::tool::{RecordCall, WorkItemChange};
use abide_kernel::vocabulary::{WorkItemFilter, WorkItemState};

use super::agents::kernel_limits;
use super::lifecycle::asked;
use super::planes::{self, acted};
use super::{Met, agent, chosen, json, page};
use crate::body;
use crate::call::Call;
use crate::problems;

pub(super) async fn list(call: Call) -> Met {
    let filter = match call.query.text("filter") {
        None => WorkItemFilter::All,
        Some(text) => WorkItemFilter::parse(text).ok_or_else(|| {
            let words: Vec<&str> = WorkItemFilter::ALL.iter().map(|word| word.as_str()).collect();
            let detail = format!("there is no filter {text:?}");
            Problem::new(ErrorCode::BadQuery, detail).hint(format!("it takes one of {}", words.join(", ")))
        })?,
    };
    match filter {
        WorkItemFilter::All => planes::list(call, &planes::WORK_ITEMS).await,
        WorkItemFilter::Completed => planes::list(call, &planes::COMPLETED_WORK_ITEMS).await,
        WorkItemFilter::Open
        | WorkItemFilter::Current
        | WorkItemFilter::Queued
        | WorkItemFilter::Blocked
        | WorkItemFilter::Waiting => open(call, filter).await,
    }
}

/// Open items are all in the state; of completed ones there may be any number.
async fn open(call: Call, filter: WorkItemFilter) -> Met {
    let id = agent(&call)?;
    let limit = call.query.limit()?;
    let after = planes::after(&call, &planes::WORK_ITEMS)?.map(WorkItemId::new);
    let look = move |state: &AgentState, _: Time| {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let items = state.planes.work.items().range((from, Bound::Unbounded)).map(|(_, item)| item);
        let fitting =
            items.filter(|item| state.planes.work.matches_filter(item, filter)).map(|item| state.work_item_view(item));
        (!state.lifecycle.archived).then(|| page::enough(fitting, limit))
    };
    let seen = call.app.host.look(&id, look).await.map_err(|error| problems::ask(error, id.as_str()))?;
    let seen = seen.ok_or_else(|| problems::no_agent(id.as_str()))?;
    let items = seen.ok_or_else(|| problems::deleted(id.as_str()))?;
    Ok(page::of_items(items.into_iter(), limit, |item| item.work_item_id.to_string()))
}

pub(super) async fn show(call: Call) -> Met {
    let id = agent(&call)?;
    Ok(json(200, &item(&call, &id).await?))
}

/// The item that the path names, as the state has it, or as its row keeps it.
async fn item(call: &Call, id: &AgentId) -> Result<WorkItemView, Problem> {
    let named = WorkItemId::new(call.param("item"));
    let look = move |state: &AgentState, _: Time| {
        (!state.lifecycle.archived).then(|| state.planes.work.get(&named).map(|item| state.work_item_view(item)))
    };
    let seen = call.app.host.look(id, look).await.map_err(|error| problems::ask(error, id.as_str()))?;
    let seen = seen.ok_or_else(|| problems::no_agent(id.as_str()))?;
    if let Some(known) = seen.ok_or_else(|| problems::deleted(id.as_str()))? {
        return Ok(known);
    }
    let missing =
        || Problem::new(ErrorCode::NotFound, format!("{id} has no such work item")).hint("list its work items");
    planes::one(call, id, &planes::WORK_ITEMS, call.param("item")).await?.ok_or_else(missing)?.record()
}

pub(super) async fn create(call: Call) -> Met {
    let id = agent(&call)?;
    let WorkItemCreate { objective, plan, plan_status, todo, budget } = body::json(&call.body)?;
    let budget = item_limits(&call, &id, budget).await?;
    let act = RecordCall::CreateWorkItem { objective, plan, plan_status, todo: kernel_todo(todo), budget };
    let made: WorkItemView = acted(asked(&call, &id, by(&call, act)).await?)?;
    Ok(json(201, &made))
}

pub(super) async fn pick(call: Call) -> Met {
    body::empty(&call.body)?;
    change(call, |work_item_id| RecordCall::PickWorkItem { work_item_id }).await
}

pub(super) async fn update(call: Call) -> Met {
    let id = agent(&call)?;
    let update: WorkItemUpdate = body::json(&call.body)?;
    let changed = WorkItemChange {
        objective: update.objective,
        plan: update.plan,
        plan_status: update.plan_status,
        todo: update.todo.map(kernel_todo),
        blocked_by: update.blocked_by,
        recheck_after_ms: update.recheck_after_ms,
        budget: item_limits(&call, &id, update.budget).await?,
    };
    change(call, |work_item_id| RecordCall::UpdateWorkItem { work_item_id, change: Box::new(changed) }).await
}

pub(super) async fn block(call: Call) -> Met {
    let WorkItemBlock { blocked_by, recheck_after_ms } = body::json(&call.body)?;
    let changed = WorkItemChange { blocked_by: Some(Some(blocked_by)), recheck_after_ms, ..WorkItemChange::default() };
    change(call, |work_item_id| RecordCall::UpdateWorkItem { work_item_id, change: Box::new(changed) }).await
}

pub(super) async fn complete(call: Call) -> Met {
    let WorkItemComplete { report } = body::json(&call.body)?;
    change(call, |work_item_id| RecordCall::CompleteWorkItem { work_item_id, report }).await
}

/// One act on the item that the path names, answered with what it is then.
async fn change(call: Call, act: impl FnOnce(WorkItemId) -> RecordCall) -> Met {
    let id = agent(&call)?;
    let known = item(&call, &id).await?;
    let act = act(known.work_item_id.clone());
    let answer = asked(&call, &id, by(&call, act)).await.map_err(|problem| {
        // It is there, and the state has forgotten it: it was completed long ago.
        let is_forgotten = problem.is(ErrorCode::NotFound) && known.state == WorkItemState::Completed;
        if !is_forgotten {
            return problem;
        }
        Problem::new(ErrorCode::NotOpen, format!("{} is completed", known.work_item_id))
    });
    let changed: WorkItemView = acted(answer?)?;
    Ok(json(200, &changed))
}

async fn item_limits(call: &Call, id: &AgentId, said: Option<LimitsView>) -> Result<Option<Limits>, Problem> {
    let limits = said.map(|limits| kernel_limits(&limits, "/budget")).transpose()?;
    if limits.is_some_and(|limits| limits.max_micro_usd.is_some()) {
        chosen::can_limit_money(&call.app, id).await?;
    }
    Ok(limits)
}

fn by(call: &Call, act: RecordCall) -> Input {
    Input::Act { by: call.caller.name.clone(), act }
}

fn kernel_todo(todo: Vec<TodoView>) -> Vec<Todo> {
    todo.into_iter().map(|TodoView { text, state }| Todo { text, state }).collect()
}
