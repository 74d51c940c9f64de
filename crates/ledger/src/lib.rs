//! One append-only ledger of facts, in memory or on disk.
//!
//! To the ledger a fact is opaque: a kind and bytes. It promises that a commit, over as many streams as it touches, is
//! durable before it is acknowledged, whole or not at all, and refused when a stream is not where the caller saw it;
//! that what was written is read back or its damage named; and that everything else it keeps (read rows, snapshots)
//! can be made again from the facts.
//!
//! It never reads a clock to decide anything, never asks what a payload means (that it is JSON it uses, to keep it in
//! fewer bytes), and never drops a fact.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files as users do"))]

use std::collections::BTreeSet;
use std::path::Path;

use abide_kernel::id::Seq;
use abide_kernel::time::Time;

pub mod commit;
pub mod error;
mod follow;
mod hash;
mod memory;
#[cfg(feature = "planted")]
pub mod planted;
mod prepared;
mod program;
mod receipt;
mod record;
mod rows;
mod sqlite;
mod stream;
mod transfer;
mod upkeep;

pub use commit::{Append, Commit, Committed, ForkPoint, NewFact, RowOp, Wake};
pub use error::{ArchiveError, CommitError, Damage, ExportError, ImportError, OpenError, ReadError, RedactError};
pub use follow::Follow;
pub use hash::{BadHash, BlobId, Hash};
pub use memory::Memory;
pub use program::{OldestReader, Program, RowMaker, Upgraded};
pub use receipt::Receipt;
pub use record::{BadCursor, Bounds, Cursor, Head, Loaded, Payload, Recorded, Row, Snapshot};
pub use sqlite::Sqlite;
pub use stream::{BadStreamId, StreamId};
pub use transfer::Transferred;
pub use upkeep::{ArchiveBounds, ArchiveReport, OnProgress, Progress, RebuiltRows, Stats, VerifyReport};

/// A damaged snapshot falls back to the one before it; older ones serve nobody.
pub(crate) const SNAPSHOTS_KEPT: usize = 2;

/// The read rows that a fact means. For a fork it is asked about the shared facts too, under the fork's own name.
pub type RowsOf<'a> = dyn Fn(&StreamId, &Recorded) -> Vec<RowOp> + 'a;

/// A cheap handle to one ledger; clones share it. Closed: one more store is one more variant and nothing else.
#[derive(Debug, Clone)]
pub enum Ledger {
    Memory(Memory),
    Sqlite(Sqlite),
}

/// How to open a home.
#[derive(Debug, Clone)]
pub struct Options {
    pub mode: Mode,
    pub program: Program,
    /// Of a new database, in bytes. Tests that try every byte take small ones.
    #[doc(hidden)]
    pub page_size: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Creates the home if it does not exist, and upgrades one of an older version; one process at a time.
    ReadWrite,
    /// Beside a process that writes it; changes nothing, and refuses a home that has yet to be upgraded.
    ReadOnly,
}

impl Default for Options {
    fn default() -> Options {
        Options { mode: Mode::ReadWrite, program: Program::default(), page_size: 4096 }
    }
}

impl Options {
    #[must_use]
    pub fn read_only() -> Options {
        Options { mode: Mode::ReadOnly, ..Options::default() }
    }

    /// The same, for a program that says what it can read and how it makes rows.
    #[must_use]
    pub fn by(self, program: Program) -> Options {
        Options { program, ..self }
    }
}

impl Ledger {
    #[must_use]
    pub fn memory() -> Ledger {
        Ledger::Memory(Memory::new())
    }

    /// The ledger in a home: `ledger.db`, `archive/`, `blobs/`. Refuses a second writer, and names the first.
    pub fn open(home: &Path, options: Options) -> Result<Ledger, OpenError> {
        Sqlite::open(home, &options).map(Ledger::Sqlite)
    }

    /// The upgrade that opening this ledger meant, if it did.
    #[must_use]
    pub fn upgraded(&self) -> Option<Upgraded> {
        match self {
            Ledger::Memory(_) => None,
            Ledger::Sqlite(sqlite) => sqlite.upgraded(),
        }
    }

