//! One match over all facts: what each of them changes. Illegal pairs of state and fact are errors.

use super::hint::{Hint, Trigger};
use super::lifecycle::Control;
use super::turn::{LastTerminal, Phase, Turn};
use super::work::{TurnBy, WorkItem};
use super::{AgentState, LastTrigger};
use crate::fact::*;
use crate::id::{ExecId, MessageId, WaitId, WorkItemId};
use crate::message::Message;
use crate::time::Time;
use crate::vocabulary::{
    AbortReason, ControlAction, DecisionKind, MessageKind, QueueStatus, RequeueReason, TaskStatus, TerminalKind,
    TickKind, WorkItemState,
};

/// A fact that can't follow the facts before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fact {seq} ({kind}) can't follow what came before it: {problem}")]
pub struct Illegal {
    pub seq: u64,
    pub kind: &'static str,
    pub problem: String,
}

type Applied = Result<(), String>;

impl AgentState {
    /// Changes the state by one fact, the next of its stream.
    pub fn apply(&mut self, at: Time, fact: &Fact) -> Result<(), Illegal> {
        self.seq += 1;
        self.at = self.at.max(at);
        self.fold(at, fact).map_err(|problem| Illegal { seq: self.seq, kind: fact.kind(), problem })
    }

    fn fold(&mut self, at: Time, fact: &Fact) -> Applied {
        if self.seq == 1 && !matches!(fact, Fact::AgentCreated(_)) {
            return Err("a stream begins with agent.created".to_owned());
        }
        match fact {
            Fact::AgentCreated(fact) => self.agent_created(fact),
            Fact::AgentConfigured(fact) => {
                self.config = fact.config.clone();
                Ok(())
            }
            Fact::AgentForked(fact) => {
                self.identity.id = fact.agent_id.clone();
                self.control = Control::Stopped;
                self.resting = false;
                Ok(())
            }
            Fact::AgentQuarantined(fact) => {
                self.control = Control::Quarantined { reason: fact.reason.clone() };
                Ok(())
            }
            Fact::ControlAdmitted(_) | Fact::PostureChanged(_) | Fact::StaleOutcomeIgnored(_) => Ok(()),
            Fact::ControlApplied(fact) => {
                self.control_applied(fact);
                Ok(())
            }
            Fact::SchedulerDecided(fact) => {
                self.resting |= fact.decision.kind.is_rest();
                if fact.decision.kind != DecisionKind::Noop {
                    self.decision = Some(fact.decision.clone());
                    self.decision_seq = self.seq;
                }
                Ok(())
            }
            Fact::RuntimeErrorRecorded(fact) => {
                self.runtime_error = Some(fact.error.clone());
                Ok(())
            }
            Fact::WorkspaceOccupied(fact) => {
                self.workspace = Some(fact.workspace.clone());
                Ok(())
            }
            Fact::WorkspaceReleased(fact) => {
                if fact.error.is_none() && self.workspace.as_ref() == Some(&fact.workspace) {
                    self.workspace = None;
                }
                Ok(())
            }

            Fact::MessageQueued(fact) => self.message_queued(fact, at),
            Fact::MessageDequeued(fact) => {
                self.queue.shift(&fact.message_id, &[QueueStatus::Queued], QueueStatus::Dequeued, |entry| {
                    entry.taken += 1;
                    entry.not_before = None;
                })
            }
            Fact::MessageProcessed(fact) => self.message_processed(fact),
            Fact::MessageInterjected(fact) => self.message_interjected(fact),
            Fact::MessageParked(fact) => {
                self.queue.shift(&fact.message_id, &[QueueStatus::Queued], QueueStatus::Parked, |_| ())
            }
            Fact::MessageRequeued(fact) => {
                if fact.reason != RequeueReason::Stop && fact.reason != RequeueReason::Shutdown {
                    self.resting = false;
                }
                self.queue.requeue(&fact.message_id, fact.reason, fact.not_before)
            }
            Fact::MessageAborted(fact) => self.message_aborted(fact),
            Fact::MessageDropped(fact) => {
                self.message_gone(&fact.message_id, &[QueueStatus::Queued, QueueStatus::Parked])
            }

            Fact::TurnStarted(fact) => self.turn_started(fact, at),
            Fact::RoundStarted(fact) => {
                let turn = self.turn_of(&fact.exec_id)?;
                if fact.round != turn.round + 1 || turn.phase != Phase::Safe {
                    return Err(format!("round {} can't begin here", fact.round));
                }
                turn.round = fact.round;
                turn.phase = Phase::Model;
                turn.ends = false;
                Ok(())
            }
            Fact::ProviderRoundCompleted(fact) => {
                self.turn_of(&fact.exec_id)?;
                self.usage.add(&fact.usage);
                Ok(())
            }
            Fact::AssistantRoundRecorded(fact) => self.assistant_round(fact),
            Fact::ToolStarted(fact) => self.tool_started(fact),
            Fact::ToolFinished(fact) => self.tool_finished(fact),
            Fact::ToolRoundCompleted(fact) => {
                let turn = self.turn_of(&fact.exec_id)?;
                match &turn.phase {
                    Phase::Tools { running, waiting } if running.is_empty() && waiting.is_empty() => {
                        turn.phase = Phase::Safe;
                        Ok(())
                    }
                    Phase::Tools { .. } | Phase::Model | Phase::Safe => Err("calls are still open".to_owned()),
                }
            }
            Fact::TurnCheckpointed(fact) => {
                self.turn_of(&fact.exec_id)?.checkpoint = Some(fact.clone());
                Ok(())
            }
            Fact::TurnBaselineOverBudget(fact) => self.turn_of(&fact.exec_id).map(|_| ()),
            Fact::TurnAborted(fact) => self.turn_aborted(fact, at),
            Fact::TurnTerminal(fact) => self.turn_terminal(fact, at),
            Fact::ContextCompacted(fact) => {
                self.compaction = Some(fact.clone());
                if planted!(CompactionEndsWaits) {
                    for id in self.waits.open().keys().cloned().collect::<Vec<_>>() {
                        self.wait_ended(&id)?;
                    }
                }
                Ok(())
            }

            Fact::TaskCreated(fact) => {
                self.tasks.create(fact, self.seq, at)?;
                self.item_changed(fact.work_item_id.clone())
            }
            Fact::TaskRunning(fact) => {
                self.tasks.transition(&fact.task_id, TaskStatus::Running, None, at)?;
                if let Some(recovery) = &fact.recovery {
                    self.tasks.edit(&fact.task_id, |task| task.recovery = Some(recovery.clone()));
                }
                Ok(())
            }
            Fact::TaskCancelling(fact) => {
                self.tasks.transition(&fact.task_id, TaskStatus::Cancelling, None, at).map(|_| ())
            }
            Fact::TaskCompleted(fact) => self.task_ended(TaskStatus::Completed, &fact.end, at),
            Fact::TaskFailed(fact) => self.task_ended(TaskStatus::Failed, &fact.end, at),
            Fact::TaskCancelled(fact) => self.task_ended(TaskStatus::Cancelled, &fact.end, at),
            Fact::TaskInterrupted(fact) => self.task_ended(TaskStatus::Interrupted, &fact.end, at),
            Fact::TaskUpdateIgnored(_) => Ok(()),
            Fact::TaskResultQueued(fact) => {
                if !self.tasks.owed().contains_key(&fact.task_id) {
                    return Err(format!("nothing is owed of {}", fact.task_id));
                }
                self.tasks.edit(&fact.task_id, |task| task.result_message = Some(fact.message_id.clone()));
                Ok(())
            }
            Fact::TaskResultDelivered(fact) => {
                if let Some(turn) = &mut self.turn {
                    turn.presents.retain(|task| *task != fact.task_id);
                }
                self.tasks.settle(&fact.task_id)
            }

            Fact::WorkItemCreated(fact) => self.work_item_created(fact),
            Fact::WorkItemPicked(fact) => self.work_item_picked(fact),
            Fact::WorkItemUpdated(fact) => self.work_item_updated(fact),
            Fact::WorkItemBlocked(fact) => self.revise(&fact.work_item_id, fact.revision, |item| {
                item.blocked_by = Some(fact.blocked_by.clone());
                item.recheck_at = fact.recheck_at;
            }),
            Fact::WorkItemUnblocked(fact) => self.revise(&fact.work_item_id, fact.revision, |item| {
                item.blocked_by = None;
                item.recheck_at = None;
            }),
            Fact::WorkItemCompleted(fact) => self.work_item_completed(fact),
            Fact::WorkItemDelegated(fact) => {
                self.tasks.edit(&fact.task_id, |task| task.delegated = true);
                self.item_changed(Some(fact.work_item_id.clone()))
            }
            Fact::WorkItemDelegationCompleted(fact) => {
                self.tasks.edit(&fact.task_id, |task| task.delegated = false);
                self.item_changed(Some(fact.work_item_id.clone()))
            }
            Fact::RecheckFired(fact) => {
                self.work.edit(&fact.work_item_id, |item| item.recheck_at = None)?;
                self.restand(&fact.work_item_id);
                Ok(())
            }

            Fact::WaitingIntentCreated(fact) => {
                if let Some(item) = &fact.work_item_id
                    && self.work.open(item).is_none()
                {
                    return Err(format!("{item} is not an open work item"));
                }
                self.waits.create(fact, self.seq, at)?;
                if let Some(last) = &mut self.last_terminal {
                    last.superseded = true;
                }
                self.item_changed(fact.work_item_id.clone())
            }
            Fact::WaitingIntentTriggered(fact) => self.wait_ended(&fact.waiting_intent_id),
            Fact::WaitingIntentCancelled(fact) => self.wait_ended(&fact.waiting_intent_id),
            Fact::TimerCreated(fact) => self.timers.create(fact, self.seq),
            Fact::TimerFired(fact) => self.timers.edit(&fact.timer_id, |timer| {
                timer.fire_count += 1;
                timer.last_fired_at = Some(fact.due);
                timer.next_fire_at = fact.next_fire_at;
                timer.undelivered = Some(fact.message_id.clone());
            }),
            Fact::TimerMissed(fact) => self.timer_missed(fact),
            Fact::TimerCompleted(fact) => self.timers.end(&fact.timer_id).map(|_| ()),
            Fact::TimerCancelled(fact) => self.timers.end(&fact.timer_id).map(|_| ()),
            Fact::WakeHintSubmitted(hint) => {
                self.resting = false;
                self.hint_pending(&hint.source, hint.generation, &hint.reason, &hint.resource, &hint.body, at)
            }
            Fact::WakeHintCoalesced(hint) => {
                self.hint_pending(&hint.source, hint.generation, &hint.reason, &hint.resource, &hint.body, at)
            }
            Fact::WakeHintIgnored(hint) => {
                self.hints.ignore(&hint.source, hint.generation);
                Ok(())
            }
            Fact::TriggerCreated(fact) => {
                let trigger = Trigger {
                    trigger_id: fact.trigger_id.clone(),
                    name: fact.name.clone(),
                    delivery_mode: fact.delivery_mode,
                    work_item_id: fact.work_item_id.clone(),
                    delivery_count: 0,
                    last_delivered_at: None,
                    seq: self.seq,
                };
                match self.triggers.insert(fact.trigger_id.clone(), trigger) {
                    None => Ok(()),
                    Some(_) => Err(format!("{} exists already", fact.trigger_id)),
                }
            }
            Fact::TriggerRevoked(fact) => match self.triggers.remove(&fact.trigger_id) {
                Some(_) => Ok(()),
                None => Err(format!("{} is not a trigger", fact.trigger_id)),
            },
            Fact::ApprovalRequested(fact) => self.approvals.request(fact, self.seq),
            Fact::ApprovalDecided(fact) => self.approvals.decide(&fact.approval_id),
            Fact::BriefRecorded(fact) => {
                self.remember_brief(fact.clone());
                if let Some(id) = &fact.work_item_id {
                    self.work.edit(id, |item| item.ticks.told = Some(item.revision))?;
                    self.restand(id);
                }
                Ok(())
            }
        }
    }

