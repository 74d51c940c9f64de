//! Credentials that an operator gave the commands of an agent besides the usual environment. Secrets are named here and
//! nowhere held: a fact never has a value of one.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// Variables with their values. They are no secrets: every surface shows them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Secrets that its commands find in variables of the same names.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub secrets: BTreeSet<String>,
    /// By `[USER@]HOST[:PORT]`, the secret that git answers with when that host asks for a password over https.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub git_credentials: BTreeMap<String, String>,
    /// Its commands may sign with the keys of the daemon's ssh agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ssh_agent: bool,
    /// The host keys that ssh accepts, in the format of `known_hosts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_hosts: Option<String>,
    /// Its supervised children have the same, and theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_children: bool,
}

/// The changes that an operator makes to them. A part that is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CredentialsChange {
    pub env: Option<BTreeMap<String, String>>,
    pub secrets: Option<BTreeSet<String>>,
    pub git_credentials: Option<BTreeMap<String, String>>,
    pub ssh_agent: Option<bool>,
    /// `Some(None)` takes them away.
    pub known_hosts: Option<Option<String>>,
    pub for_children: Option<bool>,
}

impl Credentials {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Credentials::default()
    }

    #[must_use]
    pub fn with(&self, change: CredentialsChange) -> Credentials {
        Credentials {
            env: change.env.unwrap_or_else(|| self.env.clone()),
            secrets: change.secrets.unwrap_or_else(|| self.secrets.clone()),
            git_credentials: change.git_credentials.unwrap_or_else(|| self.git_credentials.clone()),
            ssh_agent: change.ssh_agent.unwrap_or(self.ssh_agent),
            known_hosts: change.known_hosts.unwrap_or_else(|| self.known_hosts.clone()),
            for_children: change.for_children.unwrap_or(self.for_children),
        }
    }

    /// The credentials that a supervised child is made with: all of them or none.
    #[must_use]
    pub fn of_child(&self) -> Credentials {
        if self.for_children { self.clone() } else { Credentials::default() }
    }

    /// Every secret that is named, once.
    #[must_use]
    pub fn secret_names(&self) -> BTreeSet<String> {
        self.secrets.iter().chain(self.git_credentials.values()).cloned().collect()
    }
}

impl CredentialsChange {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == CredentialsChange::default()
    }
}
