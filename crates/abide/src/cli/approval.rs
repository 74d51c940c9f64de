//! The arguments of `abide approval`.

use clap::{Args, Subcommand};

use super::{OfAgent, OfAgents};

#[derive(Debug, Subcommand)]
pub enum ApprovalCommand {
    /// List requests, newest last; without an agent, the open ones of all agents
    List(OfAgents),
    /// Grant a request
    Grant(OneApproval),
    /// Deny a request
    Deny(OneApproval),
}

#[derive(Debug, Args)]
pub struct OneApproval {
    #[command(flatten)]
    pub of: OfAgent,
    /// The approval, or the end of its id
    pub approval: String,
}