    fn agent_created(&mut self, fact: &AgentCreated) -> Applied {
        if self.seq != 1 {
            return Err("an agent is created once".to_owned());
        }
        self.identity = fact.identity.clone();
        self.config = fact.config.clone();
        self.control = if fact.start { Control::Booting } else { Control::Stopped };
        Ok(())
    }

    fn control_applied(&mut self, fact: &ControlApplied) {
        match fact.action {
            ControlAction::Start => {
                self.control = Control::Runnable;
                self.resting = false;
            }
            ControlAction::Stop => {
                self.control = Control::Stopped;
                self.resting = false;
            }
            ControlAction::Shutdown => self.shutdown = true,
            ControlAction::Restart => {
                self.shutdown = false;
                if self.control == Control::Booting {
                    self.control = Control::Runnable;
                }
            }
        }
    }

    fn message_queued(&mut self, fact: &MessageQueued, at: Time) -> Applied {
        let message = &fact.message;
        self.queue.push(message.clone(), self.seq, at)?;
        self.resting = false;
        if let Some(last) = &mut self.last_terminal {
            last.superseded = true;
        }
        match message.kind {
            MessageKind::OperatorPrompt => {
                self.outside_spoke(true)?;
            }
            MessageKind::ChannelEvent | MessageKind::WebhookEvent | MessageKind::CallbackEvent => {
                self.outside_spoke(false)?;
                if let Some(trigger) = message.trigger_id.as_ref().and_then(|id| self.triggers.get_mut(id)) {
                    trigger.delivery_count += 1;
                    trigger.last_delivered_at = Some(at);
                }
            }
            MessageKind::SystemTick => self.tick_queued(message),
            MessageKind::TimerTick
            | MessageKind::TaskResult
            | MessageKind::TaskStatus
            | MessageKind::Control
            | MessageKind::InternalFollowup
            | MessageKind::BriefAck
            | MessageKind::BriefResult => {}
        }
        Ok(())
    }

