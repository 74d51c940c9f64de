//! Workspaces: what is bound to the agent, what it works in, and what becomes of a worktree.

use crate::act_result::{self, told_workspace};
use crate::effect::{Effect, WorkspaceEffect};
use crate::fact::{
    DiskHasRoom, DiskShort, Fact, RuntimeErrorRecorded, WorkspaceAttached, WorkspaceDetached, WorkspaceOccupied,
    WorkspaceReleased, WorkspaceUsed, WorktreeKept, WorktreeRemoved, WorktreeRemoving,
};
use crate::input::{Answer, Refusal, Removal};
use crate::refusal::ErrorCode;
use crate::rules::transaction::Transaction;
use crate::time::Time;
use crate::vocabulary::{Boundary, ControlAction};

use super::act::{Acted, Actor, answer_with, require_room};

/// Binds a folder that is not bound yet, and chooses it.
pub(super) fn bind_workspace(tx: &mut Transaction<'_>, attached: WorkspaceAttached) {
    let root = attached.root.clone();
    tx.emit(attached);
    tx.emit(WorkspaceUsed { root });
}

/// Binds a folder unless it is bound, and chooses it unless it is chosen.
pub(super) fn use_one(tx: &mut Transaction<'_>, attached: WorkspaceAttached) -> Result<Answer, Refusal> {
    let root = attached.root.clone();
    match tx.state.planes.workspaces.attached().get(&root) {
        Some(bound) if bound.removing => {
            return Err(Refusal::new(ErrorCode::BeingRemoved, format!("{root} is being removed")));
        }
        Some(_) => {}
        None => {
            require_room(tx.state.planes.workspaces.attached().len(), "workspaces")?;
            tx.emit(attached);
        }
    }
    if tx.state.planes.workspaces.active().is_none_or(|active| active.root != root) {
        tx.emit(WorkspaceUsed { root: root.clone() });
    }
    let shown =
        tx.state.planes.workspaces.attached().get(&root).map(|bound| told_workspace(&tx.state.workspace_view(bound)));
    Ok(Answer::Acted(shown.unwrap_or_default()))
}

pub(super) fn occupy(tx: &mut Transaction<'_>, workspace: String) -> Answer {
    if tx.state.planes.workspaces.occupied() == Some(&workspace) {
        return Answer::Unchanged;
    }
    tx.emit(WorkspaceOccupied { workspace });
    Answer::Done
}

/// Said again and again while it is so: a daemon that is gone says nothing, and the wait ends by itself.
pub(super) fn hold_for_disk(tx: &mut Transaction<'_>, until: Time, evidence: String) -> Answer {
    if tx.state.lifecycle.archived || until <= tx.now {
        return Answer::Unchanged;
    }
    tx.emit(DiskShort { until, evidence });
    Answer::Done
}

pub(super) fn disk_has_room(tx: &mut Transaction<'_>) -> Answer {
    if tx.state.lifecycle.disk_short.is_none() {
        return Answer::Unchanged;
    }
    tx.emit(DiskHasRoom {});
    Answer::Done
}

/// A folder is held while a turn runs or a command does. Its release is asked for by the transaction that ends the last of them;
/// or by the one that heard of the folder only then.
pub(super) fn let_go(tx: &mut Transaction<'_>) {
    let state = &*tx.state;
    let Some(workspace) = state.planes.workspaces.occupied() else { return };
    let in_use = state.turns.current.is_some()
        || state.planes.tasks.commands() > 0
        || !state.planes.timers.checking().is_empty();
    // A stop asks for it itself.
    let stops = |fact: &Fact| matches!(fact, Fact::ControlApplied(fact) if fact.action == ControlAction::Stop);
    if !in_use && tx.facts().iter().any(may_end_use) && !tx.facts().iter().any(stops) {
        let workspace = workspace.to_owned();
        tx.ask_again(Effect::Workspace(WorkspaceEffect::Release { workspace, action: None }));
    }
}

