//! Errors of the ledger, each with the next step.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use abide_kernel::id::Seq;

use crate::hash::BlobId;
use crate::record::Cursor;
use crate::stream::StreamId;

#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    #[error(
        "{stream} is at {actual}, not at {expected}: read what was added since, decide again, and commit on top of it"
    )]
    Conflict { stream: StreamId, expected: Seq, actual: Seq },
    #[error("{parent} has no fact {seq} to fork from; its last is {last}")]
    NoForkPoint { parent: StreamId, seq: Seq, last: Seq },
    #[error("{stream} does not exist: append its first fact in the same commit or before")]
    NoStream { stream: StreamId },
    #[error("{stream}: {what}")]
    Malformed { stream: StreamId, what: &'static str },
    #[error("the disk is full ({detail}): nothing of this commit was kept; make room, then commit again")]
    StoreFull { detail: String },
    #[error("the store could not write ({detail}): nothing of this commit was kept; commit again once it can")]
    Store { detail: String },
    #[error("{0}: the commit that builds on it was refused; run `abide ledger verify` to see what else is damaged")]
    Damaged(Arc<Damage>),
    #[error("this ledger was opened to be read only: open the home without another holder to write")]
    ReadOnly,
    #[error("the ledger was closed before it answered: reopen it and read whether the commit is there")]
    Closed,
}

impl CommitError {
    /// A file that could not be written.
    pub(crate) fn of_file(path: &Path, error: &io::Error) -> CommitError {
        let detail = format!("{}: {error}", path.display());
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            CommitError::StoreFull { detail }
        } else {
            CommitError::Store { detail }
        }
    }

    /// The same refusal, with the path of the database that could not be written. SQLite does not name it.
    #[must_use]
    pub(crate) fn of_database(self, database: &Path) -> CommitError {
        match self {
            CommitError::StoreFull { detail } => CommitError::StoreFull { detail: with_path(detail, database) },
            CommitError::Store { detail } => CommitError::Store { detail: with_path(detail, database) },
            other @ (CommitError::Conflict { .. }
            | CommitError::NoForkPoint { .. }
            | CommitError::NoStream { .. }
            | CommitError::Malformed { .. }
            | CommitError::Damaged(_)
            | CommitError::ReadOnly
            | CommitError::Closed) => other,
        }
    }
}

/// Unless another file of the home is to blame, and is named already.
fn with_path(detail: String, database: &Path) -> String {
    let home = database.parent().unwrap_or(database).display().to_string();
    if detail.starts_with(&home) { detail } else { format!("{}: {detail}", database.display()) }
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    #[error("{0}; run `abide ledger verify` to see what else is damaged")]
    Damaged(Arc<Damage>),
    #[error("there is no blob {0}: it was never put here")]
    NoBlob(BlobId),
    #[error("cursor {cursor} is ahead of this ledger, which ends at {end}: follow from {end} or from the start")]
    CursorAhead { cursor: Cursor, end: Cursor },
    #[error("the store could not be read ({detail}): try again")]
    Store { detail: String },
    #[error("the ledger was closed: reopen it")]
    Closed,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{} is in use by process {pid}: stop it, or talk to it instead", home.display())]
    Held { home: PathBuf, pid: u32 },
    #[error("{} is in use by another process that has not said its pid yet: try again", home.display())]
    HeldByUnknown { home: PathBuf },
    #[error("{} holds no ledger: open it for writing to make one", home.display())]
    Missing { home: PathBuf },
    #[error(
        "{} has format {found}; this is abide {version}, which knows formats up to {known}: {}",
        file.display(),
        match wrote {
            Some(wrote) => format!("use abide {wrote} or later"),
            None => "use the version that wrote it, or a later one".to_owned(),
        }
    )]
    Newer { file: PathBuf, found: i64, known: i64, version: &'static str, wrote: Option<String> },
    #[error(
        "{} holds facts that this abide {version} can't read (they need reader {needs}, and it has reader {knows}): \
         use abide {wrote} or later",
        file.display()
    )]
    NewerFacts { file: PathBuf, needs: i64, knows: u32, version: &'static str, wrote: String },
    #[error(
        "{} has format {found}, and formats before {oldest} can't be upgraded: export it with the program that wrote it, \
         and import that",
        file.display()
    )]
    TooOld { file: PathBuf, found: i64, oldest: i64 },
    #[error(
        "{} has format {found}, from an older version of abide, and is upgraded to format {known} when it is opened to \
         be written: start the daemon with `abide up`",
        file.display()
    )]
    Outdated { file: PathBuf, found: i64, known: i64 },
    #[error(
        "{} could not be upgraded from format {from} to {to} ({detail}): it is as it was; make room or mend that, then \
         open it again",
        file.display()
    )]
    NotUpgraded { file: PathBuf, from: i64, to: i64, detail: String },
    #[error("{} is no ledger of ours, or its first page is damaged ({detail})", file.display())]
    NotALedger { file: PathBuf, detail: String },
    #[error("{} has {found} bytes, and says that it has {wanted}: its end is missing", file.display())]
    Short { file: PathBuf, found: u64, wanted: u64 },
    #[error("{} is empty, which no ledger ever is: bring its content back, or remove it to begin anew", file.display())]
    Empty { file: PathBuf },
    #[error("SQLite {found} can corrupt a write-ahead log: build with {needed} or later")]
    OldSqlite { found: &'static str, needed: &'static str },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} could not be opened ({detail})", file.display())]
    Store { file: PathBuf, detail: String },
}

