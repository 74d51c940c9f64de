//! The loop guard: which calls came to the same result again and again while one message was worked on.
//!
//! It is kept with the message, so that a turn that is cut and begun again does not begin to count again. What was
//! asked and what came of it are kept as hashes: they are compared, and never shown.

use std::collections::VecDeque;
use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// The call that ended last comes last; the first gives way.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    seen: VecDeque<Seen>,
    /// Calls that were not run because of this.
    #[serde(default)]
    refused: u32,
    /// Calls in a row that were cut off before they were complete.
    #[serde(default)]
    cut: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    call: u64,
    result: u64,
    /// Times in a row that it came to this.
    times: u32,
}

impl Guard {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.refused == 0 && self.cut == 0
    }

    /// How often in a row this call came to the same result.
    #[must_use]
    pub fn times(&self, call: u64) -> u32 {
        self.seen.iter().find(|seen| seen.call == call).map_or(0, |seen| seen.times)
    }

    /// Calls that were not run because of it.
    #[must_use]
    pub fn refused(&self) -> u32 {
        self.refused
    }

    /// Calls in a row that were cut off before they were complete.
    #[must_use]
    pub fn cut(&self) -> u32 {
        self.cut
    }

    /// A result that differs begins the count again.
    pub(super) fn finished(&mut self, call: u64, result: u64) {
        self.cut = 0;
        let known = self.seen.iter().position(|seen| seen.call == call).and_then(|at| self.seen.remove(at));
        let times = known.filter(|seen| seen.result == result).map_or(1, |seen| seen.times.saturating_add(1));
        if self.seen.len() == limits::GUARDED_CALLS_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back(Seen { call, result, times });
    }

    /// What it was to be is not known, so it is not compared with others.
    pub(super) fn cut_off(&mut self) {
        self.cut = self.cut.saturating_add(1);
    }

    pub(super) fn refuse(&mut self) {
        self.refused = self.refused.saturating_add(1);
    }

    /// The message is taken up again, maybe much later: every call may be tried once more.
    pub(super) fn try_again(&mut self) {
        self.cut = 0;
        for seen in &mut self.seen {
            seen.times = seen.times.min(limits::SAME_RESULT_MAX - 1);
        }
    }
}

/// Names a call: its tool and all of its input.
#[must_use]
pub fn call_hash(tool: &str, input: &Value) -> u64 {
    hash(tool, input)
}

/// Names what came of a call.
#[must_use]
pub fn result_hash(status: &str, result: &Value) -> u64 {
    hash(status, result)
}

fn hash(word: &str, value: &Value) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // Keys of an object are in order: the same value is the same text. Writing into a hash does not fail.
    let _written = write!(hash, "{word}\n{value}");
    // Records keep it as a number that everybody reads.
    hash.0 >> 1
}

/// FNV-1a. Stored, so it must never change; nobody gains anything from a collision but a refused call.
struct Fnv(u64);

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}
