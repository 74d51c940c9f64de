//! The fold: what each fact changes. Facts that only leave a trail change nothing.

use abide_kernel::fact::{Fact, MessageRequeued, TaskEnd, TimerFired, TurnBound, TurnStarted, WaitingIntentCreated};
use abide_kernel::id::{ExecId, MessageId, Seq, TaskId, TimerId, WaitId, WorkItemId};
use abide_kernel::limits::TICK_BACKOFF_MS;
use abide_kernel::message::Message;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{
    AbortReason, ControlAction, Maker, MessageKind, MissedReason, QueueStatus, RequeueReason, TaskKind, TickKind,
    WorkItemState,
};

use super::loops::Row;
use super::{
    Approval, Entry, Gate, Hint, Item, LastTurn, Model, QueuePosition, Task, Timer, Trigger, Turn, Wait, contentful,
};

impl Model {
    /// Takes in one fact, recorded at `at`. Facts come in order, each once.
    pub fn observe(&mut self, seq: Seq, at: Time, fact: &Fact) {
        match fact {
            Fact::AgentCreated(fact) => {
                self.gate = if fact.start { Gate::Booting } else { Gate::Stopped };
                self.budget = fact.config.budget.clone();
            }
            Fact::LimitsChanged(fact) => self.limits = fact.limits,
            Fact::AgentConfigured(fact) => self.budget = fact.config.budget.clone(),
            Fact::AgentForked(fact) => {
                self.agent_id = fact.agent_id.clone();
                self.gate = Gate::Stopped;
            }
            Fact::AgentArchived(_) | Fact::ChildLeaving(_) | Fact::ChildReporting(_) => {}
            Fact::AgentQuarantined(_) => self.gate = Gate::Quarantined,
            Fact::ControlApplied(fact) => self.control(fact.action),
            Fact::SchedulerDecided(fact) => self.resting |= fact.decision.kind.is_rest(),
            Fact::RuntimeErrorRecorded(_) => self.runtime_error = true,

            Fact::MessageQueued(fact) => {
                let message = fact.message.clone();
                self.hear(&message);
                self.messages.push(Entry {
                    message,
                    place: (seq, 0),
                    status: QueueStatus::Queued,
                    not_before: None,
                    taken: 0,
                });
            }
            Fact::MessageDequeued(fact) => {
                self.moved(&fact.message_id, QueueStatus::Dequeued);
                if let Some(entry) = self.entry_mut(&fact.message_id) {
                    entry.not_before = None;
                }
            }
            Fact::MessageProcessed(fact) => {
                let blank_hint = self.entry(&fact.message_id).is_some_and(|entry| {
                    entry.taken == 0 && entry.message.tick() == Some(TickKind::WakeHint) && !contentful(&entry.message)
                });
                if blank_hint {
                    self.items.iter_mut().for_each(|item| item.not_before = None);
                }
                self.moved(&fact.message_id, QueueStatus::Processed);
            }
            Fact::MessageInterjected(fact) => self.moved(&fact.message_id, QueueStatus::Interjected),
            Fact::MessageParked(fact) => self.moved(&fact.message_id, QueueStatus::Parked),
            Fact::MessageRequeued(fact) => self.requeued(fact),
            Fact::MessageAborted(fact) => self.moved(&fact.message_id, QueueStatus::Aborted),
            Fact::MessageDropped(fact) => self.moved(&fact.message_id, QueueStatus::Dropped),

            Fact::TurnBound(fact) => self.turn_bound(fact, at),
            Fact::TurnStarted(fact) => self.turn_started(fact, at),
            Fact::ProviderRoundCompleted(fact) => self.round_used(at, &fact.usage),
            Fact::ProviderRoundFailed(fact) => match &fact.usage {
                Some(usage) => self.round_used(at, usage),
                None => self.time_used(at),
            },
            Fact::CutRoundCounted(fact) => self.compaction_used(at, &fact.usage),
            Fact::ToolRoundCompleted(_) => self.time_used(at),
            Fact::ContextCompacted(fact) => {
                if let Some(usage) = &fact.usage {
                    self.compaction_used(at, usage);
                }
            }
            Fact::ClockSetBack(fact) => self.clock_set_back(fact.from, fact.to),
            Fact::TurnsHeld(fact) => self.held = Some((fact.cause, fact.until)),
            Fact::TurnsReleased(_) => {
                self.held = None;
                self.resting = false;
            }
            Fact::BudgetRenewed(fact) => {
                self.begin_day(fact.since);
                self.resting = false;
            }
            Fact::TurnAborted(fact) => {
                self.failed = true;
                if fact.reason != AbortReason::Cut && !fact.process_ended {
                    self.time_used(at);
                }
                match fact.reason {
                    AbortReason::Abort => self.turn_ended(&fact.exec_id, at, false),
                    AbortReason::Stop | AbortReason::Shutdown | AbortReason::Budget | AbortReason::Cut => {
                        self.turn = None;
                    }
                }
            }
            Fact::TurnTerminal(fact) => {
                self.time_used(at);
                self.failed = fact.terminal_kind.is_failure();
                self.runtime_error &= self.failed;
                let tree_changed = fact.tree.is_some() && fact.tree != self.last_tree;
                if tree_changed {
                    self.last_tree.clone_from(&fact.tree);
                }
                if fact.returned && fact.rounds == 0 {
                    self.turn_in_vain();
                }
                if fact.returned {
                    // Its message will be taken again: only then does the turn come to anything.
                    self.turn = None;
                } else {
                    self.turn_ended(&fact.exec_id, at, tree_changed);
                }
            }

            Fact::TaskCreated(fact) => {
                self.tasks.push(Task {
                    id: fact.task_id.clone(),
                    work_item_id: fact.work_item_id.clone(),
                    terminal: false,
                    delivered: false,
                    result: None,
                    child: fact.task_kind == TaskKind::ChildAgent,
                    grant: fact.child.as_ref().map(|child| child.grant).unwrap_or_default(),
                });
                self.touch(fact.work_item_id.as_ref());
            }
            Fact::TaskCompleted(fact) => self.task_ended(at, &fact.end),
            Fact::TaskFailed(fact) => self.task_ended(at, &fact.end),
            Fact::TaskCancelled(fact) => self.task_ended(at, &fact.end),
            Fact::TaskInterrupted(fact) => self.task_ended(at, &fact.end),
            Fact::TaskResultQueued(fact) => {
                if let Some(task) = self.task_mut(&fact.task_id) {
                    task.result = Some(fact.message_id.clone());
                }
            }
            Fact::TaskResultDelivered(fact) => {
                if let Some(task) = self.task_mut(&fact.task_id) {
                    task.delivered = true;
                }
            }

            Fact::WorkItemCreated(fact) => {
                if fact.made_by != Some(Maker::Model) {
                    self.row = Row::default();
                }
                if let Some(turn) = &mut self.turn {
                    turn.made.push(fact.work_item_id.clone());
                }
                self.items.push(Item {
                    id: fact.work_item_id.clone(),
                    completed: false,
                    plan_status: fact.plan_status,
                    blocked: false,
                    recheck_at: None,
                    idle: 0,
                    not_before: None,
                    changed: false,
                    budget: fact.budget,
                });
            }
            Fact::WorkItemPicked(fact) => {
                if self.focus.as_ref() != Some(&fact.work_item_id) {
                    self.focus = Some(fact.work_item_id.clone());
                    self.touch(Some(&fact.work_item_id));
                }
            }
            Fact::WorkItemUpdated(fact) => {
                self.touch(Some(&fact.work_item_id));
                if let Some(item) = self.item_mut(&fact.work_item_id) {
                    item.plan_status = fact.plan_status.unwrap_or(item.plan_status);
                    item.budget = fact.budget.unwrap_or(item.budget);
                }
            }
            Fact::WorkItemBlocked(fact) => {
                self.touch(Some(&fact.work_item_id));
                if let Some(item) = self.item_mut(&fact.work_item_id) {
                    item.blocked = true;
                    item.recheck_at = fact.recheck_at;
                }
            }
            Fact::WorkItemUnblocked(fact) => {
                self.touch(Some(&fact.work_item_id));
                self.unblock(&fact.work_item_id, WorkItemState::Open);
            }
            Fact::WorkItemCompleted(fact) => {
                self.touch(Some(&fact.work_item_id));
                self.unblock(&fact.work_item_id, WorkItemState::Completed);
                if self.focus.as_ref() == Some(&fact.work_item_id) {
                    self.focus = None;
                }
            }
            Fact::WorkItemDelegated(fact) => self.touch(Some(&fact.work_item_id)),
            Fact::WorkItemDelegationCompleted(fact) => self.touch(Some(&fact.work_item_id)),
            Fact::RecheckMoved(fact) => {
                if let Some(item) = self.item_mut(&fact.work_item_id) {
                    item.recheck_at = Some(fact.to);
                }
            }
            Fact::RecheckFired(fact) => {
                if let Some(item) = self.item_mut(&fact.work_item_id) {
                    item.recheck_at = None;
                }
            }

            Fact::WaitingIntentCreated(fact) => self.wait_created(fact),
            Fact::WaitingIntentTriggered(fact) => self.wait_ended(&fact.waiting_intent_id),
            Fact::WaitingIntentCancelled(fact) => self.wait_ended(&fact.waiting_intent_id),
            Fact::TimerCreated(fact) => self.timers.push(Timer {
                id: fact.timer_id.clone(),
                active: true,
                next_fire_at: Some(fact.next_fire_at),
                tick: None,
                checking: None,
            }),
            Fact::TimerCheckStarted(fact) => {
                if let Some(timer) = self.timer_mut(&fact.timer_id) {
                    timer.next_fire_at = fact.next_fire_at;
                    timer.checking = Some(fact.due);
                }
            }
            Fact::TimerFired(fact) => self.timer_fired(fact),
            Fact::TimerMissed(fact) => {
                if let Some(timer) = self.timer_mut(&fact.timer_id) {
                    timer.next_fire_at = fact.next_fire_at.or(timer.next_fire_at);
                    // Others that are told together with the one that is checked do not end its check.
                    let goes_on = matches!(fact.reason, MissedReason::Coalesced | MissedReason::Skipped | MissedReason::FiredBefore);
                    timer.checking = timer.checking.filter(|_| goes_on);
                }
            }
            Fact::TimerRescheduled(fact) => {
                if let Some(timer) = self.timer_mut(&fact.timer_id) {
                    timer.next_fire_at = Some(fact.to);
                }
            }
            Fact::TimerCompleted(fact) => self.timer_ended(&fact.timer_id),
            Fact::TimerCancelled(fact) => self.timer_ended(&fact.timer_id),
            Fact::WakeHintSubmitted(fact) => {
                self.resting = false;
                self.record_hint(&fact.source, fact.body.as_deref());
            }
            Fact::WakeHintCoalesced(fact) => self.record_hint(&fact.source, fact.body.as_deref()),
            Fact::TriggerCreated(fact) => {
                self.triggers.push(Trigger { id: fact.trigger_id.clone(), delivery_mode: fact.delivery_mode })
            }

            Fact::ApprovalRequested(fact) => self.approvals.push(Approval {
                id: fact.approval_id.clone(),
                work_item_id: fact.work_item_id.clone(),
                deadline: fact.deadline,
                pending: true,
            }),
            Fact::ApprovalDeadlineMoved(fact) => {
                let moved = self.approvals.iter_mut().filter(|approval| approval.id == fact.approval_id);
                moved.for_each(|approval| approval.deadline = Some(fact.to));
            }
            Fact::ApprovalDecided(fact) => {
                let decided = self.approvals.iter_mut().filter(|approval| approval.id == fact.approval_id);
                decided.for_each(|approval| approval.pending = false);
            }

            // No decision depends on a trigger's count or on which of its URLs is valid.
            Fact::TriggerRotated(_) | Fact::TriggerDelivered(_) => {}
            // A revoked trigger's messages were deliveries all the same; its waits end by facts of their own.
            Fact::TriggerRevoked(_)
            | Fact::ControlAdmitted(_)
            | Fact::PostureChanged(_)
            | Fact::StaleOutcomeIgnored(_)
            | Fact::WorkspaceAttached(_)
            | Fact::WorkspaceUsed(_)
            | Fact::WorkspaceDetached(_)
            | Fact::WorkspaceOccupied(_)
            | Fact::WorkspaceReleased(_)
            // The worlds of the simulator have no disks.
            | Fact::DiskShort(_)
            | Fact::DiskHasRoom(_)
            | Fact::WorktreeRemoving(_)
            | Fact::WorktreeRemoved(_)
            | Fact::WorktreeKept(_)
            | Fact::RoundStarted(_)
            | Fact::AssistantRoundRecorded(_)
            | Fact::ToolStarted(_)
            | Fact::ToolFinished(_)
            | Fact::TurnCheckpointed(_)
            | Fact::TurnBaselineOverBudget(_)
            | Fact::TaskRunning(_)
            | Fact::TaskCancelling(_)
            | Fact::TaskUpdateIgnored(_)
            // Of a hint that was never taken in; those that a stop ends, it ends by itself.
            | Fact::WakeHintIgnored(_)
            | Fact::ApprovalUsed(_)
            | Fact::BudgetReached(_)
            // That the operator was told changes nothing; when work waits is counted here.
            | Fact::SelfTurnsPaced(_)
            | Fact::WorkTicksSpent(_)
            | Fact::BriefRecorded(_) => {}
        }
    }

