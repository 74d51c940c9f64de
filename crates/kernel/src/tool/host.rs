//! Calls that the engine's host answers, because they reach other agents.

use crate::id::AgentId;
use crate::vocabulary::{ChildWorkspace, SideEffect};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostCall {
    SendMessage(SendMessage),
    AgentGet(AgentGet),
    SpawnAgent(SpawnAgent),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendMessage {
    /// As the model wrote it: the host refuses it if it can't be a name.
    pub agent_id: String,
    pub text: String,
    pub correlation_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentGet {
    /// None: the caller itself.
    pub agent_id: Option<AgentId>,
}

/// Makes a named agent that belongs to nobody; a child is made by `RecordCall::SpawnChild`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnAgent {
    pub message: String,
    /// As the model wrote it: the host refuses it if it can't be a name.
    pub name: String,
    pub workspace_mode: Option<ChildWorkspace>,
    pub model: Option<String>,
    pub instructions: Option<String>,
}

impl HostCall {
    #[must_use]
    pub fn side_effect(&self) -> SideEffect {
        match self {
            HostCall::AgentGet(_) => SideEffect::ReadOnly,
            HostCall::SendMessage(_) | HostCall::SpawnAgent(_) => SideEffect::ExternalMutation,
        }
    }
}
