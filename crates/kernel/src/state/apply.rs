//! One match over all facts: what each of them changes. IllegalFact pairs of state and fact are errors.

mod messages;
mod turns;
mod work;

use super::child::{self, Departure};
use super::hint::{Hint, Trigger};
use super::lifecycle::Control;
use super::turn::Phase;
use super::{AgentState, RecordedDecision};
use crate::budget::Used;
use crate::credentials::Credentials;
use crate::fact::*;
use crate::id::{TriggerId, WaitId};
use crate::limits;
use crate::time::Time;
use crate::vocabulary::{
    AgentKind, ControlAction, DecisionKind, Ownership, QueueStatus, RequeueReason, TaskKind, TaskStatus, Visibility,
};

/// A fact that can't follow the facts before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fact {seq} ({kind}) can't follow what came before it: {problem}")]
pub struct IllegalFact {
    pub seq: u64,
    pub kind: &'static str,
    pub problem: String,
}

type Applied = Result<(), String>;

impl AgentState {
    /// Changes the state by one fact, the next of its stream.
    pub fn apply(&mut self, at: Time, fact: &Fact) -> Result<(), IllegalFact> {
        self.seq += 1;
        self.at = at;
        #[cfg(feature = "planted")]
        self.let_bug_prepare(fact);
        let applied = self.apply_fact(at, fact);
        #[cfg(feature = "planted")]
        let applied = applied.and_then(|()| self.let_bug_spoil(fact));
        applied.map_err(|problem| IllegalFact { seq: self.seq, kind: fact.kind(), problem })
    }