    fn control(&mut self, action: ControlAction) {
        match action {
            ControlAction::Start => {
                self.gate = Gate::Open;
                self.resting = false;
            }
            ControlAction::Stop => {
                if self.gate != Gate::Quarantined {
                    self.gate = Gate::Stopped;
                }
                self.resting = false;
                // Hints without content exist only to keep the agent going.
                self.hints.retain(|hint| hint.contentful);
            }
            ControlAction::Shutdown => self.shutdown = true,
            ControlAction::Restart => {
                self.shutdown = false;
                if self.gate == Gate::Booting {
                    self.gate = Gate::Open;
                }
            }
        }
    }

    /// The changes that the arrival of a message causes beside the queue.
    fn hear(&mut self, message: &Message) {
        self.resting = false;
        self.failed = false;
        if message.tick() == Some(TickKind::WakeHint) {
            self.hints.retain(|hint| !is_tick_of(message, &hint.source));
        }
        match message.kind() {
            MessageKind::OperatorPrompt => {
                self.row = Row::default();
                for item in self.items.iter_mut().filter(|item| item.is_spent()) {
                    item.idle = 0;
                    item.not_before = None;
                }
            }
            MessageKind::ChannelEvent
            | MessageKind::WebhookEvent
            | MessageKind::CallbackEvent
            | MessageKind::TimerTick
            | MessageKind::SystemTick
            | MessageKind::TaskResult
            | MessageKind::TaskStatus
            | MessageKind::Control
            | MessageKind::InternalFollowup
            | MessageKind::BriefAck
            | MessageKind::BriefResult => {}
        }
    }

