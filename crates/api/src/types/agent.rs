//! Agents: how one is made, changed, listed and seen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::hands::FolderHolder;
use super::planes::{Task, Timer, Trigger, Wait};
use super::work::Approval;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentCreate {
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")]
    pub id: String,
    /// `PROVIDER/MODEL`, for example `script/echo`; `default`, or left out: what the settings have, also when they change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// An absolute path, below the daemon's `workspace_roots` unless the token is an admin's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// In a folder of the system, too. Takes an admin's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    #[serde(default, deserialize_with = "super::object", skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Models that are tried, in this order, when the first fails; `["default"]`, or left out: those of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Vec<String>>,
    /// Variables that its commands get; they are no secrets, and shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Secrets, by name, that its commands find in variables of the same names. Takes an admin's token, as do the next
    /// three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<String>>,
    /// By `[USER@]HOST[:PORT]`, the secret that git answers with when that host asks for a password over https.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_credentials: Option<BTreeMap<String, String>>,
    /// Its commands may sign with the keys of the daemon's ssh agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_agent: Option<bool>,
    /// The host keys that ssh accepts, in the format of `known_hosts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_hosts: Option<String>,
    /// Its supervised children have the same, and theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_children: Option<bool>,
    /// False makes it stopped. It starts with its creation otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Orchestrator,
    Execution,
}

/// What is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentChange {
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<String>,
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub workspace: Option<String>,
    /// In a folder of the system, too. Takes an admin's token.
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub force: Option<bool>,
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub role: Option<Role>,
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub instructions: Option<String>,
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub network: Option<bool>,
    /// Replaces the whole budget; a limit that is left out is none.
    #[serde(default, deserialize_with = "super::said_object", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub budget: Option<Budget>,
    /// Replaces the whole list; an empty one is none.
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fallback: Option<Vec<String>>,
    /// Replaces all of its variables.
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub env: Option<BTreeMap<String, String>>,
    /// Replaces the whole list. Takes an admin's token, as do the next three.
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub secrets: Option<Vec<String>>,
    /// Replaces all of them.
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub git_credentials: Option<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ssh_agent: Option<bool>,
    /// An empty text takes them away.
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub known_hosts: Option<String>,
    #[serde(default, deserialize_with = "super::said", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub for_children: Option<bool>,
}

/// Hard limits on what an agent may use in all, and on one day.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    #[serde(default, deserialize_with = "super::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    #[serde(default, deserialize_with = "super::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    pub max_usd: Option<f64>,
    /// Time spent in turns.
    #[serde(default, deserialize_with = "super::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_wall_ms: Option<u64>,
    /// The same on one day, from midnight to midnight UTC.
    #[serde(default, deserialize_with = "super::object", skip_serializing_if = "Option::is_none")]
    pub daily: Option<Limits>,
}

/// Hard limits. One that is left out is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    #[serde(default, deserialize_with = "super::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    #[serde(default, deserialize_with = "super::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    pub max_usd: Option<f64>,
    /// Time spent in turns.
    #[serde(default, deserialize_with = "super::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_wall_ms: Option<u64>,
}

/// What was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Used {
    pub turns: u64,
    /// Time spent in turns.
    pub wall_ms: u64,
    pub usage: Usage,
}

/// An agent in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentItem {
    pub id: String,
    pub status: String,
    pub kind: String,
    pub role: String,
    pub model: String,
    pub created_at: String,
    pub seq: u64,
}

