//! The pace of turns that an agent causes itself: by its own timers, sleeps, tasks and messages to other agents.
//!
//! Past so many of them within an hour the next one waits, and is taken when the oldest of them is an hour old. Nothing
//! is dropped. Turns that a person, a trigger or a person's timer causes are not counted, and never wait.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::AgentState;
use crate::time::Time;

const HOUR_MS: u64 = 3_600_000;
/// Turns within this span are counted together, so that an hour of them is a bounded list, however many they are.
const BURST_MS: u64 = 60_000;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// The turns of the last hour, oldest first.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    bursts: VecDeque<Burst>,
    /// The operator was told that turns wait, which they last did until then. Forgotten an hour later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Burst {
    first: Time,
    last: Time,
    turns: u32,
}

impl Pace {
    #[must_use]
    pub fn is_new(&self) -> bool {
        *self == Pace::default()
    }

    #[must_use]
    pub fn is_notified(&self) -> bool {
        self.told.is_some()
    }

    pub(super) fn record_notice(&mut self, until: Time) {
        self.told = Some(until);
    }

    /// A turn that the agent caused itself has begun.
    pub(super) fn count_turn(&mut self, at: Time, per_hour: u32) {
        self.bursts.retain(|burst| at.since_ms(burst.last) < HOUR_MS);
        self.told = self.told.filter(|until| at.since_ms(*until) < HOUR_MS);
        self.add_turns(at, 1);
        self.told = self.told.map(|told| self.next_turn_at(per_hour).unwrap_or(told));
    }

    fn add_turns(&mut self, at: Time, turns: u32) {
        match self.bursts.back_mut().filter(|burst| at.since_ms(burst.first) < BURST_MS) {
            Some(burst) => {
                burst.turns = burst.turns.saturating_add(turns);
                burst.last = burst.last.max(at);
            }
            None => self.bursts.push_back(Burst { first: at, last: at, turns }),
        }
    }

    /// Turns that began in what is the future now count as begun now.
    pub(super) fn clock_set_back(&mut self, now: Time) {
        let ahead: u32 = self.bursts.iter().filter(|burst| burst.first > now).map(|burst| burst.turns).sum();
        self.bursts.retain(|burst| burst.first <= now);
        self.bursts.iter_mut().for_each(|burst| burst.last = burst.last.min(now));
        if ahead > 0 {
            self.add_turns(now, ahead);
        }
        self.told = self.told.map(|until| until.min(now.plus_ms(HOUR_MS)));
    }

    /// When the next such turn may begin: as soon as fewer than `per_hour` of them are less than an hour old. None where
    /// there were not as many.
    fn next_turn_at(&self, per_hour: u32) -> Option<Time> {
        let mut turns = 0_u32;
        let full = self.bursts.iter().rev().find(|burst| {
            turns = turns.saturating_add(burst.turns);
            turns >= per_hour
        });
        full.filter(|_| per_hour > 0).map(|burst| burst.last.plus_ms(HOUR_MS))
    }
}

impl AgentState {
    /// Until when messages that the agent caused itself are not taken. It may have passed. None where there is no limit,
    /// or it is not reached.
    #[must_use]
    pub fn paced_until(&self) -> Option<Time> {
        self.accounts.pace.next_turn_at(self.definition.limits.self_turns_per_hour)
    }

    /// The same, where such a message waits for nothing else.
    #[must_use]
    pub fn pace_ends(&self) -> Option<Time> {
        self.paced_until().filter(|_| self.planes.queue.first_own().is_some())
    }
}