fn may_end_use(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::TurnTerminal(_)
            | Fact::TurnAborted(_)
            | Fact::TaskCompleted(_)
            | Fact::TaskFailed(_)
            | Fact::TaskCancelled(_)
            | Fact::TaskInterrupted(_)
            | Fact::TimerFired(_)
            | Fact::TimerMissed(_)
            | Fact::WorkspaceOccupied(_)
    )
}

/// A failure to let go is a control error: it stands until a turn completes, and every surface shows it.
pub(super) fn release(
    tx: &mut Transaction<'_>,
    workspace: String,
    action: Option<ControlAction>,
    error: Option<String>,
) -> Answer {
    if error.is_none() && tx.state.planes.workspaces.occupied() != Some(&workspace) {
        return Answer::Unchanged;
    }
    if let Some(error) = &error {
        let error = format!("the workspace {workspace} could not be released: {error}");
        tx.emit(RuntimeErrorRecorded { error });
    }
    // By the action that asked for it, not by the status: an agent may be started again before it is released.
    let (boundary, evidence) = match action {
        None => (Boundary::Turn, "no_turn_and_no_command"),
        Some(ControlAction::Restart) => (Boundary::Bootstrap, "restart"),
        Some(action) => (Boundary::Control, action.as_str()),
    };
    released(tx, workspace, error, action, boundary, evidence);
    Answer::Done
}

pub(super) fn released(
    tx: &mut Transaction<'_>,
    workspace: String,
    error: Option<String>,
    action: Option<ControlAction>,
    boundary: Boundary,
    evidence: &str,
) {
    let status = tx.state.status();
    tx.emit(WorkspaceReleased {
        workspace,
        error,
        action,
        boundary: Some(boundary),
        previous_status: Some(status),
        next_status: Some(status),
        exec_id: None,
        task_ids: Vec::new(),
        evidence: vec![evidence.to_owned()],
    });
}

/// Ends a binding. A worktree is removed with it, once what is in it is safe; until then it stays bound.
pub(super) fn detach(tx: &mut Transaction<'_>, actor: &Actor, folder: &str, discard: bool) -> Acted {
    let Some(workspace) = tx.state.planes.workspaces.find(folder) else {
        return Err(Refusal::new(ErrorCode::NotFound, format!("{folder} is not attached, or more than once"))
            .with_hint("list the workspaces, and name a root"));
    };
    let (root, is_worktree, removing) = (workspace.root.clone(), workspace.worktree.is_some(), workspace.removing);
    let here = tx.state.planes.workspaces.active().is_some_and(|active| active.root == root);
    // A command stays where it was started when the agent goes elsewhere: no worktree goes while any runs.
    let busy = tx.state.turns.current.is_some() || tx.state.planes.tasks.commands() > 0;
    if busy && (here || is_worktree) {
        let hint = "stop the agent or wait until its turn and its tasks are over";
        return Err(Refusal::new(ErrorCode::InUse, format!("the agent works in {root}, or a command of it may"))
            .with_hint(hint));
    }
    let evidence = vec![format!("detached_by {}", actor.name())];
    if is_worktree && !removing {
        tx.emit(WorktreeRemoving { root: root.clone(), evidence, discard });
    } else if !is_worktree {
        tx.emit(WorkspaceDetached { root: root.clone(), evidence });
    }
    let bound = tx.state.planes.workspaces.attached().get(&root);
    let shown = bound.map(|bound| told_workspace(&tx.state.workspace_view(bound)));
    answer_with(&act_result::WorkspaceDetached { root, removing: is_worktree, workspace: shown })
}

pub(super) fn removed(tx: &mut Transaction<'_>, root: String, removal: Result<Removal, String>) -> Answer {
    if !tx.state.planes.workspaces.attached().get(&root).is_some_and(|workspace| workspace.removing) {
        return Answer::Unchanged;
    }
    match removal {
        Ok(Removal { patch, branches, evidence }) => tx.emit(WorktreeRemoved { root, patch, branches, evidence }),
        Err(error) => tx.emit(WorktreeKept { root, error }),
    }
    Answer::Done
}