    /// Items that had gone in circles may go on; and those that came to nothing, if it is the operator who spoke.
    fn outside_spoke(&mut self, operator: bool) -> Applied {
        self.work.outside_epoch += 1;
        let epoch = self.work.outside_epoch;
        for id in self.work.spent_items() {
            self.work.edit(&id, |item| {
                item.ticks.heard_outside(epoch);
                if operator {
                    item.ticks.progress();
                }
            })?;
            self.restand(&id);
        }
        Ok(())
    }

    fn tick_queued(&mut self, message: &Message) {
        match (message.tick, &message.work_item_id) {
            (Some(TickKind::WakeHint), _) => {
                let source = message.origin.id.clone().unwrap_or_default();
                self.hints.delivered_as(&source, &message.message_id);
            }
            (Some(TickKind::ContinueActive | TickKind::QueuedAvailable), Some(item)) => {
                // An item that is gone by now has nothing to count; the tick itself is dealt with when it is taken.
                let _gone = self.work.edit(item, |item| {
                    item.ticks.attempts += 1;
                    if !planted!(MissingIdempotencyCheck) {
                        item.ticks.undelivered = Some(message.message_id.clone());
                    }
                });
                self.work.tick_is_out(&message.message_id, item);
                if planted!(FocusMovesByTick) {
                    self.work.current = Some(item.clone());
                }
                self.restand(item);
            }
            (Some(TickKind::ContinueActive | TickKind::QueuedAvailable), None)
            | (Some(TickKind::Recheck) | None, _) => {}
        }
    }

