//! Moving old facts out of the table.
//!
//! Always the front of the log, whole: what is archived is a range of rowids from the first on, so pointers, marks and
//! cursors stay as they are. A segment is durable before its rows are deleted; a crash between leaves a file that
//! nothing names, which the next run writes again.

use abide_kernel::time::Time;

use super::Sqlite;
use super::fact::{Link, read_error};
use super::history::View;
use super::home::write_durably;
use super::segment::Encoder;
use super::writer::commit_error;
use crate::error::{ArchiveError, Damage, ReadError};
use crate::upkeep::{ArchiveBounds, ArchiveReport, OnProgress, Progress};

/// One file, compressed: small enough to hold in memory while it is made, large enough that a year is a few thousand.
const SEGMENT_BYTES: usize = 8 << 20;
/// The approximate size of a fact beyond its payload: hash, header and its share of the tree.
const FACT_OVERHEAD: u64 = 80;

impl Sqlite {
    pub(crate) fn archive(
        &self,
        policy: ArchiveBounds,
        progress: &mut OnProgress<'_>,
    ) -> Result<ArchiveReport, ArchiveError> {
        let (begin, cut) = self.view(|view| Ok((view.archived, view.cut(policy)?)))?;
        let mut report = ArchiveReport::default();
        let mut done = begin;
        while done < cut {
            let mut encoder = Encoder::new();
            let mut last = done;
            let mut failed = None;
            self.view(|view| {
                view.scan(done + 1, cut, None, &mut |fact| {
                    last = fact.id;
                    if let Err(error) = encoder.push(&fact) {
                        failed = Some(error);
                    }
                    failed.is_none() && encoder.len() < SEGMENT_BYTES
                })
            })?;
            let file = format!("{:016x}-{last:016x}.seg", done + 1);
            let path = self.0.store.segments.path(&file);
            let io = |source| ArchiveError::Io { path: path.clone(), source };
            if let Some(error) = failed {
                return Err(io(error));
            }
            let (bytes, digest) = encoder.finish().map_err(io)?;
            write_durably(&path, &bytes).map_err(io)?;
            let mut writer = self.borrow_writer()?;
            writer.transaction(|writer| {
                let row = (done + 1, last, &file, &digest.0[..]);
                let conn = &writer.conn;
                conn.execute("INSERT INTO segments (first, last, file, digest) VALUES (?, ?, ?, ?)", row)
                    .and_then(|_| conn.execute("DELETE FROM facts WHERE id BETWEEN ? AND ?", (done + 1, last)))
                    .map_err(commit_error)
            })?;
            report.segments += 1;
            report.facts += last - done;
            report.bytes += bytes.len() as u64;
            done = last;
            progress(Progress { what: "archiving facts", done: done - begin, total: cut - begin });
        }
        if report.segments > 0 {
            self.shrink()?;
        }
        Ok(report)
    }

    /// Gives the space back when a good part of the database is free pages.
    fn shrink(&self) -> Result<(), ArchiveError> {
        let writer = self.borrow_writer()?;
        let pages = |pragma: &str| writer.conn.query_row(pragma, [], |row| row.get::<_, u64>(0)).unwrap_or(0);
        if pages("PRAGMA freelist_count") * 4 > pages("PRAGMA page_count") {
            // Needs room for a copy. Without it the free pages stay and are used again: no harm.
            let _ = writer.conn.execute_batch("VACUUM");
        }
        writer.checkpoint("TRUNCATE");
        Ok(())
    }
}

impl View<'_> {
    /// The last rowid that the policy moves.
    fn cut(&self, policy: ArchiveBounds) -> Result<u64, ReadError> {
        let by_age = policy.older_than.map_or(Ok(self.archived), |limit| self.cut_by_age(limit))?;
        let by_size = policy.max_bytes.map_or(Ok(self.archived), |limit| self.cut_by_size(limit))?;
        Ok(by_age.max(by_size))
    }

    /// Up to the first fact that is young enough: rowids are in commit order, and so, nearly, are times.
    fn cut_by_age(&self, limit: Time) -> Result<u64, ReadError> {
        let mut statement = self.conn.prepare_cached("SELECT id, link FROM facts ORDER BY id").map_err(read_error)?;
        let mut rows = statement.query([]).map_err(read_error)?;
        while let Some(row) = rows.next().map_err(read_error)? {
            let id: u64 = row.get(0).map_err(read_error)?;
            let link: Vec<u8> = row.get(1).map_err(read_error)?;
            let link = Link::decode(&link).ok_or_else(|| {
                ReadError::damaged(Damage::Database { detail: format!("fact number {id} has no time") })
            })?;
            if link.at >= limit {
                return Ok(id - 1);
            }
        }
        self.end()
    }

    fn cut_by_size(&self, limit: u64) -> Result<u64, ReadError> {
        let sql = "SELECT id, length(payload) FROM facts ORDER BY id DESC";
        let mut statement = self.conn.prepare_cached(sql).map_err(read_error)?;
        let mut rows = statement.query([]).map_err(read_error)?;
        let mut kept = 0;
        while let Some(row) = rows.next().map_err(read_error)? {
            kept += row.get::<_, u64>(1).map_err(read_error)? + FACT_OVERHEAD;
            if kept > limit {
                return row.get(0).map_err(read_error);
            }
        }
        Ok(self.archived)
    }
}
