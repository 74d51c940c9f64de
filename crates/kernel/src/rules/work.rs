//! Acts on work items.

use crate::act_result::{Listed, told};
use crate::budget::Limits;
use crate::fact::{
    TurnBound, WorkItemBlocked, WorkItemCompleted, WorkItemCreated, WorkItemPicked, WorkItemUnblocked, WorkItemUpdated,
};
use crate::id::WorkItemId;
use crate::limits;
use crate::open_json::ToolOutput;
use crate::refusal::{ErrorCode, Refusal};
use crate::rules::transaction::Transaction;
use crate::state::work::WorkItem;
use crate::todo::Todo;
use crate::tool::WorkItemChange;
use crate::vocabulary::{PlanStatus, TodoState, WorkItemFilter};

use super::act::{Acted, Actor, ahead, answer_with, require_room, require_text};
use super::turn::{end_sleeps, turn_of};
use super::waits::{cancel_wait, drop_if_waiting};

/// How many items one listing has at most.
const LISTED_MAX: usize = 100;

pub(super) fn require_open(tx: &Transaction<'_>, id: &WorkItemId) -> Result<(), Refusal> {
    if tx.state.planes.work.open(id).is_some() {
        return Ok(());
    }
    let hint = "list the open work items";
    Err(match tx.state.planes.work.get(id) {
        Some(_) => Refusal::new(ErrorCode::NotOpen, format!("{id} is completed")).with_hint(hint),
        None => {
            Refusal::new(ErrorCode::NotFound, format!("{id} is not an open work item of this agent")).with_hint(hint)
        }
    })
}

fn check_todo(todo: &[Todo]) -> Result<(), Refusal> {
    let too_long = todo.len() > limits::TODO_MAX || todo.iter().any(|entry| entry.text.len() > limits::LINE_BYTES);
    if too_long {
        return Err(Refusal::new(ErrorCode::TodoTooLong, "the todo list is too long"));
    }
    if todo.iter().filter(|entry| entry.state == TodoState::InProgress).count() > 1 {
        return Err(Refusal::new(ErrorCode::OneInProgress, "two entries are in progress"));
    }
    Ok(())
}

fn check_plan(plan: Option<&String>) -> Result<(), Refusal> {
    if plan.is_some_and(|plan| plan.len() > limits::TEXT_BYTES) {
        return Err(Refusal::new(ErrorCode::TooLong, "the plan is too long"));
    }
    Ok(())
}

pub(super) fn show_item(tx: &Transaction<'_>, id: &WorkItemId) -> Acted {
    match tx.state.planes.work.get(id) {
        Some(item) => answer_with(&tx.state.work_item_view(item)),
        None => {
            let message = format!("{id} is no work item that is open or was completed lately");
            Err(Refusal::new(ErrorCode::NotFound, message).with_hint("list the work items"))
        }
    }
}

/// Open items as they would be offered, then completed ones, newest first: what is cut off at the end matters least.
/// Plans and reports are long; one item at a time has them.
pub(super) fn list_items(tx: &Transaction<'_>, filter: WorkItemFilter) -> Listed<ToolOutput> {
    let work = &tx.state.planes.work;
    let mut open: Vec<&WorkItem> = work.items().values().filter(|item| work.matches_filter(item, filter)).collect();
    open.sort_by_key(|item| item.order);
    let completed = work.recent().iter().rev().filter(|item| work.matches_filter(item, filter));
    let (mut items, mut bytes, mut truncated) = (Vec::new(), 0, false);
    for item in open.into_iter().chain(completed) {
        let mut shape = told(&tx.state.work_item_view(item));
        if let Some(fields) = shape.as_object_mut() {
            fields.retain(|name, _| !matches!(name.as_str(), "plan" | "report"));
        }
        bytes += shape.to_string().len();
        if items.len() == LISTED_MAX || (bytes > limits::TEXT_BYTES && !items.is_empty()) {
            truncated = true;
            break;
        }
        items.push(shape);
    }
    Listed { items, truncated }
}

