//! What can wake an agent: its place in the wake index. Derived from the state, never from a decision, because a
//! decision may hide what is due behind what comes first.

use crate::state::AgentState;
use crate::state::lifecycle::Control;
use crate::time::Time;
use crate::vocabulary::{Scope, TaskKind, TaskStatus, WaitKind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wake {
    /// Nothing by itself: somebody has to say something.
    Never,
    /// There is something to decide now.
    AtOnce { why: &'static str },
    /// There will be something to decide then.
    At { due: Time, why: &'static str },
}

/// Why an agent whose turns are held is in the index.
pub const HELD: &str = "turns_held";
/// Why an agent is in the index some of whose children are yet to be made or dismissed. It comes before every other
/// reason: a new process reads these agents first, so that a dismissed child does nothing before it is told.
pub const CHILDREN_CHANGING: &str = "children_changing";

#[must_use]
pub fn wake(state: &AgentState) -> Wake {
    #[cfg(feature = "planted")]
    let state = &*crate::state::planted::state_of_wake_index(state);
    let cut = |why| Wake::AtOnce { why };
    let children = state.planes.tasks.children().any(|task| task.status != TaskStatus::Running);
    if children {
        return cut(CHILDREN_CHANGING);
    }
    if state.turns.current.is_some() {
        return cut("turn_running");
    }
    if state.planes.tasks.open().values().any(|task| task.kind == TaskKind::Command) {
        return cut("tasks_running");
    }
    if state.lifecycle.leaving.is_some() && !state.lifecycle.archived {
        return cut("leaving");
    }
    if !state.planes.timers.checking().is_empty() {
        return cut("check_running");
    }
    if state.planes.workspaces.attached().values().any(|workspace| workspace.removing) {
        return cut("worktree_removing");
    }
    match state.lifecycle.control {
        Control::Stopped | Control::Quarantined { .. } => return Wake::Never,
        Control::Booting => return cut("booting"),
        Control::Runnable => {}
    }
    if state.lifecycle.shutdown {
        return cut("shutdown");
    }
    if state.spent().is_none() && !state.lifecycle.holds_turns() {
        if state.planes.queue.has_input(state.paced_until().is_some()) {
            return cut("messages_queued");
        }
        if state.planes.hints.deliverable().is_some() {
            return cut("wake_hint");
        }
        if state.planes.work.any_ready()
            && !state.planes.work.is_spent()
            && state.planes.waits.first(Scope::Agent, WaitKind::Sleep).is_none()
        {
            return cut("work_ready");
        }
    }
    if !state.planes.tasks.unsent().is_empty() {
        return cut("results_owed");
    }
    match state.next_due() {
        // A new process looks at these at once: what held them may be gone.
        Some(due) if state.lifecycle.turns_held.is_some() => Wake::At { due, why: HELD },
        Some(due) => Wake::At { due, why: "due" },
        None => Wake::Never,
    }
}
