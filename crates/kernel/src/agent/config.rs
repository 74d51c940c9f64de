//! Who an agent is, and what its operator set.

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use crate::id::{AgentId, TaskId};
use crate::vocabulary::{AgentKind, Ownership, Role, Visibility};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    pub id: AgentId,
    pub kind: AgentKind,
    pub role: Role,
    pub visibility: Visibility,
    pub ownership: Ownership,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// Whose task a child carries out. None for an agent that belongs to its operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<Supervisor>,
}

/// Who set a child to work, and on what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Supervisor {
    pub agent_id: AgentId,
    /// The supervisor's task that this child is.
    pub task_id: TaskId,
    /// The agent at the top, which belongs to an operator.
    pub top: AgentId,
    /// How far below it: its own children are at 1.
    pub depth: u32,
}

impl Identity {
    /// A named agent that belongs to its operator.
    #[must_use]
    pub fn named(id: AgentId) -> Identity {
        Identity {
            id,
            kind: AgentKind::Named,
            role: Role::Orchestrator,
            visibility: Visibility::Public,
            ownership: Ownership::SelfOwned,
            parent: None,
            supervisor: None,
        }
    }

    /// The agent at the top of the tree that this one is in: whoever shares it works for the same operator's agent.
    #[must_use]
    pub fn top(&self) -> &AgentId {
        self.supervisor.as_ref().map_or(&self.id, |supervisor| &supervisor.top)
    }

    #[must_use]
    pub fn depth(&self) -> u32 {
        self.supervisor.as_ref().map_or(0, |supervisor| supervisor.depth)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    #[serde(default)]
    pub budget: Budget,
}

/// What an operator changes. What is left out stays as it is, also when somebody else changes it at the same moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigChange {
    pub model: Option<String>,
    pub workspace: Option<String>,
    /// `Some(None)` takes them away.
    pub instructions: Option<Option<String>>,
    pub network: Option<bool>,
    pub budget: Option<Budget>,
    pub role: Option<Role>,
}

impl Config {
    #[must_use]
    pub fn with(&self, change: ConfigChange) -> Config {
        Config {
            model: change.model.unwrap_or_else(|| self.model.clone()),
            workspace: change.workspace.or_else(|| self.workspace.clone()),
            instructions: change.instructions.unwrap_or_else(|| self.instructions.clone()),
            network: change.network.unwrap_or(self.network),
            budget: change.budget.unwrap_or_else(|| self.budget.clone()),
        }
    }
}
