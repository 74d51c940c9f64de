//! The planes of an agent: pages of rows. An open record is shown from the state, because a row is made of single facts.

use std::collections::HashMap;
use std::sync::Arc;

use abide_api::types::{
    ApprovalView, BriefView, EndConfirmation, MessageView, TaskView, TimerView, TriggerView, WaitView, WorkItemView,
    WorkspaceView,
};
use abide_api::{ErrorCode, Problem};
use abide_kernel::AgentState;
use abide_kernel::id::{AgentId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use abide_kernel::input::{Answer, Input};
use abide_kernel::open_json::ToolOutput;
use abide_kernel::outcome::MessageRow;
use abide_kernel::read_rows::AGENT_PLANE;
use abide_kernel::time::Time;
use abide_kernel::tool::RecordCall;
use abide_kernel::vocabulary;
use abide_ledger::{Ledger, Row, StreamId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lifecycle::asked;
use super::page::{PAGE_BYTES, PageBuilder, READ_BYTES, json_bytes};
use super::{RouteResult, agent, blocking, json, reserve};
use crate::call::Call;
use crate::problems;

/// One plane: its rows, and the records that they are shown as.
pub(super) struct Plane<T> {
    rows: &'static str,
    /// The prefix of the ids of its rows. These ids are the cursors of its pages.
    prefix: &'static str,
    /// Finds an open record in the state. None for planes whose rows are complete.
    open: Option<Open<T>>,
    /// The condition for rows of the list.
    keep: fn(&Row) -> bool,
}

type Open<T> = fn(&AgentState, &str) -> Option<T>;

/// A record of an answer. Rows hold more fields than are shown. A row that can't be decoded is shown as it is: `verify` reports
/// it, and hiding it would not repair it.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ShownRecord<T> {
    Record(T),
    Unreadable(UnreadableRow),
}

/// The JSON of a row that is no record of its plane.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct UnreadableRow(serde_json::Value);

impl<T: Record> ShownRecord<T> {
    /// The record, or a problem if the row can't be decoded.
    pub(super) fn record(self) -> Result<T, Problem> {
        match self {
            ShownRecord::Record(record) => Ok(record),
            ShownRecord::Unreadable(UnreadableRow(row)) => {
                T::deserialize(row).map_err(|error| problems::unexpected(&error))
            }
        }
    }
}

fn open_task(state: &AgentState, id: &str) -> Option<TaskView> {
    let id = TaskId::new(id);
    state.planes.tasks.open().get(&id).or_else(|| state.planes.tasks.owed().get(&id)).map(TaskView::from)
}

fn keep_all(_: &Row) -> bool {
    true
}

pub(super) const MESSAGES: Plane<MessageView> = Plane { rows: "messages", prefix: "msg_", open: None, keep: keep_all };
/// The outcomes in the rows of messages.
pub(super) const MESSAGE_ROWS: Plane<MessageRow> =
    Plane { rows: "messages", prefix: "msg_", open: None, keep: keep_all };
pub(super) const BRIEFS: Plane<BriefView> = Plane { rows: "briefs", prefix: "brief_", open: None, keep: keep_all };
pub(super) const TASKS: Plane<TaskView> =
    Plane { rows: "tasks", prefix: "task_", open: Some(open_task), keep: keep_all };
pub(super) const WORKSPACES: Plane<WorkspaceView> = Plane {
    rows: "workspaces",
    prefix: "/",
    open: Some(|state, root| {
        state.planes.workspaces.attached().get(root).map(|workspace| state.workspace_view(workspace))
    }),
    keep: keep_all,
};
pub(super) const CHILDREN: Plane<TaskView> = Plane { keep: |task| task.text("child_agent_id").is_some(), ..TASKS };
pub(super) const WORK_ITEMS: Plane<WorkItemView> = Plane {
    rows: "work_items",
    prefix: "work_",
    open: Some(|state, id| state.planes.work.get(&WorkItemId::new(id)).map(|item| state.work_item_view(item))),
    keep: keep_all,
};
pub(super) const COMPLETED_WORK_ITEMS: Plane<WorkItemView> =
    Plane { keep: |item| item.text("state") == Some(vocabulary::WorkItemState::Completed.as_str()), ..WORK_ITEMS };
pub(super) const TIMERS: Plane<TimerView> = Plane {
    rows: "timers",
    prefix: "timer_",
    open: Some(|state, id| state.planes.timers.active().get(&TimerId::new(id)).map(TimerView::from)),
    keep: keep_all,
};
pub(super) const WAITS: Plane<WaitView> = Plane {
    rows: "waits",
    prefix: "wait_",
    open: Some(|state, id| state.planes.waits.open().get(&WaitId::new(id)).map(WaitView::from)),
    keep: keep_all,
};
pub(super) const TRIGGERS: Plane<TriggerView> = Plane {
    rows: "triggers",
    prefix: "trig_",
    open: Some(|state, id| state.planes.triggers.get(&TriggerId::new(id)).map(TriggerView::from)),
    keep: keep_all,
};
pub(super) const APPROVALS: Plane<ApprovalView> =
    Plane { rows: "approvals", prefix: "appr_", open: None, keep: keep_all };

/// A record of a plane.
pub(super) trait Record: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Record for T {}

pub(super) async fn list<T: Record>(call: Call, plane: &'static Plane<T>) -> RouteResult {
    list_fitting(call, plane, plane.keep).await
}

/// A page of the rows of a plane that match a condition.
pub(super) async fn list_fitting<T: Record>(
    call: Call,
    plane: &'static Plane<T>,
    keep: impl Fn(&Row) -> bool + Send + 'static,
) -> RouteResult {
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
        let shown = open.remove(&row.id).map_or_else(|| read(&row), ShownRecord::Record);
        if !page.push(&shown) {
            more = true;
            break;
        }
        last = Some(row.id);
    }
    Ok(page.finish(last.as_deref().filter(|_| more)).into_response(Some(reserved)))
}

