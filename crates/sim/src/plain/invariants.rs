//! The rules that hold whenever an agent is at rest.

use abide_engine::{fold, fold_until};
use abide_kernel::fact::Schedule;
use abide_kernel::id::AgentId;
use abide_kernel::limits::{CLOCK_SLACK_MS, PROVIDER_RETRY_MAX_MS};
use abide_kernel::time::Time;
use abide_kernel::vocabulary::DecisionKind;
use abide_kernel::wake::{Wake, compute_wake};
use abide_kernel::{AgentState, decide};
use abide_ledger::StreamId;

use super::Simulation;

impl Simulation {
    /// The rules for an agent that has nothing to do.
    pub(super) fn check_at_rest(&mut self, id: &AgentId) -> Result<(), String> {
        let now = self.now;
        let simulated = &self.agents[id];
        simulated.check_nothing_lost()?;
        let state = &simulated.shadow;
        if state.seq == 0 {
            return Ok(());
        }
        let decision = decide(state, now);
        let idle = decision.kind.is_rest() || matches!(decision.kind, DecisionKind::Stop | DecisionKind::Noop);
        if !idle {
            return Err(format!("at rest with {decision:?} undone"));
        }
        self.check_wake_index(id)?;
        let state = &self.agents[id].shadow;
        check_nothing_due(state, now)?;
        check_time_bounds(state, now)?;
        if self.rng.chance(5) {
            self.check_replay(id, &state.clone())?;
        }
        Ok(())
    }

    /// An agent that comes due by itself is in the wake index, no later than that.
    fn check_wake_index(&self, id: &AgentId) -> Result<(), String> {
        let simulated = &self.agents[id];
        if !simulated.shadow.lifecycle.is_runnable() || simulated.shadow.turns.current.is_some() {
            return Ok(());
        }
        let Some(due) = simulated.model.next_wake() else { return Ok(()) };
        let stream = StreamId::agent(id);
        let wakes = self.ledger.wakes(None, usize::MAX).map_err(|error| error.to_string())?;
        let entry = wakes.iter().find(|(known, _)| *known == stream);
        let fits = entry.is_some_and(|(_, wake)| wake.due.is_none_or(|known| known <= due));
        if fits { Ok(()) } else { Err(format!("{due} is due for {id}, the wake index says {entry:?}")) }
    }

    pub(super) fn check_replay(&self, id: &AgentId, state: &AgentState) -> Result<(), String> {
        let replayed = fold_until::<AgentState>(&self.ledger, id, state.seq).map_err(|damage| damage.to_string())?;
        if replayed != *state {
            return Err(format!("{id} replayed to seq {} is another", state.seq));
        }
        let loaded = fold::<AgentState>(&self.ledger, id).map_err(|damage| damage.to_string())?;
        let behind = loaded.as_ref().map(|state| state.seq);
        if behind < Some(state.seq) {
            Err(format!("{id} loads at {behind:?}, {} is durable", state.seq))
        } else {
            Ok(())
        }
    }
}

/// No wait lasts longer than it was meant to, even if the clock was ahead when it began.
pub(crate) fn check_time_bounds(state: &AgentState, now: Time) -> Result<(), String> {
    let now = now.plus_ms(CLOCK_SLACK_MS);
    let timer = state.planes.timers.active().values().find(|timer| {
        let longest = match timer.schedule {
            Schedule::Once { .. } => timer.after_ms,
            Schedule::Every { every_ms, .. } => Some(every_ms),
            Schedule::Cron { .. } => None,
        };
        longest.zip(timer.next_fire_at).is_some_and(|(ms, next)| next > now.plus_ms(ms))
    });
    let deadline = state.planes.approvals.pending().values().find(|approval| {
        approval.deadline_ms.zip(approval.deadline).is_some_and(|(ms, deadline)| deadline > now.plus_ms(ms))
    });
    let offer = state.planes.work.next_offer().filter(|offer| *offer > now.plus_ms(600_000));
    let backoff = state.planes.queue.next_not_before().filter(|time| *time > now.plus_ms(PROVIDER_RETRY_MAX_MS));
    let pace = state.pace_ends().filter(|ends| *ends > now.plus_ms(3_600_000));
    match (timer, deadline, offer.or(backoff).or(pace)) {
        (None, None, None) => Ok(()),
        found => Err(format!("too far ahead of {now}: {found:?}")),
    }
}

/// No agent at rest is due now by the wake index: it would be loaded for ever.
fn check_nothing_due(state: &AgentState, now: Time) -> Result<(), String> {
    if !state.lifecycle.is_runnable() || state.turns.current.is_some() {
        return Ok(());
    }
    match compute_wake(state) {
        Wake::Never
        | Wake::AtOnce { why: "tasks_running" | "worktree_removing" | "children_changing" | "check_running" } => Ok(()),
        Wake::At { due, .. } if due > now => Ok(()),
        promised @ (Wake::At { .. } | Wake::AtOnce { .. }) => Err(format!("at rest, but the index says {promised:?}")),
    }
}