    fn moved(&mut self, id: &MessageId, status: QueueStatus) {
        if let Some(entry) = self.entry_mut(id) {
            entry.status = status;
        }
    }

    fn requeued(&mut self, fact: &MessageRequeued) {
        let to_front = match fact.reason {
            RequeueReason::Stop => true,
            RequeueReason::Shutdown => false,
            RequeueReason::Crash => {
                self.resting = false;
                false
            }
            RequeueReason::Budget
            | RequeueReason::Fallback
            | RequeueReason::TurnsHeld
            | RequeueReason::ProviderBackoff => {
                self.resting = false;
                true
            }
            RequeueReason::Unparked
            | RequeueReason::InterjectionReturned
            | RequeueReason::ModelChanged
            | RequeueReason::ModelBack
            | RequeueReason::ClockSetBack => {
                self.resting = false;
                false
            }
        };
        let Some(own) = self.entry(&fact.message_id) else { return };
        let mut place = own.place;
        let first = |status: &[QueueStatus]| -> Option<QueuePosition> {
            let lane = self.messages.iter().filter(|entry| entry.message.priority == own.message.priority);
            lane.filter(|entry| status.contains(&entry.status)).map(|entry| entry.place).min()
        };
        // In front of what is parked too: its lane waits behind it, also for what comes back to its own place.
        if to_front
            && first(&[QueueStatus::Queued]).is_some_and(|front| front < place)
            && let Some(front) = first(&[QueueStatus::Queued, QueueStatus::Parked])
        {
            place = (front.0, front.1 - 1);
        }
        if let Some(entry) = self.entry_mut(&fact.message_id) {
            entry.place = place;
            entry.status = QueueStatus::Queued;
            entry.not_before = fact.not_before;
        }
    }

