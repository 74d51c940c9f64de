//! The planes of an agent: what lists show.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::agent::{Limits, Used};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Message {
    pub message_id: String,
    pub seq: u64,
    pub at: String,
    pub kind: String,
    pub origin: Origin,
    pub trust: String,
    pub priority: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_intent_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The agent caused it itself: turns about such messages are paced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub self_caused: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<String>,
    /// The length of the whole body, where `text` is only the beginning of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// `text` is the beginning of the body; the route of the message itself has all of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Origin {
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    pub task_id: String,
    pub kind: String,
    pub status: String,
    pub summary: String,
    pub command: Option<String>,
    pub work_item_id: Option<String>,
    pub child_agent_id: Option<String>,
    pub created_at: String,
    pub ended_at: Option<String>,
    pub exit_code: Option<i64>,
    pub signal: Option<i64>,
    pub output: Option<TaskOutput>,
    pub recovery: Option<String>,
    #[serde(default)]
    pub evidence: Vec<String>,
    /// What a child may use of its supervisor's budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<Limits>,
    /// What a child used that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Used>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskOutput {
    pub bytes: u64,
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Wait {
    pub waiting_intent_id: String,
    pub scope: String,
    pub kind: String,
    pub work_item_id: Option<String>,
    pub source: String,
    pub resource: Option<String>,
    pub delivery_mode: String,
    pub status: String,
    pub trigger_count: u64,
    pub reason: String,
    pub created_at: String,
    /// The fact that registered it.
    #[serde(default)]
    pub seq: u64,
    /// The message that is still unanswered because of it.
    pub answers: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Timer {
    pub timer_id: String,
    pub summary: String,
    pub next_fire_at: Option<String>,
    pub every_ms: Option<u64>,
    /// Five fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    pub status: String,
    /// Occurrences that became a message.
    pub fire_count: u64,
    /// Occurrences that did not: told with another, skipped, or held back by the check.
    pub missed_count: u64,
    pub last_fired_at: Option<String>,
    /// latest, none or all
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<String>,
    /// A command that says whether an occurrence is worth a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The occurrence whose check runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checking: Option<String>,
    /// model or person: what a model's timer causes is paced
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// The next five, where one timer is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upcoming: Vec<String>,
}

/// Exactly one of `after_ms`, `at`, `every_ms` and `cron`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TimerCreate {
    #[schema(min_length = 1)]
    pub summary: String,
    #[serde(default, deserialize_with = "super::within_int64", skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    #[serde(default, deserialize_with = "super::within_int64", skip_serializing_if = "Option::is_none")]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    Latest,
    None,
    All,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TimerCreated {
    pub timer_id: String,
    pub next_fire_at: Option<String>,
    /// The next five.
    pub upcoming: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ended {
    pub ended: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Trigger {
    pub trigger_id: String,
    pub name: String,
    pub delivery_mode: String,
    pub work_item_id: Option<String>,
    /// Where to post. Said once, when it is made; whoever knows it can use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether deliveries must be signed.
    #[serde(default)]
    pub signed: bool,
    pub status: String,
    #[serde(default)]
    pub delivery_count: u64,
    pub last_delivered_at: Option<String>,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryMode {
    EnqueueMessage,
    WakeHint,
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Brief {
    pub brief_id: String,
    /// ack, result or failure
    pub kind: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<String>,
    /// There is more that was not said: the model had written as much as it may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    pub at: String,
}

/// What was said and done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TranscriptEntry {
    pub seq: u64,
    pub at: String,
    /// input, assistant, tool_call, tool_result or note
    pub role: String,
    /// What kind of message an input is
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whose word an input is
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
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

/// A decision, and when it was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DecisionEntry {
    pub seq: u64,
    pub at: String,
    pub decision: super::agent::Decision,
}
