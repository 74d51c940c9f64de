//! Timers: due instants, one undelivered tick at a time, and every occurrence accounted for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fact::{Schedule, TimerCreated};
use crate::id::{MessageId, Seq, TimerId, WaitId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::CatchUp;

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
    pub seq: Seq,
}

/// A run of occurrences: how many, the first and the last of them, and the one that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub count: u64,
    pub first: Time,
    pub last: Time,
    pub next: Option<Time>,
}

impl Schedule {
    #[must_use]
    pub fn first(&self) -> Time {
        match self {
            Schedule::Once { at } => *at,
            Schedule::Every { every_ms, from } => from.plus_ms(*every_ms),
        }
    }

    /// The occurrence after one.
    #[must_use]
    pub fn after(&self, occurrence: Time) -> Option<Time> {
        match self {
            Schedule::Once { .. } => None,
            Schedule::Every { every_ms, .. } => {
                let next = occurrence.plus_ms(*every_ms);
                (next > occurrence).then_some(next)
            }
        }
    }

    /// The run of occurrences from `next` up to now, counted without walking them.
    #[must_use]
    pub fn due(&self, next: Time, now: Time) -> Option<Due> {
        if next > now {
            return None;
        }
        match self {
            Schedule::Once { .. } => Some(Due { count: 1, first: next, last: next, next: None }),
            Schedule::Every { every_ms, .. } => {
                let more = now.since_ms(next) / (*every_ms).max(1);
                let last = next.plus_ms(more * every_ms);
                Some(Due { count: more + 1, first: next, last, next: self.after(last) })
            }
        }
    }

    /// The next occurrences from `next` on.
    #[must_use]
    pub fn upcoming(&self, next: Option<Time>, count: usize) -> Vec<Time> {
        std::iter::successors(next, |time| self.after(*time)).take(count).collect()
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timers {
    active: BTreeMap<TimerId, Timer>,
    /// Timers that may fire, by when.
    due: BTreeSet<(Time, TimerId)>,
    /// Timers whose last occurrence was told and taken.
    finished: BTreeSet<TimerId>,
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

    #[must_use]
    pub fn finished(&self) -> &BTreeSet<TimerId> {
        &self.finished
    }

    pub fn due_by(&self, now: Time) -> impl Iterator<Item = &Timer> {
        self.due.iter().take_while(move |(time, _)| *time <= now).filter_map(|(_, id)| self.active.get(id))
    }

    pub(super) fn create(&mut self, fact: &TimerCreated, seq: Seq) -> Result<(), String> {
        if self.active.contains_key(&fact.timer_id) {
            return Err(format!("{} exists already", fact.timer_id));
        }
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
        self.finished.remove(id);
        Ok(timer)
    }

    pub(crate) fn forget(&mut self, id: &TimerId) {
        let _absent = self.end(id);
    }

    pub(crate) fn restore(&mut self, timer: Timer) {
        match (timer.next_fire_at, &timer.undelivered) {
            (Some(time), None) => {
                self.due.insert((time, timer.timer_id.clone()));
            }
            (None, None) => {
                self.finished.insert(timer.timer_id.clone());
            }
            (_, Some(_)) => {}
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
