//! The words of `abide wait`.

use clap::Subcommand;

use super::OfAgent;

#[derive(Debug, Subcommand)]
pub enum WaitCommand {
    /// All of them, newest last
    List(OfAgent),
    /// End one, as if nothing had been waited for
    Cancel {
        #[command(flatten)]
        of: OfAgent,
        /// The wait, or the end of its id
        wait: String,
    },
}
