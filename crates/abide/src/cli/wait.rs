//! The arguments of `abide wait`.

use clap::Subcommand;

use super::{OfAgent, OfAgents};

#[derive(Debug, Subcommand)]
pub enum WaitCommand {
    /// List waits, newest last; without an agent, the open ones of all agents
    List(OfAgents),
    /// Cancel a wait
    Cancel {
        #[command(flatten)]
        of: OfAgent,
        /// The wait, or the end of its id
        wait: String,
    },
}
