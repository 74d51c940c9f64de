//! The arguments of `abide ledger`.

use std::path::PathBuf;

use abide_engine::upkeep::OLDER_THAN_DAYS;
use abide_kernel::id::{AgentId, Seq};
use clap::{Args, Subcommand};

use super::seq;

#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Show sizes and counts
    Stats,
    /// Verify every chain, head, segment, blob and row; exits 1 and names the damage
    Verify {
        /// First rebuild the rows of lists from the facts
        #[arg(long)]
        rebuild_rows: bool,
    },
    /// Write one agent as a folder of records, or with --full the whole ledger as one file
    Export(ExportArgs),
    /// Import a file of `export --full`, all of it or nothing
    Import {
        /// The file
        file: PathBuf,
    },
    /// Rebuild the scheduler's projection from a folder of records, and compare it with its expected.json
    Replay {
        /// The folder
        dir: PathBuf,
    },
    /// Create a stopped agent with the history of another
    Fork {
        /// The agent to fork
        id: AgentId,
        /// The last fact they share, counted from 1
        #[arg(long, value_name = "SEQ", value_parser = seq, allow_negative_numbers = true)]
        at: Seq,
        /// The new agent's id
        #[arg(long = "as", value_name = "NEW")]
        name: AgentId,
    },
    /// Move old facts into compressed segments; no fact is deleted
    Compact {
        /// Move facts older than this many days
        #[arg(long, value_name = "DAYS", default_value_t = OLDER_THAN_DAYS)]
        older_than_days: u64,
        /// Move the oldest facts until the database holds at most this many bytes of them
        #[arg(long, value_name = "BYTES")]
        max_bytes: Option<u64>,
    },
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The agent
    #[arg(required_unless_present = "full", requires = "dir")]
    pub id: Option<AgentId>,
    /// The folder to write; it must not exist, or be empty
    pub dir: Option<PathBuf>,
    /// Write the whole ledger, losslessly, into this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "dir"])]
    pub full: Option<PathBuf>,
}
