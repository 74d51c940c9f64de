//! The queue: four lanes, each first in first out, and the status of every message that is still somewhere.
//!
//! A message that is processed, aborted or dropped leaves the state; the ledger remembers it. Places are numbers, so a
//! message that goes back goes back to where it stood, and one that was taken out of turn goes to the front.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::guard::Guard;
use crate::continuation::Continuation;
use crate::id::{MessageId, Seq};
use crate::limits;
use crate::message::Message;
use crate::time::Time;
use crate::vocabulary::{MessageKind, Priority, ProviderError, QueueStatus, RequeueReason};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// With an excerpt of the body, where that is long: a queue holds up to a gigabyte of bodies, and a scheduler reads
    /// none. The fact at `seq` has the whole message.
    pub message: Arc<Message>,
    /// The length of the whole body.
    #[serde(default)]
    pub body_bytes: u64,
    pub status: QueueStatus,
    pub place: i64,
    /// The fact that brought it here.
    pub seq: Seq,
    pub at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// Times it was taken.
    #[serde(default)]
    pub taken: u32,
    /// Times the process died while it was being worked on, in all and since the last committed round.
    #[serde(default)]
    pub crashes: u32,
    #[serde(default)]
    pub crashes_since_round: u32,
    /// Times a provider failed under it.
    #[serde(default)]
    pub provider_failures: u32,
    /// Models that failed under it since it was last taken up from the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<ModelAttempt>,
    /// For an interjection: the message whose turn it joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<MessageId>,
    /// How it re-entered when it was first taken; a replay is the same delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Continuation>,
    /// The operator's message that a turn about this one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<MessageId>,
    /// For a timer's tick: occurrences that it speaks for besides its own.
    #[serde(default)]
    pub missed: u64,
    /// Calls that came to the same again and again while it was worked on.
    #[serde(default, skip_serializing_if = "Guard::is_empty")]
    pub guard: Guard,
}

/// A model that failed under a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelAttempt {
    pub model: String,
    pub error: ProviderError,
}

/// The queued messages of one priority, by place.
type Lane = BTreeMap<i64, MessageId>;

#[derive(Debug, Clone, Default, PartialEq)]
struct Lanes {
    interject: Lane,
    next: Lane,
    normal: Lane,
    background: Lane,
}

impl Lanes {
    fn get(&self, priority: Priority) -> &Lane {
        match priority {
            Priority::Interject => &self.interject,
            Priority::Next => &self.next,
            Priority::Normal => &self.normal,
            Priority::Background => &self.background,
        }
    }

    fn get_mut(&mut self, priority: Priority) -> &mut Lane {
        match priority {
            Priority::Interject => &mut self.interject,
            Priority::Next => &mut self.next,
            Priority::Normal => &mut self.normal,
            Priority::Background => &mut self.background,
        }
    }

