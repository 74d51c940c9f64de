//! The arguments of `abide up` and `abide daemon`.

use clap::{Args, Subcommand};

/// The options of the daemon; each overrides the environment and config.toml.
#[derive(Debug, Default, Args)]
pub struct UpArgs {
    /// The address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// The ledger's store: sqlite, in the home
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The default model of agents: PROVIDER/MODEL
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum DaemonCommand {
    /// Start the daemon, and return when it is ready
    Start(UpArgs),
    /// Stop the daemon; agents resume when it starts again
    Stop,
    /// Stop the daemon if it runs, and start it
    Restart(UpArgs),
    /// Show whether the daemon runs, and its address
    Status,
    /// Show the daemon's log
    Logs {
        /// Keep printing new lines
        #[arg(long, short)]
        follow: bool,
        /// Only the newest N lines
        #[arg(long, value_name = "N", default_value_t = 200)]
        last: usize,
    },
}
