//! The planes of an agent: what lists show.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{CatchUp, DeliveryMode};

/// Exactly one of `after_ms`, `at`, `every_ms` and `cron`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TimerCreate {
    #[schema(min_length = 1)]
    pub summary: String,
    #[serde(default, deserialize_with = "abide_views::strict::within_int64", skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    #[serde(default, deserialize_with = "abide_views::strict::within_int64", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 100)]
    pub every_ms: Option<u64>,
    /// Minute, hour, day of the month, month, day of the week: `0 9 * * mon-fri`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Whose clocks `cron` is read off: a name of the IANA database. UTC where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// What happens with occurrences that were missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUp>,
    /// A shell command, run where the agent works whenever the timer is due. 0 wakes the agent, with what it printed;
    /// any other exit code skips the occurrence. One that can't be run wakes it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Ended)]
pub struct EndConfirmation {
    pub ended: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerCreate {
    #[schema(min_length = 1)]
    pub name: String,
    /// enqueue_message, unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_mode: Option<DeliveryMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<String>,
    /// What deliveries must be signed with, as Standard Webhooks (`whsec_…`) or as GitHub do. It is never shown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 8, max_length = 512)]
    pub secret: Option<String>,
}

/// A delivery that is on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Received {
    /// queued; or, where the trigger only wakes, triggered, coalesced or ignored
    pub disposition: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    pub seq: u64,
    /// It had come before under its id, and changed nothing now.
    pub duplicate: bool,
}

/// One fact of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    pub seq: u64,
    pub at: String,
    pub agent_id: String,
    /// `domain.action`
    pub kind: String,
    pub data: Value,
    /// Its data was cut out of the ledger.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

/// A piece of what a model says, while it says it: the event `text.delta` of a stream. It has no id and is no fact. Some
/// may be missing where a reader is slow; the facts of the turn have all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TextDelta {
    /// In the stream of all agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    pub exec_id: String,
    pub round: u32,
    pub text: String,
}

impl TextDelta {
    /// The name of the event.
    pub const EVENT: &'static str = "text.delta";
}
