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
use crate::rules::step::Step;
use crate::state::task::Task;
use crate::tool::Command;
use crate::vocabulary::{TaskKind, TaskStatus};

use super::act::{Acted, Actor, done, line};
use super::turn::turn_of;
use super::waits::{drop_if_waiting, naming, trigger_wait};
use super::work;

/// Tasks that a list shows to a model; a person has pages.
const LISTED_MAX: usize = 100;

pub(super) fn create(step: &mut Step<'_>, mut task: TaskCreated) -> Result<Answer, Refusal> {
    if step.state.planes.tasks.get(&task.task_id).is_some() {
        step.emit(TaskUpdateIgnored {
            task_id: task.task_id,
            reported: TaskStatus::Queued,
            evidence: vec!["created_twice".to_owned()],
        });
        return Ok(Answer::Unchanged);
    }
    if step.state.planes.tasks.open().len() >= limits::OPEN_RECORDS_MAX {
        return Err(Refusal::new("too_many_tasks", "too many tasks are open", "end some of them first"));
    }
    // A call of the turn that runs. A person's command belongs to no item, and a report may come after its turn.
    let is_of_turn = task.exec_id.as_ref().is_some_and(|exec_id| turn_of(step, exec_id).is_some());
    if is_of_turn && task.work_item_id.is_none() {
        task.work_item_id = work::anchor(step, None)?;
    }
    let delegated = match (&task.task_kind, &task.work_item_id, &task.child_agent_id) {
        (TaskKind::ChildAgent, Some(item), Some(child)) if step.state.planes.work.open(item).is_some() => {
            Some(WorkItemDelegated {
                work_item_id: item.clone(),
                task_id: task.task_id.clone(),
                child_agent_id: child.clone(),
            })
        }
        (TaskKind::ChildAgent | TaskKind::Command, _, _) => None,
    };
    step.emit(task);
    if let Some(delegated) = delegated {
        step.emit(delegated);
    }
    Ok(Answer::Done)
}

pub(super) fn run(step: &mut Step<'_>, task_id: TaskId, recovery: Option<String>) -> Answer {
    match step.state.planes.tasks.open().get(&task_id).map(|task| task.status) {
        Some(TaskStatus::Queued) => {
            step.emit(TaskRunning { task_id: task_id.clone(), recovery });
            end_if_unwanted(step, task_id);
            Answer::Done
        }
        None if planted!(ReopenedTask) && step.state.planes.tasks.owed().contains_key(&task_id) => {
            step.emit(TaskRunning { task_id, recovery });
            Answer::Done
        }
        _ => ignored(step, task_id, TaskStatus::Running),
    }
}

/// A command whose call was cut off while it became a task, or whose agent was stopped, does not go on.
fn end_if_unwanted(step: &mut Step<'_>, task_id: TaskId) {
    let Some(task) = step.state.planes.tasks.open().get(&task_id).filter(|task| task.kind == TaskKind::Command) else {
        return;
    };
    let calling = step.state.turns.current.as_ref().map(|turn| &turn.exec_id);
    let evidence = if task.exec_id.is_some() && task.exec_id.as_ref() != calling {
        "its_call_was_cut_off"
    } else if !step.state.lifecycle.is_runnable() {
        "agent_not_running"
    } else {
        return;
    };
    step.emit(TaskCancelling { task_id, force: false, evidence: vec![evidence.to_owned()] });
}

/// What is open, what is owed, and what ended lately; oldest first.
pub(super) fn list(step: &Step<'_>) -> Listed<TaskView> {
    let tasks = &step.state.planes.tasks;
    let all = tasks.recent().iter().chain(tasks.owed().values()).chain(tasks.open().values());
    let mut all: Vec<&Task> = all.collect();
    all.sort_by_key(|task| task.seq);
    let newest = all.iter().rev().take(LISTED_MAX).rev();
    Listed { items: newest.map(|task| TaskView::from(*task)).collect(), truncated: all.len() > LISTED_MAX }
}

