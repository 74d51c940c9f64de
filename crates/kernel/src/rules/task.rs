//! Reports about tasks, and the settling of their results.

use abide_views::task::TaskView;

use crate::act_result::Listed;
use crate::fact::{
    Fact, Resource, TaskCancelled, TaskCancelling, TaskCompleted, TaskCreated, TaskEnd, TaskFailed, TaskInterrupted,
    TaskResultDelivered, TaskRunning, TaskUpdateIgnored, WorkItemDelegated, WorkItemDelegationCompleted,
};
use crate::id::{ExecId, TaskId};
use crate::input::{Answer, Refusal};
use crate::limits;
use crate::refusal::ErrorCode;
use crate::rules::transaction::Transaction;
use crate::state::task::Task;
use crate::tool::Command;
use crate::vocabulary::{TaskKind, TaskStatus};

use super::act::{Acted, Actor, answer_with, require_text};
use super::turn::turn_of;
use super::waits::{drop_if_waiting, naming, trigger_wait};
use super::work;

/// Tasks that a list shows to a model; a person has pages.
const LISTED_MAX: usize = 100;

pub(super) fn create(tx: &mut Transaction<'_>, mut task: TaskCreated) -> Result<Answer, Refusal> {
    if tx.state.planes.tasks.get(&task.task_id).is_some() {
        tx.emit(TaskUpdateIgnored {
            task_id: task.task_id,
            reported: TaskStatus::Queued,
            evidence: vec!["created_twice".to_owned()],
        });
        return Ok(Answer::Unchanged);
    }
    if tx.state.planes.tasks.open().len() >= limits::OPEN_RECORDS_MAX {
        return Err(Refusal::new(ErrorCode::TooManyTasks, "too many tasks are open"));
    }
    // A call of the turn that runs. A person's command belongs to no item, and a report may come after its turn.
    let is_of_turn = task.exec_id.as_ref().is_some_and(|exec_id| turn_of(tx, exec_id).is_some());
    if is_of_turn && task.work_item_id.is_none() {
        task.work_item_id = work::anchor(tx, None)?;
    }
    let delegated = match (&task.task_kind, &task.work_item_id, &task.child_agent_id) {
        (TaskKind::ChildAgent, Some(item), Some(child)) if tx.state.planes.work.open(item).is_some() => {
            Some(WorkItemDelegated {
                work_item_id: item.clone(),
                task_id: task.task_id.clone(),
                child_agent_id: child.clone(),
            })
        }
        (TaskKind::ChildAgent | TaskKind::Command, _, _) => None,
    };
    tx.emit(task);
    if let Some(delegated) = delegated {
        tx.emit(delegated);
    }
    Ok(Answer::Done)
}

pub(super) fn run(tx: &mut Transaction<'_>, task_id: TaskId, recovery: Option<String>) -> Answer {
    match tx.state.planes.tasks.open().get(&task_id).map(|task| task.status) {
        Some(TaskStatus::Queued) => {
            tx.emit(TaskRunning { task_id: task_id.clone(), recovery });
            end_if_unwanted(tx, task_id);
            Answer::Done
        }
        _ => ignored(tx, task_id, TaskStatus::Running),
    }
}

/// A command whose call was cut off while it became a task, or whose agent was stopped, does not go on.
fn end_if_unwanted(tx: &mut Transaction<'_>, task_id: TaskId) {
    let Some(task) = tx.state.planes.tasks.open().get(&task_id).filter(|task| task.kind == TaskKind::Command) else {
        return;
    };
    let calling = tx.state.turns.current.as_ref().map(|turn| &turn.exec_id);
    let evidence = if task.exec_id.is_some() && task.exec_id.as_ref() != calling {
        "its_call_was_cut_off"
    } else if !tx.state.lifecycle.is_runnable() {
        "agent_not_running"
    } else {
        return;
    };
    tx.emit(TaskCancelling { task_id, force: false, evidence: vec![evidence.to_owned()] });
}

/// Tasks that are open, owed, or ended lately; oldest first.
pub(super) fn list_tasks(tx: &Transaction<'_>) -> Listed<TaskView> {
    let tasks = &tx.state.planes.tasks;
    let all = tasks.recent().iter().chain(tasks.owed().values()).chain(tasks.open().values());
    let mut all: Vec<&Task> = all.collect();
    all.sort_by_key(|task| task.seq);
    let newest = all.iter().rev().take(LISTED_MAX).rev();
    Listed { items: newest.map(|task| TaskView::from(*task)).collect(), truncated: all.len() > LISTED_MAX }
}

