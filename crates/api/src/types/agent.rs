//! Agents: how one is made, changed, listed and seen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{BudgetView, Priority, Role};

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
    #[serde(default, deserialize_with = "abide_views::strict::object", skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetView>,
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

/// What is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentChange {
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<String>,
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub workspace: Option<String>,
    /// In a folder of the system, too. Takes an admin's token.
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub force: Option<bool>,
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub role: Option<Role>,
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub instructions: Option<String>,
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub network: Option<bool>,
    /// Replaces the whole budget; a limit that is left out is none.
    #[serde(default, deserialize_with = "super::present_object", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub budget: Option<BudgetView>,
    /// Replaces the whole list; an empty one is none.
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fallback: Option<Vec<String>>,
    /// Replaces all of its variables.
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub env: Option<BTreeMap<String, String>>,
    /// Replaces the whole list. Takes an admin's token, as do the next three.
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub secrets: Option<Vec<String>>,
    /// Replaces all of them.
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub git_credentials: Option<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ssh_agent: Option<bool>,
    /// An empty text takes them away.
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub known_hosts: Option<String>,
    #[serde(default, deserialize_with = "super::present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub for_children: Option<bool>,
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
