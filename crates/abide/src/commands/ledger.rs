//! `abide ledger`: one file per command. Where a daemon serves the home they go through it, else they open the home
//! themselves.

mod compact;
mod export;
mod fork;
mod import;
mod replay;
mod stats;
mod verify;

use std::time::Duration;

use abide_kernel::id::AgentId;
use abide_ledger::{Ledger, Recorded, RowOp, StreamId};
use serde_json::Value;

use crate::cli::{LedgerCommand, PlaceArgs};
use crate::output::{Failed, Output, grouped};

/// What goes over the whole ledger takes as long as there is ledger.
const AS_LONG_AS_IT_TAKES: Duration = Duration::from_secs(24 * 3_600);

pub fn run(command: LedgerCommand, home: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        LedgerCommand::Stats => stats::run(home, out),
        LedgerCommand::Verify { rebuild_rows } => verify::run(rebuild_rows, home, out),
        LedgerCommand::Export(args) => export::run(&args, home, out),
        LedgerCommand::Import { file } => import::run(&file, home, out),
        LedgerCommand::Replay { dir } => replay::run(&dir, out),
        LedgerCommand::Fork { id, at, name } => fork::run(&id, at, &name, home, out),
        LedgerCommand::Compact { older_than_days, max_bytes } => compact::run(older_than_days, max_bytes, home, out),
    }
}

/// The read rows of a stored fact. One that does not decode has none; verification names it by other means.
fn rows_of(stream: &StreamId, recorded: &Recorded) -> Vec<RowOp> {
    match abide_engine::fold::decode(stream, recorded) {
        Ok(fact) => abide_engine::core::row_ops(recorded.seq, recorded.at, &fact),
        Err(_) => Vec::new(),
    }
}

/// That there is no such agent, and which there are.
fn no_agent(ledger: &Ledger, id: &AgentId) -> anyhow::Error {
    const NAMED: usize = 10;
    let (Ok(stats), Ok(first)) = (ledger.stats(), ledger.streams(None, NAMED)) else {
        return Failed::NotFound(format!("no agent is called {id}")).into();
    };
    let names: Vec<&str> = first.iter().filter_map(|(stream, _)| stream.agent_name()).collect();
    let known = match stats.streams.saturating_sub(first.len() as u64) {
        0 if names.is_empty() => "this ledger is empty".to_owned(),
        0 => format!("there are {}", names.join(", ")),
        more => format!("there are {} and {} more", names.join(", "), grouped(more)),
    };
    Failed::NotFound(format!("no agent is called {id}; {known}")).into()
}

/// A count in a report.
fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}
