//! Closure: the state of the work as the current facts show it, independent of whether the agent is awake.

pub use abide_views::decision::Closure;

use crate::state::AgentState;
use crate::vocabulary::{ClosureOutcome, RuntimePosture, Scope, Standing, Status, WaitKind, WaitingReason};

#[must_use]
pub fn compute_closure(state: &AgentState) -> Closure {
    let (outcome, waiting_reason, evidence) = compute_outcome(state);
    let runtime_posture = match state.status() {
        Status::Asleep | Status::Stopped => RuntimePosture::Sleeping,
        Status::Booting | Status::AwakeIdle | Status::AwakeRunning => RuntimePosture::Awake,
    };
    Closure { outcome, waiting_reason, runtime_posture, evidence }
}

type Outcome = (Option<ClosureOutcome>, Option<WaitingReason>, Vec<String>);

fn compute_outcome(state: &AgentState) -> Outcome {
    let plain = |outcome, evidence: String| (Some(outcome), None, vec![evidence]);
    if let Some(error) = &state.lifecycle.runtime_error {
        return plain(ClosureOutcome::Failed, format!("runtime_error {}", crate::limits::clip(error, 200)));
    }
    if let Some(turn) = &state.turns.current {
        return (None, None, vec![format!("turn_in_progress {} seq {}", turn.exec_id, turn.seq)]);
    }
    if let Some(last) = state.turns.last_failure() {
        return plain(ClosureOutcome::Failed, format!("turn_terminal {} seq {}", last.kind, last.seq));
    }
    let delayed = state.planes.queue.next_not_before().or(state.pace_ends()).is_some();
    if state.planes.queue.has_due_input(state.paced_until().is_some()) {
        return plain(ClosureOutcome::Continuable, format!("queued_input {}", state.planes.queue.queued()));
    }
    let runnable = state.planes.work.runnable();
    if runnable > 0 {
        return plain(ClosureOutcome::Continuable, format!("runnable_work_items {runnable}"));
    }
    match find_waiting_reason(state, delayed) {
        Some((reason, evidence)) => (Some(ClosureOutcome::Waiting), Some(reason), vec![evidence]),
        None => plain(ClosureOutcome::Completed, "no_waiting_condition".to_owned()),
    }
}

fn find_waiting_reason(state: &AgentState, delayed: bool) -> Option<(WaitingReason, String)> {
    let waits = |kind| state.planes.waits.count(Scope::Agent, kind) + state.planes.waits.count(Scope::WorkItem, kind);
    let person = waits(WaitKind::Operator)
        + state.planes.work.count(Standing::NeedsInput)
        + state.planes.work.count(Standing::ProgressSpent)
        + state.planes.work.count(Standing::BudgetSpent)
        + state.planes.work.held_back()
        + state.planes.approvals.pending().len();
    let stuck = state.planes.work.count(Standing::Stuck);
    let held_by_time = state.planes.work.count(Standing::BlockedUntilRecheck) + usize::from(delayed);
    let timers = state.planes.timers.active().len() + held_by_time;
    let timed = waits(WaitKind::Timer) + waits(WaitKind::Sleep) + held_by_time;
    let found = [
        (WaitingReason::Operator, person, "operator_waits"),
        (WaitingReason::Task, waits(WaitKind::Task), "task_waits"),
        (WaitingReason::External, waits(WaitKind::External), "external_waits"),
        // As in the table of decisions: a stuck item comes before a timer that nothing waits for.
        (WaitingReason::Timer, if timed > 0 { timers.max(1) } else { 0 }, "timers"),
        (WaitingReason::Operator, stuck, "blocked_work_items"),
        (WaitingReason::Timer, timers, "timers"),
    ];
    found.into_iter().find(|(_, count, _)| *count > 0).map(|(reason, count, what)| (reason, format!("{what} {count}")))
}
