//! Turns that do not start because of something outside of the agent: the home's budget, or the keys of its models.

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
