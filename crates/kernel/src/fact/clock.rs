//! The clock was set back: which of the times that were recorded while it was ahead are no longer waited for.

use serde::{Deserialize, Serialize};

use crate::id::{ApprovalId, TimerId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::MovedReason;

/// The clock shows an earlier time than the fact before this one. From here on nothing that was recorded as a duration
/// lies further ahead of `to` than that duration: backoffs, holds, the pace, leave for a call. The facts after this one,
/// in the same commit, say it of each timer, recheck, deadline and message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockSetBack {
    /// The time of the fact before this one.
    pub from: Time,
    pub to: Time,
}

/// The timer fires next at another time than it was to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerRescheduled {
    pub timer_id: TimerId,
    pub from: Time,
    pub to: Time,
    pub reason: MovedReason,
    /// Occurrences that have fired may fire again: the clock was set back too far for the same ones to be meant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
}

/// The reminder of a blocker comes at another time than it was to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecheckMoved {
    pub work_item_id: WorkItemId,
    pub from: Time,
    pub to: Time,
    pub reason: MovedReason,
}

/// The question is decided by its default at another time than it was to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalDeadlineMoved {
    pub approval_id: ApprovalId,
    pub from: Time,
    pub to: Time,
    pub reason: MovedReason,
}
