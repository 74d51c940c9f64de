//! The status, posture and closure of an agent as surfaces show them, and the time at which it next comes due by
//! itself.

use abide_kernel::time::Time;
use abide_kernel::vocabulary::{ClosureOutcome, Posture, Priority, Standing, Status, WaitKind, WaitingReason};

use super::{Gate, Model};

impl Model {
    #[must_use]
    pub fn status(&self) -> Status {
        match self.gate {
            Gate::Stopped | Gate::Quarantined => Status::Stopped,
            Gate::Booting => Status::Booting,
            Gate::Open if self.turn.is_some() => Status::AwakeRunning,
            Gate::Open if self.resting => Status::Asleep,
            Gate::Open => Status::AwakeIdle,
        }
    }

    #[must_use]
    pub fn posture(&self) -> Posture {
        let blocked = [Standing::BlockedUntilRecheck, Standing::Stuck].into_iter().any(|it| self.oldest(it).is_some());
        if self.status() == Status::Stopped {
            Posture::Archived
        } else if self.turn.is_some() {
            Posture::ActiveTurn
        } else if self.queued().next().is_some() {
            Posture::HasQueuedInput
        } else if self.has_work() {
            Posture::HasRunnableWork
        } else if self.awaits(WaitKind::Task) {
            Posture::WaitingForTask
        } else if self.awaits(WaitKind::External) {
            Posture::WaitingForExternal
        } else if self.needs_a_person() {
            Posture::WaitingForOperator
        } else if blocked || self.awaits(WaitKind::Timer) || self.awaits(WaitKind::Sleep) {
            Posture::Blocked
        } else {
            Posture::Idle
        }
    }

    /// How the last stretch of activity ended, and what is awaited where something is; nothing while a turn runs.
    #[must_use]
    pub fn closure_outcome(&self) -> (Option<ClosureOutcome>, Option<WaitingReason>) {
        if self.runtime_error {
            (Some(ClosureOutcome::Failed), None)
        } else if self.turn.is_some() {
            (None, None)
        } else if self.failed {
            (Some(ClosureOutcome::Failed), None)
        } else if self.has_input_to_take() || self.has_work() {
            (Some(ClosureOutcome::Continuable), None)
        } else {
            match self.awaited() {
                Some(reason) => (Some(ClosureOutcome::Waiting), Some(reason)),
                None => (Some(ClosureOutcome::Completed), None),
            }
        }
    }

    /// The earliest instant at which something comes due with nobody doing anything. It may lie in the past. What a spent
    /// budget or a sleep of the agent holds back is not due, whatever its time.
    ///
    /// Nothing comes due for a stopped agent. A shutdown is no such end: the next boot reads the same instants.
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        if self.status() == Status::Stopped {
            return None;
        }
        let spent = self.budget_is_spent() || self.held.is_some();
        let released = self.held.map(|(_, until)| until).filter(|_| self.turn.is_none());
        let timers = self
            .timers
            .iter()
            .filter(|timer| {
                timer.active
                    && timer.checking.is_none()
                    && !timer.tick.as_ref().is_some_and(|tick| self.is_undelivered(tick))
            })
            .filter_map(|timer| timer.next_fire_at);
        let rechecks = self.open_items().filter(|item| item.blocked).filter_map(|item| item.recheck_at);
        let backoffs = self
            .open_items()
            .filter(|item| self.standing(item) == Standing::Runnable && !self.has_undelivered_work_tick(item))
            .filter(|_| !spent && !self.agent_sleeps() && !self.row.spent)
            .filter_map(|item| item.not_before);
        let deadlines = self.pending_approvals().filter_map(|approval| approval.deadline);
        // A lane goes on when its first message may; the times of those behind it do not matter until then.
        let heads = Priority::ALL.iter().filter_map(|priority| self.lane(*priority).first()?.not_before);
        let held_back = heads.chain(self.pace_ends()).filter(|_| !spent);
        timers
            .chain(rechecks)
            .chain(backoffs)
            .chain(deadlines)
            .chain(held_back)
            .chain(self.renewal())
            .chain(released)
            .min()
    }

    fn awaited(&self) -> Option<WaitingReason> {
        if self.needs_a_person() {
            Some(WaitingReason::Operator)
        } else if self.awaits(WaitKind::Task) {
            Some(WaitingReason::Task)
        } else if self.awaits(WaitKind::External) {
            Some(WaitingReason::External)
        } else if self.time_will_tell() {
            Some(WaitingReason::Timer)
        } else if self.oldest(Standing::Stuck).is_some() {
            Some(WaitingReason::Operator)
        } else if self.timers.iter().any(|timer| timer.active) {
            Some(WaitingReason::Timer)
        } else {
            None
        }
    }

    fn awaits(&self, kind: WaitKind) -> bool {
        self.open_waits().any(|wait| wait.kind == kind)
    }

    fn needs_a_person(&self) -> bool {
        self.awaits(WaitKind::Operator)
            || self.pending_approvals().next().is_some()
            || self.oldest(Standing::NeedsInput).is_some()
            || self.oldest(Standing::ProgressSpent).is_some()
            || self.oldest(Standing::BudgetSpent).is_some()
            || self.work_is_held()
    }

    fn time_will_tell(&self) -> bool {
        self.awaits(WaitKind::Timer)
            || self.awaits(WaitKind::Sleep)
            || self.oldest(Standing::BlockedUntilRecheck).is_some()
            || self.queued().any(|entry| entry.not_before.is_some())
            || self.pace_ends().is_some()
    }

    /// Some lane could give its head without waiting for a provider. No clock is read: a head that was told to wait
    /// waits until it is taken.
    fn has_input_to_take(&self) -> bool {
        let paced = self.paced_until().is_some();
        let first = |priority: &Priority| self.untimed(*priority).into_iter().find(|entry| !(paced && entry.is_own()));
        Priority::ALL.iter().any(|priority| first(priority).is_some())
    }
}