/// One thing that is not as it was written. Each names where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("ledger.db: {detail}")]
    Database { detail: String },
    #[error("{stream} fact {seq}: {what}")]
    Fact { stream: StreamId, seq: Seq, what: String },
    #[error("{stream}: {what}")]
    Stream { stream: String, what: String },
    #[error("archive/{file}: {what}")]
    Segment { file: String, what: String },
    #[error("blobs/{id}: {what}")]
    Blob { id: BlobId, what: String },
    #[error("{stream} snapshot at {seq}: {what}")]
    Snapshot { stream: String, seq: Seq, what: String },
    #[error("{stream} row {plane}/{id}: {what}")]
    Row { stream: String, plane: String, id: String, what: String },
    #[error("{stream} wake: {what}")]
    Wake { stream: String, what: String },
    #[error("versions/{name}: {what}")]
    Version { name: String, what: String },
}

#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    #[error("{stream} has no fact {seq}")]
    NoFact { stream: StreamId, seq: Seq },
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("{0}")]
    Commit(#[from] CommitError),
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("{0}")]
    Commit(#[from] CommitError),
    #[error("{}: {source}; nothing was moved that is not safely in a segment", path.display())]
    Io { path: PathBuf, source: io::Error },
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("the export could not be written: {0}")]
    Io(#[from] io::Error),
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(
        "the export holds facts that this abide {version} can't read (they need reader {needs}, and it has reader \
         {knows}); nothing was imported: use abide {wrote} or later"
    )]
    NewerFacts { needs: u32, knows: u32, version: &'static str, wrote: String },
    #[error("line {line}, {field}: {what}; nothing was imported")]
    Line { line: usize, field: String, what: String },
    #[error("{stream} exists here already; nothing was imported: import into an empty home")]
    Exists { stream: StreamId },
    #[error("{0}; nothing was imported")]
    Commit(#[from] CommitError),
    #[error("{0}; nothing was imported")]
    Read(#[from] ReadError),
    #[error("the import could not be read: {0}; nothing was imported")]
    Io(#[from] io::Error),
}

impl ReadError {
    pub(crate) fn damaged(damage: Damage) -> ReadError {
        ReadError::Damaged(Arc::new(damage))
    }

    /// The same error, with the path of the database that could not be read.
    #[must_use]
    pub(crate) fn of_database(self, database: &Path) -> ReadError {
        match self {
            ReadError::Store { detail } => ReadError::Store { detail: with_path(detail, database) },
            other @ (ReadError::Damaged(_)
            | ReadError::NoBlob(_)
            | ReadError::CursorAhead { .. }
            | ReadError::Closed) => other,
        }
    }
}

/// A commit reads too (heads, fork points); what stops the reading stops the commit.
impl From<ReadError> for CommitError {
    fn from(error: ReadError) -> CommitError {
        match error {
            ReadError::Damaged(damage) => CommitError::Damaged(damage),
            ReadError::Store { detail } => CommitError::Store { detail },
            ReadError::Closed => CommitError::Closed,
            error @ (ReadError::NoBlob(_) | ReadError::CursorAhead { .. }) => {
                CommitError::Store { detail: error.to_string() }
            }
        }
    }
}
