//! Turns that do not start because of something outside of the agent: the home's budget, the keys of its models, or a disk
//! without room.

use serde::{Deserialize, Serialize};

use crate::time::Time;
use crate::vocabulary::HoldCause;

/// No turn starts from here on. Messages stay queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnsHeld {
    pub cause: HoldCause,
    /// When turns start again by themselves: the cause may be gone by then, and is looked at again.
    pub until: Time,
    pub evidence: String,
}

/// Turns may start again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnsReleased {
    pub cause: HoldCause,
    pub evidence: String,
}

/// A command of the agent was ended to keep room on a disk. No turn starts before there is room, or before this time:
/// while the disk is short, the daemon says so again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskShort {
    pub until: Time,
    pub evidence: String,
}

/// There is room again, or nobody said for a while that there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskHasRoom {}