/// An item as it is asked for.
pub(super) struct Made {
    pub objective: String,
    pub plan: Option<String>,
    pub plan_status: Option<PlanStatus>,
    pub todo: Vec<Todo>,
    pub budget: Option<Limits>,
}

/// The caller that spends a budget does not set it.
fn check_budget(actor: &Actor, budget: Option<Limits>) -> Result<(), Refusal> {
    match (actor, budget) {
        (Actor::Model(_), Some(_)) => {
            Err(Refusal::new(ErrorCode::NotYours, "only a person sets a budget")
                .with_hint("ask the operator to raise it"))
        }
        (Actor::Model(_), None) | (Actor::Person(_), _) => Ok(()),
    }
}

pub(super) fn create(tx: &mut Transaction<'_>, actor: &Actor, made: Made) -> Acted {
    let Made { objective, plan, plan_status, todo, budget } = made;
    check_budget(actor, budget)?;
    let objective = require_text(objective, limits::LINE_BYTES, "objective")?;
    check_plan(plan.as_ref())?;
    check_todo(&todo)?;
    require_room(tx.state.planes.work.items().len(), "work items")?;
    let work_item_id = tx.fresh.work_item();
    let plan_status = plan_status.unwrap_or(PlanStatus::Draft);
    let budget = budget.unwrap_or_default();
    tx.emit(WorkItemCreated {
        work_item_id: work_item_id.clone(),
        objective,
        plan_status,
        plan,
        todo,
        budget,
        made_by: Some(actor.maker()),
    });
    // Shown as it was made: the guard against loops compares the results of equal calls, and one of them may bind.
    let shown = show_item(tx, &work_item_id);
    if tx.state.turns.current.as_ref().is_some_and(|turn| turn.work_item_id().is_none()) {
        bind_turn(tx, actor, &work_item_id);
    }
    shown
}

/// The item that a record belongs to: the one that was named, else the turn's, else the one in focus, else none. One
/// rule for tasks, waits, sleeps, approvals, timers and children.
pub(super) fn anchor(tx: &Transaction<'_>, named: Option<WorkItemId>) -> Result<Option<WorkItemId>, Refusal> {
    if let Some(id) = named {
        return require_open(tx, &id).map(|()| Some(id));
    }
    let is_open = |id: &WorkItemId| tx.state.planes.work.open(id).is_some();
    let of_turn = tx.state.turns.current.as_ref().and_then(|turn| turn.work_item_id().cloned()).filter(is_open);
    Ok(of_turn.or_else(|| tx.state.planes.work.current_id().cloned().filter(is_open)))
}

/// The same for records that a person makes, too: those are made in no turn, and belong to the item that was named.
pub(super) fn anchor_for(
    tx: &Transaction<'_>,
    actor: &Actor,
    named: Option<WorkItemId>,
) -> Result<Option<WorkItemId>, Refusal> {
    match (actor, &named) {
        (Actor::Person(_), None) => Ok(None),
        (Actor::Person(_), Some(_)) | (Actor::Model(_), _) => anchor(tx, named),
    }
}

/// Makes the model's turn one about this item. An item whose budget is spent pays for no turn.
fn bind_turn(tx: &mut Transaction<'_>, actor: &Actor, id: &WorkItemId) {
    let Actor::Model(exec_id) = actor else { return };
    let Some(turn) = turn_of(tx, exec_id) else { return };
    let previous = turn.work_item_id().cloned();
    let is_spent = tx.state.planes.work.open(id).is_none_or(|item| item.spent().is_some());
    if previous.as_ref() == Some(id) || is_spent {
        return;
    }
    tx.emit(TurnBound { exec_id: exec_id.clone(), work_item_id: id.clone(), previous });
    end_sleeps(tx, Some(id));
}

