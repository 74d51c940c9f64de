//! Read rows made again from the facts, and what a ledger takes up.

use super::Sqlite;
use super::fact::read_error;
use super::history::View;
use super::lineages::Lineages;
use super::segment::Segments;
use super::writer::commit_error;
use crate::RowsOf;
use crate::error::{CommitError, ReadError};
use crate::hash::Hash;
use crate::upkeep::{OnProgress, Progress, Stats};

/// Facts between two reports of progress.
const REPORT_EVERY: u64 = 10_000;

impl Sqlite {
    pub(crate) fn rebuild_rows(&self, rows_of: &RowsOf<'_>, progress: &mut OnProgress<'_>) -> Result<(), CommitError> {
        let mut writer = self.borrow_writer()?;
        writer.transaction(|writer| {
            writer.conn.execute("DELETE FROM rows", []).map_err(commit_error)?;
            super::outdated::clear(writer)?;
            let view = View::new(&writer.conn, &writer.store)?;
            let lineages = Lineages::load(&view)?;
            let end = view.end()?;
            let mut failed = None;
            view.scan(1, end, None, &mut |raw| {
                let id = raw.id;
                let rebuilt = (|| {
                    let prev = match raw.prev {
                        0 => Hash::NONE,
                        prev => view.fact(prev)?.map_or(Hash::NONE, |prev| prev.hash),
                    };
                    let (owner, stream) = (raw.stream, lineages.name(raw.stream)?);
                    let fact = writer.store.recorded(&writer.conn, stream, &prev, raw)?;
                    for heir in lineages.heirs(owner, fact.seq) {
                        for op in rows_of(lineages.name(heir)?, &fact) {
                            writer.patch_row(heir, fact.seq, &op)?;
                        }
                    }
                    Ok::<(), CommitError>(())
                })();
                if id.is_multiple_of(REPORT_EVERY) || id == end {
                    progress(Progress { what: "rebuilding rows", done: id, total: end });
                }
                failed = rebuilt.err();
                failed.is_none()
            })?;
            failed.map_or(Ok(()), Err)
        })?;
        // Rows that were made again may have lost what was cut out of a fact.
        writer.write_anew()
    }

    pub(crate) fn stats(&self) -> Result<Stats, ReadError> {
        let size = |path: std::path::PathBuf| std::fs::metadata(path).map_or(0, |found| found.len());
        let blobs = self.0.store.blobs.list().map_err(|error| ReadError::Store { detail: error.to_string() })?;
        let database = self.0.store.home.database();
        let database_bytes = size(database.clone()) + size(database.with_extension("db-wal"));
        self.view(|view| {
            let count = |sql: &str| view.conn.query_row(sql, [], |row| row.get::<_, u64>(0)).map_err(read_error);
            let segments = Segments::rows(view.conn)?;
            let segment_bytes = segments.iter().map(|row| size(self.0.store.segments.path(&row.file))).sum();
            let outdated = self.outdated_rows(view)?;
            let blob_bytes = blobs.iter().map(|(_, bytes)| bytes).sum();
            Ok(Stats {
                streams: count("SELECT count(*) FROM streams")?,
                // No rowid is skipped or used twice, so the last one counts them.
                facts: view.end()?,
                bytes: database_bytes + segment_bytes + blob_bytes,
                database_bytes,
                blobs: blobs.len() as u64,
                blob_bytes,
                segments: segments.len() as u64,
                segment_bytes,
                snapshots: count("SELECT count(*) FROM snapshots")?,
                outdated_rows: outdated.streams,
                unreadable_rows: outdated.unreadable,
                damaged_rows: self.damaged_rows(),
            })
        })
    }
}
