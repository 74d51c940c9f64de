//! The words of the command line. Names here are a contract: add to them, do not rename.

use std::path::PathBuf;

use abide_kernel::id::{AgentId, Seq};
use clap::{Args, Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "abide",
    version,
    about = "A runtime for AI agents that stay",
    propagate_version = true,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(flatten)]
    pub home: HomeArgs,
    /// Print one JSON document on stdout, and nothing else there
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub struct HomeArgs {
    /// The folder that holds everything [default: $ABIDE_HOME, else $XDG_DATA_HOME/abide]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Look after the ledger: the one place where everything is
    #[command(subcommand, arg_required_else_help = true)]
    Ledger(LedgerCommand),
    /// The daemon in the foreground, with everything in the home
    Up(UpArgs),
    /// What an agent does or waits for, which facts say so, what would wake it
    Why(WhyArgs),
}

#[derive(Debug, Args)]
pub struct UpArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4173")]
    pub listen: std::net::SocketAddr,
    /// The model of agents that are created without one
    #[arg(long, value_name = "MODEL", default_value = "script/echo")]
    pub model: String,
}

#[derive(Debug, Args)]
pub struct WhyArgs {
    /// Explain the agent in this folder of records: an agent.json and ledger/*.jsonl
    #[arg(long, value_name = "DIR")]
    pub fixture: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// How much is in it
    Stats,
    /// Check every chain, head, segment, blob and row; exits 1 and names what is damaged
    Verify {
        /// First make the rows that lists read again, from the facts
        #[arg(long)]
        rebuild_rows: bool,
    },
    /// Write one agent as a folder of records, or with --full the whole ledger as one file
    Export(ExportArgs),
    /// Read a file that `export --full` wrote; all of it, or nothing
    Import {
        /// The file
        file: PathBuf,
    },
    /// Rebuild the scheduler's projection from a folder of records, and compare it with its expected.json
    Replay {
        /// The folder
        dir: PathBuf,
    },
    /// Make a new, stopped agent with the past of another
    Fork {
        /// The agent whose past it gets
        id: AgentId,
        /// The last fact they share, counted from 1
        #[arg(long, value_name = "SEQ", value_parser = seq, allow_negative_numbers = true)]
        at: Seq,
        /// The new agent's id
        #[arg(long = "as", value_name = "NEW")]
        name: AgentId,
    },
    /// Move old facts into compressed segments; nothing is dropped
    Compact {
        /// Facts older than this many days move
        #[arg(long, value_name = "DAYS", default_value_t = 30)]
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

fn seq(text: &str) -> Result<Seq, String> {
    text.parse().map_err(|_| "it takes a whole number, the seq of a fact".to_owned())
}