    fn apply_fact(&mut self, at: Time, fact: &Fact) -> Applied {
        if self.seq == 1 && !matches!(fact, Fact::AgentCreated(_)) {
            return Err("a stream begins with agent.created".to_owned());
        }
        match fact {
            Fact::AgentCreated(fact) => self.agent_created(fact),
            Fact::AgentConfigured(fact) => {
                // A new folder in the configuration replaces the choice among attached ones.
                if self.definition.config.workspace != fact.config.workspace {
                    self.planes.workspaces.choose_none();
                }
                self.models.failures.retain(|known| fact.config.models().any(|model| model == known.model));
                self.definition.config = fact.config.clone();
                if let Some(role) = fact.role {
                    self.definition.identity.role = role;
                }
                self.reset_budget_notice();
                Ok(())
            }
            Fact::AgentForked(fact) => {
                self.definition.identity.id = fact.agent_id.clone();
                // The supervisor of the original has no task for the fork.
                self.definition.identity.kind = AgentKind::Named;
                self.definition.identity.visibility = Visibility::Public;
                self.definition.identity.ownership = Ownership::SelfOwned;
                // Rules about the makers of the original bind the fork, too.
                self.definition.identity.makers = self.definition.identity.lineage();
                self.definition.identity.supervisor = None;
                self.lifecycle.leaving = None;
                self.lifecycle.archived = false;
                self.lifecycle.control = Control::Stopped;
                self.lifecycle.resting = false;
                // A permit is for one call of one agent.
                self.planes.approvals.clear_permits();
                self.planes.tasks.clear_allowances();
                // Credentials were given to the original alone.
                self.definition.config.credentials = Credentials::default();
                Ok(())
            }
            Fact::AgentArchived(_) => {
                self.lifecycle.archived = true;
                Ok(())
            }
            Fact::ChildLeaving(fact) => {
                if self.definition.identity.supervisor.is_none() {
                    return Err("only a supervised child leaves".to_owned());
                }
                self.lifecycle.leaving = Some(Departure::from_fact(fact));
                Ok(())
            }
            Fact::ChildReporting(_) => {
                self.lifecycle.leaving.as_mut().ok_or("it is not leaving")?.reporting = true;
                Ok(())
            }
            Fact::AgentQuarantined(fact) => {
                self.lifecycle.control = Control::Quarantined { reason: fact.reason.clone() };
                Ok(())
            }
            Fact::ControlAdmitted(_) | Fact::PostureChanged(_) | Fact::StaleOutcomeIgnored(_) => Ok(()),
            Fact::ControlApplied(fact) => {
                self.control_applied(fact);
                Ok(())
            }
            Fact::SchedulerDecided(fact) => {
                self.lifecycle.resting |= fact.decision.kind.is_rest();
                if fact.decision.kind != DecisionKind::Noop {
                    self.last_decision = Some(RecordedDecision { seq: self.seq, decision: fact.decision.clone() });
                }
                Ok(())
            }
            Fact::LimitsChanged(fact) => {
                self.definition.limits = fact.limits;
                Ok(())
            }
            Fact::ClockSetBack(fact) => {
                self.move_times_back(fact.from, fact.to);
                Ok(())
            }
            Fact::SelfTurnsPaced(fact) => {
                self.accounts.pace.record_notice(fact.not_before);
                Ok(())
            }
            Fact::WorkTicksSpent(_) => {
                self.planes.work.mark_row_spent();
                Ok(())
            }
            Fact::RuntimeErrorRecorded(fact) => {
                self.lifecycle.runtime_error = Some(fact.error.clone());
                Ok(())
            }

            Fact::WorkspaceAttached(fact) => self.planes.workspaces.attach(fact, self.seq, at),
            Fact::WorkspaceUsed(fact) => self.planes.workspaces.use_root(&fact.root),
            Fact::WorkspaceDetached(fact) => self.planes.workspaces.detach(&fact.root),
            Fact::WorkspaceOccupied(fact) => {
                self.planes.workspaces.occupy(&fact.workspace);
                Ok(())
            }
            Fact::WorkspaceReleased(fact) => {
                if fact.error.is_none() {
                    self.planes.workspaces.release(&fact.workspace);
                }
                Ok(())
            }
            Fact::DiskShort(fact) => {
                self.lifecycle.disk_short = Some(fact.clone());
                Ok(())
            }
            Fact::DiskHasRoom(DiskHasRoom {}) => {
                self.lifecycle.disk_short = None;
                Ok(())
            }
            Fact::TurnsHeld(fact) => {
                self.lifecycle.turns_held = Some(fact.clone());
                Ok(())
            }
            Fact::TurnsReleased(_) => {
                self.lifecycle.turns_held = None;
                self.lifecycle.resting = false;
                Ok(())
            }
            Fact::WorktreeRemoving(fact) => self.planes.workspaces.edit(&fact.root, |workspace| {
                workspace.removing = true;
                workspace.discard = fact.discard;
            }),
            Fact::WorktreeRemoved(fact) => {
                if let Some(leaving) = &mut self.lifecycle.leaving {
                    leaving.left.extend(child::describe_removed_worktree(fact));
                }
                self.planes.workspaces.detach(&fact.root)
            }
            Fact::WorktreeKept(fact) => {
                if let Some(leaving) = &mut self.lifecycle.leaving {
                    leaving.left.push(format!("Its worktree {} was kept: {}", fact.root, fact.error));
                }
                self.planes.workspaces.edit(&fact.root, |workspace| {
                    workspace.removing = false;
                    workspace.kept = Some(fact.error.clone());
                })
            }

            Fact::MessageQueued(fact) => self.message_queued(fact, at),
            Fact::MessageDequeued(fact) => self.planes.queue.change_status(
                &fact.message_id,
                &[QueueStatus::Queued],
                QueueStatus::Dequeued,
                |entry| {
                    entry.taken += 1;
                    entry.not_before = None;
                },
            ),
            Fact::MessageProcessed(fact) => self.message_processed(fact),
            Fact::MessageInterjected(fact) => self.message_interjected(fact),
            Fact::MessageParked(fact) => {
                self.planes.queue.change_status(&fact.message_id, &[QueueStatus::Queued], QueueStatus::Parked, |_| ())
            }
            Fact::MessageRequeued(fact) => {
                if fact.reason != RequeueReason::Stop && fact.reason != RequeueReason::Shutdown {
                    self.lifecycle.resting = false;
                }
                self.planes.queue.requeue(&fact.message_id, fact.reason, fact.not_before)
            }
            Fact::MessageAborted(fact) => self.message_aborted(fact),
            Fact::MessageDropped(fact) => {
                self.remove_message(&fact.message_id, &[QueueStatus::Queued, QueueStatus::Parked])
            }

            Fact::TurnStarted(fact) => self.turn_started(fact, at),
            Fact::TurnBound(fact) => self.turn_bound(fact, at),
            Fact::RoundStarted(fact) => {
                let turn = self.running_turn(&fact.exec_id)?;
                if fact.round != turn.round + 1 || !matches!(turn.phase, Phase::Safe { .. }) {
                    return Err(format!("round {} can't begin here", fact.round));
                }
                turn.round = fact.round;
                turn.phase = Phase::Model;
                Ok(())
            }
            Fact::ProviderRoundCompleted(fact) => {
                self.running_turn(&fact.exec_id)?;
                self.accounts.usage.add(&fact.usage);
                self.spend(at, &Used::tokens(fact.usage));
                self.spend_time(at);
                if let Some(estimated) = fact.estimated_tokens {
                    self.models.calibration.learn(fact.model.as_deref(), estimated, fact.usage.input_tokens);
                }
                self.clear_model_failures();
                self.set_carry(fact.carry.as_ref());
                Ok(())
            }
            Fact::ProviderRoundFailed(fact) => {
                self.running_turn(&fact.exec_id)?;
                if let Some(usage) = &fact.usage {
                    self.accounts.usage.add(usage);
                    self.spend(at, &Used::tokens(*usage));
                }
                self.spend_time(at);
                self.record_model_failure(fact, at);
                self.set_carry(fact.carry.as_ref());
                Ok(())
            }
            // Its turn is over, and with it whatever item it was about.
            Fact::CutRoundCounted(fact) => {
                self.accounts.usage.add(&fact.usage);
                self.accounts.spending.spend(at, &Used::tokens(fact.usage));
                Ok(())
            }
            Fact::AssistantRoundRecorded(fact) => self.assistant_round(fact),
            Fact::ToolStarted(fact) => self.tool_started(fact),
            Fact::ToolFinished(fact) => self.tool_finished(fact, at),
            Fact::ToolRoundCompleted(fact) => {
                self.spend_time(at);
                let turn = self.running_turn(&fact.exec_id)?;
                match &turn.phase {
                    Phase::Tools { running, waiting, ends_turn } if running.is_empty() && waiting.is_empty() => {
                        turn.phase = Phase::Safe { ends_turn: *ends_turn };
                        Ok(())
                    }
                    Phase::Tools { .. } | Phase::Model | Phase::Safe { .. } => Err("calls are still open".to_owned()),
                }
            }
            Fact::TurnCheckpointed(fact) => {
                self.running_turn(&fact.exec_id)?.checkpoint = Some(fact.clone());
                Ok(())
            }
            Fact::TurnBaselineOverBudget(fact) => self.running_turn(&fact.exec_id).map(|_| ()),
            Fact::TurnAborted(fact) => self.turn_aborted(fact, at),
            Fact::TurnTerminal(fact) => self.turn_terminal(fact, at),
            Fact::ContextCompacted(fact) => {
                if let Some(usage) = &fact.usage {
                    self.accounts.usage.add(usage);
                    self.accounts.spending.spend(at, &Used::tokens(*usage));
                }
                self.turns.compaction = Some(fact.clone());
                Ok(())
            }

            Fact::TaskCreated(fact) => {
                self.planes.tasks.create(fact, self.seq, at)?;
                self.remember_call(fact);
                self.record_item_change(fact.work_item_id.clone())
            }
            Fact::TaskRunning(fact) => {
                self.planes.tasks.transition(&fact.task_id, TaskStatus::Running, None, at)?;
                if let Some(recovery) = &fact.recovery {
                    self.planes.tasks.edit(&fact.task_id, |task| task.recovery = Some(recovery.clone()));
                }
                Ok(())
            }
            Fact::TaskCancelling(fact) => {
                self.planes.tasks.transition(&fact.task_id, TaskStatus::Cancelling, None, at)?;
                self.planes.tasks.edit(&fact.task_id, |task| {
                    let fresh = fact.evidence.iter().filter(|why| !task.asked.contains(why)).cloned();
                    let room = limits::CANCEL_REASONS_MAX.saturating_sub(task.asked.len());
                    let fresh: Vec<String> = fresh.take(room).collect();
                    task.asked.extend(fresh);
                });
                Ok(())
            }
            Fact::TaskCompleted(fact) => self.end_task(TaskStatus::Completed, &fact.end, at),
            Fact::TaskFailed(fact) => self.end_task(TaskStatus::Failed, &fact.end, at),
            Fact::TaskCancelled(fact) => self.end_task(TaskStatus::Cancelled, &fact.end, at),
            Fact::TaskInterrupted(fact) => self.end_task(TaskStatus::Interrupted, &fact.end, at),
            Fact::TaskUpdateIgnored(_) => Ok(()),
            Fact::TaskResultQueued(fact) => {
                if !self.planes.tasks.owed().contains_key(&fact.task_id) {
                    return Err(format!("nothing is owed of {}", fact.task_id));
                }
                self.planes.tasks.edit(&fact.task_id, |task| task.result_message = Some(fact.message_id.clone()));
                Ok(())
            }
            Fact::TaskResultDelivered(fact) => {
                let call = self.planes.tasks.get(&fact.task_id).and_then(|task| task.call);
                if let Some(turn) = &mut self.turns.current {
                    turn.presents.retain(|task| *task != fact.task_id);
                    let message = turn.message_id.clone();
                    self.planes
                        .queue
                        .edit(&message, |entry| call.into_iter().for_each(|call| entry.guard.forget_call(call)));
                }
                self.planes.tasks.settle_result(&fact.task_id)
            }

            Fact::WorkItemCreated(fact) => self.work_item_created(fact),
            Fact::WorkItemPicked(fact) => self.work_item_picked(fact),
            Fact::WorkItemUpdated(fact) => self.work_item_updated(fact),
            Fact::WorkItemBlocked(fact) => self.revise(&fact.work_item_id, fact.revision, |item| {
                item.blocked_by = Some(fact.blocked_by.clone());
                item.recheck_at = fact.recheck_at;
                item.recheck_after_ms = fact.recheck_at.map(|due| due.since_ms(at));
                item.recheck_by = fact.made_by;
            }),
            Fact::WorkItemUnblocked(fact) => self.revise(&fact.work_item_id, fact.revision, |item| {
                item.blocked_by = None;
                item.recheck_at = None;
            }),
            Fact::WorkItemCompleted(fact) => self.work_item_completed(fact),
            Fact::WorkItemDelegated(fact) => {
                self.planes.tasks.edit(&fact.task_id, |task| task.delegated = true);
                self.record_item_change(Some(fact.work_item_id.clone()))
            }
            Fact::WorkItemDelegationCompleted(fact) => {
                self.planes.tasks.edit(&fact.task_id, |task| task.delegated = false);
                self.record_item_change(Some(fact.work_item_id.clone()))
            }
            Fact::RecheckMoved(fact) => {
                self.planes.work.edit(&fact.work_item_id, |item| item.recheck_at = Some(fact.to))?;
                self.planes.update_standing(&fact.work_item_id);
                Ok(())
            }
            Fact::RecheckFired(fact) => {
                self.planes.work.edit(&fact.work_item_id, |item| item.recheck_at = None)?;
                self.planes.update_standing(&fact.work_item_id);
                Ok(())
            }

            Fact::WaitingIntentCreated(fact) => {
                if let Some(item) = &fact.work_item_id
                    && self.planes.work.open(item).is_none()
                {
                    return Err(format!("{item} is not an open work item"));
                }
                self.planes.waits.create(fact, self.seq, at)?;
                self.planes.index_awaited_timer(fact.resource.as_ref());
                let answer = self.turns.current.as_mut().and_then(|turn| turn.answer.as_mut());
                if let Some(answer) = answer.filter(|_| fact.answers.is_some()) {
                    answer.put_off = true;
                }
                self.turns.supersede_last_terminal();
                self.record_item_change(fact.work_item_id.clone())
            }
            Fact::WaitingIntentTriggered(fact) => self.end_wait(&fact.waiting_intent_id),
            Fact::WaitingIntentCancelled(fact) => self.end_wait(&fact.waiting_intent_id),
            Fact::TimerCreated(fact) => self.planes.timers.create(fact, self.seq, at),
            Fact::TimerCheckStarted(fact) => {
                self.planes.timers.edit(&fact.timer_id, |timer| timer.record_check_start(fact))
            }
            Fact::TimerFired(fact) => {
                let mut missed = 0;
                self.planes.timers.edit(&fact.timer_id, |timer| missed = timer.record_fire(fact))?;
                self.planes.queue.edit(&fact.message_id, |entry| entry.missed = entry.missed.saturating_add(missed));
                Ok(())
            }
            Fact::TimerMissed(fact) => self.timer_missed(fact),
            Fact::TimerRescheduled(fact) => {
                self.planes.timers.edit(&fact.timer_id, |timer| timer.record_reschedule(fact))
            }
            Fact::TimerCompleted(fact) => self.planes.timers.end(&fact.timer_id).map(|_| ()),
            Fact::TimerCancelled(fact) => self.planes.timers.end(&fact.timer_id).map(|_| ()),
            Fact::WakeHintSubmitted(hint) => {
                self.lifecycle.resting = false;
                self.add_hint(&hint.source, hint.generation, &hint.reason, &hint.resource, &hint.body, at)
            }
            Fact::WakeHintCoalesced(hint) => {
                self.add_hint(&hint.source, hint.generation, &hint.reason, &hint.resource, &hint.body, at)
            }
            Fact::WakeHintIgnored(hint) => {
                self.planes.hints.ignore(&hint.source, hint.generation);
                Ok(())
            }
            Fact::TriggerCreated(fact) => {
                let trigger = Trigger {
                    trigger_id: fact.trigger_id.clone(),
                    name: fact.name.clone(),
                    delivery_mode: fact.delivery_mode,
                    work_item_id: fact.work_item_id.clone(),
                    signed: fact.signed,
                    generation: 0,
                    delivery_count: 0,
                    last_delivered_at: None,
                    seq: self.seq,
                };
                match self.planes.triggers.insert(fact.trigger_id.clone(), trigger) {
                    None => Ok(()),
                    Some(_) => Err(format!("{} exists already", fact.trigger_id)),
                }
            }
            Fact::TriggerRotated(fact) => {
                self.trigger_mut(&fact.trigger_id)?.generation = fact.generation;
                Ok(())
            }
            Fact::TriggerDelivered(fact) => {
                let trigger = self.trigger_mut(&fact.trigger_id)?;
                trigger.delivery_count += 1;
                trigger.last_delivered_at = Some(at);
                Ok(())
            }
            Fact::TriggerRevoked(fact) => match self.planes.triggers.remove(&fact.trigger_id) {
                Some(_) => Ok(()),
                None => Err(format!("{} is not a trigger", fact.trigger_id)),
            },
            Fact::ApprovalRequested(fact) => self.planes.approvals.request(fact, self.seq, at),
            Fact::ApprovalDeadlineMoved(fact) => self.planes.approvals.move_deadline(&fact.approval_id, fact.to),
            Fact::ApprovalDecided(fact) => self.planes.approvals.decide(fact, at),
            Fact::ApprovalUsed(fact) => self.planes.approvals.use_permit(&fact.approval_id),
            Fact::BudgetReached(fact) => match &fact.work_item_id {
                Some(id) => {
                    self.planes.work.edit(id, |item| item.told_spent = true)?;
                    self.planes.update_standing(id);
                    Ok(())
                }
                None => {
                    self.accounts.spending.told = true;
                    Ok(())
                }
            },
            Fact::BudgetRenewed(fact) => {
                self.accounts.spending.begin_day(fact.since);
                self.lifecycle.resting = false;
                self.reset_budget_notice();
                Ok(())
            }
            Fact::BriefRecorded(fact) => {
                self.planes.add_brief(fact.clone());
                self.record_brief_answer(fact);
                if let Some(id) = &fact.work_item_id {
                    self.planes.work.edit(id, |item| item.ticks.told = Some(item.revision))?;
                    self.planes.update_standing(id);
                }
                Ok(())
            }
        }
    }