    fn message_processed(&mut self, fact: &MessageProcessed) -> Applied {
        let blank_hint = self
            .queue
            .get(&fact.message_id)
            .is_some_and(|entry| entry.message.tick == Some(TickKind::WakeHint) && entry.continuation.is_none());
        self.message_gone(&fact.message_id, &[QueueStatus::Dequeued])?;
        for joined in self.queue.joined_to(&fact.message_id) {
            self.queue.remove_from(&joined, &[QueueStatus::Interjected])?;
        }
        if blank_hint {
            for id in self.work.waiting_offers() {
                self.work.edit(&id, |item| item.ticks.last_at = None)?;
                self.restand(&id);
            }
        }
        Ok(())
    }

    /// A result whose message was given up stays owed, but waits for the operator to bring it up.
    fn message_aborted(&mut self, fact: &MessageAborted) -> Applied {
        let from = &[QueueStatus::Dequeued, QueueStatus::Queued];
        let task = self.queue.get(&fact.message_id).and_then(|entry| entry.message.task_id.clone());
        self.message_gone(&fact.message_id, from)?;
        if let Some(task) = task.filter(|_| fact.given_up) {
            self.tasks.edit(&task, |task| task.held = true);
        }
        Ok(())
    }

    /// A message leaves the state; whatever it carried is no longer under way.
    fn message_gone(&mut self, id: &MessageId, from: &[QueueStatus]) -> Applied {
        let entry = self.queue.remove_from(id, from)?;
        self.hints.tick_is_over(id);
        if let Some(item) = self.work.tick_is_over(id) {
            let _gone = self.work.edit(&item, |item| item.ticks.undelivered = None);
            self.restand(&item);
        }
        if let Some(timer) = &entry.message.timer_id
            && self.timers.get(timer).is_some_and(|timer| timer.undelivered.as_ref() == Some(id))
        {
            self.timers.edit(timer, |timer| timer.undelivered = None)?;
        }
        if let Some(task) = &entry.message.task_id {
            self.tasks.edit(task, |task| {
                if task.result_message.as_ref() == Some(id) {
                    task.result_message = None;
                }
            });
        }
        Ok(())
    }

