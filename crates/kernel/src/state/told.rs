//! The occurrences of a recurring timer that have fired of late, which a clock that is set back must not fire again.
//!
//! A clock that is set back shows the same hours twice, and one that was ahead for a moment has fired what was still to
//! come. So a timer remembers the runs of occurrences that fired, as far back as clocks are set back without having been
//! wrong altogether (`limits::CLOCK_REPEATS_MS`).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::fact::Schedule;
use crate::limits;
use crate::time::Time;

/// Occurrences that fired one after another, with none between them that did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub first: Time,
    pub last: Time,
}

impl Run {
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
pub struct Told {
    /// In the order in which they fired.
    runs: VecDeque<Run>,
    /// The next occurrence that fires follows the last run without a gap.
    follows: bool,
}

impl Told {
    /// `is_next` where none before it was passed over.
    pub(super) fn record_fire(&mut self, occurrence: Time, is_next: bool) {
        self.runs.retain(|run| occurrence.since_ms(run.last) <= limits::CLOCK_REPEATS_MS);
        match self.runs.back_mut().filter(|_| self.follows && is_next) {
            Some(run) => run.last = occurrence,
            None => self.runs.push_back(Run { first: occurrence, last: occurrence }),
        }
        if self.runs.len() > limits::TIMER_RUNS_MAX {
            self.runs.pop_front();
        }
        self.follows = true;
    }

    /// Occurrences up to this one got no tick of their own.
    pub(super) fn record_passed_over(&mut self, last: Time) {
        self.follows &= self.runs.back().is_some_and(|run| last < run.last);
    }

    /// The timer goes on at another time than it would have.
    pub(super) fn break_streak(&mut self) {
        self.follows = false;
    }

    /// The run that an occurrence is in, if it has fired.
    #[must_use]
    pub fn streak_with(&self, schedule: &Schedule, occurrence: Time) -> Option<Run> {
        self.runs.iter().find(|run| run.contains(schedule, occurrence)).copied()
    }

    /// The first run after an occurrence that has not fired.
    #[must_use]
    pub fn first_streak_after(&self, schedule: &Schedule, occurrence: Time) -> Option<Run> {
        let later = self.runs.iter().filter(|run| {
            run.first > occurrence && {
                // The other way round: whether the timer comes upon it.
                let from_here = Run { first: occurrence, last: run.last };
                from_here.contains(schedule, run.first)
            }
        });
        later.min_by_key(|run| run.first).copied()
    }

    /// When a timer that was to fire at `next` fires after the clock was set back to `now`: no later than its schedule
    /// says from there, and for no occurrence that has fired.
    pub(super) fn next_fire_from(&self, schedule: &Schedule, next: Time, now: Time) -> Option<Time> {
        match schedule {
            Schedule::Once { .. } => None,
            Schedule::Cron { .. } => {
                let mut occurrence = schedule.occurrence_after(now)?;
                while let Some(run) = self.streak_with(schedule, occurrence) {
                    occurrence = schedule.occurrence_after(run.last)?;
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
        // In step with none of the runs: there are fewer of them than a millisecond has neighbours.
        let out_of_step = (0..every_ms).map(|ms| now.plus_ms(every_ms - ms));
        let mut untold =
            out_of_step.filter(|time| self.runs.iter().all(|run| !is_in_step(every_ms, run.first, *time)));
        untold.next().unwrap_or(in_step)
    }
}

fn is_in_step(every_ms: u64, one: Time, other: Time) -> bool {
    one.max(other).since_ms(one.min(other)).is_multiple_of(every_ms)
}
