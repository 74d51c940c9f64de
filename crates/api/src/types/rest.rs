//! The ledger, tokens, and whether the daemon is well.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    pub status: String,
    pub version: String,
    pub agents_awake: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Reads.
    Observer,
    /// Reads, talks to agents and runs them.
    Operator,
    /// Everything, tokens included.
    Admin,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenCreate {
    #[schema(min_length = 1, max_length = 64)]
    pub name: String,
    pub scope: Scope,
}

/// The only time that the token itself is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenCreated {
    pub token_id: String,
    pub name: String,
    pub scope: Scope,
    pub token: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenItem {
    pub token_id: String,
    pub name: String,
    pub scope: Scope,
    pub created_at: String,
}

/// A value that does not show itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretSet {
    /// 8 bytes to 16 KiB of UTF-8, without NUL bytes.
    pub value: String,
}

impl std::fmt::Debug for SecretSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretSet")
    }
}

/// A secret without its value, which is never shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretItem {
    pub name: String,
    /// home, environment (of the daemon), or missing: given to agents, and not set
    pub source: String,
    /// The agents that were given it.
    pub agents: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    pub agent: String,
    pub at: u64,
    #[serde(rename = "as")]
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")]
    pub name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Compact {
    #[serde(default, deserialize_with = "abide_views::strict::within_int64", skip_serializing_if = "Option::is_none")]
    pub older_than_days: Option<u64>,
    #[serde(default, deserialize_with = "abide_views::strict::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Verify {
    #[serde(default)]
    pub rebuild_rows: bool,
}

/// An agent's records: the files of a fixture by their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Exported {
    pub files: BTreeMap<String, String>,
}