    fn message_interjected(&mut self, fact: &MessageInterjected) -> Applied {
        let turn = self.turn_of(&fact.exec_id)?;
        if turn.message_id != fact.joined {
            return Err(format!("the turn is not about {}", fact.joined));
        }
        turn.unheard = true;
        // What had joined the interjection in an earlier turn of its own comes along.
        for earlier in self.queue.joined_to(&fact.message_id) {
            self.queue.edit(&earlier, |entry| entry.joined = Some(fact.joined.clone()));
        }
        self.queue.shift(&fact.message_id, &[QueueStatus::Queued], QueueStatus::Interjected, |entry| {
            entry.joined = Some(fact.joined.clone());
            entry.not_before = None;
        })
    }

    fn turn_started(&mut self, fact: &TurnStarted, at: Time) -> Applied {
        if self.turn.is_some() {
            return Err("a turn is running".to_owned());
        }
        if self.control != Control::Runnable {
            return Err("the agent is not running".to_owned());
        }
        if fact.turn_index != self.turn_index + 1 {
            return Err(format!("turn {} does not follow turn {}", fact.turn_index, self.turn_index));
        }
        let entry = self.queue.get(&fact.message_id).filter(|entry| entry.status == QueueStatus::Dequeued);
        let message = entry.ok_or_else(|| format!("{} was not taken", fact.message_id))?.message.clone();
        self.last_trigger =
            Some(LastTrigger { kind: fact.continuation.trigger_kind, work_tick: message.is_work_tick() });
        self.last_continuation = Some(fact.continuation.clone());
        self.queue.edit(&fact.message_id, |entry| entry.continuation = Some(fact.continuation.clone()));
        self.turn_index = fact.turn_index;
        self.resting = false;
        self.turn = Some(Turn {
            turn_id: fact.turn_id.clone(),
            exec_id: fact.exec_id.clone(),
            turn_index: fact.turn_index,
            message_id: fact.message_id.clone(),
            work_item_id: fact.work_item_id.clone(),
            continuation: fact.continuation.clone(),
            presents: fact.presents.clone(),
            started_at: at,
            seq: self.seq,
            round: 0,
            rounds_recorded: 0,
            phase: Phase::Safe,
            ends: false,
            unheard: false,
            last_text: None,
            checkpoint: None,
            progressed: false,
        });
        Ok(())
    }

    pub(super) fn turn_of(&mut self, exec: &ExecId) -> Result<&mut Turn, String> {
        self.turn.as_mut().filter(|turn| turn.exec_id == *exec).ok_or_else(|| format!("{exec} does not run"))
    }

