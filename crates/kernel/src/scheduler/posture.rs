//! Scheduling posture: the reduced picture of an agent that lists and summaries show. Derived, never stored.

use crate::state::AgentState;
use crate::state::lifecycle::Control;
use crate::vocabulary::{Posture, Scope, Standing, WaitKind};

#[must_use]
pub fn compute_posture(state: &AgentState) -> Posture {
    let waits = |kind| state.planes.waits.count(Scope::Agent, kind) + state.planes.waits.count(Scope::WorkItem, kind);
    let items = |standing| state.planes.work.count(standing);
    if matches!(state.lifecycle.control, Control::Stopped | Control::Quarantined { .. }) {
        Posture::Archived
    } else if state.turns.current.is_some() {
        Posture::ActiveTurn
    } else if state.planes.queue.pending() > 0 {
        Posture::HasQueuedInput
    } else if state.planes.work.runnable() > 0 {
        Posture::HasRunnableWork
    } else if waits(WaitKind::Task) > 0 {
        Posture::WaitingForTask
    } else if waits(WaitKind::External) > 0 {
        Posture::WaitingForExternal
    } else if waits(WaitKind::Operator) > 0
        || items(Standing::NeedsInput) > 0
        || items(Standing::ProgressSpent) > 0
        || items(Standing::BudgetSpent) > 0
        || state.planes.work.held_back() > 0
        || !state.planes.approvals.pending().is_empty()
    {
        Posture::WaitingForOperator
    } else if items(Standing::Stuck) > 0
        || items(Standing::BlockedUntilRecheck) > 0
        || waits(WaitKind::Timer) > 0
        || waits(WaitKind::Sleep) > 0
    {
        Posture::Blocked
    } else {
        Posture::Idle
    }
}