pub(super) fn show_task(tx: &Transaction<'_>, id: &TaskId) -> Acted {
    match tx.state.planes.tasks.get(id) {
        Some(task) => answer_with(&TaskView::from(task)),
        None => Err(Refusal::new(ErrorCode::NotFound, format!("{id} is no task that is open or ended lately"))
            .with_hint("list the tasks")),
    }
}

/// A person's command: a task from the start.
pub(super) fn run_command(
    tx: &mut Transaction<'_>,
    actor: &Actor,
    command: String,
    workdir: Option<String>,
    tty: bool,
    accepts_input: bool,
) -> Acted {
    let command = require_text(command, limits::COMMAND_BYTES, "cmd")?;
    if let Actor::Model(_) = actor {
        return Err(
            Refusal::new(ErrorCode::NotYours, "a model starts commands with ExecCommand").with_hint("call ExecCommand")
        );
    }
    if !tx.state.lifecycle.is_runnable() {
        return Err(Refusal::new(ErrorCode::Stopped, "a stopped agent runs no commands").fill("agent", tx.state.id()));
    }
    let task_id = tx.fresh.task();
    let command = Command { command, workdir, tty, accepts_input };
    create(tx, TaskCreated::of_command(task_id.clone(), command))?;
    show_task(tx, &task_id)
}

pub(super) fn end_task(tx: &mut Transaction<'_>, status: TaskStatus, end: TaskEnd) -> Result<Answer, Refusal> {
    if !status.is_terminal() {
        return Err(Refusal::new(ErrorCode::NotTerminal, format!("{status} is not an end")));
    }
    if !tx.state.planes.tasks.open().contains_key(&end.task_id) {
        return Ok(ignored(tx, end.task_id, status));
    }
    end_open(tx, status, end);
    Ok(Answer::Done)
}

/// Ends an open task. Its result is owed from here on; settling queues it in the same commit.
pub(super) fn end_open(tx: &mut Transaction<'_>, status: TaskStatus, mut end: TaskEnd) {
    let task_id = end.task_id.clone();
    let task = tx.state.planes.tasks.open().get(&task_id);
    end.evidence.extend(task.iter().flat_map(|task| task.asked.iter().cloned()));
    let delegated_for = task.filter(|task| task.delegated).and_then(|task| task.work_item_id.clone());
    tx.emit(match status {
        TaskStatus::Completed => Fact::from(TaskCompleted { end }),
        TaskStatus::Failed => TaskFailed { end }.into(),
        TaskStatus::Cancelled => TaskCancelled { end }.into(),
        TaskStatus::Interrupted | TaskStatus::Queued | TaskStatus::Running | TaskStatus::Cancelling => {
            TaskInterrupted { end }.into()
        }
    });
    if let Some(work_item_id) = delegated_for {
        tx.emit(WorkItemDelegationCompleted { work_item_id, task_id, task_status: status });
    }
}

/// A late or doubled report is evidence, and changes nothing.
fn ignored(tx: &mut Transaction<'_>, task_id: TaskId, reported: TaskStatus) -> Answer {
    let known = tx.state.planes.tasks.get(&task_id);
    let why = known.map_or_else(|| "unknown_task".to_owned(), |task| format!("task_is {}", task.status));
    tx.emit(TaskUpdateIgnored { task_id, reported, evidence: vec![why] });
    Answer::Unchanged
}

/// A result was read: it is no longer owed, nothing needs to carry it, and nobody waits for it any more.
pub(super) fn settle_result(tx: &mut Transaction<'_>, task_id: &TaskId, exec_id: &ExecId, evidence: &str) {
    let Some(task) = tx.state.planes.tasks.owed().get(task_id) else { return };
    let carried_by = task.result_message.clone();
    tx.emit(TaskResultDelivered {
        task_id: task_id.clone(),
        exec_id: exec_id.clone(),
        evidence: vec![evidence.to_owned()],
    });
    if let Some(message) = carried_by {
        drop_if_waiting(tx, &message, "result_read");
    }
    for wait in naming(tx, &Resource::Task(task_id.clone())) {
        trigger_wait(tx, &wait, None, vec![format!("result_read {task_id}")]);
    }
}
