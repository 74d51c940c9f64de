//! Timers: due instants, one undelivered tick at a time, and every occurrence accounted for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::fired_streaks::FiredStreaks;
use crate::calendar::Calendar;
use crate::fact::{Schedule, TimerCheckStarted, TimerCreated, TimerFired, TimerMissed, TimerRescheduled};
use crate::id::{MessageId, Seq, TimerId, WaitId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::{CatchUp, Maker, MissedReason};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timer {
    pub timer_id: TimerId,
    pub summary: String,
    pub schedule: Schedule,
    /// The next occurrence that has not been told; none once the last one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_fire_at: Option<Time>,
    pub catch_up: CatchUp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_intent_id: Option<WaitId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    #[serde(default)]
    pub fire_count: u64,
    #[serde(default)]
    pub missed_count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_fired_at: Option<Time>,
    /// The tick that is still in the queue. Until it is taken, the timer makes no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undelivered: Option<MessageId>,
    /// A command that says whether an occurrence is worth a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The occurrence that is being checked. Until that is over, the timer looks at no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checking: Option<OccurrenceCheck>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<Maker>,
    /// How long after its making it was to fire, where that is what was asked for, and not a time of day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
    /// Of a recurring timer: which of its occurrences have fired of late.
    #[serde(default, rename = "told", skip_serializing_if = "Option::is_none")]
    pub fired: Option<FiredStreaks>,
    pub seq: Seq,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OccurrenceCheck {
    pub due: Time,
    /// Occurrences that are to be told with its tick.
    pub missed: u64,
}

/// A run of occurrences: how many, the first and the last of them, and the one that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueOccurrences {
    pub count: u64,
    pub first: Time,
    pub last: Time,
    pub next: Option<Time>,
}

impl Schedule {
    /// The occurrence after one.
    #[must_use]
    pub fn occurrence_after(&self, occurrence: Time) -> Option<Time> {
        match self {
            Schedule::Once { .. } => None,
            Schedule::Cron { cron, time_zone } => parse_calendar(cron, time_zone)?.after(occurrence),
            Schedule::Every { every_ms, .. } => {
                let next = occurrence.plus_ms(*every_ms);
                (next > occurrence).then_some(next)
            }
        }
    }

    /// The occurrence before one.
    #[must_use]
    pub fn occurrence_before(&self, occurrence: Time) -> Option<Time> {
        match self {
            Schedule::Once { .. } => None,
            Schedule::Cron { cron, time_zone } => parse_calendar(cron, time_zone)?.before(occurrence),
            Schedule::Every { every_ms, .. } => {
                let every = i64::try_from(*every_ms).unwrap_or(i64::MAX);
                Some(Time::from_ms(occurrence.as_ms().saturating_sub(every)))
            }
        }
    }

    /// The run of occurrences from `next` up to now, counted without walking them. `next` is one because the facts say
    /// so, whatever a schedule would say by today's rules.
    #[must_use]
    pub fn due_occurrences(&self, next: Time, now: Time) -> Option<DueOccurrences> {
        if next > now {
            return None;
        }
        match self {
            Schedule::Once { .. } => Some(DueOccurrences { count: 1, first: next, last: next, next: None }),
            Schedule::Cron { cron, time_zone } => {
                let Some(calendar) = parse_calendar(cron, time_zone) else {
                    return Some(DueOccurrences { count: 1, first: next, last: next, next: None });
                };
                let last = calendar.before(now.plus_ms(1)).unwrap_or(next).max(next);
                let count = calendar.count(next, now) + 1;
                Some(DueOccurrences { count, first: next, last, next: calendar.after(now) })
            }
            Schedule::Every { every_ms, .. } => {
                let more = now.since_ms(next) / (*every_ms).max(1);
                let last = next.plus_ms(more * every_ms);
                Some(DueOccurrences { count: more + 1, first: next, last, next: self.occurrence_after(last) })
            }
        }
    }

    /// The next occurrences from `next` on.
    #[must_use]
    pub fn upcoming_occurrences(&self, next: Option<Time>, count: usize) -> Vec<Time> {
        std::iter::successors(next, |time| self.occurrence_after(*time)).take(count).collect()
    }
}

/// It was read when the timer was made. A zone that a later database lacks has no further times.
fn parse_calendar(cron: &str, time_zone: &str) -> Option<Calendar> {
    Calendar::new(cron, time_zone).ok()
}

impl Timer {
    pub(super) fn record_check_start(&mut self, fact: &TimerCheckStarted) {
        self.record_occurrence(fact.due);
        let missed = self.checking.map_or(0, |checking| checking.missed);
        self.checking = Some(OccurrenceCheck { due: fact.due, missed });
        self.next_fire_at = fact.next_fire_at;
    }

    /// How many occurrences its tick stands for besides its own.
    pub(super) fn record_fire(&mut self, fact: &TimerFired) -> u64 {
        self.fire_count += 1;
        self.last_fired_at = Some(fact.due);
        self.record_occurrence(fact.due);
        self.next_fire_at = fact.next_fire_at;
        self.undelivered = Some(fact.message_id.clone());
        self.checking.take().map_or(0, |checking| checking.missed)
    }

    pub(super) fn record_missed(&mut self, fact: &TimerMissed) {
        self.missed_count = self.missed_count.saturating_add(fact.count);
        self.next_fire_at = fact.next_fire_at;
        match fact.reason {
            MissedReason::Coalesced | MissedReason::Skipped | MissedReason::FiredBefore => {
                self.fired.iter_mut().for_each(|fired| fired.record_passed_over(fact.last));
                if let Some(checking) = &mut self.checking {
                    checking.missed = checking.missed.saturating_add(fact.count);
                }
            }
            MissedReason::CheckSaidNo | MissedReason::Stopped | MissedReason::Cancelled => self.checking = None,
        }
    }

    pub(super) fn record_reschedule(&mut self, fact: &TimerRescheduled) {
        self.next_fire_at = Some(fact.to);
        let Some(fired) = &mut self.fired else { return };
        if fact.repeats {
            *fired = FiredStreaks::default();
        } else {
            fired.break_streak();
        }
    }

    /// The occurrence that is awaited: the one that is being checked, else the next. None while its tick is in the queue.
    #[must_use]
    pub fn next_time(&self) -> Option<Time> {
        match (self.checking, &self.undelivered) {
            (Some(checking), _) => Some(checking.due),
            (None, None) => self.next_fire_at,
            (None, Some(_)) => None,
        }
    }

    fn record_occurrence(&mut self, occurrence: Time) {
        // A check that is done again is for the same one.
        if self.checking.is_none_or(|checking| checking.due != occurrence)
            && let Some(fired) = &mut self.fired
        {
            fired.record_fire(occurrence, self.next_fire_at == Some(occurrence));
        }
    }

    /// When it is to fire now that the clock was set back to `now`. None where its time stands. With `repeats`,
    /// occurrences that have fired may fire once more.
    #[must_use]
    pub fn next_fire_from(&self, now: Time, repeats: bool) -> Option<Time> {
        let next = self.next_fire_at?;
        let anew = FiredStreaks::default();
        let earlier = match (&self.fired, self.after_ms) {
            (Some(fired), _) => (if repeats { &anew } else { fired }).next_fire_from(&self.schedule, next, now),
            (None, after_ms) => after_ms.map(|ms| now.plus_ms(ms)),
        };
        earlier.filter(|earlier| *earlier < next)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timers {
    active: BTreeMap<TimerId, Timer>,
    /// Timers that may fire, by when.
    due: BTreeSet<(Time, TimerId)>,
    /// Timers whose last occurrence was told and taken.
    finished: BTreeSet<TimerId>,
    /// Timers whose check is under way.
    checking: BTreeSet<TimerId>,
    /// Timers that an open wait names. A wait may be recorded before its own timer is.
    awaited: BTreeSet<TimerId>,
    /// Of those, the ones with a next occurrence, by when.
    awaited_due: BTreeSet<(Time, TimerId)>,
}

impl Timers {
    #[must_use]
    pub fn active(&self) -> &BTreeMap<TimerId, Timer> {
        &self.active
    }

    #[must_use]
    pub fn get(&self, id: &TimerId) -> Option<&Timer> {
        self.active.get(id)
    }

    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time)
    }

    #[must_use]
    pub fn first_due(&self) -> Option<&Timer> {
        self.due.first().and_then(|(_, id)| self.active.get(id)).or_else(|| self.active.values().next())
    }

    /// Of the timers that a wait names, the one that fires first.
    #[must_use]
    pub fn first_awaited(&self) -> Option<(Time, &Timer)> {
        self.awaited_due.first().and_then(|(time, id)| Some((*time, self.active.get(id)?)))
    }

    /// Records whether an open wait names this timer.
    pub(super) fn set_awaited(&mut self, id: &TimerId, awaited: bool) {
        if awaited {
            self.awaited.insert(id.clone());
        } else {
            self.awaited.remove(id);
        }
        if let Some(time) = self.active.get(id).and_then(Timer::next_time) {
            if awaited {
                self.awaited_due.insert((time, id.clone()));
            } else {
                self.awaited_due.remove(&(time, id.clone()));
            }
        }
    }

    #[must_use]
    pub fn finished(&self) -> &BTreeSet<TimerId> {
        &self.finished
    }

    #[must_use]
    pub fn checking(&self) -> &BTreeSet<TimerId> {
        &self.checking
    }

    pub fn due_by(&self, now: Time) -> impl Iterator<Item = &Timer> {
        self.due.iter().take_while(move |(time, _)| *time <= now).filter_map(|(_, id)| self.active.get(id))
    }

    pub(super) fn create(&mut self, fact: &TimerCreated, seq: Seq, at: Time) -> Result<(), String> {
        if self.active.contains_key(&fact.timer_id) {
            return Err(format!("{} exists already", fact.timer_id));
        }
        let fired = match fact.schedule {
            Schedule::Once { .. } => None,
            Schedule::Every { .. } | Schedule::Cron { .. } => Some(FiredStreaks::default()),
        };
        // Older records do not say it; but no wait was ever made for a time of day.
        let of_wait = fact.waiting_intent_id.as_ref().map(|_| fact.next_fire_at.since_ms(at));
        self.restore(Timer {
            timer_id: fact.timer_id.clone(),
            summary: fact.summary.clone(),
            schedule: fact.schedule.clone(),
            next_fire_at: Some(fact.next_fire_at),
            catch_up: fact.catch_up,
            waiting_intent_id: fact.waiting_intent_id.clone(),
            work_item_id: fact.work_item_id.clone(),
            fire_count: 0,
            missed_count: 0,
            last_fired_at: None,
            undelivered: None,
            check: fact.check.clone(),
            checking: None,
            made_by: fact.made_by,
            after_ms: fact.after_ms.or(of_wait),
            fired,
            seq,
        });
        Ok(())
    }

    pub(super) fn edit(&mut self, id: &TimerId, change: impl FnOnce(&mut Timer)) -> Result<(), String> {
        let mut timer = self.end(id)?;
        change(&mut timer);
        self.restore(timer);
        Ok(())
    }

    pub(super) fn end(&mut self, id: &TimerId) -> Result<Timer, String> {
        let timer = self.active.remove(id).ok_or_else(|| format!("{id} is not an active timer"))?;
        if let Some(time) = timer.next_fire_at {
            self.due.remove(&(time, id.clone()));
        }
        if let Some(time) = timer.next_time() {
            self.awaited_due.remove(&(time, id.clone()));
        }
        self.finished.remove(id);
        self.checking.remove(id);
        Ok(timer)
    }

    pub(crate) fn forget(&mut self, id: &TimerId) {
        let _absent = self.end(id);
    }

    pub(crate) fn restore(&mut self, timer: Timer) {
        match (timer.next_fire_at, &timer.undelivered, timer.checking) {
            (_, _, Some(_)) => {
                self.checking.insert(timer.timer_id.clone());
            }
            (Some(time), None, None) => {
                self.due.insert((time, timer.timer_id.clone()));
            }
            (None, None, None) => {
                self.finished.insert(timer.timer_id.clone());
            }
            (_, Some(_), None) => {}
        }
        if let Some(time) = timer.next_time().filter(|_| self.awaited.contains(&timer.timer_id)) {
            self.awaited_due.insert((time, timer.timer_id.clone()));
        }
        self.active.insert(timer.timer_id.clone(), timer);
    }
}

impl Serialize for Timers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.active.values())
    }
}

impl<'de> Deserialize<'de> for Timers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timers, D::Error> {
        let mut timers = Timers::default();
        for timer in Vec::<Timer>::deserialize(deserializer)? {
            timers.restore(timer);
        }
        Ok(timers)
    }
}