    fn assistant_round(&mut self, fact: &AssistantRoundRecorded) -> Applied {
        let turn = self.turn_of(&fact.exec_id)?;
        if turn.phase != Phase::Model || turn.round != fact.round {
            return Err(format!("round {} is not under way", fact.round));
        }
        turn.rounds_recorded += 1;
        turn.unheard = false;
        if !fact.text.is_empty() {
            turn.last_text = Some(fact.text.clone());
        }
        turn.phase = if fact.calls.is_empty() {
            Phase::Safe
        } else {
            Phase::Tools { running: std::collections::BTreeMap::new(), waiting: fact.calls.clone() }
        };
        let message = turn.message_id.clone();
        self.queue.edit(&message, |entry| entry.crashes_since_round = 0);
        Ok(())
    }

    fn tool_started(&mut self, fact: &ToolStarted) -> Applied {
        let turn = self.turn_of(&fact.exec_id)?;
        let Phase::Tools { running, waiting } = &mut turn.phase else {
            return Err("no calls are open".to_owned());
        };
        let Some(index) = waiting.iter().position(|call| call.call_id == fact.call_id) else {
            return Err(format!("{} was not asked for, or has begun already", fact.call_id));
        };
        let call = waiting.remove(index);
        running.insert(call.call_id.clone(), call);
        self.tool_executions += 1;
        Ok(())
    }

    fn tool_finished(&mut self, fact: &ToolFinished) -> Applied {
        let turn = self.turn_of(&fact.exec_id)?;
        let Phase::Tools { running, .. } = &mut turn.phase else {
            return Err("no calls are open".to_owned());
        };
        if running.remove(&fact.call_id).is_none() {
            return Err(format!("{} is not running", fact.call_id));
        }
        turn.ends |= fact.ends_turn;
        Ok(())
    }

    fn turn_aborted(&mut self, fact: &TurnAborted, at: Time) -> Applied {
        let turn = self.turn_of(&fact.exec_id)?.clone();
        // A message that will be taken again has not been worked through: only a real end counts as the item's tick.
        if fact.reason == AbortReason::Abort {
            self.count_turn(&turn, None, at)?;
        }
        self.end_turn(TerminalKind::Aborted);
        Ok(())
    }

    fn turn_terminal(&mut self, fact: &TurnTerminal, at: Time) -> Applied {
        let turn = self.turn_of(&fact.exec_id)?.clone();
        self.count_turn(&turn, fact.tree.as_deref(), at)?;
        self.end_turn(fact.terminal_kind);
        if fact.terminal_kind == TerminalKind::Completed {
            self.runtime_error = None;
        }
        Ok(())
    }

    fn end_turn(&mut self, kind: TerminalKind) {
        self.turn = None;
        self.last_terminal = Some(LastTerminal { turn_index: self.turn_index, kind, seq: self.seq, superseded: false });
    }

    /// A turn about an item counts as its tick.
    fn count_turn(&mut self, turn: &Turn, tree: Option<&str>, at: Time) -> Applied {
        let tree_changed = tree.is_some() && self.tree.as_deref() != tree;
        if let Some(tree) = tree {
            self.tree = Some(tree.to_owned());
        }
        let Some(id) = turn.work_item_id.clone().filter(|id| self.work.open(id).is_some()) else { return Ok(()) };
        let message = self.queue.get(&turn.message_id).map(|entry| &entry.message);
        let by = match message {
            Some(message) if message.is_work_tick() => TurnBy::Tick,
            Some(message) if message.kind == MessageKind::OperatorPrompt => TurnBy::Operator,
            Some(_) | None => TurnBy::Other,
        };
        let outside = self.work.outside_epoch;
        let progressed = turn.progressed || tree_changed;
        self.work.edit(&id, |item| item.ticks.turn_ended(progressed, by, outside, at))?;
        self.restand(&id);
        Ok(())
    }

    fn task_ended(&mut self, to: TaskStatus, end: &TaskEnd, at: Time) -> Applied {
        let item = self.tasks.transition(&end.task_id, to, Some(end), at)?.work_item_id.clone();
        self.item_changed(item)
    }

