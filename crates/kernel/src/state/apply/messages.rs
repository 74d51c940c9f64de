//! The changes that facts about messages make.

use super::Applied;
use crate::fact::{BriefRecorded, MessageAborted, MessageInterjected, MessageProcessed, MessageQueued};
use crate::id::MessageId;
use crate::limits;
use crate::message::Message;
use crate::state::AgentState;
use crate::state::turn::Phase;
use crate::time::Time;
use crate::vocabulary::{BriefKind, MessageKind, QueueStatus, SafePoint, TickKind};

impl AgentState {
    pub(super) fn message_queued(&mut self, fact: &MessageQueued, at: Time) -> Applied {
        let message = &fact.message;
        self.planes.queue.push(message.clone(), self.seq, at)?;
        self.lifecycle.resting = false;
        self.turns.supersede_last_terminal();
        match message.kind() {
            MessageKind::OperatorPrompt => self.resume_spent_work()?,
            MessageKind::SystemTick => self.tick_queued(message),
            MessageKind::ChannelEvent
            | MessageKind::WebhookEvent
            | MessageKind::CallbackEvent
            | MessageKind::TimerTick
            | MessageKind::TaskResult
            | MessageKind::TaskStatus
            | MessageKind::Control
            | MessageKind::InternalFollowup
            | MessageKind::BriefAck
            | MessageKind::BriefResult => {}
        }
        Ok(())
    }

    /// Work that waited for the operator may go on.
    fn resume_spent_work(&mut self) -> Applied {
        self.planes.work.begin_tick_row();
        for id in self.planes.work.spent_items() {
            self.planes.work.edit(&id, |item| item.ticks.record_progress())?;
            self.planes.update_standing(&id);
        }
        Ok(())
    }

    pub(super) fn tick_queued(&mut self, message: &Message) {
        match (message.tick(), message.work_item_id()) {
            (Some(TickKind::WakeHint), _) => {
                let source = message.origin.id.clone().unwrap_or_default();
                self.planes.hints.record_delivery(&source, &message.message_id);
            }
            (Some(TickKind::ContinueActive | TickKind::QueuedAvailable), Some(item)) => {
                // An item that is gone by now has nothing to count; the tick itself is dealt with when it is taken.
                let _gone = self.planes.work.edit(item, |item| {
                    item.ticks.attempts += 1;
                    item.ticks.undelivered = Some(message.message_id.clone());
                });
                self.planes.work.record_tick(&message.message_id, item);
                self.planes.update_standing(item);
            }
            (Some(TickKind::ContinueActive | TickKind::QueuedAvailable), None)
            | (Some(TickKind::Recheck) | None, _) => {}
        }
    }

    pub(super) fn message_processed(&mut self, fact: &MessageProcessed) -> Applied {
        let blank_hint = self
            .planes
            .queue
            .get(&fact.message_id)
            .is_some_and(|entry| entry.message.tick() == Some(TickKind::WakeHint) && entry.continuation.is_none());
        self.remove_message(&fact.message_id, &[QueueStatus::Dequeued])?;
        for joined in self.planes.queue.joined_to(&fact.message_id) {
            self.planes.queue.remove_from(&joined, &[QueueStatus::Interjected])?;
        }
        if blank_hint {
            for id in self.planes.work.delayed_offers() {
                self.planes.work.edit(&id, |item| item.ticks.last_at = None)?;
                self.planes.update_standing(&id);
            }
        }
        Ok(())
    }

    /// A result whose message was given up stays owed, but waits for the operator to bring it up.
    pub(super) fn message_aborted(&mut self, fact: &MessageAborted) -> Applied {
        let from = &[QueueStatus::Dequeued, QueueStatus::Queued];
        let entry = self.planes.queue.get(&fact.message_id);
        let task = entry.and_then(|entry| entry.message.task_id().cloned());
        // Older facts do not name it.
        let answers = entry.and_then(|entry| entry.answers.clone());
        self.remove_message(&fact.message_id, from)?;
        if let Some(answers) = answers {
            self.turns.unanswered.remove(&answers);
        }
        if let Some(task) = task.filter(|_| fact.given_up) {
            self.planes.tasks.edit(&task, |task| task.held = true);
        }
        Ok(())
    }

    /// An acknowledgement leaves it open.
    pub(super) fn record_brief_answer(&mut self, brief: &BriefRecorded) {
        let answered = match brief.kind {
            BriefKind::Result | BriefKind::Failure => brief.message_id.as_ref(),
            BriefKind::Ack => None,
        };
        if let Some(id) = answered {
            self.turns.unanswered.remove(id);
        }
    }

    /// A message leaves the state; whatever it carried is no longer under way.
    pub(super) fn remove_message(&mut self, id: &MessageId, from: &[QueueStatus]) -> Applied {
        let entry = self.planes.queue.remove_from(id, from)?;
        self.planes.hints.end_tick(id);
        if let Some(item) = self.planes.work.end_tick(id) {
            let _gone = self.planes.work.edit(&item, |item| item.ticks.undelivered = None);
            self.planes.update_standing(&item);
        }
        if let Some(timer) = entry.message.timer_id()
            && self.planes.timers.get(timer).is_some_and(|timer| timer.undelivered.as_ref() == Some(id))
        {
            self.planes.timers.edit(timer, |timer| timer.undelivered = None)?;
        }
        if let Some(task) = entry.message.task_id() {
            self.planes.tasks.edit(task, |task| {
                if task.result_message.as_ref() == Some(id) {
                    task.result_message = None;
                }
            });
        }
        Ok(())
    }

    pub(super) fn message_interjected(&mut self, fact: &MessageInterjected) -> Applied {
        let turn = self.running_turn(&fact.exec_id)?;
        if turn.message_id != fact.joined {
            return Err(format!("the turn is not about {}", fact.joined));
        }
        let is_safe = matches!(turn.phase, Phase::Safe { .. });
        turn.rounds.interject(is_safe && fact.safe_point == SafePoint::AfterModelRound);
        // Interjections that joined this message in an earlier turn of its own come along.
        for earlier in self.planes.queue.joined_to(&fact.message_id) {
            self.planes.queue.edit(&earlier, |entry| entry.joined = Some(fact.joined.clone()));
        }
        self.planes.queue.change_status(
            &fact.message_id,
            &[QueueStatus::Queued],
            QueueStatus::Interjected,
            |entry| {
                entry.joined = Some(fact.joined.clone());
                entry.not_before = None;
            },
        )?;
        // An operator's message brings along the results that wait for one.
        let held = self.planes.tasks.owed().values().filter(|task| task.held).take(limits::RECENT_MAX);
        let held: Vec<_> = held.map(|task| task.task_id.clone()).collect();
        if let Some(turn) = &mut self.turns.current {
            turn.presents.extend(held.into_iter().filter(|task| !turn.presents.contains(task)).collect::<Vec<_>>());
        }
        Ok(())
    }
}
