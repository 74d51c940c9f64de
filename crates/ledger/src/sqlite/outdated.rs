//! Read rows that are to be rebuilt, because another version of the program made them or because one of them is damaged.
//!
//! When a ledger is opened by a program whose rows have another fingerprint, every stream is marked, and the fingerprint
//! becomes today's: both in one transaction. A mark goes in the transaction that replaces the stream's rows, so a rebuild
//! that was cut off goes on where it was. Until then a reader of that stream's rows gets them folded from the facts.
//!
//! A commit patches the rows of a marked stream like any others, but for damaged ones. They are replaced as a whole later;
//! only those of a stream whose facts can't be read stay, and are served as they are, again but for damaged ones.
//!
//! A damaged row marks its stream when a commit would have patched it, and when it is read.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use abide_kernel::id::Seq;
use rusqlite::OptionalExtension;

use super::Sqlite;
use super::fact::read_error;
use super::history::View;
use super::versions;
use super::writer::{Writer, commit_error};
use crate::error::{CommitError, ReadError};
use crate::program::RowMaker;
use crate::record::Bounds;
use crate::rows::RowTable;
use crate::stream::StreamId;
use crate::upkeep::RebuiltRows;

/// Facts that are folded at a time. The lists of one stream can be long; its facts are never all in memory.
const FACTS_AT_ONCE: usize = 1_000;
/// Streams and facts that are rebuilt in one transaction: many short streams share a sync, and no commit waits long.
const STREAMS_AT_ONCE: usize = 256;
const FACTS_PER_BATCH: u64 = 5_000;

/// Marks all streams if another version made their rows, and tries again the streams that failed before.
pub(crate) fn mark(writer: &mut Writer) -> Result<(), CommitError> {
    let marked = mark_all_if_outdated(writer)?;
    writer.status.may_be_outdated.store(marked, Ordering::Relaxed);
    Ok(())
}

/// Says whether any stream is marked.
fn mark_all_if_outdated(writer: &mut Writer) -> Result<bool, CommitError> {
    let Some(maker) = writer.program.rows else { return Ok(false) };
    let stored = versions::read(&writer.conn, versions::ROWS).optional().map_err(commit_error)?;
    let current = stored.is_some_and(|stored| stored.intact && stored.text == maker.fingerprint);
    let failed = "SELECT EXISTS (SELECT 1 FROM outdated_rows WHERE error IS NOT NULL)";
    let failed: bool = writer.conn.query_row(failed, [], |row| row.get(0)).map_err(commit_error)?;
    if current && !failed {
        return any_marked(&writer.conn);
    }
    writer.transaction(|writer| {
        let conn = &writer.conn;
        conn.execute("UPDATE outdated_rows SET error = NULL WHERE error IS NOT NULL", []).map_err(commit_error)?;
        if !current {
            let all = "INSERT OR IGNORE INTO outdated_rows (stream) SELECT id FROM streams";
            conn.execute(all, []).map_err(commit_error)?;
            versions::set(conn, versions::ROWS, 0, maker.fingerprint).map_err(commit_error)?;
        }
        any_marked(conn)
    })
}

fn any_marked(conn: &rusqlite::Connection) -> Result<bool, CommitError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM outdated_rows)";
    conn.query_row(sql, [], |row| row.get(0)).map_err(commit_error)
}

