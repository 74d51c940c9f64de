//! Whether the agent may run: creation, start, stop, abort, shutdown, boot, quarantine, fork.
//!
//! Each is facts here, and what is left to do in the world follows from them as effects.

use crate::config::{Config, Identity};
use crate::effect::{Effect, WorkspaceEffect};
use crate::fact::{
    AgentArchived, AgentCreated, AgentForked, AgentQuarantined, ApprovalDecided, ControlAdmitted, ControlApplied,
    LimitsChanged, PostureChanged, TaskCancelling, TaskEnd, WaitingIntentCreated, WakeHintIgnored, WorkspaceDetached,
    WorktreeRemoving,
};
use crate::id::{AgentId, ExecId, MessageId, Seq, TaskId, WorkItemId};
use crate::input::{Answer, BootContext, Refusal};
use crate::refusal::ErrorCode;
use crate::rules::transaction::Transaction;
use crate::state::lifecycle::Control;
use crate::state::task::Task;
use crate::vocabulary::{
    AbortReason, ApprovalStatus, Boundary, BriefKind, ControlAction, DeliveryMode, Status, TaskKind, TaskStatus,
    WaitKind, WaitSource,
};

use super::children;
use super::clock;
use super::due;
use super::hold;
use super::model;
use super::task::end_open;
use super::trigger;
use super::turn::{Abort, abort_turn, cut_turn, record_brief};
use super::waits::{cancel_timer, cancel_wait};
use super::workspace;

pub(super) fn create(
    tx: &mut Transaction<'_>,
    identity: Identity,
    config: Config,
    start: bool,
) -> Result<Answer, Refusal> {
    if tx.state.seq > 0 {
        return Err(Refusal::new(ErrorCode::Exists, format!("an agent called {} exists already", tx.state.id())));
    }
    tx.emit(AgentCreated { identity, config, start });
    if start {
        start_created(tx, "created".to_owned());
    }
    Ok(Answer::Done)
}

/// Hands a new agent to the scheduler.
pub(super) fn start_created(tx: &mut Transaction<'_>, evidence: String) {
    let admitted = admit(tx, Change::new(ControlAction::Start, Boundary::Bootstrap, vec![evidence]));
    apply(tx, admitted);
}

/// One action of control: what it is, what it affects outside, and what says so.
#[derive(Clone)]
struct Change {
    action: ControlAction,
    boundary: Boundary,
    affected: Affected,
    evidence: Vec<String>,
}

/// The executions, tasks and folders that control ends or lets go of.
#[derive(Debug, Clone, Default)]
pub(super) struct Affected {
    pub exec_id: Option<ExecId>,
    pub task_ids: Vec<TaskId>,
    pub workspace: Option<String>,
}

impl Change {
    fn new(action: ControlAction, boundary: Boundary, evidence: Vec<String>) -> Change {
        Change { action, boundary, affected: Affected::default(), evidence }
    }

    fn affecting(self, affected: Affected) -> Change {
        Change { affected, ..self }
    }
}

/// An action that was admitted, and the status that the agent had then: an execution that is aborted between admission
/// and application is part of what the action does.
struct Admitted {
    change: Change,
    previous_status: Status,
}

fn admit(tx: &mut Transaction<'_>, change: Change) -> Admitted {
    let previous_status = tx.state.status();
    let Change { action, boundary, affected, evidence } = change.clone();
    let next_status = Some(next_status(tx, action));
    let Affected { exec_id, task_ids, workspace } = affected;
    tx.emit(ControlAdmitted { action, boundary, previous_status, next_status, exec_id, task_ids, workspace, evidence });
    Admitted { change, previous_status }
}