pub(super) fn pick_item(tx: &mut Transaction<'_>, actor: &Actor, id: &WorkItemId) -> Acted {
    require_open(tx, id)?;
    bind_turn(tx, actor, id);
    let previous = tx.state.planes.work.current_id().cloned();
    if previous.as_ref() != Some(id) {
        tx.emit(WorkItemPicked { work_item_id: id.clone(), previous });
    }
    show_item(tx, id)
}

pub(super) fn update(tx: &mut Transaction<'_>, actor: &Actor, id: &WorkItemId, change: WorkItemChange) -> Acted {
    require_open(tx, id)?;
    check_budget(actor, change.budget)?;
    let objective = change.objective.map(|text| require_text(text, limits::LINE_BYTES, "objective")).transpose()?;
    check_plan(change.plan.as_ref())?;
    if let Some(todo) = &change.todo {
        check_todo(todo)?;
    }
    let blocked_by = match change.blocked_by {
        Some(Some(text)) => Some(Some(require_text(text, limits::LINE_BYTES, "blocked_by")?)),
        other => other,
    };
    let recheck_at = change.recheck_after_ms.map(|ms| ahead(tx, ms)).transpose()?;
    let Some(item) = tx.state.planes.work.open(id) else { return show_item(tx, id) };
    let still_blocked = match &blocked_by {
        Some(blocker) => blocker.clone(),
        None => item.blocked_by.clone(),
    };
    if recheck_at.is_some() && still_blocked.is_none() {
        return Err(Refusal::new(ErrorCode::NotBlocked, "a recheck reminds of a blocker, and there is none"));
    }
    // Only what differs is a change: a record written again with the same content is no progress.
    let updated = WorkItemUpdated {
        work_item_id: id.clone(),
        revision: item.revision + 1,
        objective: objective.filter(|text| *text != item.objective),
        plan: change.plan.filter(|text| Some(text) != item.plan.as_ref()),
        plan_status: change.plan_status.filter(|status| *status != item.plan_status),
        todo: change.todo.filter(|todo| *todo != item.todo),
        budget: change.budget.filter(|budget| *budget != item.budget),
    };
    let differs = updated.objective.is_some()
        || updated.plan.is_some()
        || updated.plan_status.is_some()
        || updated.todo.is_some()
        || updated.budget.is_some();
    let was_blocked = item.blocked_by.clone();
    if differs {
        tx.emit(updated);
    }
    let revision = tx.state.planes.work.open(id).map_or(0, |item| item.revision) + 1;
    match (blocked_by, still_blocked) {
        (Some(None), _) if was_blocked.is_some() => {
            tx.emit(WorkItemUnblocked { work_item_id: id.clone(), revision });
        }
        (_, Some(blocker)) if was_blocked.as_ref() != Some(&blocker) || recheck_at.is_some() => {
            let made_by = recheck_at.map(|_| actor.maker());
            tx.emit(WorkItemBlocked { work_item_id: id.clone(), revision, blocked_by: blocker, recheck_at, made_by });
        }
        _ => {}
    }
    show_item(tx, id)
}

/// Completion is an explicit act. It ends the item's waits, their timers, and the tick that would offer it.
pub(super) fn complete(tx: &mut Transaction<'_>, id: &WorkItemId, report: String) -> Acted {
    require_open(tx, id)?;
    let report = require_text(report, limits::TEXT_BYTES, "report")?;
    let waits: Vec<_> = tx.state.planes.waits.of_item(id).map(|wait| wait.waiting_intent_id.clone()).collect();
    for wait in &waits {
        cancel_wait(tx, wait, "work_item_completed");
    }
    let tick = tx.state.planes.work.open(id).and_then(|item| item.ticks.undelivered.clone());
    if let Some(tick) = tick {
        drop_if_waiting(tx, &tick, "work_item_completed");
    }
    let revision = tx.state.planes.work.open(id).map_or(0, |item| item.revision) + 1;
    tx.emit(WorkItemCompleted { work_item_id: id.clone(), revision, report });
    show_item(tx, id)
}
