//! The words of `abide up` and `abide daemon`.

use clap::{Args, Subcommand};

/// What the daemon is started with; each of them outranks the environment and config.toml.
#[derive(Debug, Default, Args)]
pub struct UpArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Where the ledger is kept: sqlite, in the home
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// What agents think with unless they say otherwise: PROVIDER/MODEL
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum DaemonCommand {
    /// Start it; returns when it is ready
    Start(UpArgs),
    /// Stop it; agents go on where they were when it starts again
    Stop,
    /// Stop it if it runs, and start it
    Restart(UpArgs),
    /// Whether it runs, and where
    Status,
    /// What it wrote
    Logs {
        /// Go on as it writes more
        #[arg(long, short)]
        follow: bool,
        /// Only the newest so many lines
        #[arg(long, value_name = "N", default_value_t = 200)]
        last: usize,
    },
}
