//! `abide ledger`: one file per command.

mod compact;
mod export;
mod fork;
mod import;
mod replay;
mod stats;
mod verify;

use abide_ledger::{Recorded, RowOp, StreamId};

use crate::cli::{HomeArgs, LedgerCommand};
use crate::output::Output;

pub fn run(command: LedgerCommand, home: &HomeArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        LedgerCommand::Stats => stats::run(home, out),
        LedgerCommand::Verify => verify::run(home, out),
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
