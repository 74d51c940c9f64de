//! Going through segments and table from the first fact to the last, past what can't be read.

use rusqlite::Row;

use super::{Progress, REPORT_EVERY, Verification, as_damage};
use crate::error::{Damage, ReadError};
use crate::sqlite::fact::{RawFact, read_error};
use crate::sqlite::history::FACT_BY_ID;
use crate::sqlite::segment::{SegmentRow, Segments, StreamRange};

impl Verification<'_, '_> {
    pub(super) fn log(&mut self) -> Result<(), ReadError> {
        let end = self.view.end()?;
        let mut next = 1;
        for row in Segments::rows(self.view.conn)? {
            self.report.segments += 1;
            if row.first != next || row.last < row.first {
                let what = format!("it holds facts {} to {}, where {next} comes next", row.first, row.last);
                self.report.found(Damage::Segment { file: row.file.clone(), what });
            }
            self.segment(&row, end);
            next = row.last.saturating_add(1);
        }
        self.table(next, end);
        Ok(())
    }

    fn segment(&mut self, row: &SegmentRow, end: u64) {
        let segment = match self.view.store.segments.segment(row) {
            Ok(segment) => segment,
            Err(error) => {
                self.report.found(as_damage(error));
                return self.gap(row.first, row.last);
            }
        };
        let mut edges = std::collections::BTreeMap::new();
        let mut whole = true;
        for block in &segment.index.blocks {
            match segment.decode(block) {
                Ok(facts) => {
                    for fact in facts {
                        let here = (fact.seq, fact.hash);
                        let edge = StreamRange { first: here, last: here };
                        edges.entry(fact.stream).and_modify(|edge: &mut StreamRange| edge.last = here).or_insert(edge);
                        self.report_progress(fact.id, end);
                        self.fact(fact);
                    }
                }
                Err(error) => {
                    whole = false;
                    self.report.found(as_damage(error));
                    self.gap(block.first, block.first + u64::from(block.count) - 1);
                }
            }
        }
        if whole && edges != segment.index.streams {
            let what = "its index names other first and last facts than it holds".to_owned();
            self.report.found(Damage::Segment { file: row.file.clone(), what });
        }
    }

    /// Facts in the table from rowid `next` to `end`.
    fn table(&mut self, mut next: u64, end: u64) {
        while next <= end {
            let Err((at, error)) = self.table_until_error(&mut next, end) else { return };
            // One page is lost, or one row. What comes behind it is found by asking for later and later rowids.
            let mut step = 1;
            let mut resume = at + step;
            while resume <= end && !self.readable(resume) {
                step *= 2;
                resume = at.saturating_add(step);
            }
            // The doubling went too far: back to the first that can be read.
            while resume > at + 1 && self.readable(resume - 1) {
                resume -= 1;
            }
            let resume = resume.min(end + 1);
            let detail = format!("facts number {at} to {} can't be read: {error}", resume - 1);
            self.report.found(Damage::Database { detail });
            self.gap(at, resume - 1);
            next = resume;
        }
    }

    fn table_until_error(&mut self, next: &mut u64, end: u64) -> Result<(), (u64, String)> {
        let conn = self.view.conn;
        let sql = "SELECT id, stream, seq, link, payload FROM facts WHERE id >= ? ORDER BY id";
        let failed = |at: u64, error: rusqlite::Error| (at, error.to_string());
        let mut statement = conn.prepare_cached(sql).map_err(|error| failed(*next, error))?;
        let mut rows = statement.query([*next]).map_err(|error| failed(*next, error))?;
        while let Some(row) = rows.next().map_err(|error| failed(*next, error))? {
            let id: u64 = row.get(0).map_err(|error| failed(*next, error))?;
            if id != *next {
                if id < *next || id > end {
                    return Err((*next, format!("number {id} comes out of order")));
                }
                self.report
                    .found(Damage::Database { detail: format!("facts number {next} to {} are missing", id - 1) });
                self.gap(*next, id - 1);
                *next = id;
            }
            match RawFact::from_row(row) {
                Ok(fact) => self.fact(fact),
                Err(error) => self.unreadable_row(row, id, &error),
            }
            self.report_progress(id, end);
            *next = id + 1;
        }
        if *next <= end {
            return Err((*next, "the table ends before".to_owned()));
        }
        Ok(())
    }

    /// The row is there but not what a fact is made of. Its stream and sequence may still be told.
    fn unreadable_row(&mut self, row: &Row<'_>, id: u64, error: &rusqlite::Error) {
        let stream = row.get::<_, i64>(1).ok().and_then(|stream| self.lineages.name(stream).ok().cloned());
        self.report.found(match (stream, row.get(2)) {
            (Some(stream), Ok(seq)) => Damage::Fact { stream, seq, what: error.to_string() },
            (_, _) => Damage::Database { detail: format!("fact number {id}: {error}") },
        });
        self.gap(id, id);
    }

    fn readable(&self, id: u64) -> bool {
        let conn = self.view.conn;
        let found = conn.prepare_cached(FACT_BY_ID).and_then(|mut one| one.query_row([id], RawFact::from_row));
        found.map_err(read_error).is_ok()
    }

    /// Streams with facts in the gap go on behind it; what their rows ought to be is no longer known.
    fn gap(&mut self, first: u64, last: u64) {
        self.gaps.push((first, last));
        for chain in self.chains.values_mut() {
            chain.rows_known = false;
        }
        let unseen: Vec<i64> =
            self.lineages.iter().map(|(id, _)| id).filter(|id| !self.chains.contains_key(id)).collect();
        for stream in unseen {
            if self.lineages.get(stream).is_some_and(|stream| stream.born <= last) {
                self.chains.insert(stream, super::Chain::new(false));
            }
        }
    }

    fn report_progress(&mut self, id: u64, end: u64) {
        if id.is_multiple_of(REPORT_EVERY) || id == end {
            (self.progress)(Progress { what: "checking facts", done: id, total: end });
        }
    }
}
