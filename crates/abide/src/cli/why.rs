//! The arguments of `abide why`.

use std::path::PathBuf;

use abide_kernel::id::{AgentId, Seq};
use clap::Args;

use super::seq;

#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The agent [default: all agents, one line each]
    pub id: Option<AgentId>,
    /// The state right after this fact
    #[arg(long, value_name = "SEQ", requires = "id", value_parser = seq, allow_negative_numbers = true)]
    pub at: Option<Seq>,
    /// Also write its records to this folder, for replay
    #[arg(long, value_name = "DIR", requires = "id", conflicts_with = "at")]
    pub export: Option<PathBuf>,
    /// Explain the agent in this folder of records: an agent.json and ledger/*.jsonl
    #[arg(long, value_name = "DIR", conflicts_with_all = ["id", "at", "export"])]
    pub fixture: Option<PathBuf>,
}