    fn turn_started(&mut self, fact: &TurnStarted, at: Time) {
        self.resting = false;
        let (mut work_tick, mut own) = (false, false);
        if let Some(entry) = self.entry_mut(&fact.message_id) {
            own = entry.is_own();
            entry.taken += 1;
            work_tick = is_work_tick(&entry.message);
        }
        self.own_turns.extend(own.then_some(at));
        self.row_starts(work_tick);
        if let Some(item) = fact.work_item_id.as_ref().and_then(|id| self.item_mut(id)) {
            item.changed = false;
        }
        self.last_turn = Some(LastTurn { trigger: fact.continuation.trigger_kind, work_tick });
        self.turn = Some(Turn {
            exec_id: fact.exec_id.clone(),
            message_id: fact.message_id.clone(),
            work_item_id: fact.work_item_id.clone(),
            counted_to: at,
            expense: self.expenses.len(),
            made: Vec::new(),
        });
        self.turn_used(at);
    }

    /// For the item that it leaves, the turn is over; for the other one it begins here.
    fn turn_bound(&mut self, fact: &TurnBound, at: Time) {
        self.time_used(at);
        let Some(mut turn) = self.turn.clone().filter(|turn| turn.exec_id == fact.exec_id) else { return };
        self.count_for_item(&turn, at, false);
        turn.work_item_id = Some(fact.work_item_id.clone());
        self.joined_turns.push(fact.work_item_id.clone());
        if let Some(item) = self.item_mut(&fact.work_item_id) {
            item.changed = turn.made.contains(&fact.work_item_id);
        }
        self.turn = Some(turn);
    }

