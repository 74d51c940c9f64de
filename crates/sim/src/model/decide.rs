//! The decision at an idle boundary, row by row.

use abide_kernel::fact::Resource;
use abide_kernel::id::WorkItemId;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{
    DecisionKind, HoldCause, MessageKind, PlanStatus, Priority, QueueStatus, Reason, Standing, TriggerKind, WaitKind,
};

use super::observe::{is_tick_of, is_work_tick};
use super::{Entry, ExpectedDecision, Gate, Item, Model, Timer, Verdict, Wait};

type Row = Option<ExpectedDecision>;

const LANES: [Priority; 4] = [Priority::Interject, Priority::Next, Priority::Normal, Priority::Background];

/// The choice of row 4. Fairness may let work go before a message.
enum Pick<'a> {
    Message(&'a Entry),
    Work(&'a Item, Reason),
}

impl Model {
    /// The next decision by the specification.
    #[must_use]
    pub fn decide(&self, now: Time) -> ExpectedDecision {
        self.row_1_gate()
            .or_else(|| self.row_2_turn())
            .or_else(|| self.row_3_budget())
            .or_else(|| self.row_4_message(now))
            .or_else(|| self.row_5_wake_hint())
            .or_else(|| self.rows_6_and_7_work(now))
            .or_else(|| self.row_8_operator())
            .or_else(|| self.paced_messages(now))
            .or_else(|| self.row_9_task())
            .or_else(|| self.row_10_external())
            .or_else(|| self.row_11_timed(now))
            .or_else(|| self.row_12_blocked())
            .or_else(|| self.row_13_standing_timer())
            .unwrap_or_else(|| self.row_14_nothing())
    }

    /// A booting agent has not been handed to the scheduler yet.
    fn row_1_gate(&self) -> Row {
        let reason = match self.gate {
            Gate::Stopped | Gate::Booting => Reason::Stopped,
            Gate::Quarantined => Reason::Quarantined,
            Gate::Open if self.shutdown => Reason::ShutdownRequested,
            Gate::Open => return None,
        };
        Some(bare(DecisionKind::Stop, reason))
    }

    fn row_2_turn(&self) -> Row {
        let turn = self.turn.as_ref()?;
        Some(ExpectedDecision {
            message_id: Some(turn.message_id.clone()),
            ..about(DecisionKind::Noop, Reason::TurnInProgress, turn.work_item_id.as_ref())
        })
    }

    fn row_3_budget(&self) -> Row {
        let reason = match self.held {
            _ if self.budget_is_spent() => Reason::BudgetSpent,
            Some((HoldCause::HomeBudget, _)) => Reason::HomeBudgetSpent,
            Some((HoldCause::ModelKey, _)) => Reason::ModelKey,
            None => return None,
        };
        Some(bare(DecisionKind::WaitForOperator, reason))
    }

    pub(super) fn agent_sleeps(&self) -> bool {
        self.open_waits().any(|wait| wait.kind == WaitKind::Sleep && wait.work_item_id.is_none())
    }

    fn row_4_message(&self, now: Time) -> Row {
        let entry = match self.pick(now)? {
            Pick::Message(entry) => entry,
            Pick::Work(item, reason) => return Some(about(DecisionKind::EmitSystemTick, reason, Some(&item.id))),
        };
        let (kind, reason) = match self.verdict(entry) {
            Verdict::Resume(_) | Verdict::Override | Verdict::Local | Verdict::Replay => {
                (DecisionKind::StartModelTurn, Reason::ModelReentryMessage)
            }
            Verdict::LivenessOnly => (DecisionKind::ReduceMessageOnly, Reason::LivenessOnlyMessage),
            Verdict::Parked => (DecisionKind::ReduceMessageOnly, Reason::MessageParked),
        };
        Some(ExpectedDecision {
            message_id: Some(entry.message.message_id.clone()),
            ..about(kind, reason, entry.message.work_item_id())
        })
    }

    fn row_5_wake_hint(&self) -> Row {
        let fresh = self.hints.iter().any(|hint| !self.has_undelivered_wake_tick(&hint.source));
        fresh.then(|| bare(DecisionKind::EmitSystemTick, Reason::WakeHint))
    }

    fn rows_6_and_7_work(&self, now: Time) -> Row {
        let (item, reason) = self.work_to_offer(now)?;
        Some(about(DecisionKind::EmitSystemTick, reason, Some(&item.id)))
    }

    fn row_8_operator(&self) -> Row {
        let ask = |reason, item| Some(about(DecisionKind::WaitForOperator, reason, item));
        if let Some(item) = self.oldest(Standing::NeedsInput) {
            return ask(Reason::WorkItemNeedsInput, Some(&item.id));
        }
        let question = self.open_waits().find(|wait| wait.kind == WaitKind::Operator && wait.resource.is_none());
        if let Some(wait) = question {
            return ask(Reason::ActiveOperatorWait, wait.work_item_id.as_ref());
        }
        if let Some(approval) = self.pending_approvals().next() {
            return ask(Reason::ApprovalPending, approval.work_item_id.as_ref());
        }
        if let Some(item) = self.oldest(Standing::BudgetSpent) {
            return ask(Reason::BudgetSpent, Some(&item.id));
        }
        if let Some(item) = self.oldest(Standing::ProgressSpent) {
            return ask(Reason::NoProgressBudgetSpent, Some(&item.id));
        }
        if self.work_is_held() {
            return ask(Reason::WorkTicksSpent, None);
        }
        None
    }

    /// Messages that the agent caused itself wait, because there were too many of them.
    fn paced_messages(&self, now: Time) -> Row {
        let waits = self.pace_ends().is_some() && self.is_paced(now);
        waits.then(|| bare(DecisionKind::WaitForTimer, Reason::SelfTurnsPaced))
    }

    fn row_9_task(&self) -> Row {
        self.waiting(DecisionKind::WaitForTask, WaitKind::Task, Reason::WorkItemTaskWait, Reason::ActiveTaskWait)
    }

    fn row_10_external(&self) -> Row {
        self.waiting(
            DecisionKind::WaitForExternalChange,
            WaitKind::External,
            Reason::WorkItemExternalWait,
            Reason::ActiveAgentWaitingIntents,
        )
    }

    /// The one that is due first; of several at one time, in the order in which they stand here.
    fn row_11_timed(&self, now: Time) -> Row {
        let wait = self.first_timer_wait().map(|(due, wait)| {
            let reason = if wait.work_item_id.is_some() { Reason::WorkItemTimerWait } else { Reason::ActiveTimers };
            (due, reason, wait.work_item_id.as_ref())
        });
        let rechecks = self.open_items().filter(|item| item.recheck_at.is_some());
        let recheck = rechecks.min_by_key(|item| (item.recheck_at, item.id.clone()));
        let recheck = recheck.map(|item| (item.recheck_at, Reason::RecheckPending, Some(&item.id)));
        let held = self.agent_sleeps() || self.row.spent;
        let backed_off = self.open_items().filter(|item| {
            !held
                && self.standing(item) == Standing::Runnable
                && !item.is_due(now)
                && !self.has_undelivered_work_tick(item)
        });
        let backoff = backed_off.min_by_key(|item| item.not_before);
        let backoff = backoff.map(|item| (item.not_before, Reason::TickBackoff, Some(&item.id)));
        // The message at the head of its lane holds the lane back.
        let heads = LANES.iter().filter_map(|lane| self.lane(*lane).first().and_then(|head| head.not_before));
        let delayed = heads.filter(|until| *until > now).min();
        let retry = delayed.map(|until| (Some(until), Reason::ProviderBackoff, None));
        let timed = [wait, recheck, backoff, retry].into_iter().flatten();
        let (_, reason, item) = timed.min_by_key(|(due, ..)| (due.is_none(), *due))?;
        Some(about(DecisionKind::WaitForTimer, reason, item))
    }

    /// The timer wait or sleep that ends first, and when; no time where its tick is on its way already.
    fn first_timer_wait(&self) -> Option<(Option<Time>, &Wait)> {
        let active = || self.timers.iter().filter(|timer| timer.active);
        let any = active().filter_map(|timer| self.next_time(timer)).min();
        let of = |wait: &Wait| match &wait.resource {
            Some(Resource::Timer(id)) => {
                let timer = active().find(|timer| timer.id == *id);
                (timer.and_then(|timer| self.next_time(timer)), Some(id.clone()))
            }
            _ => (any, None),
        };
        let waits = self.open_waits().filter(|wait| matches!(wait.kind, WaitKind::Timer | WaitKind::Sleep));
        let first = waits.min_by_key(|wait| {
            let (due, timer) = of(wait);
            // Without a time, an item's comes before the agent's.
            let order = due.is_none().then_some((wait.work_item_id.is_none(), wait.kind));
            (due.is_none(), due, order, timer.is_none(), timer, wait.id.clone())
        })?;
        Some((of(first).0, first))
    }

    fn next_time(&self, timer: &Timer) -> Option<Time> {
        let under_way = timer.tick.as_ref().is_some_and(|tick| self.is_undelivered(tick));
        timer.checking.or(timer.next_fire_at.filter(|_| !under_way))
    }

    fn row_12_blocked(&self) -> Row {
        let item = self.oldest(Standing::Stuck)?;
        Some(about(DecisionKind::WaitForOperator, Reason::WorkItemBlocked, Some(&item.id)))
    }

    fn row_13_standing_timer(&self) -> Row {
        let stands = self.timers.iter().any(|timer| timer.active);
        stands.then(|| bare(DecisionKind::WaitForTimer, Reason::ActiveTimers))
    }

    /// Nothing is new. What is under way already is said so, rather than slept over.
    fn row_14_nothing(&self) -> ExpectedDecision {
        if !self.hints.is_empty() {
            return bare(DecisionKind::Noop, Reason::DuplicateWakeHint);
        }
        let under_way = self
            .open_items()
            .find(|item| self.standing(item) == Standing::Runnable && self.has_undelivered_work_tick(item));
        if let Some(item) = under_way {
            return about(DecisionKind::Noop, Reason::DuplicateTick, Some(&item.id));
        }
        if self.resting {
            bare(DecisionKind::StayIdle, Reason::AlreadyAsleep)
        } else {
            bare(DecisionKind::Sleep, Reason::NoPendingSchedulerFacts)
        }
    }

    fn waiting(&self, decision: DecisionKind, kind: WaitKind, of_item: Reason, of_agent: Reason) -> Row {
        let waits = || self.open_waits().filter(|wait| wait.kind == kind);
        if let Some(wait) = waits().find(|wait| wait.work_item_id.is_some()) {
            return Some(about(decision, of_item, wait.work_item_id.as_ref()));
        }
        waits().next().map(|_| bare(decision, of_agent))
    }

    /// The head of the first lane that is due, unless fairness lets something else go first.
    fn pick(&self, now: Time) -> Option<Pick<'_>> {
        let lanes = self.due_lanes(now);
        let candidate = *lanes.first()?.first()?;
        let waiting = |wanted: &dyn Fn(&Entry) -> bool| {
            lanes.iter().flatten().copied().find(|entry| entry.is_due(now) && wanted(entry))
        };
        let after_a_tick =
            self.last_turn.filter(|last| matches!(last.trigger, TriggerKind::TimerFire | TriggerKind::SystemTick));
        let is_tick = matches!(candidate.message.kind(), MessageKind::TimerTick | MessageKind::SystemTick);
        let (Some(last), true) = (after_a_tick, is_tick) else { return Some(Pick::Message(candidate)) };

        if let Some(prompt) = waiting(&|entry| entry.message.kind() == MessageKind::OperatorPrompt) {
            return Some(Pick::Message(prompt));
        }
        if last.work_tick || is_work_tick(&candidate.message) {
            return Some(Pick::Message(candidate));
        }
        if let Some(work_tick) = waiting(&|entry| is_work_tick(&entry.message)) {
            return Some(Pick::Message(work_tick));
        }
        Some(match self.work_to_offer(now) {
            Some((item, reason)) => Pick::Work(item, reason),
            None => Pick::Message(candidate),
        })
    }

    pub(super) fn queued(&self) -> impl Iterator<Item = &Entry> {
        self.messages.iter().filter(|entry| entry.status == QueueStatus::Queued)
    }

    pub(super) fn lane(&self, priority: Priority) -> Vec<&Entry> {
        let mut lane: Vec<&Entry> = self.queued().filter(|entry| entry.message.priority == priority).collect();
        lane.sort_by_key(|entry| entry.place);
        lane
    }

    /// The messages of each lane that may be taken: all in front of the first one that is held back.
    fn due_lanes(&self, now: Time) -> Vec<Vec<&Entry>> {
        let mut lanes = LANES.map(|priority| self.lane(priority));
        let paced = self.is_paced(now);
        for lane in &mut lanes {
            let due = lane.iter().take_while(|entry| entry.is_due(now)).count();
            lane.truncate(due);
            // No message waits behind one that is paced.
            lane.retain(|entry| !(paced && entry.is_own()));
        }
        lanes.into_iter().filter(|lane| !lane.is_empty()).collect()
    }

    /// The item whose tick could be made now: the current one, else the oldest.
    fn work_to_offer(&self, now: Time) -> Option<(&Item, Reason)> {
        if self.agent_sleeps() || self.row.spent {
            return None;
        }
        let offered = |item: &&Item| {
            self.standing(item) == Standing::Runnable && item.is_due(now) && !self.has_undelivered_work_tick(item)
        };
        let is_focus = |item: &&Item| self.focus.as_ref() == Some(&item.id);
        let current = self.open_items().filter(is_focus).find(offered);
        let others = || self.open_items().filter(|item| !is_focus(item)).find(offered);
        current
            .map(|item| (item, Reason::ContinueActive))
            .or_else(|| others().map(|item| (item, Reason::QueuedAvailable)))
    }

    pub(super) fn has_undelivered_work_tick(&self, item: &Item) -> bool {
        self.messages.iter().any(|entry| {
            entry.is_undelivered() && is_work_tick(&entry.message) && entry.message.work_item_id() == Some(&item.id)
        })
    }

    fn has_undelivered_wake_tick(&self, source: &str) -> bool {
        self.messages.iter().any(|entry| entry.is_undelivered() && is_tick_of(&entry.message, source))
    }

    /// The oldest item that stands so.
    pub(super) fn oldest(&self, standing: Standing) -> Option<&Item> {
        self.open_items().find(|item| self.standing(item) == standing)
    }

    pub(super) fn standing(&self, item: &Item) -> Standing {
        let waits_for =
            |kind| self.open_waits().any(|wait| wait.kind == kind && wait.work_item_id.as_ref() == Some(&item.id));
        if item.completed {
            Standing::Completed
        } else if item.plan_status == PlanStatus::NeedsInput {
            Standing::NeedsInput
        } else if waits_for(WaitKind::Operator) {
            Standing::WaitingForOperator
        } else if waits_for(WaitKind::Task) {
            Standing::WaitingForTask
        } else if waits_for(WaitKind::External) {
            Standing::WaitingForExternal
        } else if waits_for(WaitKind::Timer) || waits_for(WaitKind::Sleep) {
            Standing::WaitingForTimer
        } else if item.blocked && item.recheck_at.is_some() {
            Standing::BlockedUntilRecheck
        } else if item.blocked {
            Standing::Stuck
        } else if self.item_budget_is_spent(item) {
            Standing::BudgetSpent
        } else if item.is_spent() {
            Standing::ProgressSpent
        } else {
            Standing::Runnable
        }
    }

    /// How the item stands, for comparison.
    #[must_use]
    pub fn standing_of(&self, id: &WorkItemId) -> Option<Standing> {
        self.items.iter().find(|item| item.id == *id).map(|item| self.standing(item))
    }
}

impl Item {
    fn is_due(&self, now: Time) -> bool {
        self.not_before.is_none_or(|not_before| not_before <= now)
    }
}

fn bare(kind: DecisionKind, reason: Reason) -> ExpectedDecision {
    about(kind, reason, None)
}

fn about(kind: DecisionKind, reason: Reason, item: Option<&WorkItemId>) -> ExpectedDecision {
    ExpectedDecision { kind, reason, message_id: None, work_item_id: item.cloned() }
}
