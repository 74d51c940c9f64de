//! Facts about messages.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{ExecId, MessageId, WaitId};
use crate::message::Message;
use crate::time::Time;
use crate::vocabulary::{RequeueReason, SafePoint};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageQueued {
    pub message: Arc<Message>,
}

/// Taken from its queue, to be reduced or to start a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageDequeued {
    pub message_id: MessageId,
    /// Times it was taken before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replays: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageProcessed {
    pub message_id: MessageId,
    /// Why no turn ran for it, where none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// Joined a running turn at a safe point; from here on it is part of the message that the turn is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageInterjected {
    pub message_id: MessageId,
    pub joined: MessageId,
    pub exec_id: ExecId,
    pub safe_point: SafePoint,
}

/// Keeps its place, but is no input until a wait is registered or ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageParked {
    pub message_id: MessageId,
    /// Some of the waits it stands behind.
    pub behind: Vec<WaitId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageRequeued {
    pub message_id: MessageId,
    pub reason: RequeueReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageAborted {
    pub message_id: MessageId,
    /// The runtime gave it up, and asks the operator; otherwise an operator aborted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
    pub evidence: Vec<String>,
    /// The operator's message that its turn had to answer, where that is another one: it ends with this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<MessageId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageDropped {
    pub message_id: MessageId,
    pub evidence: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(super) fn is_zero(n: &u32) -> bool {
    *n == 0
}