    fn agent_created(&mut self, fact: &AgentCreated) -> Applied {
        if self.seq != 1 {
            return Err("an agent is created once".to_owned());
        }
        self.definition.identity = fact.identity.clone();
        self.definition.config = fact.config.clone();
        self.lifecycle.control = if fact.start { Control::Booting } else { Control::Stopped };
        Ok(())
    }

    fn control_applied(&mut self, fact: &ControlApplied) {
        match fact.action {
            ControlAction::Start => {
                self.lifecycle.control = Control::Runnable;
                self.lifecycle.resting = false;
            }
            ControlAction::Stop => {
                // The reason for the quarantine is kept until the agent is started again.
                if !matches!(self.lifecycle.control, Control::Quarantined { .. }) {
                    self.lifecycle.control = Control::Stopped;
                }
                self.lifecycle.resting = false;
            }
            ControlAction::Shutdown => self.lifecycle.shutdown = true,
            ControlAction::Restart => {
                self.lifecycle.shutdown = false;
                if self.lifecycle.control == Control::Booting {
                    self.lifecycle.control = Control::Runnable;
                }
            }
        }
    }

    fn end_task(&mut self, to: TaskStatus, end: &TaskEnd, at: Time) -> Applied {
        let task = self.planes.tasks.transition(&end.task_id, to, Some(end), at)?;
        let item = task.work_item_id.clone();
        if task.kind == TaskKind::ChildAgent {
            let used = end.used.unwrap_or_else(|| Used::all_of(&task.granted));
            self.count_child_usage(at, &used);
            if let Some(id) = item.as_ref().filter(|id| self.planes.work.open(id).is_some()) {
                self.planes.work.edit(id, |item| item.used.add(&used))?;
            }
            self.reset_budget_notice();
        }
        self.record_item_change(item)
    }

    pub(super) fn end_wait(&mut self, id: &WaitId) -> Applied {
        let wait = self.planes.waits.end(id)?;
        self.planes.index_awaited_timer(wait.resource.as_ref());
        self.record_item_change(wait.work_item_id)
    }

    fn trigger_mut(&mut self, id: &TriggerId) -> Result<&mut Trigger, String> {
        self.planes.triggers.get_mut(id).ok_or_else(|| format!("{id} is not a trigger"))
    }

    fn timer_missed(&mut self, fact: &TimerMissed) -> Applied {
        let mut tick = None;
        self.planes.timers.edit(&fact.timer_id, |timer| {
            timer.record_missed(fact);
            tick.clone_from(&timer.undelivered);
        })?;
        if let Some(tick) = tick {
            self.planes.queue.edit(&tick, |entry| entry.missed = entry.missed.saturating_add(fact.count));
        }
        Ok(())
    }

    fn add_hint(
        &mut self,
        source: &str,
        generation: u64,
        reason: &str,
        resource: &Option<String>,
        body: &Option<String>,
        at: Time,
    ) -> Applied {
        self.planes.hints.submit(Hint {
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
}
