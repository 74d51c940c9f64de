//! This program as a ledger knows it: the facts that it can read, and the rows that it makes of them.

use abide_kernel::fact::reader::{READER, READERS, reader_of};
use abide_kernel::rows;
use abide_ledger::{Program, RowMaker};

use crate::core::rows_of_stored;

/// Every home is opened with it, so that it is upgraded, refused or rebuilt by the same rules.
pub const PROGRAM: Program = Program {
    version: env!("CARGO_PKG_VERSION"),
    reader: READER,
    readers: READERS,
    reader_of,
    rows: Some(RowMaker { fingerprint: rows::FINGERPRINT, rows_of: rows_of_stored }),
    on_damage: |damage| {
        tracing::error!(%damage, "a row of a list is damaged on disk; it is rebuilt from the facts if they can be read");
    },
};