    /// The running turn came to an end that counts for its item.
    fn turn_ended(&mut self, exec_id: &ExecId, at: Time, tree_changed: bool) {
        let Some(turn) = self.turn.take_if(|turn| turn.exec_id == *exec_id) else { return };
        if self.entry(&turn.message_id).is_some_and(|entry| is_work_tick(&entry.message)) {
            self.tick_ended();
        }
        self.count_for_item(&turn, at, tree_changed);
    }

    fn count_for_item(&mut self, turn: &Turn, at: Time, tree_changed: bool) {
        let operator =
            self.entry(&turn.message_id).is_some_and(|entry| entry.message.kind() == MessageKind::OperatorPrompt);
        let Some(item) = turn.work_item_id.as_ref().and_then(|id| self.item_mut(id)) else { return };
        if operator {
            // An operator who speaks about the item restores it; the turn that answers is its first offer.
            item.idle = 0;
        }
        if item.changed || tree_changed {
            item.idle = 0;
            item.not_before = None;
        } else {
            item.idle += 1;
            let step = usize::min(item.idle as usize, TICK_BACKOFF_MS.len()) - 1;
            item.not_before = Some(at.plus_ms(TICK_BACKOFF_MS[step]));
        }
        item.changed = false;
    }

    fn task_ended(&mut self, at: Time, end: &TaskEnd) {
        let Some(task) = self.task_mut(&end.task_id) else { return };
        if task.terminal {
            return;
        }
        task.terminal = true;
        let (item, child, grant) = (task.work_item_id.clone(), task.child, task.grant);
        if child {
            self.child_used(at, item.clone(), end.used.as_ref(), &grant);
        }
        self.touch(item.as_ref());
    }

