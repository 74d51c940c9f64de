//! A clock that was set back: the times of the state that lie too far ahead now.
//!
//! The time of a fact is what the clock showed then. Facts are ordered by their seq, and their times need not be: a clock
//! that was ahead for a moment leaves facts of the future behind. Until the clock is found to be earlier than the last
//! fact, everything that was recorded as a duration lies no further ahead than that duration; so that is when to look.

use super::AgentState;
use crate::limits;
use crate::time::Time;

impl AgentState {
    /// Whether the clock was set back since the last fact, by more than clocks are adjusted by themselves.
    #[must_use]
    pub fn clock_was_set_back(&self, now: Time) -> bool {
        self.at.since_ms(now) > limits::CLOCK_SLACK_MS
    }

    /// Times that no list shows. Whatever was left of a wait when the last fact was recorded is left of it now, and what
    /// was counted as of then counts as of now.
    pub(super) fn move_times_back(&mut self, from: Time, to: Time) {
        let left = |until: Time| remaining(until, from, to);
        self.lifecycle.turns_held.iter_mut().for_each(|held| held.until = left(held.until));
        self.lifecycle.disk_short.iter_mut().for_each(|short| short.until = left(short.until));
        self.models.backoffs.iter_mut().for_each(|rest| rest.until = left(rest.until));
        self.accounts.pace.clock_set_back(to);
        self.planes.approvals.shorten_permits(to);
        let days = self.accounts.spending.merge_future_days(to);
        if let Some(turn) = &mut self.turns.current {
            turn.counted_to = turn.counted_to.min(to);
            if days.contains(&turn.counted_on) {
                turn.counted_on = self.accounts.spending.day;
            }
        }
        let ahead = self.planes.work.items().values().filter(|item| item.ticks.last_at > Some(to));
        for id in ahead.map(|item| item.work_item_id.clone()).collect::<Vec<_>>() {
            // It is there: it was just listed.
            let _listed = self.planes.work.edit(&id, |item| item.ticks.last_at = Some(to));
            self.planes.update_standing(&id);
        }
    }
}

/// When a wait until `until` ends after the clock was set back, if as much of it is left as there was at `from`.
#[must_use]
pub fn remaining(until: Time, from: Time, to: Time) -> Time {
    until.min(to.plus_ms(until.since_ms(from)))
}
