//! Workspaces: what is bound to the agent, what it works in, and what becomes of a worktree.

use crate::act_result::{self, told_workspace};
use crate::effect::{Effect, WorkspaceEffect};
use crate::fact::{
    DiskHasRoom, DiskShort, Fact, RuntimeErrorRecorded, WorkspaceAttached, WorkspaceDetached, WorkspaceOccupied,
    WorkspaceReleased, WorkspaceUsed, WorktreeKept, WorktreeRemoved, WorktreeRemoving,
};
use crate::input::{Answer, Refusal, Removal};
use crate::rules::step::Step;
use crate::time::Time;
use crate::vocabulary::{Boundary, ControlAction};

use super::act::{Acted, Actor, done, room};

/// Binds a folder that is not bound yet, and chooses it.
pub(super) fn bind(step: &mut Step<'_>, attached: WorkspaceAttached) {
    let root = attached.root.clone();
    step.emit(attached);
    step.emit(WorkspaceUsed { root });
}

/// Binds a folder unless it is bound, and chooses it unless it is chosen.
pub(super) fn use_one(step: &mut Step<'_>, attached: WorkspaceAttached) -> Result<Answer, Refusal> {
    let root = attached.root.clone();
    match step.state.planes.workspaces.attached().get(&root) {
        Some(bound) if bound.removing => {
            return Err(Refusal::new("being_removed", format!("{root} is being removed"), "use another workspace"));
        }
        Some(_) => {}
        None => {
            room(step.state.planes.workspaces.attached().len(), "workspaces")?;
            step.emit(attached);
        }
    }
    if step.state.planes.workspaces.active().is_none_or(|active| active.root != root) {
        step.emit(WorkspaceUsed { root: root.clone() });
    }
    let shown = step
        .state
        .planes
        .workspaces
        .attached()
        .get(&root)
        .map(|bound| told_workspace(&step.state.workspace_view(bound)));
    Ok(Answer::Acted(shown.unwrap_or_default()))
}

pub(super) fn occupy(step: &mut Step<'_>, workspace: String) -> Answer {
    if step.state.planes.workspaces.occupied() == Some(&workspace) {
        return Answer::Unchanged;
    }
    step.emit(WorkspaceOccupied { workspace });
    Answer::Done
}

/// Said again and again while it is so: a daemon that is gone says nothing, and the wait ends by itself.
pub(super) fn hold_for_disk(step: &mut Step<'_>, until: Time, evidence: String) -> Answer {
    if step.state.lifecycle.archived || until <= step.now {
        return Answer::Unchanged;
    }
    step.emit(DiskShort { until, evidence });
    Answer::Done
}

pub(super) fn disk_has_room(step: &mut Step<'_>) -> Answer {
    if step.state.lifecycle.disk_short.is_none() {
        return Answer::Unchanged;
    }
    step.emit(DiskHasRoom {});
    Answer::Done
}

/// A folder is held while a turn runs or a command does. Its release is asked for by the step that ends the last of them;
/// or by the one that heard of the folder only then.
pub(super) fn let_go(step: &mut Step<'_>) {
    let state = &*step.state;
    let Some(workspace) = state.planes.workspaces.occupied() else { return };
    let in_use = state.turns.current.is_some()
        || state.planes.tasks.commands() > 0
        || !state.planes.timers.checking().is_empty();
    // A stop asks for it itself.
    let stops = |fact: &Fact| matches!(fact, Fact::ControlApplied(fact) if fact.action == ControlAction::Stop);
    if !in_use && step.facts().iter().any(may_end_use) && !step.facts().iter().any(stops) {
        let workspace = workspace.to_owned();
        step.ask_again(Effect::Workspace(WorkspaceEffect::Release { workspace, action: None }));
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
    step: &mut Step<'_>,
    workspace: String,
    action: Option<ControlAction>,
    error: Option<String>,
) -> Answer {
    if error.is_none() && step.state.planes.workspaces.occupied() != Some(&workspace) {
        return Answer::Unchanged;
    }
    if let Some(error) = &error {
        let error = format!("the workspace {workspace} could not be released: {error}");
        step.emit(RuntimeErrorRecorded { error });
    }
    // By the action that asked for it, not by the status: an agent may be started again before it is released.
    let (boundary, evidence) = match action {
        None => (Boundary::Turn, "no_turn_and_no_command"),
        Some(ControlAction::Restart) => (Boundary::Bootstrap, "restart"),
        Some(action) => (Boundary::Control, action.as_str()),
    };
    released(step, workspace, error, action, boundary, evidence);
    Answer::Done
}

pub(super) fn released(
    step: &mut Step<'_>,
    workspace: String,
    error: Option<String>,
    action: Option<ControlAction>,
    boundary: Boundary,
    evidence: &str,
) {
    let status = step.state.status();
    step.emit(WorkspaceReleased {
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
pub(super) fn detach(step: &mut Step<'_>, actor: &Actor, folder: &str, discard: bool) -> Acted {
    let Some(workspace) = step.state.planes.workspaces.find(folder) else {
        return Err(Refusal::new(
            "not_found",
            format!("{folder} is not attached, or more than once"),
            "list the workspaces, and name a root",
        ));
    };
    let (root, is_worktree, removing) = (workspace.root.clone(), workspace.worktree.is_some(), workspace.removing);
    let here = step.state.planes.workspaces.active().is_some_and(|active| active.root == root);
    // A command stays where it was started when the agent goes elsewhere: no worktree goes while any runs.
    let busy = step.state.turns.current.is_some() || step.state.planes.tasks.commands() > 0;
    if busy && (here || is_worktree) {
        let hint = "stop the agent or wait until its turn and its tasks are over";
        return Err(Refusal::new("in_use", format!("the agent works in {root}, or a command of it may"), hint));
    }
    let evidence = vec![format!("detached_by {}", actor.name())];
    if is_worktree && !removing {
        step.emit(WorktreeRemoving { root: root.clone(), evidence, discard });
    } else if !is_worktree {
        step.emit(WorkspaceDetached { root: root.clone(), evidence });
    }
    let bound = step.state.planes.workspaces.attached().get(&root);
    let shown = bound.map(|bound| told_workspace(&step.state.workspace_view(bound)));
    done(&act_result::WorkspaceDetached { root, removing: is_worktree, workspace: shown })
}

pub(super) fn removed(step: &mut Step<'_>, root: String, removal: Result<Removal, String>) -> Answer {
    if !step.state.planes.workspaces.attached().get(&root).is_some_and(|workspace| workspace.removing) {
        return Answer::Unchanged;
    }
    match removal {
        Ok(Removal { patch, branches, evidence }) => step.emit(WorktreeRemoved { root, patch, branches, evidence }),
        Err(error) => step.emit(WorktreeKept { root, error }),
    }
    Answer::Done
}
