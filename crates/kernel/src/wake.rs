//! An agent's entry in the wake index: the cause and the time of its next decision. It is computed from the state, never
//! from a decision, because a decision names only the first of several causes.

use crate::state::AgentState;
use crate::state::lifecycle::Control;
use crate::time::Time;
use crate::vocabulary::{Scope, TaskKind, TaskStatus, WaitKind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wake {
    /// The agent has nothing to decide until an input arrives.
    Never,
    /// There is something to decide now.
    AtOnce { why: &'static str },
    /// There will be something to decide then.
    At { due: Time, why: &'static str },
}

/// The cause for an agent whose turns are held.
pub const HELD: &str = "turns_held";
/// The cause for an agent with children that are yet to be made or dismissed. It comes before every other cause: a new
/// process reads these agents first, so that a dismissed child does nothing before its dismissal.
pub const CHILDREN_CHANGING: &str = "children_changing";

#[must_use]
pub fn compute_wake(state: &AgentState) -> Wake {
    #[cfg(feature = "planted")]
    let state = &*crate::state::planted::state_of_wake_index(state);
    let at_once = |why| Wake::AtOnce { why };
    let children = state.planes.tasks.children().any(|task| task.status != TaskStatus::Running);
    if children {
        return at_once(CHILDREN_CHANGING);
    }
    if state.turns.current.is_some() {
        return at_once("turn_running");
    }
    if state.planes.tasks.open().values().any(|task| task.kind == TaskKind::Command) {
        return at_once("tasks_running");
    }
    if state.lifecycle.leaving.is_some() && !state.lifecycle.archived {
        return at_once("leaving");
    }
    if !state.planes.timers.checking().is_empty() {
        return at_once("check_running");
    }
    if state.planes.workspaces.attached().values().any(|workspace| workspace.removing) {
        return at_once("worktree_removing");
    }
    match state.lifecycle.control {
        Control::Stopped | Control::Quarantined { .. } => return Wake::Never,
        Control::Booting => return at_once("booting"),
        Control::Runnable => {}
    }
    if state.lifecycle.shutdown {
        return at_once("shutdown");
    }
    if state.spent_limit().is_none() && !state.lifecycle.holds_turns() {
        if state.planes.queue.has_due_input(state.paced_until().is_some()) {
            return at_once("messages_queued");
        }
        if state.planes.hints.deliverable().is_some() {
            return at_once("wake_hint");
        }
        if state.planes.work.any_ready()
            && !state.planes.work.is_spent()
            && state.planes.waits.first(Scope::Agent, WaitKind::Sleep).is_none()
        {
            return at_once("work_ready");
        }
    }
    if !state.planes.tasks.unsent().is_empty() {
        return at_once("results_owed");
    }
    match state.next_due() {
        // A new process looks at these at once: what held them may be gone.
        Some(due) if state.lifecycle.turns_held.is_some() => Wake::At { due, why: HELD },
        Some(due) => Wake::At { due, why: "due" },
        None => Wake::Never,
    }
}
