//! The input of a decision: the first record of each kind, so that no decision walks all records.

use crate::id::ExecId;
use crate::state::AgentState;
use crate::state::hint::Hint;
use crate::state::lifecycle::Control;
use crate::state::queue::Entry;
use crate::state::waiting::Wait;
use crate::state::work::WorkItem;
use crate::time::Time;
use crate::vocabulary::{Reason, Scope, Standing, TriggerKind, WaitKind};

use super::continuation::{Classification, classify_entry};

#[derive(Debug, Clone)]
pub struct SchedulerProjection<'a> {
    pub state: &'a AgentState,
    /// The reason for which nothing may run, if there is one.
    pub gate: Option<(Reason, String)>,
    pub running: Option<&'a ExecId>,
    pub budget_spent: Option<String>,
    /// The message that would be taken now, and its classification.
    pub message: Option<(&'a Entry, Classification)>,
    /// Messages that the agent caused itself have to wait.
    pub paced: bool,
    /// Fairness gives the next step to work instead of to another tick.
    pub work_first: bool,
    pub hint: Option<&'a Hint>,
    pub hints_under_way: usize,
    /// The item in focus, when it is runnable, and whether its tick is due.
    pub current: Option<(&'a WorkItem, bool)>,
    now: Time,
}

impl<'a> SchedulerProjection<'a> {
    #[must_use]
    pub fn of(state: &'a AgentState, now: Time) -> SchedulerProjection<'a> {
        let current = state
            .planes
            .work
            .current()
            .filter(|item| state.planes.work.standing(&item.work_item_id) == Some(Standing::Runnable))
            .map(|item| (item, state.planes.work.offer_due(&item.work_item_id, now)));
        let mut projection = SchedulerProjection {
            state,
            gate: find_gate(state),
            running: state.turns.current.as_ref().map(|turn| &turn.exec_id),
            budget_spent: state.spent_limit().map(|spent| spent.evidence()),
            message: None,
            paced: state.paced_until().is_some_and(|until| until > now),
            work_first: false,
            hint: state.planes.hints.deliverable(),
            hints_under_way: state.planes.hints.undelivered().len(),
            current,
            now,
        };
        projection.choose_message(now);
        projection
    }

    /// Lanes in their order; but no two timer or tick turns in a row while an operator, or then work, is waiting.
    fn choose_message(&mut self, now: Time) {
        let state = self.state;
        let Some(first) = state.planes.queue.first_due(now, self.paced) else { return };
        let last = state.turns.last_trigger;
        let again = last.is_some_and(|last| matches!(last.kind, TriggerKind::TimerFire | TriggerKind::SystemTick))
            && first.message.is_self_made_tick();
        let mut chosen = first;
        if again {
            if let Some(operator) = state.planes.queue.first_due_operator(now) {
                chosen = operator;
            } else if !last.is_some_and(|last| last.work_tick) && !first.message.is_work_tick() {
                match state.planes.queue.first_due_work_tick(now) {
                    Some(tick) => chosen = tick,
                    None => self.work_first = self.work_is_due(),
                }
            }
        }
        self.message = Some((chosen, classify_entry(state, chosen)));
    }

    fn work_is_due(&self) -> bool {
        self.may_offer_work() && (self.current.is_some_and(|(_, due)| due) || self.oldest_due_item().is_some())
    }

    /// The oldest item other than the one in focus whose tick is due.
    #[must_use]
    pub fn oldest_due_item(&self) -> Option<&'a WorkItem> {
        self.state.planes.work.due_queued(self.now)
    }

    /// Whether anything holds back all offers of work: a sleep of the agent, or too many offers in a row.
    #[must_use]
    pub fn may_offer_work(&self) -> bool {
        self.agent_sleep().is_none() && !self.state.planes.work.is_spent()
    }

    /// A sleep of the agent holds back all offers of work.
    #[must_use]
    pub fn agent_sleep(&self) -> Option<&'a Wait> {
        self.state.planes.waits.first(Scope::Agent, WaitKind::Sleep)
    }

    /// The oldest item of a standing.
    #[must_use]
    pub fn oldest_item(&self, standing: Standing) -> Option<&'a WorkItem> {
        self.state.planes.work.of_standing(standing).next()
    }

    #[must_use]
    pub fn first_wait(&self, scope: Scope, kind: WaitKind) -> Option<&'a Wait> {
        self.state.planes.waits.first(scope, kind)
    }

    /// A question to the operator, other than a pending approval.
    #[must_use]
    pub fn open_question(&self) -> Option<&'a Wait> {
        self.state.planes.waits.unnamed_waits(WaitKind::Operator).next()
    }
}

fn find_gate(state: &AgentState) -> Option<(Reason, String)> {
    match &state.lifecycle.control {
        Control::Stopped => Some((Reason::Stopped, "control_stopped".to_owned())),
        Control::Quarantined { reason } => Some((Reason::Quarantined, format!("quarantined {reason}"))),
        Control::Booting | Control::Runnable if state.lifecycle.shutdown => {
            Some((Reason::ShutdownRequested, "shutdown_requested".to_owned()))
        }
        Control::Booting | Control::Runnable => None,
    }
}
