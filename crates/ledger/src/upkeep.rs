//! Looking after a ledger: moving old facts into the archive, checking everything, cutting a payload out.

use std::sync::atomic::{AtomicU64, Ordering};

use abide_kernel::id::Seq;
use abide_kernel::time::Time;

use crate::error::{ArchiveError, CommitError, Damage, ReadError, RedactError};
use crate::stream::StreamId;
use crate::{Ledger, RowsOf};

/// How far some long work has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub what: &'static str,
    pub done: u64,
    pub total: u64,
}

pub type OnProgress<'a> = dyn FnMut(Progress) + 'a;

/// Which facts move into the archive: those that any of the two names. The default names none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchiveBounds {
    /// Facts from before this time, up to the first that is not.
    pub older_than: Option<Time>,
    /// The oldest facts, until the rest takes about this much.
    pub max_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchiveReport {
    pub segments: u64,
    pub facts: u64,
    /// Of the segments written.
    pub bytes: u64,
}

/// The counts and findings of `verify`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    pub streams: u64,
    pub facts: u64,
    pub segments: u64,
    pub blobs: u64,
    pub snapshots: u64,
    pub rows: u64,
    pub wakes: u64,
    /// Streams whose rows another version made: they are to be rebuilt, and were not compared.
    pub outdated_rows: u64,
    /// Cut out on purpose: no damage.
    pub redacted: Vec<(StreamId, Seq)>,
    pub damage: Vec<Damage>,
    /// Damage beyond what is listed.
    pub unlisted: u64,
}

/// A ruined ledger could name every fact; a person reads the first thousand.
const DAMAGE_LISTED: usize = 1000;

impl VerifyReport {
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.damage.is_empty()
    }

    pub(crate) fn found(&mut self, damage: Damage) {
        if self.damage.len() < DAMAGE_LISTED {
            self.damage.push(damage);
        } else {
            self.unlisted += 1;
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    pub streams: u64,
    pub facts: u64,
    /// Everything on disk: database, log, segments, blobs.
    pub bytes: u64,
    pub database_bytes: u64,
    pub blobs: u64,
    pub blob_bytes: u64,
    pub segments: u64,
    pub segment_bytes: u64,
    pub snapshots: u64,
    /// Streams whose rows another version made and that are yet to be rebuilt.
    pub outdated_rows: u64,
    /// Of these, streams whose rows can't be rebuilt because their facts can't be read.
    pub unreadable_rows: u64,
    /// Rows that were found damaged since this ledger was opened.
    pub damaged_rows: u64,
}

/// The result of rebuilding outdated rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RebuiltRows {
    /// Streams whose rows are today's now.
    pub streams: u64,
    /// Streams whose facts can't be read, and why: their rows are what another version left.
    pub unreadable: Vec<(StreamId, String)>,
}

impl Ledger {
    /// Moves old facts into compressed segments, which are ledger like everything else. In memory there is nothing to
    /// move.
    pub fn archive(&self, policy: ArchiveBounds, progress: &mut OnProgress<'_>) -> Result<ArchiveReport, ArchiveError> {
        match self {
            Ledger::Memory(_) => Ok(ArchiveReport::default()),
            Ledger::Sqlite(sqlite) => sqlite.archive(policy, progress),
        }
    }

    /// Checks everything against everything: chains, heads, segments, blobs, snapshots, wakes, and the read rows
    /// against what `rows_of` makes of the facts.
    pub fn verify(&self, rows_of: &RowsOf<'_>, progress: &mut OnProgress<'_>) -> VerifyReport {
        match self {
            Ledger::Memory(memory) => match memory.with_state(|state| state.verify(rows_of)) {
                Ok(report) => report,
                Err(error) => {
                    let damage = vec![Damage::Database { detail: error.to_string() }];
                    VerifyReport { damage, ..VerifyReport::default() }
                }
            },
            Ledger::Sqlite(sqlite) => sqlite.verify(rows_of, progress),
        }
    }

    /// Rebuilds the rows that another version made, stream by stream, until there are none or `stop` says so. Readers and
    /// writers go on meanwhile. The streams that were not reached stay marked, also when the process is killed.
    pub fn rebuild_outdated_rows(&self, stop: &dyn Fn() -> bool) -> Result<RebuiltRows, CommitError> {
        match self {
            Ledger::Memory(_) => Ok(RebuiltRows::default()),
            Ledger::Sqlite(sqlite) => sqlite.rebuild_outdated_rows(stop),
        }
    }

    /// Makes the read rows again from the facts, all of them and in one transaction.
    pub fn rebuild_rows(&self, rows_of: &RowsOf<'_>, progress: &mut OnProgress<'_>) -> Result<(), CommitError> {
        match self {
            Ledger::Memory(memory) => Ok(memory.with_state_mut(|state| state.rebuild_rows(rows_of))?),
            Ledger::Sqlite(sqlite) => sqlite.rebuild_rows(rows_of, progress),
        }
    }

    /// Cuts a fact's payload out, for good, from every stream that shares the fact; the chain still verifies. All
    /// snapshots go with it, because they may hold it too. Read rows may as well: rebuild them.
    pub fn redact(&self, stream: &StreamId, seq: Seq) -> Result<(), RedactError> {
        let done = match self {
            Ledger::Memory(memory) => match memory.with_state_mut(|state| state.redact(stream, seq)) {
                Ok(true) => Ok(()),
                Ok(false) => Err(RedactError::NoFact { stream: stream.clone(), seq }),
                Err(error) => Err(error.into()),
            },
            Ledger::Sqlite(sqlite) => sqlite.redact(stream, seq),
        };
        // Of one that failed, part may be done.
        self.redaction_count().fetch_add(1, Ordering::SeqCst);
        done
    }

    /// The number of redactions since this ledger was opened. A caller with a cache asks before it reads, and reads again
    /// when this has changed.
    #[must_use]
    pub fn redactions(&self) -> u64 {
        self.redaction_count().load(Ordering::SeqCst)
    }

    fn redaction_count(&self) -> &AtomicU64 {
        match self {
            Ledger::Memory(memory) => memory.redactions(),
            Ledger::Sqlite(sqlite) => sqlite.redactions(),
        }
    }

    pub fn stats(&self) -> Result<Stats, ReadError> {
        match self {
            Ledger::Memory(memory) => {
                let blobs = memory.blob_ids().len() as u64;
                memory.with_state(|state| Stats {
                    streams: state.stream_count() as u64,
                    facts: state.len(),
                    blobs,
                    snapshots: state.snapshots() as u64,
                    ..Stats::default()
                })
            }
            Ledger::Sqlite(sqlite) => sqlite.stats(),
        }
    }
}