/// Applies an action, and leaves its trail.
fn apply(tx: &mut Transaction<'_>, admitted: Admitted) {
    let Admitted { change: Change { action, boundary, affected, evidence }, previous_status } = admitted;
    let next_status = next_status(tx, action);
    let Affected { exec_id, task_ids, workspace } = affected;
    tx.emit(ControlApplied {
        action,
        boundary,
        previous_status,
        next_status,
        exec_id: exec_id.clone(),
        task_ids: task_ids.clone(),
        workspace: workspace.clone(),
        evidence: evidence.clone(),
    });
    let next_status = tx.state.status();
    if previous_status != next_status {
        let action = Some(action);
        tx.emit(PostureChanged {
            action,
            boundary,
            previous_status,
            next_status,
            exec_id,
            task_ids,
            workspace,
            evidence,
        });
    }
}

fn next_status(tx: &Transaction<'_>, action: ControlAction) -> Status {
    match action {
        ControlAction::Start => Status::AwakeIdle,
        ControlAction::Stop => Status::Stopped,
        ControlAction::Shutdown => tx.state.status(),
        ControlAction::Restart if tx.state.lifecycle.control == Control::Booting => Status::AwakeIdle,
        ControlAction::Restart => tx.state.status(),
    }
}

pub(super) fn start(tx: &mut Transaction<'_>) -> Result<Answer, Refusal> {
    if tx.state.lifecycle.leaving.is_some() {
        return Err(Refusal::new(ErrorCode::Leaving, "this child is leaving"));
    }
    let status = tx.state.status();
    match status {
        Status::Stopped | Status::Booting => {}
        Status::AwakeIdle | Status::AwakeRunning | Status::Asleep => {
            return Err(Refusal::new(ErrorCode::NotStopped, format!("the agent is {status}, it runs already"))
                .with_hint("send it a message, or wake it; start is for stopped agents"));
        }
    }
    let was = match &tx.state.lifecycle.control {
        Control::Quarantined { reason } => format!("was_quarantined {reason}"),
        Control::Booting | Control::Runnable | Control::Stopped => format!("was_{status}"),
    };
    let evidence = vec![was, format!("messages_pending {}", tx.state.planes.queue.pending())];
    let admitted = admit(tx, Change::new(ControlAction::Start, Boundary::Control, evidence));
    apply(tx, admitted);
    hold::release(tx, "started");
    Ok(Answer::Done)
}

/// A person stops the agent. A child that is stopped has nothing more to do.
pub(super) fn stop(tx: &mut Transaction<'_>) -> Result<Answer, Refusal> {
    if tx.state.definition.identity.supervisor.is_some() {
        return children::dismiss(tx, vec!["stopped_by_operator".to_owned()]);
    }
    Ok(halt(tx))
}

pub(super) fn halt(tx: &mut Transaction<'_>) -> Answer {
    match tx.state.lifecycle.control {
        Control::Stopped => return Answer::Unchanged,
        // It does not run; a stop only lets go of what it still holds.
        Control::Quarantined { .. }
            if tx.state.planes.tasks.open().is_empty() && tx.state.planes.workspaces.occupied().is_none() =>
        {
            return Answer::Unchanged;
        }
        Control::Quarantined { .. } | Control::Booting | Control::Runnable => {}
    }
    let affected = Affected {
        exec_id: tx.state.turns.current.as_ref().map(|turn| turn.exec_id.clone()),
        task_ids: tx.state.planes.tasks.open().keys().cloned().collect(),
        workspace: tx.state.planes.workspaces.occupied().map(str::to_owned),
    };
    let evidence = vec![format!("messages_pending {}", tx.state.planes.queue.pending())];
    let change = Change::new(ControlAction::Stop, Boundary::Control, evidence).affecting(affected.clone());
    let mut admitted = admit(tx, change);
    abort_turn(tx, Abort::by(ControlAction::Stop, AbortReason::Stop, Boundary::Control, "stop").with(affected));
    end_autonomous_wakeups(tx);
    due::end_checks(tx);
    admitted.change.affected.task_ids = cancel_tasks(tx, "stop", |_| true);
    admitted.change.evidence = vec![format!("messages_kept {}", tx.state.planes.queue.len())];
    apply(tx, admitted);
    Answer::Done
}

