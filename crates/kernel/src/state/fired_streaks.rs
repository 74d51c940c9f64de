//! The recent occurrences of a recurring timer that have fired, so that a clock that is set back does not fire them again.
//!
//! A clock that is set back shows the same hours twice, and one that was ahead for a moment has fired what was still to
//! come. A timer therefore remembers the streaks of occurrences that fired, as far back as clocks are set back without
//! having been wrong altogether (`limits::CLOCK_REPEATS_MS`).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::fact::Schedule;
use crate::limits;
use crate::time::Time;

/// Occurrences that fired one after another, with none between them that did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streak {
    pub first: Time,
    pub last: Time,
}

impl Streak {
    fn contains(&self, schedule: &Schedule, occurrence: Time) -> bool {
        // An interval that begins anew after the clock was set back has other occurrences than before.
        let in_step = match schedule {
            Schedule::Every { every_ms, .. } => occurrence.since_ms(self.first).is_multiple_of((*every_ms).max(1)),
            Schedule::Once { .. } | Schedule::Cron { .. } => true,
        };
        in_step && (self.first..=self.last).contains(&occurrence)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiredStreaks {
    /// In the order in which they fired.
    #[serde(rename = "runs")]
    streaks: VecDeque<Streak>,
    /// The next occurrence that fires follows the last streak without a gap.
    follows: bool,
}

impl FiredStreaks {
    /// `is_next` where none before it was passed over.
    pub(super) fn record_fire(&mut self, occurrence: Time, is_next: bool) {
        self.streaks.retain(|streak| occurrence.since_ms(streak.last) <= limits::CLOCK_REPEATS_MS);
        match self.streaks.back_mut().filter(|_| self.follows && is_next) {
            Some(streak) => streak.last = occurrence,
            None => self.streaks.push_back(Streak { first: occurrence, last: occurrence }),
        }
        if self.streaks.len() > limits::TIMER_STREAKS_MAX {
            self.streaks.pop_front();
        }
        self.follows = true;
    }

    /// Occurrences up to this one got no tick of their own.
    pub(super) fn record_passed_over(&mut self, last: Time) {
        self.follows &= self.streaks.back().is_some_and(|streak| last < streak.last);
    }

    /// The timer goes on at another time than it would have.
    pub(super) fn break_streak(&mut self) {
        self.follows = false;
    }

    /// The streak that an occurrence is in, if it has fired.
    #[must_use]
    pub fn streak_with(&self, schedule: &Schedule, occurrence: Time) -> Option<Streak> {
        self.streaks.iter().find(|streak| streak.contains(schedule, occurrence)).copied()
    }

    /// The first streak after an occurrence that has not fired.
    #[must_use]
    pub fn first_streak_after(&self, schedule: &Schedule, occurrence: Time) -> Option<Streak> {
        let later = self.streaks.iter().filter(|streak| {
            streak.first > occurrence && {
                // The other way round: whether the timer comes upon it.
                let from_here = Streak { first: occurrence, last: streak.last };
                from_here.contains(schedule, streak.first)
            }
        });
        later.min_by_key(|streak| streak.first).copied()
    }

    /// When a timer that was to fire at `next` fires after the clock was set back to `now`: no later than its schedule
    /// says from there, and for no occurrence that has fired.
    pub(super) fn next_fire_from(&self, schedule: &Schedule, next: Time, now: Time) -> Option<Time> {
        match schedule {
            Schedule::Once { .. } => None,
            Schedule::Cron { .. } => {
                let mut occurrence = schedule.occurrence_after(now)?;
                while let Some(streak) = self.streak_with(schedule, occurrence) {
                    occurrence = schedule.occurrence_after(streak.last)?;
                }
                Some(occurrence)
            }
            Schedule::Every { every_ms, .. } => Some(self.interval_from((*every_ms).max(1), schedule, next, now)),
        }
    }

    /// In step with what was, unless that has fired. Then one interval from now: no interval is waited for twice.
    fn interval_from(&self, every_ms: u64, schedule: &Schedule, next: Time, now: Time) -> Time {
        let ahead_ms = next.since_ms(now);
        let last_step_ms = ahead_ms.saturating_sub(1) % every_ms + 1;
        let in_step = now.plus_ms(last_step_ms);
        if self.streak_with(schedule, in_step).is_none() {
            return in_step;
        }
        // In step with none of the streaks: there are fewer streaks than milliseconds to choose from.
        let out_of_step = (0..every_ms).map(|ms| now.plus_ms(every_ms - ms));
        let mut free =
            out_of_step.filter(|time| self.streaks.iter().all(|streak| !is_in_step(every_ms, streak.first, *time)));
        free.next().unwrap_or(in_step)
    }
}

fn is_in_step(every_ms: u64, one: Time, other: Time) -> bool {
    one.max(other).since_ms(one.min(other)).is_multiple_of(every_ms)
}