fn read<T: Record>(row: &Row) -> ShownRecord<T> {
    match T::deserialize(&row.value) {
        Ok(record) => ShownRecord::Record(record),
        Err(_) => ShownRecord::Unreadable(UnreadableRow(row.value.clone())),
    }
}

struct PageRows {
    rows: Vec<Row>,
    bytes: usize,
    more: bool,
}

/// Bytes of rows that are read for one page at most. A page is short if its rows hold much more than they show.
const READ_MAX: usize = 16 << 20;

/// Reads the rows of a page, until it has `limit` rows or is full.
fn find(
    ledger: &Ledger,
    id: &AgentId,
    plane: &str,
    keep: &dyn Fn(&Row) -> bool,
    after: Option<&str>,
    limit: usize,
) -> Result<PageRows, Problem> {
    let stream = StreamId::agent(id);
    let unreadable = |error| problems::unreadable(&error);
    ledger.head(&stream).map_err(unreadable)?.ok_or_else(|| problems::no_agent(id.as_str()))?;
    let agent = ledger.rows(&stream, AGENT_PLANE, None, 1).map_err(unreadable)?;
    if agent.first().is_some_and(|agent| agent.value["archived"] == true) {
        return Err(problems::deleted(id.as_str()));
    }
    let (mut found, mut read) = (PageRows { rows: Vec::new(), bytes: 0, more: false }, 0);
    let visited = ledger.visit_rows(&stream, plane, after, &mut |row| {
        if !keep(&row) {
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

/// The open records of a page, from the state.
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
    let seen = call.app.host.inspect(id, look).await.map_err(|error| problems::ask(error, id.as_str()))?;
    let seen = seen.ok_or_else(|| problems::no_agent(id.as_str()))?;
    seen.ok_or_else(|| problems::deleted(id.as_str()))
}

/// The cursor at which the page begins.
pub(super) fn after<T>(call: &Call, plane: &Plane<T>) -> Result<Option<String>, Problem> {
    let after = call.query.text("after").map(str::to_owned);
    if let Some(after) = after.as_deref().filter(|after| !after.starts_with(plane.prefix)) {
        let detail = format!("{after:?} is no place in this list");
        return Err(Problem::new(ErrorCode::BadCursor, detail).hint("take the next of the page before"));
    }
    Ok(after)
}

/// Reads one row of a plane. Rows are ordered by id, so a page that begins just before the id has it.
pub(super) async fn find_record<T: Record>(
    call: &Call,
    id: &AgentId,
    plane: &'static Plane<T>,
    item: &str,
) -> Result<Option<ShownRecord<T>>, Problem> {
    const ALIKE: usize = 256;
    let (app, stream, item, plane) = (Arc::clone(&call.app), StreamId::agent(id), item.to_owned(), plane.rows);
    let before: String = item.chars().take(item.chars().count().saturating_sub(1)).collect();
    let rows = blocking(move || {
        let rows = app.host.ledger().rows(&stream, plane, Some(&before), ALIKE);
        Ok(rows.map_err(|error| problems::unreadable(&error))?.into_iter().find(|row| row.id == item))
    });
    Ok(rows.await?.as_ref().map(read))
}

/// The result of an act.
pub(super) fn act_result<T: DeserializeOwned>(answer: Answer) -> Result<T, Problem> {
    let result = match answer {
        Answer::Acted(result) => result,
        Answer::Done | Answer::Unchanged | Answer::Queued { .. } | Answer::Woken { .. } => ToolOutput::default(),
    };
    T::deserialize(result.0).map_err(|error| problems::unexpected(&error))
}

pub(super) async fn cancel_wait(call: Call) -> RouteResult {
    let act = RecordCall::CancelWait { waiting_intent_id: WaitId::new(call.param("item")) };
    end(call, act).await
}

pub(super) async fn end(call: Call, act: RecordCall) -> RouteResult {
    let id = agent(&call)?;
    let input = Input::Act { by: call.caller.name.clone(), act };
    asked(&call, &id, input).await?;
    Ok(json(200, &EndConfirmation { ended: true }))
}