/// Sleeps end, and hints that would only have kept the agent going. What somebody said is kept.
fn end_autonomous_wakeups(tx: &mut Transaction<'_>) {
    let sleeps = tx.state.planes.waits.open().values().filter(|wait| wait.kind == WaitKind::Sleep);
    let sleeps: Vec<_> = sleeps.map(|wait| wait.waiting_intent_id.clone()).collect();
    for sleep in sleeps {
        cancel_wait(tx, &sleep, "stop");
    }
    let blank = tx.state.planes.hints.pending().values().filter(|hint| !hint.is_contentful());
    let blank: Vec<_> = blank.map(|hint| (hint.source.clone(), hint.generation, hint.reason.clone())).collect();
    for (source, generation, reason) in blank {
        let evidence = vec!["stop".to_owned()];
        tx.emit(WakeHintIgnored { source, generation, reason, resource: None, body: None, evidence });
    }
}

/// Asks open tasks to end. Those that were asked before are not asked again.
fn cancel_tasks(tx: &mut Transaction<'_>, evidence: &str, which: fn(&Task) -> bool) -> Vec<TaskId> {
    let open = tx.state.planes.tasks.open().values().filter(|task| which(task));
    let open: Vec<_> = open.map(|task| (task.task_id.clone(), task.status)).collect();
    for (task_id, status) in &open {
        if *status != TaskStatus::Cancelling {
            let evidence = vec![evidence.to_owned()];
            tx.emit(TaskCancelling { task_id: task_id.clone(), force: false, evidence });
        }
    }
    open.into_iter().map(|(id, _)| id).collect()
}

pub(super) fn abort(tx: &mut Transaction<'_>, exec_id: Option<ExecId>) -> Result<Answer, Refusal> {
    let Some(turn) = &tx.state.turns.current else {
        return Err(Refusal::new(ErrorCode::NoTurn, "no turn is running"));
    };
    if let Some(wanted) = exec_id.filter(|wanted| *wanted != turn.exec_id) {
        return Err(Refusal::new(ErrorCode::StaleExec, format!("{wanted} is over; {} runs", turn.exec_id)));
    }
    abort_turn(tx, Abort::of(AbortReason::Abort, Boundary::Control, "abort"));
    Ok(Answer::Done)
}

pub(super) fn shutdown(tx: &mut Transaction<'_>, at_once: bool, reason: &str) -> Answer {
    let reason = format!("reason {reason}");
    if at_once {
        let abort = Abort::by(ControlAction::Shutdown, AbortReason::Shutdown, Boundary::Shutdown, "shutdown_at_once");
        abort_turn(tx, abort.because(reason.clone()));
    }
    if tx.state.lifecycle.shutdown
        || matches!(tx.state.lifecycle.control, Control::Stopped | Control::Quarantined { .. })
    {
        return if tx.facts().is_empty() { Answer::Unchanged } else { Answer::Done };
    }
    // A child goes on by itself when the daemon is back, as after a crash; only a process can't outlive it.
    let ends = |task: &Task| task.kind == TaskKind::Command;
    let task_ids = tx.state.planes.tasks.open().values().filter(|task| ends(task)).map(|task| task.task_id.clone());
    let affected = Affected { task_ids: task_ids.collect(), ..Affected::default() };
    let change = Change::new(ControlAction::Shutdown, Boundary::Shutdown, vec![reason]).affecting(affected);
    let admitted = admit(tx, change);
    cancel_tasks(tx, "shutdown", ends);
    apply(tx, admitted);
    Answer::Done
}

