//! Wake hints and the triggers that can send them.
//!
//! A hint is a liveness signal: pending until a tick carries it into the queue, one undelivered tick per source.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, Seq, TriggerId, WorkItemId};
use crate::limits;
use crate::time::Time;
use crate::vocabulary::DeliveryMode;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    pub source: String,
    pub generation: u64,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The bodies of the hints, as far as they were kept.
    #[serde(default)]
    pub bodies: Vec<String>,
    /// How many hints this one stands for.
    pub count: u64,
    pub at: Time,
    pub seq: Seq,
}

impl Hint {
    #[must_use]
    pub fn is_contentful(&self) -> bool {
        self.bodies.iter().any(|body| !body.trim().is_empty())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Hints {
    pending: BTreeMap<String, Hint>,
    /// Ticks of a source that are still in the queue.
    undelivered: BTreeMap<String, MessageId>,
    generation: u64,
}

impl Hints {
    #[must_use]
    pub fn pending(&self) -> &BTreeMap<String, Hint> {
        &self.pending
    }

    #[must_use]
    pub fn undelivered(&self) -> &BTreeMap<String, MessageId> {
        &self.undelivered
    }

    /// Hints that are pending, and ticks that are not over yet.
    #[must_use]
    pub fn sources(&self) -> usize {
        self.pending.len() + self.undelivered.len()
    }

    #[must_use]
    pub fn has_source(&self, source: &str) -> bool {
        self.pending.contains_key(source) || self.undelivered.contains_key(source)
    }

    #[must_use]
    pub fn next_generation(&self) -> u64 {
        self.generation + 1
    }

    /// The oldest hint whose source has no tick under way. Bounded by the number of sources.
    #[must_use]
    pub fn deliverable(&self) -> Option<&Hint> {
        self.pending
            .values()
            .filter(|hint| !self.undelivered.contains_key(&hint.source))
            .min_by_key(|hint| hint.generation)
    }

    pub(super) fn submit(&mut self, mut hint: Hint) {
        self.generation = self.generation.max(hint.generation);
        let kept: usize = self.pending.values().flat_map(|hint| &hint.bodies).map(String::len).sum();
        shorten(&mut hint.bodies, limits::HINT_BYTES_MAX.saturating_sub(kept));
        match self.pending.get_mut(&hint.source) {
            None => {
                self.pending.insert(hint.source.clone(), hint);
            }
            Some(pending) => {
                pending.count += 1;
                pending.generation = hint.generation;
                pending.reason = hint.reason;
                pending.seq = hint.seq;
                for body in hint.bodies {
                    if pending.bodies.len() < limits::HINT_BODIES_MAX {
                        pending.bodies.push(body);
                    }
                }
            }
        }
    }

    pub(super) fn record_delivery(&mut self, source: &str, message: &MessageId) {
        self.pending.remove(source);
        self.undelivered.insert(source.to_owned(), message.clone());
    }

    pub(super) fn end_tick(&mut self, message: &MessageId) {
        self.undelivered.retain(|_, tick| tick != message);
    }

    /// Drops a hint without a tick. An earlier hint of that source, of another generation, stays pending.
    pub(super) fn ignore(&mut self, source: &str, generation: u64) {
        self.generation = self.generation.max(generation);
        if self.pending.get(source).is_some_and(|hint| hint.generation == generation) {
            self.pending.remove(source);
        }
    }

    pub(crate) fn restore(&mut self, hint: Hint) {
        self.submit(hint);
    }
}

/// Leaves the bodies whole that fit into `room` bytes together, and the beginning of the others.
fn shorten(bodies: &mut [String], mut room: usize) {
    for body in bodies {
        match room.checked_sub(body.len()) {
            Some(left) => room = left,
            None if body.len() > limits::EXCERPT_BYTES => {
                let start = limits::clip(body.trim_start(), limits::EXCERPT_BYTES);
                *body = format!("{start}… ({} bytes in all)", body.len());
            }
            None => {}
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    pub trigger_id: TriggerId,
    pub name: String,
    pub delivery_mode: DeliveryMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    #[serde(default)]
    pub signed: bool,
    /// Which of its URLs is good: each rotation makes the next.
    #[serde(default)]
    pub generation: u32,
    #[serde(default)]
    pub delivery_count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_delivered_at: Option<Time>,
    pub seq: Seq,
}
