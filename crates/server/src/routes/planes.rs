//! The planes of an agent: pages of rows. What is still open is shown as the state has it, because a row knows only
//! what single facts said.

use std::collections::HashMap;
use std::sync::Arc;

use abide_api::types::{
    ApprovalView, BriefView, CatchUp, Ended, MessageView, TaskView, TimerCreate, TimerCreated, TimerView, TriggerView,
    WaitView, WorkItemView, WorkspaceView,
};
use abide_api::{ErrorCode, Problem};
use abide_kernel::AgentState;
use abide_kernel::id::{AgentId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use abide_kernel::input::{Answer, Input};
use abide_kernel::outcome::MessageRow;
use abide_kernel::read_rows::AGENT_PLANE;
use abide_kernel::time::Time;
use abide_kernel::tool::{RecordCall, When};
use abide_kernel::view::timer_ahead;
use abide_kernel::vocabulary;
use abide_ledger::{Ledger, Row, StreamId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::lifecycle::asked;
use super::page::{PAGE_BYTES, PageBuilder, READ_BYTES, json_bytes};
use super::{Met, agent, blocking, json, reserve};
use crate::body;
use crate::call::Call;
use crate::problems;

/// How one plane is read, and as what it is shown.
pub(super) struct Plane<T> {
    rows: &'static str,
    /// How the ids of its rows begin; they are the cursors of its pages.
    prefix: &'static str,
    /// The record as the state has it, while it is open. None where rows alone say all there is to say.
    open: Option<Open<T>>,
    /// Which rows are in the list.
    keep: fn(&Value) -> bool,
}

type Open<T> = fn(&AgentState, &str) -> Option<T>;

/// A record on its way out. Rows hold more than is shown. One that does not read goes out as it is: `verify` names it, and
/// hiding it would not mend it.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Shown<T> {
    Record(T),
    Unreadable(Value),
}

impl<T: Record> Shown<T> {
    /// For whoever has to know what is in it.
    pub(super) fn record(self) -> Result<T, Problem> {
        match self {
            Shown::Record(record) => Ok(record),
            Shown::Unreadable(row) => T::deserialize(row).map_err(|error| problems::unexpected(&error)),
        }
    }
}

fn open_task(state: &AgentState, id: &str) -> Option<TaskView> {
    let id = TaskId::new(id);
    state.planes.tasks.open().get(&id).or_else(|| state.planes.tasks.owed().get(&id)).map(TaskView::from)
}

fn any(_: &Value) -> bool {
    true
}

pub(super) const MESSAGES: Plane<MessageView> = Plane { rows: "messages", prefix: "msg_", open: None, keep: any };
/// Rows of messages, as far as they say what became of the message.
pub(super) const MESSAGE_ROWS: Plane<MessageRow> = Plane { rows: "messages", prefix: "msg_", open: None, keep: any };
pub(super) const BRIEFS: Plane<BriefView> = Plane { rows: "briefs", prefix: "brief_", open: None, keep: any };
pub(super) const TASKS: Plane<TaskView> = Plane { rows: "tasks", prefix: "task_", open: Some(open_task), keep: any };
pub(super) const WORKSPACES: Plane<WorkspaceView> = Plane {
    rows: "workspaces",
    prefix: "/",
    open: Some(|state, root| {
        state.planes.workspaces.attached().get(root).map(|workspace| state.workspace_view(workspace))
    }),
    keep: any,
};
pub(super) const CHILDREN: Plane<TaskView> = Plane { keep: |task| task["child_agent_id"].is_string(), ..TASKS };
pub(super) const WORK_ITEMS: Plane<WorkItemView> = Plane {
    rows: "work_items",
    prefix: "work_",
    open: Some(|state, id| state.planes.work.get(&WorkItemId::new(id)).map(|item| state.work_item_view(item))),
    keep: any,
};
pub(super) const COMPLETED_WORK_ITEMS: Plane<WorkItemView> =
    Plane { keep: |item| item["state"] == vocabulary::WorkItemState::Completed.as_str(), ..WORK_ITEMS };
pub(super) const TIMERS: Plane<TimerView> = Plane {
    rows: "timers",
    prefix: "timer_",
    open: Some(|state, id| state.planes.timers.active().get(&TimerId::new(id)).map(TimerView::from)),
    keep: any,
};
pub(super) const WAITS: Plane<WaitView> = Plane {
    rows: "waits",
    prefix: "wait_",
    open: Some(|state, id| state.planes.waits.open().get(&WaitId::new(id)).map(WaitView::from)),
    keep: any,
};
pub(super) const TRIGGERS: Plane<TriggerView> = Plane {
    rows: "triggers",
    prefix: "trig_",
    open: Some(|state, id| state.planes.triggers.get(&TriggerId::new(id)).map(TriggerView::from)),
    keep: any,
};
pub(super) const APPROVALS: Plane<ApprovalView> = Plane { rows: "approvals", prefix: "appr_", open: None, keep: any };

/// What a plane shows.
pub(super) trait Record: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Record for T {}

pub(super) async fn list<T: Record>(call: Call, plane: &'static Plane<T>) -> Met {
    list_fitting(call, plane, plane.keep).await
}

/// Those rows of a plane that fit a query.
pub(super) async fn list_fitting<T: Record>(
    call: Call,
    plane: &'static Plane<T>,
    keep: impl Fn(&Value) -> bool + Send + 'static,
) -> Met {
    let id = agent(&call)?;
    let limit = call.query.limit()?;
    let after = after(&call, plane)?;
    let mut reserved = reserve(&call, READ_BYTES).await?;
    let (app, named, rows) = (Arc::clone(&call.app), id.clone(), plane.rows);
    let found = blocking(move || find(app.host.ledger(), &named, rows, &keep, after.as_deref(), limit)).await?;
    reserved.shrink_to(found.bytes);
    let mut open = match plane.open {
        Some(open) => records(&call, &id, open, &found.rows).await?,
        None => HashMap::new(),
    };
    let mut page = PageBuilder::new(limit);
    let (mut last, mut more) = (None, found.more);
    for row in found.rows {
        let shown = open.remove(&row.id).map_or_else(|| read(row.value), Shown::Record);
        if !page.push(&shown) {
            more = true;
            break;
        }
        last = Some(row.id);
    }
    Ok(page.finish(last.as_deref().filter(|_| more)).into_response(Some(reserved)))
}

fn read<T: Record>(row: Value) -> Shown<T> {
    match T::deserialize(&row) {
        Ok(record) => Shown::Record(record),
        Err(_) => Shown::Unreadable(row),
    }
}

/// Rows for one page.
struct Found {
    rows: Vec<Row>,
    bytes: usize,
    more: bool,
}

/// Rows that are read for one page at most, in bytes: a page whose rows show little of what they hold is short.
const READ_MAX: usize = 16 << 20;

/// The rows of a page: as many as are wanted, or as many as fill it.
fn find(
    ledger: &Ledger,
    id: &AgentId,
    plane: &str,
    keep: &dyn Fn(&Value) -> bool,
    after: Option<&str>,
    limit: usize,
) -> Result<Found, Problem> {
    let stream = StreamId::agent(id);
    let unreadable = |error| problems::unreadable(&error);
    ledger.head(&stream).map_err(unreadable)?.ok_or_else(|| problems::no_agent(id.as_str()))?;
    let agent = ledger.rows(&stream, AGENT_PLANE, None, 1).map_err(unreadable)?;
    if agent.first().is_some_and(|agent| agent.value["archived"] == true) {
        return Err(problems::deleted(id.as_str()));
    }
    let (mut found, mut read) = (Found { rows: Vec::new(), bytes: 0, more: false }, 0);
    let visited = ledger.visit_rows(&stream, plane, after, &mut |row| {
        if !keep(&row.value) {
            return true;
        }
        let full = found.rows.len() == limit || found.bytes >= PAGE_BYTES || read >= READ_MAX;
        if full && !found.rows.is_empty() {
            found.more = true;
            return false;
        }
        let bytes = json_bytes(&row.value);
        read += bytes;
        found.bytes += bytes;
        found.rows.push(row);
        true
    });
    visited.map_err(unreadable)?;
    Ok(found)
}

/// Those records of a page that are open, as the state has them.
async fn records<T: Record>(
    call: &Call,
    id: &AgentId,
    open: Open<T>,
    rows: &[Row],
) -> Result<HashMap<String, T>, Problem> {
    let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
    let look = move |state: &AgentState, _: Time| -> Option<HashMap<String, T>> {
        let open = ids.into_iter().filter_map(|id| open(state, &id).map(|record| (id, record)));
        (!state.lifecycle.archived).then(|| open.collect())
    };
    let seen = call.app.host.look(id, look).await.map_err(|error| problems::ask(error, id.as_str()))?;
    let seen = seen.ok_or_else(|| problems::no_agent(id.as_str()))?;
    seen.ok_or_else(|| problems::deleted(id.as_str()))
}

/// Where the page begins.
pub(super) fn after<T>(call: &Call, plane: &Plane<T>) -> Result<Option<String>, Problem> {
    let after = call.query.text("after").map(str::to_owned);
    if let Some(after) = after.as_deref().filter(|after| !after.starts_with(plane.prefix)) {
        let detail = format!("{after:?} is no place in this list");
        return Err(Problem::new(ErrorCode::BadCursor, detail).hint("take the next of the page before"));
    }
    Ok(after)
}

/// One row of a plane. Names that begin alike lie together, so one page from just before it has it.
pub(super) async fn one<T: Record>(
    call: &Call,
    id: &AgentId,
    plane: &'static Plane<T>,
    item: &str,
) -> Result<Option<Shown<T>>, Problem> {
    const ALIKE: usize = 256;
    let (app, stream, item, plane) = (Arc::clone(&call.app), StreamId::agent(id), item.to_owned(), plane.rows);
    let before: String = item.chars().take(item.chars().count().saturating_sub(1)).collect();
    let rows = blocking(move || {
        let rows = app.host.ledger().rows(&stream, plane, Some(&before), ALIKE);
        Ok(rows.map_err(|error| problems::unreadable(&error))?.into_iter().find(|row| row.id == item))
    });
    Ok(rows.await?.map(|row| read(row.value)))
}

pub(super) async fn create_timer(call: Call) -> Met {
    let id = agent(&call)?;
    let new: TimerCreate = body::json(&call.body)?;
    let act = timer_act(new)?;
    let input = Input::Act { by: call.caller.name.clone(), act };
    let created: TimerCreated = acted(asked(&call, &id, input).await?)?;
    Ok(json(201, &created))
}

fn timer_act(new: TimerCreate) -> Result<RecordCall, Problem> {
    let wrong = |detail: String, pointer: &str| Problem::new(ErrorCode::WrongFields, detail).pointer(pointer);
    if new.time_zone.is_some() && new.cron.is_none() {
        return Err(wrong("time_zone says how cron is read, and there is no cron".to_owned(), "/time_zone"));
    }
    let when = match (new.after_ms, new.at, new.every_ms, new.cron) {
        (Some(after), None, None, None) => When::AfterMs(after),
        (None, Some(at), None, None) => When::At(at.parse().map_err(|error| wrong(format!("{error}"), "/at"))?),
        (None, None, Some(every), None) => When::EveryMs(every),
        (None, None, None, Some(cron)) => {
            When::Cron { cron, time_zone: new.time_zone.unwrap_or_else(|| "UTC".to_owned()) }
        }
        _ => return Err(wrong("a timer has exactly one of after_ms, at, every_ms and cron".to_owned(), "")),
    };
    let catch_up = new.catch_up.unwrap_or(CatchUp::Latest);
    Ok(RecordCall::CreateTimer { summary: new.summary, when, catch_up, work_item_id: None, check: new.check })
}

/// What an act came to.
pub(super) fn acted<T: DeserializeOwned>(answer: Answer) -> Result<T, Problem> {
    let result = match answer {
        Answer::Acted(result) => result,
        Answer::Done | Answer::Unchanged | Answer::Queued { .. } | Answer::Woken { .. } => Value::Null,
    };
    T::deserialize(result).map_err(|error| problems::unexpected(&error))
}

/// One timer: as the state has it, with what is to come; one that is over, as its row has it.
pub(super) async fn timer(call: Call) -> Met {
    let id = agent(&call)?;
    let name = call.param("item").to_owned();
    let timer_id = TimerId::new(name.as_str());
    let look = move |state: &AgentState, _: Time| {
        (!state.lifecycle.archived).then(|| state.planes.timers.get(&timer_id).map(timer_ahead))
    };
    let seen = call.app.host.look(&id, look).await.map_err(|error| problems::ask(error, id.as_str()))?;
    let seen = seen.ok_or_else(|| problems::no_agent(id.as_str()))?;
    if let Some(open) = seen.ok_or_else(|| problems::deleted(id.as_str()))? {
        return Ok(json(200, &open));
    }
    match one(&call, &id, &TIMERS, &name).await? {
        Some(over) => Ok(json(200, &over)),
        None => {
            let problem = Problem::new(ErrorCode::NotFound, format!("{id} has no timer {name}"));
            Err(problem.hint("list its timers: GET /v1/agents/{id}/timers"))
        }
    }
}

pub(super) async fn cancel_timer(call: Call) -> Met {
    let act = RecordCall::CancelTimer { timer_id: TimerId::new(call.param("item")) };
    end(call, act).await
}

pub(super) async fn cancel_wait(call: Call) -> Met {
    let act = RecordCall::CancelWait { waiting_intent_id: WaitId::new(call.param("item")) };
    end(call, act).await
}

pub(super) async fn end(call: Call, act: RecordCall) -> Met {
    let id = agent(&call)?;
    let input = Input::Act { by: call.caller.name.clone(), act };
    asked(&call, &id, input).await?;
    Ok(json(200, &Ended { ended: true }))
}