/// Work that was in flight when the process ended is cut; a boot that finds nothing cut records nothing.
pub(super) fn boot(tx: &mut Transaction<'_>, mut context: BootContext) -> Answer {
    if let Some(models) = &context.models {
        model::follow(tx, models);
    }
    if let Some(limits) = context.limits.filter(|limits| *limits != tx.state.definition.limits) {
        tx.emit(LimitsChanged { limits });
    }
    if !context.holds_turns {
        hold::release(tx, "restart");
    }
    let lost: Vec<TaskId> = tx
        .state
        .planes
        .tasks
        .open()
        .values()
        .filter(|task| task.kind == TaskKind::Command)
        .map(|task| task.task_id.clone())
        .collect();
    children::take_up_again(tx);
    let booting = tx.state.lifecycle.control == Control::Booting;
    let left = tx.state.planes.workspaces.occupied().filter(|root| context.occupied.as_deref() != Some(root));
    let left = left.map(str::to_owned);
    // A life that crashed took it, and nobody asks for its release any more.
    let kept = context.occupied.take();
    let removals = removals(tx);
    let cut = tx.state.turns.current.is_some()
        || !lost.is_empty()
        || left.is_some()
        || !removals.is_empty()
        || kept.is_some();
    let cut = cut || !tx.state.planes.timers.checking().is_empty();
    if !cut && !tx.state.lifecycle.shutdown && !booting {
        return if tx.facts().is_empty() { Answer::Unchanged } else { Answer::Done };
    }
    let exec_id = tx.state.turns.current.as_ref().map(|turn| turn.exec_id.clone());
    let affected = Affected { exec_id, task_ids: lost.clone(), workspace: left.clone() };
    let after = match (tx.state.lifecycle.shutdown, cut) {
        (true, _) => "after_shutdown",
        (false, true) => "process_ended",
        (false, false) => "was_booting",
    };
    let change = Change::new(ControlAction::Restart, Boundary::Bootstrap, vec![after.to_owned()]);
    let admitted = admit(tx, change.affecting(affected));
    cut_turn(tx);
    for task_id in &lost {
        let found = context.ended.remove(task_id).unwrap_or_default();
        interrupt(tx, task_id, std::iter::once("restart".to_owned()).chain(found).collect());
    }
    if let Some(workspace) = left {
        let (action, boundary) = (Some(ControlAction::Restart), Boundary::Bootstrap);
        workspace::released(tx, workspace, None, action, boundary, "process_ended");
    }
    if let Some(workspace) = kept {
        tx.ask_again(Effect::Workspace(WorkspaceEffect::Release { workspace, action: Some(ControlAction::Restart) }));
    }
    // Whether it was removed is for git to say; asking again loses nothing.
    for root in removals {
        let discard = tx.state.planes.workspaces.attached().get(&root).is_some_and(|workspace| workspace.discard);
        tx.emit(WorktreeRemoving { root, evidence: vec!["restart".to_owned()], discard });
    }
    apply(tx, admitted);
    due::check_again(tx);
    Answer::Done
}

/// Worktrees whose removal was under way.
fn removals(tx: &Transaction<'_>) -> Vec<String> {
    let attached = tx.state.planes.workspaces.attached().values();
    attached.filter(|workspace| workspace.removing).map(|workspace| workspace.root.clone()).collect()
}

fn interrupt(tx: &mut Transaction<'_>, task_id: &TaskId, evidence: Vec<String>) {
    let end = TaskEnd { task_id: task_id.clone(), evidence, ..TaskEnd::default() };
    end_open(tx, TaskStatus::Interrupted, end);
}

pub(super) fn archive(tx: &mut Transaction<'_>) -> Result<Answer, Refusal> {
    let status = tx.state.status();
    if status != Status::Stopped {
        let detail = format!("the agent is {status}, and only a stopped one can be deleted");
        return Err(Refusal::new(ErrorCode::NotStopped, detail).with_hint("stop it first"));
    }
    if !tx.state.planes.tasks.open().is_empty() {
        let open = tx.state.planes.tasks.open().len();
        return Err(Refusal::new(ErrorCode::TasksOpen, format!("{open} of its tasks are still ending")));
    }
    if let Some(worktree) =
        tx.state.planes.workspaces.attached().values().find(|workspace| workspace.worktree.is_some())
    {
        return Err(Refusal::new(ErrorCode::WorktreeLeft, format!("it has the worktree {}", worktree.root)));
    }
    tx.emit(AgentArchived {});
    Ok(Answer::Done)
}

