//! Scheduling posture: the reduced picture of an agent that lists and summaries show. Derived, never stored.

use crate::state::AgentState;
use crate::state::lifecycle::Control;
use crate::vocabulary::{Posture, Scope, Standing, WaitKind};

#[must_use]
pub fn posture(state: &AgentState) -> Posture {
    let waits = |kind| state.waits.count(Scope::Agent, kind) + state.waits.count(Scope::WorkItem, kind);
    let items = |standing| state.work.count(standing);
    if matches!(state.control, Control::Stopped | Control::Quarantined { .. }) {
        Posture::Archived
    } else if state.turn.is_some() {
        Posture::ActiveTurn
    } else if state.queue.pending() > 0 {
        Posture::HasQueuedInput
    } else if state.work.runnable() > 0 {
        Posture::HasRunnableWork
    } else if waits(WaitKind::Task) > 0 {
        Posture::WaitingForTask
    } else if waits(WaitKind::External) > 0 {
        Posture::WaitingForExternal
    } else if waits(WaitKind::Operator) > 0
        || items(Standing::NeedsInput) > 0
        || items(Standing::ProgressSpent) > 0
        || items(Standing::BudgetSpent) > 0
        || state.work.held_back() > 0
        || !state.approvals.pending().is_empty()
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
