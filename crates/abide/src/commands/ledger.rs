//! `abide ledger`: one file per command. A command goes through the daemon if one serves the home, else it opens the home
//! itself.

mod compact;
mod export;
mod fork;
mod import;
mod replay;
mod stats;
mod verify;

use std::time::Duration;

use abide_kernel::id::AgentId;
use abide_ledger::Ledger;

use crate::cli::{LedgerCommand, PlaceArgs};
use crate::output::{Failed, Output};

/// Timeout of requests that read the whole ledger, whose time depends on its size.
const WHOLE_LEDGER_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

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

/// The error for an agent that does not exist, with the names of existing ones.
fn no_agent(ledger: &Ledger, id: &AgentId) -> anyhow::Error {
    const NAMED: usize = 10;
    let Ok(first) = ledger.streams(None, NAMED + 1) else {
        return Failed::NotFound(format!("no agent is called {id}")).into();
    };
    // Streams that are no agents' come after all agents.
    let names: Vec<&str> = first.iter().filter_map(|(stream, _)| stream.agent_name()).collect();
    let known = match names.len() {
        0 => "this ledger is empty".to_owned(),
        count if count > NAMED => format!("there are {} and more", names[..NAMED].join(", ")),
        _ => format!("there are {}", names.join(", ")),
    };
    Failed::NotFound(format!("no agent is called {id}; {known}")).into()
}