pub(super) fn quarantine(tx: &mut Transaction<'_>, reason: String) -> Answer {
    if matches!(tx.state.lifecycle.control, Control::Quarantined { .. }) {
        return Answer::Unchanged;
    }
    let previous_status = tx.state.status();
    abort_turn(tx, Abort::of(AbortReason::Stop, Boundary::Bootstrap, "quarantine"));
    due::end_checks(tx);
    // A child goes with its supervisor: nobody would read its result. Commands are cut by the next boot.
    cancel_tasks(tx, "quarantine", |task| task.kind == TaskKind::ChildAgent);
    let evidence = vec![format!("quarantined {reason}")];
    tx.emit(AgentQuarantined { reason });
    let next_status = tx.state.status();
    if previous_status != next_status {
        tx.emit(PostureChanged::by_scheduler(Boundary::Bootstrap, previous_status, next_status, evidence));
    }
    Answer::Done
}

/// The runtime asks a person about something it will not decide by itself.
pub(super) fn ask_operator(tx: &mut Transaction<'_>, asked: String, about: Option<MessageId>) {
    record_brief(tx, BriefKind::Failure, asked.clone(), about);
    question(tx, asked, None);
}

/// A question that is told already: what it is about waits for the answer.
pub(super) fn question(tx: &mut Transaction<'_>, asked: String, work_item_id: Option<WorkItemId>) {
    let waiting_intent_id = tx.fresh.wait();
    tx.emit(WaitingIntentCreated {
        waiting_intent_id,
        kind: WaitKind::Operator,
        work_item_id,
        source: WaitSource::Runtime,
        resource: None,
        delivery_mode: DeliveryMode::EnqueueMessage,
        reason: asked,
        answers: None,
    });
}

/// A fork keeps the past and what was said to it; what the parent owns in the world stays the parent's.
pub(super) fn fork(tx: &mut Transaction<'_>, agent_id: AgentId, parent: AgentId, at_seq: Seq) -> Answer {
    // The past that it shares may have been recorded while the clock was ahead.
    clock::follow(tx);
    abort_turn(tx, Abort::of(AbortReason::Cut, Boundary::Bootstrap, "fork"));
    tx.emit(AgentForked { agent_id, parent, at_seq });
    let open: Vec<TaskId> = tx.state.planes.tasks.open().keys().cloned().collect();
    for task_id in &open {
        interrupt(tx, task_id, vec!["fork".to_owned()]);
    }
    let waits: Vec<_> = tx.state.planes.waits.open().keys().cloned().collect();
    for wait in &waits {
        cancel_wait(tx, wait, "fork");
    }
    let timers: Vec<_> = tx.state.planes.timers.active().keys().cloned().collect();
    for timer in &timers {
        cancel_timer(tx, timer, "fork");
    }
    let triggers: Vec<_> = tx.state.planes.triggers.values().cloned().collect();
    for trigger in triggers {
        trigger::end_trigger(tx, &trigger, "fork".to_owned());
    }
    let approvals: Vec<_> = tx.state.planes.approvals.pending().keys().cloned().collect();
    for approval_id in approvals {
        let decided_by = "fork".to_owned();
        tx.emit(ApprovalDecided { approval_id, status: ApprovalStatus::Expired, decided_by, lets_call: false });
    }
    let evidence = || vec!["fork".to_owned()];
    if let Some(workspace) = tx.state.planes.workspaces.occupied().map(str::to_owned) {
        workspace::released(tx, workspace, None, None, Boundary::Bootstrap, "fork");
    }
    let worktrees = tx.state.planes.workspaces.attached().values().filter(|workspace| workspace.worktree.is_some());
    let worktrees: Vec<String> = worktrees.map(|workspace| workspace.root.clone()).collect();
    for root in worktrees {
        tx.emit(WorkspaceDetached { root, evidence: evidence() });
    }
    Answer::Done
}
