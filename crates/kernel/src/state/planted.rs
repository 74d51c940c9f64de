//! Planted bugs of the kernel, put in at four places: between a rule and its fact, around the application of a fact, before
//! the scheduler's decision and before the place in the wake index. Rules and the state have no guards of their own.

use std::borrow::Cow;

use super::AgentState;
use super::lifecycle::Control;
use super::pace::Pace;
use super::timer::Timers;
use crate::fact::{Fact, MessageProcessed, TaskRunning};
use crate::message::Subject;
use crate::planted::{Bug, planted};
use crate::vocabulary::{RequeueReason, TaskStatus};

/// The fact that is recorded in place of one that a rule made; none where it is lost.
#[allow(clippy::wildcard_enum_match_arm, reason = "a bug is about one fact")]
pub(crate) fn alter_fact(state: &AgentState, fact: Fact) -> Option<Fact> {
    let Some(bug) = planted() else { return Some(fact) };
    let is_lost = match (bug, &fact) {
        (Bug::DroppedResult, Fact::MessageQueued(queued)) => {
            matches!(queued.message.subject, Subject::TaskResult { .. })
        }
        (Bug::DroppedResult, Fact::TaskResultQueued(_)) => true,
        (Bug::ForgottenParked, Fact::MessageRequeued(fact)) => fact.reason == RequeueReason::Unparked,
        (Bug::LostInterjection, Fact::MessageRequeued(fact)) => fact.reason == RequeueReason::InterjectionReturned,
        (Bug::OrphanedTick, Fact::MessageDropped(fact)) => fact.evidence == ["timer_cancelled"],
        (Bug::WaitOutlivesTask, Fact::WaitingIntentTriggered(fact)) => {
            fact.evidence.iter().any(|line| line.starts_with("result_read "))
        }
        _ => false,
    };
    if is_lost {
        return None;
    }
    Some(match (bug, fact) {
        (Bug::StopLosesMessage, Fact::MessageRequeued(fact)) if fact.reason == RequeueReason::Stop => {
            MessageProcessed { message_id: fact.message_id, ignored: Vec::new() }.into()
        }
        (Bug::ReopenedTask, Fact::TaskUpdateIgnored(fact))
            if fact.reported == TaskStatus::Running && state.planes.tasks.owed().contains_key(&fact.task_id) =>
        {
            TaskRunning { task_id: fact.task_id, recovery: None }.into()
        }
        (_, fact) => fact,
    })
}

/// The state that the scheduler decides on.
pub(crate) fn state_of_scheduler(state: &AgentState) -> Cow<'_, AgentState> {
    match planted() {
        Some(Bug::UnfairTimer) => {
            let mut seen = state.clone();
            seen.turns.last_trigger = None;
            Cow::Owned(seen)
        }
        Some(Bug::TickAfterStop) if state.lifecycle.control == Control::Stopped && state.planes.queue.queued() == 0 => {
            let mut seen = state.clone();
            seen.lifecycle.control = Control::Runnable;
            Cow::Owned(seen)
        }
        _ => Cow::Borrowed(state),
    }
}

/// The state that an agent's place in the wake index is made from.
pub(crate) fn state_of_wake_index(state: &AgentState) -> Cow<'_, AgentState> {
    if planted() != Some(Bug::UnindexedTimer) {
        return Cow::Borrowed(state);
    }
    let mut seen = state.clone();
    seen.planes.timers = Timers::default();
    Cow::Owned(seen)
}

impl AgentState {
    /// Before a fact is applied.
    pub(super) fn let_bug_prepare(&mut self, fact: &Fact) {
        if let (Some(Bug::ReopenedTask), Fact::TaskRunning(fact)) = (planted(), fact) {
            self.planes.tasks.reopen(&fact.task_id);
        }
    }

    /// After a fact was applied.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a bug is about one fact")]
    pub(super) fn let_bug_spoil(&mut self, fact: &Fact) -> Result<(), String> {
        match (planted(), fact) {
            (Some(Bug::MissingIdempotencyCheck), Fact::MessageQueued(fact)) => {
                if let Subject::WorkTick { work_item_id, .. } = &fact.message.subject {
                    let _gone = self.planes.work.edit(work_item_id, |item| item.ticks.undelivered = None);
                    self.planes.update_standing(work_item_id);
                }
            }
            (Some(Bug::FocusMovesByTick), Fact::MessageQueued(fact)) => {
                if let Subject::WorkTick { work_item_id, .. } = &fact.message.subject {
                    self.planes.work.current = Some(work_item_id.clone());
                    self.planes.update_standing(work_item_id);
                }
            }
            (Some(Bug::EndlessOffers), Fact::TurnTerminal(_) | Fact::TurnBound(_)) => {
                for id in self.planes.work.items().keys().cloned().collect::<Vec<_>>() {
                    let _gone = self.planes.work.edit(&id, |item| item.ticks.record_progress());
                    self.planes.update_standing(&id);
                }
            }
            (Some(Bug::EndlessReplay), Fact::MessageRequeued(fact)) if fact.reason == RequeueReason::Crash => {
                self.planes.queue.edit(&fact.message_id, |entry| {
                    entry.crashes = 0;
                    entry.crashes_since_round = 0;
                });
            }
            (Some(Bug::CompactionEndsWaits), Fact::ContextCompacted(_)) => {
                for id in self.planes.waits.open().keys().cloned().collect::<Vec<_>>() {
                    self.end_wait(&id)?;
                }
            }
            (Some(Bug::EndlessWork), _) => self.planes.work.begin_tick_row(),
            (Some(Bug::UnpacedTurns), _) => self.accounts.pace = Pace::default(),
            _ => {}
        }
        Ok(())
    }
}
