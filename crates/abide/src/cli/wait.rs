//! The words of `abide wait`.

use clap::Subcommand;

use super::{OfAgent, OfAgents};

#[derive(Debug, Subcommand)]
pub enum WaitCommand {
    /// All of them, newest last; where no agent is named, the open ones of all agents
    List(OfAgents),
    /// End one, as if nothing had been waited for
    Cancel {
        #[command(flatten)]
        of: OfAgent,
        /// The wait, or the end of its id
        wait: String,
    },
}
