//! Facts about waits, timers, wake hints and triggers.

use serde::{Deserialize, Serialize};

use crate::id::{ApprovalId, MessageId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::{CatchUp, Delivered, DeliveryMode, Maker, MissedReason, WaitKind, WaitSource};

/// The resource that a wait names. It is satisfied by that and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    Task(TaskId),
    Trigger(TriggerId),
    Correlation(String),
    Timer(TimerId),
    Approval(ApprovalId),
}

impl Resource {
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Resource::Task(id) => id.as_str(),
            Resource::Trigger(id) => id.as_str(),
            Resource::Correlation(id) => id,
            Resource::Timer(id) => id.as_str(),
            Resource::Approval(id) => id.as_str(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingIntentCreated {
    pub waiting_intent_id: WaitId,
    pub kind: WaitKind,
    /// The item that is held; without one, the wait is the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    pub source: WaitSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Resource>,
    pub delivery_mode: DeliveryMode,
    pub reason: String,
    /// The operator's message that is still unanswered because of this wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<MessageId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingIntentTriggered {
    pub waiting_intent_id: WaitId,
    pub trigger_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingIntentCancelled {
    pub waiting_intent_id: WaitId,
    pub evidence: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    Once {
        at: Time,
    },
    Every {
        every_ms: u64,
        from: Time,
    },
    /// Five fields, read off the clocks of a zone of the IANA database.
    Cron {
        cron: String,
        time_zone: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerCreated {
    pub timer_id: TimerId,
    pub summary: String,
    pub schedule: Schedule,
    pub next_fire_at: Time,
    pub catch_up: CatchUp,
    /// Set for a timer that exists only for a wait, and ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_intent_id: Option<WaitId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    /// A command that says whether an occurrence is worth a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Left out of older records; such a timer counts as a person's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<Maker>,
    /// How long from now it was to fire once, where that was said instead of a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

/// The check of the occurrence due at `due` is to be run; what it says decides what becomes of the occurrence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerCheckStarted {
    pub timer_id: TimerId,
    pub due: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_fire_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// The occurrence due at `due` was put into the queue as a tick.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerFired {
    pub timer_id: TimerId,
    pub due: Time,
    pub message_id: MessageId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_fire_at: Option<Time>,
    /// Ticks of this timer so far, with this one.
    #[serde(default)]
    pub fire_count: u64,
}

/// A run of occurrences that got no tick of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerMissed {
    pub timer_id: TimerId,
    pub count: u64,
    pub first: Time,
    pub last: Time,
    pub reason: MissedReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_fire_at: Option<Time>,
    /// Occurrences of this timer so far that got no tick, with these.
    #[serde(default)]
    pub missed_count: u64,
    /// The output of its check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerCompleted {
    pub timer_id: TimerId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerCancelled {
    pub timer_id: TimerId,
    pub evidence: Vec<String>,
}

macro_rules! hints {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The key that a repeated hint is told apart by: the wait or resource it names, else the sender's word.
            pub source: String,
            pub generation: u64,
            pub reason: String,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub resource: Option<String>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub body: Option<String>,
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub evidence: Vec<String>,
        }
    )*};
}

hints!(
    /// A liveness signal that will become a tick at once.
    WakeHintSubmitted,
    /// A liveness signal that joins what is already under way; its tick follows when the agent is idle.
    WakeHintCoalesced,
    /// A liveness signal that nobody will act on.
    WakeHintIgnored
);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerCreated {
    pub trigger_id: TriggerId,
    pub name: String,
    pub delivery_mode: DeliveryMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    /// Deliveries must be signed. The secret is not in the ledger.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
}

/// The trigger has another URL from here on; the one before opens nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerRotated {
    pub trigger_id: TriggerId,
    pub generation: u32,
    pub evidence: Vec<String>,
}

/// Something came in by a trigger, and was counted. What it said is in the message or the hint beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerDelivered {
    pub trigger_id: TriggerId,
    /// The id that its sender gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    pub disposition: Delivered,
}

/// The trigger has ended; how much came in by it is said once more, for the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerRevoked {
    pub trigger_id: TriggerId,
    pub evidence: Vec<String>,
    #[serde(default)]
    pub delivery_count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_delivered_at: Option<Time>,
}
