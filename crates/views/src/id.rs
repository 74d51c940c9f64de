//! Names of things. One type per thing, so that a task's id can't be taken for a message's.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Time;

/// Counts the facts of one stream, from 1. Zero is "before the first".
pub type Seq = u64;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal $fresh:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name(Arc<str>);

            impl $name {
                /// Any text: ids of imported records are not ours to shape.
                pub fn new(text: impl AsRef<str>) -> Self {
                    Self(Arc::from(text.as_ref()))
                }

                #[must_use]
                pub fn as_str(&self) -> &str {
                    &self.0
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(&self.0)
                }
            }

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(&self.0)
                }
            }

            impl Borrow<str> for $name {
                fn borrow(&self) -> &str {
                    &self.0
                }
            }

            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(&self.0)
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    deserializer.deserialize_str(IdText).map(Self)
                }
            }
        )*

        impl Fresh {
            $(
                #[must_use]
                pub fn $fresh(&mut self) -> $name {
                    $name(self.next($prefix))
                }
            )*
        }
    };
}

ids! {
    /// One unit of ingress.
    MessageId "msg" message;
    /// One operational execution: a command, a supervised child.
    TaskId "task" task;
    /// One goal-oriented unit of ongoing work.
    WorkItemId "work" work_item;
    /// One recorded reason to wait.
    WaitId "wait" wait;
    TimerId "timer" timer;
    /// One external trigger (a capability URL).
    TriggerId "trig" trigger;
    ApprovalId "appr" approval;
    BriefId "brief" brief;
    TurnId "turn" turn;
    /// One execution of a turn: what the documents call a run.
    ExecId "exec" exec;
    /// One tool call inside a turn.
    CallId "call" call;
}

impl Default for TaskId {
    fn default() -> Self {
        TaskId::new("")
    }
}

struct IdText;

impl serde::de::Visitor<'_> for IdText {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(Arc::from(text))
    }
}

/// An agent's id is the name its operator gave it: `[a-z0-9][a-z0-9._-]{0,63}`. It also names the agent's stream.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} can't be an agent's id: it takes 1 to 64 of a-z, 0-9, '.', '_' and '-', and begins with a letter or digit"
)]
pub struct BadAgentId {
    name: String,
}

impl AgentId {
    pub fn new(name: &str) -> Result<AgentId, BadAgentId> {
        let head = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        let tail = |c: u8| head(c) || matches!(c, b'.' | b'_' | b'-');
        let bytes = name.as_bytes();
        let fits = bytes.len() <= 64 && bytes.first().is_some_and(|&c| head(c)) && bytes.iter().all(|&c| tail(c));
        if fits { Ok(AgentId(Arc::from(name))) } else { Err(BadAgentId { name: name.chars().take(80).collect() }) }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for AgentId {
    type Err = BadAgentId;

    fn from_str(name: &str) -> Result<AgentId, BadAgentId> {
        AgentId::new(name)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for AgentId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for AgentId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AgentId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_str(IdText)?;
        AgentId::new(&text).map_err(serde::de::Error::custom)
    }
}

/// Where new ids come from: entropy and a time that the caller drew, spent one id at a time.
///
/// Ids are UUIDv7 behind a typed prefix, so they sort by the time they were made, and those of one source that fall
/// into the same millisecond by a count.
#[derive(Debug, Clone)]
pub struct Fresh {
    at: Time,
    entropy: u64,
    spent: u32,
}

impl Fresh {
    #[must_use]
    pub fn new(at: Time, entropy: u64) -> Fresh {
        Fresh { at, entropy, spent: 0 }
    }

    /// Goes on with a later time and other entropy. Within the same millisecond the count goes on too: ids of two inputs
    /// would otherwise sort by chance.
    pub fn renew(&mut self, at: Time, entropy: u64) {
        let spent = if at == self.at { self.spent } else { 0 };
        *self = Fresh { at, entropy, spent };
    }

    fn next(&mut self, prefix: &str) -> Arc<str> {
        // 48 bits of time, 12 bits of count (so that ids of one millisecond sort in order), 62 bits of mixed entropy.
        let count = self.spent;
        self.spent += 1;
        let time = u64::try_from(self.at.as_ms().max(0)).unwrap_or(0) & 0xffff_ffff_ffff;
        let tail = mix(self.entropy ^ mix(u64::from(count)));
        let high = (time << 16) | 0x7000 | u64::from(count & 0x0fff);
        let low = 0x8000_0000_0000_0000 | (tail & 0x3fff_ffff_ffff_ffff);
        let text = format!(
            "{prefix}_{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        );
        Arc::from(text)
    }
}

/// SplitMix64's finaliser: spreads the entropy of one input over all the ids it makes.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
