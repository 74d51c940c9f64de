//! The loop guard: calls that had the same result again and again while one message was worked on.
//!
//! The guard is stored with the message, so that a turn that is cut off and begun again does not begin to count again. Calls
//! and results are kept as hashes: they are compared, and never shown. Results are compared without ids and times: a call
//! that creates the same record again and again has the same result, whatever the id of the record.

use std::collections::VecDeque;
use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits;
use crate::open_json::{ToolInput, ToolOutput};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// The call that ended last comes last; the first gives way.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    seen: VecDeque<CallResult>,
    /// Calls that were not run because of this.
    #[serde(default)]
    refused: u32,
    /// Calls in a row that were cut off before they were complete.
    #[serde(default)]
    cut: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CallResult {
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
    pub fn repeats_of(&self, call: u64) -> u32 {
        self.seen.iter().find(|seen| seen.call == call).map_or(0, |seen| seen.times)
    }

    /// Calls that were not run because of it.
    #[must_use]
    pub fn refused_calls(&self) -> u32 {
        self.refused
    }

    /// Calls in a row that were cut off before they were complete.
    #[must_use]
    pub fn truncated_calls(&self) -> u32 {
        self.cut
    }

    /// A result that differs begins the count again.
    pub(super) fn record_result(&mut self, call: u64, result: u64) {
        self.cut = 0;
        let known = self.seen.iter().position(|seen| seen.call == call).and_then(|at| self.seen.remove(at));
        let times = known.filter(|seen| seen.result == result).map_or(1, |seen| seen.times.saturating_add(1));
        if self.seen.len() == limits::GUARDED_CALLS_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back(CallResult { call, result, times });
    }

    /// The call went on as a task, and the model has read how that ended: this was what it came to.
    pub(super) fn forget_call(&mut self, call: u64) {
        self.seen.retain(|seen| seen.call != call);
    }

    /// The input of a truncated call is unknown, so the call is not compared with others.
    pub(super) fn record_truncated(&mut self) {
        self.cut = self.cut.saturating_add(1);
    }

    pub(super) fn record_refused(&mut self) {
        self.refused = self.refused.saturating_add(1);
    }

    /// The message is taken up again, maybe much later: every call may be tried once more.
    pub(super) fn allow_one_more(&mut self) {
        self.cut = 0;
        for seen in &mut self.seen {
            seen.times = seen.times.min(limits::SAME_RESULT_MAX - 1);
        }
    }
}

/// Names a call: its tool and all of its input.
#[must_use]
pub fn call_hash(tool: &str, input: &ToolInput) -> u64 {
    hash(|text| write!(text, "{tool}\n{input}"))
}

/// Names what came of a call, without ids and times.
#[must_use]
pub fn result_hash(status: &str, result: &ToolOutput) -> u64 {
    hash(|text| {
        writeln!(text, "{status}")?;
        write_stable(text, result)
    })
}

/// Keys of an object are in order: the same value is the same text.
fn hash(write: impl FnOnce(&mut Fnv) -> fmt::Result) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // Writing into a hash does not fail.
    let _written = write(&mut hash);
    // Records keep it as a number that everybody reads.
    hash.0 >> 1
}

/// The value, with a mark in place of each id and time. That there is one is a difference, and which is not.
fn write_stable(text: &mut Fnv, value: &Value) -> fmt::Result {
    if let Some(members) = value.as_object() {
        return members.iter().try_for_each(|(name, member)| {
            write!(text, "{name:?}:")?;
            let passes = is_volatile(name) && (member.is_string() || member.is_number());
            if passes { writeln!(text, "{MARK}") } else { write_stable(text, member) }
        });
    }
    if let Some(elements) = value.as_array() {
        write!(text, "[{}]", elements.len())?;
        return elements.iter().try_for_each(|element| write_stable(text, element));
    }
    match value.as_str() {
        Some(said) => write_text(text, said),
        None => writeln!(text, "{value}"),
    }
}

const MARK: &str = "*";

/// Whether a member of this name says which thing it was, or when.
fn is_volatile(name: &str) -> bool {
    matches!(name, "id" | "seq" | "at") || ["_id", "_seq", "_at", "_ms"].iter().any(|end| name.ends_with(end))
}

/// A text, with a mark in place of each UUID and each time of a clock in it.
fn write_text(text: &mut Fnv, said: &str) -> fmt::Result {
    let bytes = said.as_bytes();
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        let in_word = at > 0 && bytes[at - 1].is_ascii_alphanumeric();
        let found = if in_word { None } else { match_uuid(&bytes[at..]).or_else(|| match_time(&bytes[at..])) };
        match found {
            Some(length) => {
                text.write_str(&said[from..at])?;
                text.write_str(MARK)?;
                at += length;
                from = at;
            }
            None => at += 1,
        }
    }
    writeln!(text, "{}", &said[from..])
}

/// How many bytes at the beginning fit a form: `d` is a digit, `x` a hexadecimal one, anything else itself.
fn match_form(bytes: &[u8], form: &str) -> Option<usize> {
    let all = bytes.len() >= form.len()
        && form.bytes().zip(bytes).all(|(form, byte)| match form {
            b'd' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit(),
            other => *byte == other,
        });
    all.then_some(form.len())
}

fn match_uuid(bytes: &[u8]) -> Option<usize> {
    match_form(bytes, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

/// `2026-01-31T12:00:00.123Z`, `2026-01-31 12:00`, `12:00:00`. A day alone is a content like any other.
fn match_time(bytes: &[u8]) -> Option<usize> {
    let day = match_form(bytes, "dddd-dd-ddTdd:dd").or_else(|| match_form(bytes, "dddd-dd-dd dd:dd"));
    let seconds = |at: usize| match_form(&bytes[at..], ":dd");
    let mut end = match day {
        Some(day) => day + seconds(day).unwrap_or(0),
        None => match_form(bytes, "dd:dd:dd")?,
    };
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if bytes.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    let zone = match bytes.get(end) {
        Some(b'Z') => 1,
        Some(b'+' | b'-') => {
            let rest = &bytes[end + 1..];
            match_form(rest, "dd:dd").or_else(|| match_form(rest, "dddd")).map_or(0, |length| length + 1)
        }
        Some(_) | None => 0,
    };
    Some(end + zone)
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