    /// All lanes, the most urgent first.
    fn iter(&self) -> impl Iterator<Item = &Lane> {
        Priority::ALL.iter().map(|priority| self.get(*priority))
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queue {
    entries: BTreeMap<MessageId, Entry>,
    lanes: Lanes,
    parked: BTreeMap<i64, MessageId>,
    /// Queued operator messages and queued work ticks, by lane and place: what fairness looks for.
    operators: BTreeSet<(Priority, i64)>,
    work_ticks: BTreeSet<(Priority, i64)>,
    /// Queued messages by lane and place: those that the agent caused itself and that are paced, and all others.
    own: BTreeSet<(Priority, i64)>,
    others: BTreeSet<(Priority, i64)>,
    /// Queued messages that carry a time before which they must not be taken.
    delayed: BTreeSet<(Time, MessageId)>,
    dequeued: usize,
    /// Interjections by the message whose turn they joined, in order.
    joined: BTreeSet<(MessageId, i64, MessageId)>,
    next_place: i64,
    /// Of the bodies of all entries, as the ledger has them.
    body_bytes: u64,
}

impl Entry {
    /// Whether the message here is an excerpt of the one that was queued.
    #[must_use]
    pub fn is_excerpt(&self) -> bool {
        self.message.body_bytes() < self.body_bytes
    }
}

impl Queue {
    #[must_use]
    pub fn get(&self, id: &MessageId) -> Option<&Entry> {
        self.entries.get(id)
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The length of all bodies, as the ledger has them.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Messages in their lanes, whether due or not.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.lanes.iter().map(Lane::len).sum()
    }

    /// Messages that are an input still: in their lanes, or being worked on.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.queued() + self.dequeued
    }

    #[must_use]
    pub fn parked(&self) -> usize {
        self.parked.len()
    }

    pub fn parked_entries(&self) -> impl Iterator<Item = &Entry> {
        self.parked.values().filter_map(|id| self.entries.get(id))
    }

    /// The messages that a restart would take up again, in that order: lane by lane, each at its own place.
    #[must_use]
    pub fn replay_ids(&self) -> Vec<MessageId> {
        let replayed = self.entries.values().filter(|entry| entry.status.replays());
        let mut ids: Vec<(Priority, i64, &MessageId)> =
            replayed.map(|entry| (entry.message.priority, entry.place, &entry.message.message_id)).collect();
        ids.sort();
        ids.into_iter().map(|(.., id)| id.clone()).collect()
    }

    /// The first message that may be taken now, by lanes. A lane waits behind its first message; but nobody waits behind
    /// a message that is `paced`, as the agent's own are then.
    #[must_use]
    pub fn first_due(&self, now: Time, paced: bool) -> Option<&Entry> {
        if paced {
            return self.first_due_of(&self.others, now);
        }
        self.lanes.iter().find_map(|lane| {
            let entry = self.entries.get(lane.first_key_value()?.1)?;
            entry.not_before.is_none_or(|time| time <= now).then_some(entry)
        })
    }

    /// Whether a message waits for nothing but to be taken.
    #[must_use]
    pub fn has_due_input(&self, paced: bool) -> bool {
        self.first_due(Time::MIN, paced).is_some()
    }

    /// The first message that the agent caused itself and that waits behind no message with a time of its own.
    #[must_use]
    pub fn first_own(&self) -> Option<&Entry> {
        self.first_due_of(&self.own, Time::MIN)
    }

    /// How many messages there are that the agent caused itself and that were never taken.
    #[must_use]
    pub fn queued_own(&self) -> usize {
        self.own.len()
    }

    /// The first queued operator message whose lane is not held back.
    #[must_use]
    pub fn first_due_operator(&self, now: Time) -> Option<&Entry> {
        self.first_due_of(&self.operators, now)
    }

    #[must_use]
    pub fn first_due_work_tick(&self, now: Time) -> Option<&Entry> {
        self.first_due_of(&self.work_ticks, now)
    }

    fn first_due_of(&self, set: &BTreeSet<(Priority, i64)>, now: Time) -> Option<&Entry> {
        Priority::ALL.iter().find_map(|&lane| {
            let &(_, place) = set.range((lane, i64::MIN)..=(lane, i64::MAX)).next()?;
            // A delayed message delays all messages behind it in its lane.
            let mut held = self.delayed.iter().filter_map(|(time, id)| Some((*time, self.entries.get(id)?)));
            let behind =
                |(time, entry): (Time, &Entry)| time > now && entry.message.priority == lane && entry.place <= place;
            if held.any(behind) {
                return None;
            }
            self.entries.get(self.lanes.get(lane).get(&place)?)
        })
    }

    /// The earliest time at which a lane that is held back may go on. The time of a message behind the first does not
    /// matter yet.
    #[must_use]
    pub fn next_not_before(&self) -> Option<Time> {
        self.first_delayed().and_then(|entry| entry.not_before)
    }

    /// How many queued messages are in lanes that wait behind a message with a time of its own.
    #[must_use]
    pub fn queued_delayed(&self) -> usize {
        self.lanes.iter().filter(|lane| self.delayed_head(lane).is_some()).map(Lane::len).sum()
    }

    /// The message that is held back and holds back its lane; of several, the one that goes on first.
    #[must_use]
    pub fn first_delayed(&self) -> Option<&Entry> {
        self.lanes.iter().filter_map(|lane| self.delayed_head(lane)).min_by_key(|entry| entry.not_before)
    }

    /// The first message of a lane, where it has a time of its own.
    fn delayed_head(&self, lane: &Lane) -> Option<&Entry> {
        let head = lane.first_key_value().and_then(|(_, id)| self.entries.get(id));
        head.filter(|entry| entry.not_before.is_some())
    }

    /// Messages with a time of their own.
    pub fn delayed(&self) -> impl Iterator<Item = &Entry> {
        self.delayed.iter().filter_map(|(_, id)| self.entries.get(id))
    }

    /// Operator messages that want to join the running turn, in order.
    #[must_use]
    pub fn interjections(&self) -> Vec<MessageId> {
        self.lanes.interject.values().cloned().collect()
    }

    #[must_use]
    pub fn joined_to(&self, message: &MessageId) -> Vec<MessageId> {
        let from = (message.clone(), i64::MIN, MessageId::new(""));
        let of_it = self.joined.range(from..).take_while(|(joined, ..)| joined == message);
        of_it.map(|(.., id)| id.clone()).collect()
    }

    pub(super) fn push(&mut self, message: Arc<Message>, seq: Seq, at: Time) -> Result<(), String> {
        if self.entries.contains_key(&message.message_id) {
            return Err(format!("{} is queued already", message.message_id));
        }
        let place = self.next_place;
        self.next_place += 1;
        let entry = Entry {
            body_bytes: message.body_bytes(),
            message: self.shorten(message),
            status: QueueStatus::Queued,
            place,
            seq,
            at,
            not_before: None,
            taken: 0,
            crashes: 0,
            crashes_since_round: 0,
            provider_failures: 0,
            tried: Vec::new(),
            joined: None,
            continuation: None,
            answers: None,
            missed: 0,
            guard: Guard::default(),
        };
        self.insert(entry);
        Ok(())
    }

    /// The message as the state holds it.
    fn shorten(&self, message: Arc<Message>) -> Arc<Message> {
        let few = self.entries.len() < limits::LONG_EXCERPTS_MAX;
        let max = if few { limits::EXCERPT_BYTES } else { limits::SHORT_EXCERPT_BYTES };
        message.excerpt(max).map_or(message, Arc::new)
    }

    /// Moves a message from one of the statuses it may come from to a new one. The one place where a status changes.
    pub(super) fn change_status(
        &mut self,
        id: &MessageId,
        from: &[QueueStatus],
        to: QueueStatus,
        change: impl FnOnce(&mut Entry),
    ) -> Result<(), String> {
        let mut entry = self.remove_from(id, from)?;
        entry.status = to;
        change(&mut entry);
        self.insert(entry);
        Ok(())
    }

    /// Takes a message out of the state for good.
    pub(super) fn remove_from(&mut self, id: &MessageId, from: &[QueueStatus]) -> Result<Entry, String> {
        let entry = self.entries.get(id).ok_or_else(|| format!("{id} is not in the queue"))?;
        if !from.contains(&entry.status) {
            return Err(format!("{id} is {}", entry.status));
        }
        self.remove_from_indexes(id);
        self.entries.remove(id).ok_or_else(|| format!("{id} is not in the queue"))
    }

    pub(super) fn edit(&mut self, id: &MessageId, change: impl FnOnce(&mut Entry)) {
        self.remove_from_indexes(id);
        if let Some(mut entry) = self.entries.remove(id) {
            change(&mut entry);
            self.insert(entry);
        }
    }

    /// Back into its lane: to its own place, which is the front unless others were taken out of turn.
    pub(super) fn requeue(
        &mut self,
        id: &MessageId,
        reason: RequeueReason,
        not_before: Option<Time>,
    ) -> Result<(), String> {
        let from = match reason {
            RequeueReason::Unparked => &[QueueStatus::Parked][..],
            RequeueReason::ModelChanged | RequeueReason::ModelBack | RequeueReason::ClockSetBack => {
                &[QueueStatus::Queued][..]
            }
            RequeueReason::InterjectionReturned => &[QueueStatus::Interjected][..],
            RequeueReason::Stop
            | RequeueReason::Shutdown
            | RequeueReason::Crash
            | RequeueReason::Budget
            | RequeueReason::Fallback
            | RequeueReason::TurnsHeld
            | RequeueReason::ProviderBackoff => &[QueueStatus::Dequeued][..],
        };
        let entry = self.entries.get(id).ok_or_else(|| format!("{id} is not in the queue"))?;
        let lane_front = self.lanes.get(entry.message.priority).first_key_value().map(|(place, _)| *place);
        // A message whose turn was ended goes to the front. One that was cut off with its process, or that only stood aside,
        // goes back to where it stood: a cut changes no order.
        let to_front = match reason {
            RequeueReason::Stop
            | RequeueReason::Budget
            | RequeueReason::Fallback
            | RequeueReason::TurnsHeld
            | RequeueReason::ProviderBackoff => true,
            RequeueReason::Crash
            | RequeueReason::Shutdown
            | RequeueReason::Unparked
            | RequeueReason::InterjectionReturned
            | RequeueReason::ModelChanged
            | RequeueReason::ModelBack
            | RequeueReason::ClockSetBack => false,
        };
        // In front of what is parked too, which comes back to its own place.
        let parked_front = self.parked.first_key_value().map_or(i64::MAX, |(place, _)| *place);
        let place = match lane_front {
            Some(front) if to_front && front < entry.place => front.min(parked_front) - 1,
            Some(_) | None => entry.place,
        };
        self.change_status(id, from, QueueStatus::Queued, |entry| {
            entry.place = place;
            entry.not_before = not_before;
            entry.joined = None;
            entry.guard.allow_one_more();
            match reason {
                RequeueReason::Crash => {
                    entry.crashes += 1;
                    entry.crashes_since_round += 1;
                }
                RequeueReason::ProviderBackoff => {
                    entry.provider_failures += 1;
                    entry.tried.clear();
                }
                RequeueReason::ModelChanged => {
                    entry.provider_failures = 0;
                    entry.tried.clear();
                }
                // Each of its models may do better once turns start again.
                RequeueReason::TurnsHeld => entry.tried.clear(),
                RequeueReason::ModelBack
                | RequeueReason::ClockSetBack
                | RequeueReason::Fallback
                | RequeueReason::Stop
                | RequeueReason::Shutdown
                | RequeueReason::Budget
                | RequeueReason::Unparked
                | RequeueReason::InterjectionReturned => {}
            }
        })
    }

    fn insert(&mut self, entry: Entry) {
        let id = entry.message.message_id.clone();
        self.body_bytes = self.body_bytes.saturating_add(entry.body_bytes);
        self.next_place = self.next_place.max(entry.place.saturating_add(1));
        if let Some(joined) = &entry.joined {
            self.joined.insert((joined.clone(), entry.place, id.clone()));
        }
        match entry.status {
            QueueStatus::Queued => {
                let lane = entry.message.priority;
                self.lanes.get_mut(lane).insert(entry.place, id.clone());
                if entry.message.kind() == MessageKind::OperatorPrompt {
                    self.operators.insert((lane, entry.place));
                }
                if entry.message.is_work_tick() {
                    self.work_ticks.insert((lane, entry.place));
                }
                // One that was taken before is the same turn again.
                let is_own = entry.message.self_caused && entry.taken == 0;
                let index = if is_own { &mut self.own } else { &mut self.others };
                index.insert((lane, entry.place));
                if let Some(time) = entry.not_before {
                    self.delayed.insert((time, id.clone()));
                }
            }
            QueueStatus::Parked => {
                self.parked.insert(entry.place, id.clone());
            }
            QueueStatus::Dequeued => self.dequeued += 1,
            QueueStatus::Interjected | QueueStatus::Processed | QueueStatus::Aborted | QueueStatus::Dropped => {}
        }
        self.entries.insert(id, entry);
    }

    fn remove_from_indexes(&mut self, id: &MessageId) {
        let Some(entry) = self.entries.get(id) else { return };
        let (lane, place) = (entry.message.priority, entry.place);
        self.body_bytes = self.body_bytes.saturating_sub(entry.body_bytes);
        if let Some(joined) = &entry.joined {
            self.joined.remove(&(joined.clone(), place, id.clone()));
        }
        match entry.status {
            QueueStatus::Queued => {
                self.lanes.get_mut(lane).remove(&place);
                self.operators.remove(&(lane, place));
                self.work_ticks.remove(&(lane, place));
                self.own.remove(&(lane, place));
                self.others.remove(&(lane, place));
                if let Some(time) = entry.not_before {
                    self.delayed.remove(&(time, id.clone()));
                }
            }
            QueueStatus::Parked => {
                self.parked.remove(&place);
            }
            QueueStatus::Dequeued => self.dequeued -= 1,
            QueueStatus::Interjected | QueueStatus::Processed | QueueStatus::Aborted | QueueStatus::Dropped => {}
        }
    }

    /// Adds a record of a snapshot or a fixture, unless its message is over: the ledger has those.
    pub(crate) fn restore(&mut self, mut entry: Entry) {
        if entry.status.replays() || matches!(entry.status, QueueStatus::Parked | QueueStatus::Interjected) {
            self.remove_from_indexes(&entry.message.message_id);
            entry.body_bytes = entry.body_bytes.max(entry.message.body_bytes());
            entry.message = self.shorten(entry.message);
            self.insert(entry);
        }
    }
}

/// Places count on across a snapshot: what is replayed and what is read back must agree on the next one.
#[derive(Serialize, Deserialize)]
struct Stored<E> {
    entries: E,
    next_place: i64,
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries: Vec<&Entry> = self.entries.values().collect();
        Stored { entries, next_place: self.next_place }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Queue, D::Error> {
        let stored = Stored::<Vec<Entry>>::deserialize(deserializer)?;
        let mut queue = Queue { next_place: stored.next_place, ..Queue::default() };
        for entry in stored.entries {
            queue.restore(entry);
        }
        Ok(queue)
    }
}