    fn wait_created(&mut self, fact: &WaitingIntentCreated) {
        self.failed = false;
        self.waits.push(Wait {
            id: fact.waiting_intent_id.clone(),
            kind: fact.kind,
            work_item_id: fact.work_item_id.clone(),
            source: fact.source,
            resource: fact.resource.clone(),
            open: true,
        });
        self.touch(fact.work_item_id.as_ref());
    }

    fn wait_ended(&mut self, id: &WaitId) {
        let Some(wait) = self.waits.iter_mut().find(|wait| wait.id == *id && wait.open) else { return };
        wait.open = false;
        let item = wait.work_item_id.clone();
        self.touch(item.as_ref());
    }

    fn timer_fired(&mut self, fact: &TimerFired) {
        if let Some(timer) = self.timer_mut(&fact.timer_id) {
            timer.next_fire_at = fact.next_fire_at;
            timer.tick = Some(fact.message_id.clone());
            timer.checking = None;
        }
    }

    fn timer_ended(&mut self, id: &TimerId) {
        if let Some(timer) = self.timer_mut(id) {
            timer.active = false;
        }
    }

    /// One pending hint per source; later ones join it.
    fn record_hint(&mut self, source: &str, body: Option<&str>) {
        let has_body = body.is_some_and(|body| !body.trim().is_empty());
        match self.hints.iter_mut().find(|hint| hint.source == source) {
            Some(hint) => hint.contentful |= has_body,
            None => self.hints.push(Hint { source: source.to_owned(), contentful: has_body }),
        }
    }

    fn unblock(&mut self, id: &WorkItemId, state: WorkItemState) {
        if let Some(item) = self.item_mut(id) {
            item.completed = state == WorkItemState::Completed;
            item.blocked = false;
            item.recheck_at = None;
        }
    }

    /// Something about the item changed: what it did before no longer counts as going in circles.
    fn touch(&mut self, id: Option<&WorkItemId>) {
        if let Some(item) = id.and_then(|id| self.item_mut(id)) {
            item.idle = 0;
            item.not_before = None;
            item.changed = true;
        }
    }

    fn entry_mut(&mut self, id: &MessageId) -> Option<&mut Entry> {
        self.messages.iter_mut().find(|entry| entry.message.message_id == *id)
    }

    fn item_mut(&mut self, id: &WorkItemId) -> Option<&mut Item> {
        self.items.iter_mut().find(|item| item.id == *id)
    }

    fn task_mut(&mut self, id: &TaskId) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.id == *id)
    }

    fn timer_mut(&mut self, id: &TimerId) -> Option<&mut Timer> {
        self.timers.iter_mut().find(|timer| timer.id == *id)
    }
}

impl Item {
    /// It ran in circles: a person has to say something.
    pub(super) fn is_spent(&self) -> bool {
        self.idle as usize > TICK_BACKOFF_MS.len()
    }
}

pub(super) fn is_work_tick(message: &Message) -> bool {
    match message.tick() {
        Some(TickKind::ContinueActive | TickKind::QueuedAvailable) => true,
        Some(TickKind::WakeHint | TickKind::Recheck) | None => false,
    }
}

/// Whether a wake tick is about this source: its key is `wake_hint:<source>:<generation>`.
pub(super) fn is_tick_of(message: &Message, source: &str) -> bool {
    let key = message.idempotency_key().and_then(|key| key.strip_prefix("wake_hint:"));
    message.tick() == Some(TickKind::WakeHint)
        && key.and_then(|key| key.rsplit_once(':')).is_some_and(|(about, _generation)| about == source)
}