/// The one picture of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentSummary {
    pub identity: Identity,
    pub agent: AgentPart,
    pub scheduling_posture: String,
    pub decision: Decision,
    pub closure: Closure,
    pub continuation: Option<Continuation>,
    pub lifecycle: Lifecycle,
    pub model: ModelPart,
    pub execution: Execution,
    pub active_children: Vec<Task>,
    pub active_waiting_intents: Vec<Wait>,
    pub active_timers: Vec<Timer>,
    pub active_external_triggers: Vec<Trigger>,
    pub pending_approvals: Vec<Approval>,
    pub owed_results: Vec<Task>,
    /// The last fact that this picture holds.
    pub at_seq: u64,
    /// Says what to use instead of a spelling that will go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// When it is made: that `abide.toml` of its workspace is not used, why, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Identity {
    pub id: String,
    pub kind: String,
    pub role: String,
    pub visibility: String,
    pub ownership: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The agents that made it, nearest first: the policy judges its calls as theirs, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makers: Vec<String>,
    /// The folders of its makers that the policy's rules about paths begin at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rule_folders: Vec<RuleFolder>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RuleFolder {
    pub folder: String,
    /// Of a worktree: the folder of the user whose files it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentPart {
    pub status: String,
    pub pending: u64,
    pub parked: u64,
    pub turn_index: u64,
    pub current_run_id: Option<String>,
    pub current_work_item_id: Option<String>,
    pub current_turn_work_item_id: Option<String>,
    pub sleeping_until: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Decision {
    pub kind: String,
    pub reason: String,
    pub boundary: String,
    pub model_reentry: bool,
    pub liveness_only: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    pub ignored: Vec<String>,
    pub evidence: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Closure {
    pub outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_reason: Option<String>,
    pub runtime_posture: String,
    pub evidence: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Continuation {
    pub trigger_kind: String,
    pub class: String,
    pub model_reentry: bool,
    pub matched_waiting_reason: bool,
    pub evidence: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Lifecycle {
    pub accepts_messages: bool,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModelPart {
    pub name: String,
    /// It has none of its own: this is the one of the settings.
    #[serde(default)]
    pub default: bool,
    /// The model that answered last, where it was one that has to be paid.
    #[serde(default)]
    pub answered_by: Option<String>,
    /// Its last answer is cut: the model had written as much as it may.
    #[serde(default)]
    pub cut: bool,
    /// Models that are tried, in this order, when it fails.
    #[serde(default)]
    pub fallback: Vec<String>,
    /// The same of these.
    #[serde(default)]
    pub default_fallback: bool,
    /// Somebody knows what its model costs, or it costs nothing; else what it used adds nothing to the cost.
    #[serde(default)]
    pub priced: bool,
    /// The one that the running turn thinks with, or the next one.
    #[serde(default)]
    pub in_use: String,
    /// Its last failure, until it works again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    /// Models that failed lately, and until when they are left alone while another can be asked.
    #[serde(default)]
    pub rests: Vec<ModelRest>,
    /// Its own.
    pub usage: Usage,
    pub budget: Budget,
    /// Time that it spent in turns.
    pub wall_ms: u64,
    /// What counts on the day that ends at `today_until`, children included.
    pub today: Used,
    pub today_until: String,
    /// What its children used that are over.
    pub children: Used,
    /// What its children at work may use; it counts as used.
    pub granted: Limits,
}

/// A model that is left alone for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModelRest {
    pub model: String,
    /// The class of its error.
    pub error: String,
    pub until: String,
    /// How often it failed since it last answered.
    pub failures: u32,
}

/// A model that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Trouble {
    pub model: String,
    /// The class of its error.
    pub error: String,
    pub message: String,
    pub at: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    pub cost_usd: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Execution {
    pub workspace: Option<String>,
    /// Where commands run.
    pub cwd: Option<String>,
    /// direct or worktree
    pub mode: Option<String>,
    /// Of the worktree that it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Commands that run, or are about to.
    #[serde(default)]
    pub commands: u64,
    /// Where it writes, while it does.
    pub occupied: Option<String>,
    #[serde(default)]
    pub network: bool,
    pub sandbox: Option<SandboxPart>,
    /// What its worktrees, its own folder and the output of its tasks take on the disk; none where there is too much to
    /// look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// What its commands have besides the usual environment; none where that is nothing.
    #[serde(default)]
    pub credentials: Option<AgentCredentials>,
    /// Who keeps it from writing where it works, at this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<FolderHolder>,
}

/// Secrets are named here; no answer has a value of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentCredentials {
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub secrets: Vec<String>,
    #[serde(default)]
    pub git_credentials: BTreeMap<String, String>,
    #[serde(default)]
    pub ssh_agent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_hosts: Option<String>,
    #[serde(default)]
    pub for_children: bool,
    /// The secrets among them that are not set, and `ssh-agent` where there is none: commands start without.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// What keeps its commands where they belong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SandboxPart {
    /// auto, required or off
    pub mode: String,
    /// bubblewrap, landlock or none
    pub mechanism: String,
    pub enforced: Vec<String>,
    pub problems: Vec<String>,
    /// What bounds the number of a command's processes.
    #[serde(default)]
    pub processes: String,
    /// What bounds the memory of commands, and to how much.
    #[serde(default)]
    pub memory: String,
}

/// Why an agent does what it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    pub agent_id: String,
    pub at_seq: u64,
    pub status: String,
    pub scheduling_posture: String,
    pub decision: Decision,
    pub waiting_on: Vec<WaitingOn>,
    pub would_wake: Vec<String>,
    /// Where it works, what could not be done, what was cut off.
    #[serde(default)]
    pub notes: Vec<String>,
    pub sentence: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WaitingOn {
    pub what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    pub seq: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Abort {
    /// The execution to end; whichever runs where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_id: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Wake {
    #[schema(min_length = 1)]
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Woken {
    /// triggered, coalesced or ignored
    pub disposition: String,
    pub reason: String,
}

/// A message for an agent: `text` or `json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageCreate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PostKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Which sender of that kind it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<String>,
}

/// Kinds of messages that a caller may post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PostKind {
    OperatorPrompt,
    ChannelEvent,
    WebhookEvent,
    CallbackEvent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    Interject,
    Next,
    Normal,
    Background,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    pub message_id: String,
    /// The fact that holds it.
    pub seq: u64,
    /// What its sender should know: it was taken, but not all of it will be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Deleted {
    pub id: String,
    pub archived: bool,
}
