//! The words of `abide approval`.

use clap::{Args, Subcommand};

use super::{OfAgent, OfAgents};

#[derive(Debug, Subcommand)]
pub enum ApprovalCommand {
    /// All of them, newest last; where no agent is named, the open ones of all agents
    List(OfAgents),
    /// Say yes
    Grant(OneApproval),
    /// Say no
    Deny(OneApproval),
}

#[derive(Debug, Args)]
pub struct OneApproval {
    #[command(flatten)]
    pub of: OfAgent,
    /// The approval, or the end of its id
    pub approval: String,
}