    /// The oldest reader that can read every fact in it.
    pub fn oldest_reader(&self) -> Result<OldestReader, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| state.oldest_reader()),
            Ledger::Sqlite(sqlite) => sqlite.oldest_reader(),
        }
    }

    /// Gives up a ledger that this handle made: when the last handle is dropped, nothing of it stays. One that was there
    /// before, or that holds a fact by then, stays as it is.
    pub fn discard_if_new(self) {
        match self {
            Ledger::Memory(memory) => drop(memory),
            Ledger::Sqlite(sqlite) => sqlite.discard_if_new(),
        }
    }

    /// Hands facts in. Blocks only while the queue is full or a large payload is written; the receipt resolves once
    /// everything is on disk, or was refused.
    pub fn commit(&self, commit: Commit) -> Receipt {
        match self {
            Ledger::Memory(memory) => memory.commit(commit),
            Ledger::Sqlite(sqlite) => sqlite.commit(commit),
        }
    }

    /// The last commit that the store could not write, until `try_write` finds that it can again. A commit that was
    /// refused for what it says is none.
    #[must_use]
    pub fn write_failure(&self) -> Option<CommitError> {
        match self {
            Ledger::Memory(_) => None,
            Ledger::Sqlite(sqlite) => sqlite.write_failure(),
        }
    }

    /// Finds out whether commits can be written, by writing about as much as a large one and taking it away again.
    pub fn try_write(&self) -> Result<(), CommitError> {
        match self {
            Ledger::Memory(_) => Ok(()),
            Ledger::Sqlite(sqlite) => sqlite.try_write(),
        }
    }

    pub fn head(&self, stream: &StreamId) -> Result<Option<Head>, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| state.head(stream)),
            Ledger::Sqlite(sqlite) => sqlite.head(stream),
        }
    }

    /// The parent of a forked stream, and the last fact that they share.
    pub fn origin(&self, stream: &StreamId) -> Result<Option<(StreamId, Seq)>, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| state.origin(stream)),
            Ledger::Sqlite(sqlite) => sqlite.origin(stream),
        }
    }

    /// Streams by name.
    pub fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<(StreamId, Head)>, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| state.streams(after, limit)),
            Ledger::Sqlite(sqlite) => sqlite.streams(after, limit),
        }
    }

    /// Facts of one stream in order, whether archived, its own, or shared with what it forks from.
    pub fn read(&self, stream: &StreamId, after: Seq, limit: usize) -> Result<Vec<Recorded>, ReadError> {
        self.read_within(stream, after, Bounds::items(limit))
    }

    /// The same within two bounds: a few facts may be large.
    pub fn read_within(&self, stream: &StreamId, after: Seq, bounds: Bounds) -> Result<Vec<Recorded>, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| state.read(stream, after, bounds)),
            Ledger::Sqlite(sqlite) => sqlite.read(stream, after, bounds),
        }
    }

    /// The newest intact snapshot with this fingerprint, if any, and the facts after it, as far as they fit into
    /// `Bounds::TAIL`. `None`: no such stream.
    pub fn load(&self, stream: &StreamId, fingerprint: &str) -> Result<Option<Loaded>, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| state.load(stream, fingerprint)),
            Ledger::Sqlite(sqlite) => sqlite.load(stream, fingerprint),
        }
    }

    /// Every fact of every stream after a cursor, in commit order. Only what is durable is ever seen.
    #[must_use]
    pub fn follow(&self, after: Cursor) -> Follow {
        Follow::new(self.clone(), after)
    }

    /// Just past the last durable fact.
    pub fn end(&self) -> Result<Cursor, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| Cursor(state.len())),
            Ledger::Sqlite(sqlite) => sqlite.cursor(),
        }
    }

    /// Read rows of one plane by id, as this program makes them: where another version made them, or one of them is
    /// damaged, they are made again first. Only of a stream whose facts are damaged are they what that version left (see
    /// `Stats::unreadable_rows`), and a damaged one is an error there.
    pub fn rows(
        &self,
        stream: &StreamId,
        plane: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Row>, ReadError> {
        let mut rows = Vec::new();
        if limit > 0 {
            self.visit_rows(stream, plane, after, &mut |row| {
                rows.push(row);
                rows.len() < limit
            })?;
        }
        Ok(rows)
    }

    /// The same rows one by one, until `visit` says false: only one of them is in memory at a time. `visit` must not
    /// read the ledger.
    pub fn visit_rows(
        &self,
        stream: &StreamId,
        plane: &str,
        after: Option<&str>,
        visit: &mut dyn FnMut(Row) -> bool,
    ) -> Result<(), ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| state.visit_rows(stream, plane, after, visit)),
            Ledger::Sqlite(sqlite) => sqlite.visit_rows(stream, plane, after, visit),
        }
    }

    /// The ids of all rows of a plane that agents have, whichever version of the program made them. None of them is made
    /// again for this, so a home of any size is read in a moment.
    pub fn row_ids(&self, plane: &str) -> Result<BTreeSet<String>, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| state.row_ids(plane)),
            Ledger::Sqlite(sqlite) => sqlite.row_ids(plane),
        }
    }

    /// How many rows were found damaged since this ledger was opened. They are folded anew when they are read.
    #[must_use]
    pub fn damaged_rows(&self) -> u64 {
        match self {
            Ledger::Memory(_) => 0,
            Ledger::Sqlite(sqlite) => sqlite.damaged_rows(),
        }
    }

    /// The wake index: what is due at once first, then by due time; within one due time, older streams first.
    /// With `due_by`, only what is due by then.
    pub fn wakes(&self, due_by: Option<Time>, limit: usize) -> Result<Vec<(StreamId, Wake)>, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| state.wakes(due_by, limit)),
            Ledger::Sqlite(sqlite) => sqlite.wakes(due_by, limit),
        }
    }

    /// The streams whose entry in the wake index has this reason, by due time.
    pub fn wakes_because(&self, why: &str) -> Result<Vec<StreamId>, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| state.wakes_because(why)),
            Ledger::Sqlite(sqlite) => sqlite.wakes_because(why),
        }
    }

    /// The streams that come due in a span of time, in that order: after `after`, up to and with `until`. Streams that are
    /// due at once are left out.
    pub fn due(&self, after: Time, until: Time, limit: usize) -> Result<Vec<(StreamId, Time)>, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| state.due(after, until, limit)),
            Ledger::Sqlite(sqlite) => sqlite.due(after, until, limit),
        }
    }

    /// Streams that wait for a time and whose last fact is later than `now`: it was recorded while the clock was ahead, and
    /// so, perhaps, was what they wait for. A last fact that was archived is not looked at.
    pub fn waits_recorded_after(&self, now: Time) -> Result<Vec<StreamId>, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.with_state(|state| state.waits_recorded_after(now)),
            Ledger::Sqlite(sqlite) => sqlite.waits_recorded_after(now),
        }
    }

    /// Durable when it returns. The same bytes are kept once.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<BlobId, CommitError> {
        match self {
            Ledger::Memory(memory) => Ok(memory.put_blob(bytes)),
            Ledger::Sqlite(sqlite) => sqlite.put_blob(bytes),
        }
    }

    /// Every blob there is, large payloads included, by name.
    pub fn blob_ids(&self) -> Result<Vec<BlobId>, ReadError> {
        match self {
            Ledger::Memory(memory) => Ok(memory.blob_ids()),
            Ledger::Sqlite(sqlite) => sqlite.blob_ids(),
        }
    }

    /// The bytes, checked against their name.
    pub fn get_blob(&self, id: &BlobId) -> Result<Vec<u8>, ReadError> {
        match self {
            Ledger::Memory(memory) => memory.get_blob(id),
            Ledger::Sqlite(sqlite) => sqlite.get_blob(id),
        }
    }
}