    /// Something about an item changed that is not in its record: its waits, its tasks, the focus.
    fn item_changed(&mut self, item: Option<WorkItemId>) -> Applied {
        let Some(id) = item.filter(|id| self.work.open(id).is_some()) else { return Ok(()) };
        self.work.edit(&id, |item| item.ticks.progress())?;
        self.progressed(&id);
        self.restand(&id);
        Ok(())
    }

    fn progressed(&mut self, id: &WorkItemId) {
        if let Some(turn) = &mut self.turn
            && turn.work_item_id.as_ref() == Some(id)
        {
            turn.progressed = true;
        }
    }

    fn wait_ended(&mut self, id: &WaitId) -> Applied {
        let wait = self.waits.end(id)?;
        self.item_changed(wait.work_item_id)
    }

    fn timer_missed(&mut self, fact: &TimerMissed) -> Applied {
        let mut tick = None;
        self.timers.edit(&fact.timer_id, |timer| {
            timer.missed_count += fact.count;
            timer.next_fire_at = fact.next_fire_at;
            tick.clone_from(&timer.undelivered);
        })?;
        if let Some(tick) = tick {
            self.queue.edit(&tick, |entry| entry.missed += fact.count);
        }
        Ok(())
    }

    fn hint_pending(
        &mut self,
        source: &str,
        generation: u64,
        reason: &str,
        resource: &Option<String>,
        body: &Option<String>,
        at: Time,
    ) -> Applied {
        self.hints.submit(Hint {
            source: source.to_owned(),
            generation,
            reason: reason.to_owned(),
            resource: resource.clone(),
            bodies: body.iter().cloned().collect(),
            count: 1,
            at,
            seq: self.seq,
        });
        Ok(())
    }

    fn work_item_created(&mut self, fact: &WorkItemCreated) -> Applied {
        if self.work.get(&fact.work_item_id).is_some() {
            return Err(format!("{} exists already", fact.work_item_id));
        }
        self.work.insert(WorkItem::created(fact, self.seq));
        self.restand(&fact.work_item_id);
        Ok(())
    }

    fn work_item_picked(&mut self, fact: &WorkItemPicked) -> Applied {
        if self.work.open(&fact.work_item_id).is_none() {
            return Err(format!("{} is not an open work item", fact.work_item_id));
        }
        self.work.current = Some(fact.work_item_id.clone());
        self.item_changed(Some(fact.work_item_id.clone()))
    }

    fn work_item_updated(&mut self, fact: &WorkItemUpdated) -> Applied {
        self.revise(&fact.work_item_id, fact.revision, |item| {
            if let Some(objective) = &fact.objective {
                item.objective.clone_from(objective);
            }
            if let Some(plan) = &fact.plan {
                item.plan = Some(plan.clone());
            }
            if let Some(status) = fact.plan_status {
                item.plan_status = status;
            }
            if let Some(todo) = &fact.todo {
                item.todo.clone_from(todo);
            }
        })
    }

    fn work_item_completed(&mut self, fact: &WorkItemCompleted) -> Applied {
        if self.waits.of_item(&fact.work_item_id).next().is_some() {
            return Err(format!("{} still has open waits", fact.work_item_id));
        }
        self.revise(&fact.work_item_id, fact.revision, |item| {
            item.state = WorkItemState::Completed;
            item.blocked_by = None;
            item.recheck_at = None;
            item.report = Some(fact.report.clone());
        })?;
        self.work.complete(&fact.work_item_id)
    }

    /// A change of the record itself is a new revision, and its keys begin anew.
    fn revise(&mut self, id: &WorkItemId, revision: u64, change: impl FnOnce(&mut WorkItem)) -> Applied {
        let seq = self.seq;
        let mut known = 0;
        self.work.edit(id, |item| known = item.revision)?;
        if revision != known + 1 {
            return Err(format!("{id} is at revision {known}, {revision} does not follow"));
        }
        self.work.edit(id, |item| {
            change(item);
            item.revision = revision;
            item.seq = seq;
            item.ticks.attempts = 0;
            item.ticks.progress();
        })?;
        self.progressed(id);
        self.restand(id);
        Ok(())
    }
}