impl Writer {
    /// Has the rows of one stream rebuilt before they are read again. For the writer's open transaction.
    pub(crate) fn mark_rows_outdated(&self, stream: i64) -> Result<(), CommitError> {
        let sql = "INSERT OR IGNORE INTO outdated_rows (stream) VALUES (?)";
        self.conn.execute(sql, [stream]).map_err(commit_error)?;
        // Until the commit, readers look for the mark in vain, which costs them a moment.
        self.status.may_be_outdated.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// All rows are about to be made again: no stream is outdated any more. For the writer's open transaction.
pub(crate) fn clear(writer: &Writer) -> Result<(), CommitError> {
    writer.conn.execute("DELETE FROM outdated_rows", []).map_err(commit_error)?;
    versions::repair_versions(&writer.conn, &writer.program).map_err(commit_error)?;
    if let Some(maker) = writer.program.rows {
        versions::set(&writer.conn, versions::ROWS, 0, maker.fingerprint).map_err(commit_error)?;
    }
    Ok(())
}

/// The streams whose rows are not today's.
#[derive(Debug, Default)]
pub(crate) enum OutdatedStreams {
    /// The ledger was opened read-only. The next process that opens it to write will mark them.
    All,
    Some(HashSet<i64>),
    #[default]
    None,
}

impl OutdatedStreams {
    pub(crate) fn contains(&self, stream: i64) -> bool {
        match self {
            OutdatedStreams::All => true,
            OutdatedStreams::Some(marked) => marked.contains(&stream),
            OutdatedStreams::None => false,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct OutdatedCount {
    pub streams: u64,
    pub unreadable: u64,
}

/// How the rows of one stream stand.
enum RowsState {
    Current,
    Outdated,
    Unreadable,
}

/// Whether the stored rows of a stream can be served.
pub(crate) enum StoredRows {
    Current,
    /// They can't be rebuilt, or the program makes no rows. They may have no checksum.
    OfAnotherVersion,
    /// Not to be read: this is what the facts make of them.
    Folded(RowTable),
}

/// The rows of a stream as today's function makes them of its facts up to `seq`.
pub(crate) struct Folded {
    stream: StreamId,
    pub table: RowTable,
    seq: Seq,
    /// How many redactions there were before its facts were read.
    redactions: u64,
}

impl Sqlite {
    /// Whether the stored rows of a stream can be taken; if they are to be rebuilt, they are, as far as possible.
    pub(crate) fn stored_rows(&self, stream: &StreamId) -> Result<StoredRows, ReadError> {
        let Some(maker) = self.0.program.rows else { return Ok(StoredRows::OfAnotherVersion) };
        if !self.0.status.may_be_outdated.load(Ordering::Relaxed) {
            return Ok(StoredRows::Current);
        }
        match self.standing(stream, &maker)? {
            RowsState::Current => return Ok(StoredRows::Current),
            RowsState::Unreadable => return Ok(StoredRows::OfAnotherVersion),
            RowsState::Outdated => {}
        }
        match self.fold_rows(stream, &maker, &|| false) {
            Ok(None) => Ok(StoredRows::OfAnotherVersion),
            Ok(Some(folded)) => {
                let table = folded.table.clone();
                if self.writes() {
                    // That it could not be stored changes nothing for this reader; the background tries again.
                    let _ = self.replace_rows(vec![folded], &maker);
                }
                Ok(StoredRows::Folded(table))
            }
            Err(ReadError::Damaged(damage)) => {
                if self.writes() {
                    let _ = self.mark_unreadable(stream, &damage.to_string());
                }
                Ok(StoredRows::OfAnotherVersion)
            }
            Err(
                error @ (ReadError::NoBlob(_)
                | ReadError::CursorAhead { .. }
                | ReadError::Store { .. }
                | ReadError::Closed),
            ) => Err(error),
        }
    }

    pub(crate) fn rebuild_outdated_rows(&self, stop: &dyn Fn() -> bool) -> Result<RebuiltRows, CommitError> {
        let mut report = RebuiltRows::default();
        let Some(maker) = self.0.program.rows.filter(|_| self.writes()) else { return Ok(report) };
        let mut after = 0;
        while !stop() {
            let marked = self.view(|view| marked_after(view, after))?;
            let Some((last, _)) = marked.last() else { break };
            after = *last;
            let mut batch = Vec::new();
            let mut facts = 0;
            for (_, stream) in marked {
                match self.fold_rows(&stream, &maker, stop) {
                    Ok(None) => break,
                    Ok(Some(folded)) => {
                        facts += folded.seq;
                        batch.push(folded);
                    }
                    Err(ReadError::Damaged(damage)) => {
                        let error = damage.to_string();
                        self.mark_unreadable(&stream, &error)?;
                        report.unreadable.push((stream, error));
                    }
                    Err(
                        error @ (ReadError::NoBlob(_)
                        | ReadError::CursorAhead { .. }
                        | ReadError::Store { .. }
                        | ReadError::Closed),
                    ) => return Err(error.into()),
                }
                if facts >= FACTS_PER_BATCH {
                    report.streams += self.replace_rows(std::mem::take(&mut batch), &maker)?;
                    facts = 0;
                }
            }
            report.streams += self.replace_rows(batch, &maker)?;
        }
        Ok(report)
    }

    pub(crate) fn outdated_rows(&self, view: &View<'_>) -> Result<OutdatedCount, ReadError> {
        let count = |sql: &str| view.conn.query_row(sql, [], |row| row.get::<_, u64>(0)).map_err(read_error);
        let unreadable = count("SELECT count(*) FROM outdated_rows WHERE error IS NOT NULL")?;
        let streams = match self.another_version_made(view) {
            true => count("SELECT count(*) FROM streams")?,
            false => count("SELECT count(*) FROM outdated_rows")?,
        };
        Ok(OutdatedCount { streams, unreadable })
    }

    /// For a check that goes on over damage: a table that can't be read marks nothing.
    pub(crate) fn outdated_streams(&self, view: &View<'_>) -> OutdatedStreams {
        if self.another_version_made(view) {
            return OutdatedStreams::All;
        }
        let marked = || -> Result<HashSet<i64>, rusqlite::Error> {
            let mut statement = view.conn.prepare("SELECT stream FROM outdated_rows")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        marked().map_or(OutdatedStreams::None, OutdatedStreams::Some)
    }

    /// Only a ledger that is opened to be read can have another fingerprint than its program.
    fn another_version_made(&self, view: &View<'_>) -> bool {
        let stored = versions::read(view.conn, versions::ROWS).ok().filter(|stored| stored.intact);
        match (self.0.program.rows, stored) {
            (Some(maker), Some(stored)) => stored.text != maker.fingerprint,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    fn standing(&self, stream: &StreamId, maker: &RowMaker) -> Result<RowsState, ReadError> {
        self.view(|view| {
            if !self.writes() {
                let stored = versions::read(view.conn, versions::ROWS).map_err(read_error)?;
                if stored.text != maker.fingerprint {
                    return Ok(RowsState::Outdated);
                }
            }
            let sql = "SELECT o.error FROM outdated_rows o JOIN streams s ON s.id = o.stream WHERE s.name = ?";
            let mut statement = view.conn.prepare_cached(sql).map_err(read_error)?;
            let error = statement.query_row([stream.as_str()], |row| row.get::<_, Option<String>>(0));
            Ok(match error.optional().map_err(read_error)? {
                None => RowsState::Current,
                Some(None) => RowsState::Outdated,
                Some(Some(_)) => RowsState::Unreadable,
            })
        })
    }

    /// `None` when it was told to stop.
    pub(crate) fn fold_rows(
        &self,
        stream: &StreamId,
        maker: &RowMaker,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Folded>, ReadError> {
        let redactions = self.view(|view| redactions(view.conn).map_err(read_error))?;
        let (mut table, mut seq) = (RowTable::default(), 0);
        loop {
            if stop() {
                return Ok(None);
            }
            let facts = self.read(stream, seq, Bounds::items(FACTS_AT_ONCE))?;
            let Some(last) = facts.last() else { break };
            seq = last.seq;
            for fact in &facts {
                for op in (maker.rows_of)(stream, fact) {
                    table.apply(fact.seq, &op);
                }
            }
        }
        Ok(Some(Folded { stream: stream.clone(), table, seq, redactions }))
    }

    /// Puts folded rows in place of the stored ones, with what was committed since they were folded. Says of how many
    /// streams: one that is no longer marked is as good as new, and one is left marked if anything was redacted since.
    pub(crate) fn replace_rows(&self, batch: Vec<Folded>, maker: &RowMaker) -> Result<u64, CommitError> {
        if batch.is_empty() {
            return Ok(0);
        }
        let mut writer = self.borrow_writer()?;
        let (replaced, left) = writer.transaction(|writer| {
            let cut = redactions(&writer.conn).map_err(commit_error)?;
            let mut replaced = 0;
            for Folded { stream, mut table, seq, redactions } in batch {
                let Some(head) = writer.head(&stream)? else { continue };
                let unmark = "DELETE FROM outdated_rows WHERE stream = ?";
                if redactions != cut || writer.conn.execute(unmark, [head.id]).map_err(commit_error)? == 0 {
                    continue;
                }
                for fact in
                    View::new(&writer.conn, &writer.store)?.read(&stream, &head, seq, Bounds::items(usize::MAX))?
                {
                    for op in (maker.rows_of)(&stream, &fact) {
                        table.apply(fact.seq, &op);
                    }
                }
                writer.status.forget_damaged_rows(stream.as_str());
                writer.conn.execute("DELETE FROM rows WHERE stream = ?", [head.id]).map_err(commit_error)?;
                for (plane, id, seq, value) in table.iter() {
                    writer.set_row(head.id, plane, id, seq, value)?;
                }
                replaced += 1;
            }
            Ok::<_, CommitError>((replaced, any_marked(&writer.conn)?))
        })?;
        self.0.status.may_be_outdated.store(left, Ordering::Relaxed);
        Ok(replaced)
    }

    /// Has the rows of a stream replaced, because one of them is damaged.
    pub(crate) fn mark_damaged(&self, stream: &StreamId) -> Result<(), CommitError> {
        let mut writer = self.borrow_writer()?;
        writer.transaction(|writer| match writer.head(stream)? {
            Some(head) => writer.mark_rows_outdated(head.id),
            None => Ok(()),
        })
    }

    fn mark_unreadable(&self, stream: &StreamId, error: &str) -> Result<(), CommitError> {
        let mut writer = self.borrow_writer()?;
        writer.transaction(|writer| {
            let sql = "UPDATE outdated_rows SET error = ? WHERE stream = (SELECT id FROM streams WHERE name = ?)";
            writer.conn.execute(sql, (error, stream.as_str())).map(|_| ()).map_err(commit_error)
        })
    }
}

fn redactions(conn: &rusqlite::Connection) -> Result<u64, rusqlite::Error> {
    conn.prepare_cached("SELECT count(*) FROM redactions")?.query_row([], |row| row.get(0))
}

/// Marked streams in the order of their ids, but for those that failed.
fn marked_after(view: &View<'_>, after: i64) -> Result<Vec<(i64, StreamId)>, ReadError> {
    let sql = "SELECT s.id, s.name FROM outdated_rows o JOIN streams s ON s.id = o.stream
        WHERE o.stream > ? AND o.error IS NULL ORDER BY o.stream LIMIT ?";
    let mut statement = view.conn.prepare_cached(sql).map_err(read_error)?;
    let mut rows = statement.query((after, STREAMS_AT_ONCE)).map_err(read_error)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(read_error)? {
        found.push((row.get(0).map_err(read_error)?, super::stream_name(row, 1)?));
    }
    Ok(found)
}
