//! Acts on work items.

use serde_json::json;

use crate::fact::{
    Todo, WorkItemBlocked, WorkItemCompleted, WorkItemCreated, WorkItemPicked, WorkItemUnblocked, WorkItemUpdated,
};
use crate::id::WorkItemId;
use crate::input::{Refusal, WorkItemChange};
use crate::limits;
use crate::step::Step;
use crate::vocabulary::{PlanStatus, TodoState};

use super::act::{Done, done, line, room};
use super::waits::{cancel_wait, drop_if_waiting};

pub(super) fn require_open(step: &Step<'_>, id: &WorkItemId) -> Result<(), Refusal> {
    if step.state.work.open(id).is_some() {
        return Ok(());
    }
    let message = match step.state.work.get(id) {
        Some(_) => format!("{id} is completed"),
        None => format!("{id} is not a work item of this agent"),
    };
    Err(Refusal::new("not_open", message, "list the open work items"))
}

fn check_todo(todo: &[Todo]) -> Result<(), Refusal> {
    let too_long = todo.len() > limits::TODO_MAX || todo.iter().any(|entry| entry.text.len() > limits::LINE_BYTES);
    if too_long {
        return Err(Refusal::new("todo_too_long", "the todo list is too long", "keep it short; the plan is text"));
    }
    if todo.iter().filter(|entry| entry.state == TodoState::InProgress).count() > 1 {
        return Err(Refusal::new("one_in_progress", "two entries are in progress", "mark one at most"));
    }
    Ok(())
}

fn check_plan(plan: Option<&String>) -> Result<(), Refusal> {
    if plan.is_some_and(|plan| plan.len() > limits::TEXT_BYTES) {
        return Err(Refusal::new("too_long", "the plan is too long", "put it into a file and name that"));
    }
    Ok(())
}

fn shown(step: &Step<'_>, id: &WorkItemId) -> Result<Done, Refusal> {
    let item = step.state.work.get(id);
    let standing = step.state.work.standing(id);
    done(json!({
        "work_item_id": id.as_str(),
        "revision": item.map(|item| item.revision),
        "state": item.map(|item| item.state),
        "readiness": standing,
        "current": step.state.work.current_id() == Some(id),
    }))
}

pub(super) fn create(
    step: &mut Step<'_>,
    objective: String,
    plan: Option<String>,
    plan_status: Option<PlanStatus>,
    todo: Vec<Todo>,
) -> Result<Done, Refusal> {
    let objective = line(objective, limits::LINE_BYTES, "objective")?;
    check_plan(plan.as_ref())?;
    check_todo(&todo)?;
    room(step.state.work.items().len(), "work items")?;
    let work_item_id = step.fresh.work_item();
    let plan_status = plan_status.unwrap_or(PlanStatus::Draft);
    step.emit(WorkItemCreated { work_item_id: work_item_id.clone(), objective, plan_status, plan, todo });
    shown(step, &work_item_id)
}

pub(super) fn pick(step: &mut Step<'_>, id: &WorkItemId) -> Result<Done, Refusal> {
    require_open(step, id)?;
    let previous = step.state.work.current_id().cloned();
    if previous.as_ref() != Some(id) {
        step.emit(WorkItemPicked { work_item_id: id.clone(), previous });
    }
    shown(step, id)
}

pub(super) fn update(step: &mut Step<'_>, id: &WorkItemId, change: WorkItemChange) -> Result<Done, Refusal> {
    require_open(step, id)?;
    let objective = change.objective.map(|text| line(text, limits::LINE_BYTES, "objective")).transpose()?;
    check_plan(change.plan.as_ref())?;
    if let Some(todo) = &change.todo {
        check_todo(todo)?;
    }
    let blocked_by = match change.blocked_by {
        Some(Some(text)) => Some(Some(line(text, limits::LINE_BYTES, "blocked_by")?)),
        other => other,
    };
    let recheck_at = change.recheck_after_ms.map(|ms| step.now.plus_ms(ms.min(limits::TIMER_AHEAD_MAX_MS)));
    let Some(item) = step.state.work.open(id) else { return shown(step, id) };
    let still_blocked = match &blocked_by {
        Some(blocker) => blocker.clone(),
        None => item.blocked_by.clone(),
    };
    if recheck_at.is_some() && still_blocked.is_none() {
        return Err(Refusal::new(
            "not_blocked",
            "a recheck reminds of a blocker, and there is none",
            "say blocked_by too, or create a timer",
        ));
    }
    // Only what differs is a change: a record written again with the same content is no progress.
    let updated = WorkItemUpdated {
        work_item_id: id.clone(),
        revision: item.revision + 1,
        objective: objective.filter(|text| *text != item.objective),
        plan: change.plan.filter(|text| Some(text) != item.plan.as_ref()),
        plan_status: change.plan_status.filter(|status| *status != item.plan_status),
        todo: change.todo.filter(|todo| *todo != item.todo),
    };
    let differs = updated.objective.is_some()
        || updated.plan.is_some()
        || updated.plan_status.is_some()
        || updated.todo.is_some();
    let was_blocked = item.blocked_by.clone();
    if differs {
        step.emit(updated);
    }
    let revision = step.state.work.open(id).map_or(0, |item| item.revision) + 1;
    match (blocked_by, still_blocked) {
        (Some(None), _) if was_blocked.is_some() => {
            step.emit(WorkItemUnblocked { work_item_id: id.clone(), revision });
        }
        (_, Some(blocker)) if was_blocked.as_ref() != Some(&blocker) || recheck_at.is_some() => {
            step.emit(WorkItemBlocked { work_item_id: id.clone(), revision, blocked_by: blocker, recheck_at });
        }
        _ => {}
    }
    shown(step, id)
}

/// Completion is an explicit act. It ends the item's waits, their timers, and the tick that would offer it.
pub(super) fn complete(step: &mut Step<'_>, id: &WorkItemId, report: String) -> Result<Done, Refusal> {
    require_open(step, id)?;
    let report = line(report, limits::TEXT_BYTES, "report")?;
    let waits: Vec<_> = step.state.waits.of_item(id).map(|wait| wait.waiting_intent_id.clone()).collect();
    for wait in &waits {
        cancel_wait(step, wait, "work_item_completed");
    }
    let tick = step.state.work.open(id).and_then(|item| item.ticks.undelivered.clone());
    if let Some(tick) = tick {
        drop_if_waiting(step, &tick, "work_item_completed");
    }
    let revision = step.state.work.open(id).map_or(0, |item| item.revision) + 1;
    step.emit(WorkItemCompleted { work_item_id: id.clone(), revision, report });
    shown(step, id)
}
