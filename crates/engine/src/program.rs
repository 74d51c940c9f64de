//! This program as a ledger knows it: the facts that it can read, and the rows that it makes of them.

use abide_kernel::AgentState;
use abide_kernel::fact::reader::{READER, READERS, reader_of};
use abide_kernel::read_rows;
use abide_ledger::{Program, Recorded, RowMaker, RowOp, StreamId};

use crate::fold;

/// The read rows of a stored fact, whichever kind its stream is of. The streams of the home and of keys have none.
#[must_use]
pub fn rows_of_stored(stream: &StreamId, recorded: &Recorded) -> Vec<RowOp> {
    fold::rows_of_stored::<AgentState>(stream, recorded).unwrap_or_default()
}

/// Every home is opened with it, so that it is upgraded, refused or rebuilt by the same rules.
pub const PROGRAM: Program = Program {
    version: env!("CARGO_PKG_VERSION"),
    reader: READER,
    readers: READERS,
    reader_of,
    rows: Some(RowMaker { fingerprint: read_rows::FINGERPRINT, rows_of: rows_of_stored }),
    on_damage: |damage| {
        tracing::error!(%damage, "a row of a list is damaged on disk; it is rebuilt from the facts if they can be read");
    },
};
