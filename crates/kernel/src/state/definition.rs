//! The definition of an agent: who it is, how it is configured, and what the operator's settings allow it.

use crate::config::{AgentLimits, Config, Identity};

#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub identity: Identity,
    pub config: Config,
    /// The limits of the settings, such as rounds per turn.
    pub limits: AgentLimits,
}
