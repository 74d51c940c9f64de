//! The planes of an agent: pages of rows. What is still open is shown as the state has it, because a row knows only
//! what single facts said.

use std::collections::HashMap;
use std::sync::Arc;

use abide_api::Problem;
use abide_api::types::{
    Approval, Brief, CatchUp, Ended, Message, Task, Timer, TimerCreate, TimerCreated, Trigger, Wait, WorkItem,
    Workspace,
};
use abide_kernel::AgentState;
use abide_kernel::id::{AgentId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use abide_kernel::input::{Answer, Input};
use abide_kernel::rows::AGENT_PLANE;
use abide_kernel::summary::{
    task_shape, timer_ahead, timer_shape, trigger_shape, wait_shape, work_item_shape, workspace_shape,
};
use abide_kernel::time::Time;
use abide_kernel::tool::{RecordCall, When};
use abide_kernel::vocabulary;
use abide_ledger::{Ledger, Row, StreamId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json as object};

use super::lifecycle::asked;
use super::page::{PAGE_BYTES, PageBuilder, READ_BYTES, json_bytes};
use super::{Met, agent, blocking, json, reserve};
use crate::body;
use crate::gate::Call;
use crate::problems;

/// How one plane is read.
pub(super) struct Plane {
    rows: &'static str,
    /// How the ids of its rows begin; they are the cursors of its pages.
    prefix: &'static str,
    /// What a row that lacks it has.
    defaults: fn() -> Value,
    /// The record as the state has it, while it is open. None where rows alone say all there is to say.
    open: Option<Open>,
    /// Which rows are in the list.
    keep: fn(&Value) -> bool,
    /// What of it goes out.
    shape: fn(Value) -> Value,
}

type Open = fn(&AgentState, &str) -> Option<Value>;

const fn plane<T: Serialize + DeserializeOwned>(
    rows: &'static str,
    prefix: &'static str,
    defaults: fn() -> Value,
    open: Option<Open>,
) -> Plane {
    Plane { rows, prefix, defaults, open, keep: |_| true, shape: shaped::<T> }
}

/// Rows hold more than is shown, and leave out what is null. One that does not read goes out as it is: `verify` names
/// it, and hiding it would not mend it.
fn shaped<T: Serialize + DeserializeOwned>(value: Value) -> Value {
    let typed = serde_json::from_value::<T>(value.clone()).and_then(serde_json::to_value);
    typed.unwrap_or(value)
}

fn nothing() -> Value {
    object!({})
}

fn open_task(state: &AgentState, id: &str) -> Option<Value> {
    let id = TaskId::new(id);
    state.tasks.open().get(&id).or_else(|| state.tasks.owed().get(&id)).map(task_shape)
}

pub(super) const MESSAGES: Plane = plane::<Message>("messages", "msg_", nothing, None);
pub(super) const BRIEFS: Plane = plane::<Brief>("briefs", "brief_", nothing, None);
pub(super) const TASKS: Plane = plane::<Task>("tasks", "task_", nothing, Some(open_task));
pub(super) const WORKSPACES: Plane = plane::<Workspace>(
    "workspaces",
    "/",
    || object!({ "active": false, "occupied": false }),
    Some(|state, root| state.workspaces.attached().get(root).map(|workspace| workspace_shape(state, workspace))),
);
pub(super) const CHILDREN: Plane = Plane { keep: |task| task["child_agent_id"].is_string(), ..TASKS };
pub(super) const WORK_ITEMS: Plane = plane::<WorkItem>(
    "work_items",
    "work_",
    // What the state has forgotten was completed.
    || object!({ "todo": [], "current": false, "readiness": vocabulary::Standing::Completed }),
    Some(|state, id| state.work.get(&WorkItemId::new(id)).map(|item| work_item_shape(state, item))),
);
pub(super) const COMPLETED_WORK_ITEMS: Plane =
    Plane { keep: |item| item["state"] == vocabulary::WorkItemState::Completed.as_str(), ..WORK_ITEMS };
pub(super) const TIMERS: Plane = plane::<Timer>(
    "timers",
    "timer_",
    nothing,
    Some(|state, id| state.timers.active().get(&TimerId::new(id)).map(timer_shape)),
);
pub(super) const WAITS: Plane = plane::<Wait>(
    "waits",
    "wait_",
    nothing,
    Some(|state, id| state.waits.open().get(&WaitId::new(id)).map(wait_shape)),
);
pub(super) const TRIGGERS: Plane = plane::<Trigger>(
    "triggers",
    "trig_",
    nothing,
    Some(|state, id| state.triggers.get(&TriggerId::new(id)).map(trigger_shape)),
);
pub(super) const APPROVALS: Plane = plane::<Approval>("approvals", "appr_", nothing, None);

pub(super) async fn list(call: Call, plane: &'static Plane) -> Met {
    list_fitting(call, plane, plane.keep).await
}

/// Those rows of a plane that fit a query.
pub(super) async fn list_fitting(
    call: Call,
    plane: &'static Plane,
    keep: impl Fn(&Value) -> bool + Send + 'static,
) -> Met {
    let id = agent(&call)?;
    let limit = call.query.limit()?;
    let after = after(&call, plane)?;
    let mut reserved = reserve(&call, READ_BYTES).await?;
    let (app, named) = (Arc::clone(&call.app), id.clone());
    let found = blocking(move || find(app.host.ledger(), &named, plane, &keep, after.as_deref(), limit)).await?;
    reserved.shrink_to(found.bytes);
    let mut open = match plane.open {
        Some(open) => records(&call, &id, open, &found.rows).await?,
        None => HashMap::new(),
    };
    let mut page = PageBuilder::new(limit);
    let (mut last, mut more) = (None, found.more);
    for row in found.rows {
        let value = open.remove(&row.id).unwrap_or_else(|| whole(row.value, plane));
        if !page.push(&(plane.shape)(value)) {
            more = true;
            break;
        }
        last = Some(row.id);
    }
    Ok(page.finish(last.as_deref().filter(|_| more)).into_response(Some(reserved)))
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
    plane: &Plane,
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
    let visited = ledger.visit_rows(&stream, plane.rows, after, &mut |row| {
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
async fn records(call: &Call, id: &AgentId, open: Open, rows: &[Row]) -> Result<HashMap<String, Value>, Problem> {
    let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
    let look = move |state: &AgentState, _: Time| -> Option<HashMap<String, Value>> {
        let open = ids.into_iter().filter_map(|id| open(state, &id).map(|record| (id, record)));
        (!state.archived).then(|| open.collect())
    };
    let seen = call.app.host.look(id, look).await.map_err(|error| problems::ask(error, id.as_str()))?;
    let seen = seen.ok_or_else(|| problems::no_agent(id.as_str()))?;
    seen.ok_or_else(|| problems::deleted(id.as_str()))
}

/// Where the page begins.
pub(super) fn after(call: &Call, plane: &Plane) -> Result<Option<String>, Problem> {
    let after = call.query.text("after").map(str::to_owned);
    if let Some(after) = after.as_deref().filter(|after| !after.starts_with(plane.prefix)) {
        let detail = format!("{after:?} is no place in this list");
        return Err(Problem::new(400, "bad_cursor", detail).hint("take the next of the page before"));
    }
    Ok(after)
}

/// One row of a plane. Names that begin alike lie together, so one page from just before it has it.
pub(super) async fn one(
    call: &Call,
    id: &AgentId,
    plane: &'static Plane,
    item: &str,
) -> Result<Option<Value>, Problem> {
    const ALIKE: usize = 256;
    let (app, stream, item) = (Arc::clone(&call.app), StreamId::agent(id), item.to_owned());
    let before: String = item.chars().take(item.chars().count().saturating_sub(1)).collect();
    let rows = blocking(move || {
        let rows = app.host.ledger().rows(&stream, plane.rows, Some(&before), ALIKE);
        Ok(rows.map_err(|error| problems::unreadable(&error))?.into_iter().find(|row| row.id == item))
    });
    Ok(rows.await?.map(|row| (plane.shape)(whole(row.value, plane))))
}

fn whole(row: Value, plane: &Plane) -> Value {
    let mut value = (plane.defaults)();
    if let (Some(fields), Value::Object(row)) = (value.as_object_mut(), row) {
        fields.extend(row);
    }
    // Rows keep resources as they are recorded; a reader wants the name.
    if let Some(Value::Object(resource)) = value.get("resource") {
        let name = resource.values().next().cloned().unwrap_or_default();
        value["resource"] = name;
    }
    value
}

pub(super) async fn create_timer(call: Call) -> Met {
    let id = agent(&call)?;
    let new: TimerCreate = body::json(&call.body)?;
    let act = timer_act(new)?;
    let input = Input::Act { by: call.caller.name.clone(), act };
    let created = acted(asked(&call, &id, input).await?)?;
    let created: TimerCreated = serde_json::from_value(created)
        .map_err(|error| Problem::new(503, "crashed", format!("the timer was answered as something else: {error}")))?;
    Ok(json(201, &created))
}

fn timer_act(new: TimerCreate) -> Result<RecordCall, Problem> {
    let wrong = |detail: String, pointer: &str| Problem::new(422, "wrong_fields", detail).pointer(pointer);
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
    let catch_up = match new.catch_up {
        None | Some(CatchUp::Latest) => vocabulary::CatchUp::Latest,
        Some(CatchUp::None) => vocabulary::CatchUp::None,
        Some(CatchUp::All) => vocabulary::CatchUp::All,
    };
    Ok(RecordCall::CreateTimer { summary: new.summary, when, catch_up, work_item_id: None, check: new.check })
}

pub(super) fn acted(answer: Answer) -> Result<Value, Problem> {
    match answer {
        Answer::Acted(value) => Ok(value),
        Answer::Done | Answer::Unchanged => Ok(Value::Null),
        Answer::Queued { .. } | Answer::Woken { .. } => {
            Err(Problem::new(503, "crashed", "it was answered as something else"))
        }
    }
}

/// One timer: as the state has it, with what is to come; one that is over, as its row has it.
pub(super) async fn timer(call: Call) -> Met {
    let id = agent(&call)?;
    let name = call.param("item").to_owned();
    let timer_id = TimerId::new(name.as_str());
    let look = move |state: &AgentState, _: Time| {
        (!state.archived).then(|| state.timers.get(&timer_id).map(|timer| shaped::<Timer>(timer_ahead(timer))))
    };
    let seen = call.app.host.look(&id, look).await.map_err(|error| problems::ask(error, id.as_str()))?;
    let seen = seen.ok_or_else(|| problems::no_agent(id.as_str()))?;
    if let Some(open) = seen.ok_or_else(|| problems::deleted(id.as_str()))? {
        return Ok(json(200, &open));
    }
    match one(&call, &id, &TIMERS, &name).await? {
        Some(over) => Ok(json(200, &over)),
        None => {
            let problem = Problem::new(404, "not_found", format!("{id} has no timer {name}"));
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
    acted(asked(&call, &id, input).await?)?;
    Ok(json(200, &Ended { ended: true }))
}