pub(super) fn show(step: &Step<'_>, id: &TaskId) -> Acted {
    match step.state.planes.tasks.get(id) {
        Some(task) => done(&TaskView::from(task)),
        None => {
            Err(Refusal::new("not_found", format!("{id} is no task that is open or ended lately"), "list the tasks"))
        }
    }
}

/// A person's command: a task from the start.
pub(super) fn run_command(
    step: &mut Step<'_>,
    actor: &Actor,
    command: String,
    workdir: Option<String>,
    tty: bool,
    accepts_input: bool,
) -> Acted {
    let command = line(command, limits::COMMAND_BYTES, "cmd")?;
    if let Actor::Model(_) = actor {
        return Err(Refusal::new("not_yours", "a model starts commands with ExecCommand", "call ExecCommand"));
    }
    if !step.state.lifecycle.is_runnable() {
        let hint = format!("start it first: abide agent start {}", step.state.id());
        return Err(Refusal::new("stopped", "a stopped agent runs no commands", hint));
    }
    let task_id = step.fresh.task();
    let command = Command { command, workdir, tty, accepts_input };
    create(step, TaskCreated::of_command(task_id.clone(), command))?;
    show(step, &task_id)
}

pub(super) fn end(step: &mut Step<'_>, status: TaskStatus, end: TaskEnd) -> Result<Answer, Refusal> {
    if !status.is_terminal() {
        return Err(Refusal::new("not_terminal", format!("{status} is not an end"), "report how it ended"));
    }
    if !step.state.planes.tasks.open().contains_key(&end.task_id) {
        return Ok(ignored(step, end.task_id, status));
    }
    end_open(step, status, end);
    Ok(Answer::Done)
}

/// Ends an open task. Its result is owed from here on; settling queues it in the same commit.
pub(super) fn end_open(step: &mut Step<'_>, status: TaskStatus, mut end: TaskEnd) {
    let task_id = end.task_id.clone();
    let task = step.state.planes.tasks.open().get(&task_id);
    end.evidence.extend(task.iter().flat_map(|task| task.asked.iter().cloned()));
    let delegated_for = task.filter(|task| task.delegated).and_then(|task| task.work_item_id.clone());
    step.emit(match status {
        TaskStatus::Completed => Fact::from(TaskCompleted { end }),
        TaskStatus::Failed => TaskFailed { end }.into(),
        TaskStatus::Cancelled => TaskCancelled { end }.into(),
        TaskStatus::Interrupted | TaskStatus::Queued | TaskStatus::Running | TaskStatus::Cancelling => {
            TaskInterrupted { end }.into()
        }
    });
    if let Some(work_item_id) = delegated_for {
        step.emit(WorkItemDelegationCompleted { work_item_id, task_id, task_status: status });
    }
}

/// A late or doubled report is evidence, and changes nothing.
fn ignored(step: &mut Step<'_>, task_id: TaskId, reported: TaskStatus) -> Answer {
    let known = step.state.planes.tasks.get(&task_id);
    let why = known.map_or_else(|| "unknown_task".to_owned(), |task| format!("task_is {}", task.status));
    step.emit(TaskUpdateIgnored { task_id, reported, evidence: vec![why] });
    Answer::Unchanged
}

/// A result was read: it is no longer owed, nothing needs to carry it, and nobody waits for it any more.
pub(super) fn settle_result(step: &mut Step<'_>, task_id: &TaskId, exec_id: &ExecId, evidence: &str) {
    let Some(task) = step.state.planes.tasks.owed().get(task_id) else { return };
    let carried_by = task.result_message.clone();
    step.emit(TaskResultDelivered {
        task_id: task_id.clone(),
        exec_id: exec_id.clone(),
        evidence: vec![evidence.to_owned()],
    });
    if let Some(message) = carried_by {
        drop_if_waiting(step, &message, "result_read");
    }
    if planted!(WaitOutlivesTask) {
        return;
    }
    for wait in naming(step, &Resource::Task(task_id.clone())) {
        trigger_wait(step, &wait, None, vec![format!("result_read {task_id}")]);
    }
}
