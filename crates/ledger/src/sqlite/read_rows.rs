//! ReadMode the rows that lists show. A row that is not as it was written is never served: the rows of its stream are
//! folded from the facts, and the fold replaces the stored rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Sqlite;
use super::fact::read_error;
use super::outdated::StoredRows;
use super::row::{self, RowKey, WithoutChecksum};
use crate::error::{Damage, ReadError};
use crate::record::Row;
use crate::rows::RowTable;
use crate::stream::StreamId;

impl Sqlite {
    pub(crate) fn visit_rows(
        &self,
        stream: &StreamId,
        plane: &str,
        after: Option<&str>,
        visit: &mut dyn FnMut(Row) -> bool,
    ) -> Result<(), ReadError> {
        let without = match self.stored_rows(stream)? {
            StoredRows::Folded(table) => {
                table.visit(plane, after, visit);
                return Ok(());
            }
            StoredRows::Current => WithoutChecksum::Damaged,
            StoredRows::OfAnotherVersion => WithoutChecksum::Taken,
        };
        // The rows before a damaged one were visited, so the fold goes on after the last of them.
        let mut last = after.map(str::to_owned);
        let mut visit_intact = |row: Row| {
            last = Some(row.id.clone());
            visit(row)
        };
        match self.visit_stored_rows(stream, plane, after, without, &mut visit_intact) {
            Err(ReadError::Damaged(damage)) => {
                self.fold_damaged_rows(stream, &damage)?.visit(plane, last.as_deref(), visit);
                Ok(())
            }
            read => read,
        }
    }

    pub(crate) fn row_ids(&self, plane: &str) -> Result<BTreeSet<String>, ReadError> {
        self.view(|view| {
            // Agents first: the rows are in the order of streams, and most streams are keys, which have none.
            let sql = "SELECT DISTINCT rows.id FROM streams CROSS JOIN rows ON rows.stream = streams.id AND rows.plane = ?1 \
                       WHERE streams.name >= ?2 AND streams.name < ?3";
            let mut statement = view.conn.prepare_cached(sql).map_err(read_error)?;
            let [first, past] = StreamId::AGENTS;
            let ids = statement.query_map((plane, first, past), |row| row.get(0)).map_err(read_error)?;
            ids.collect::<rusqlite::Result<_>>().map_err(read_error)
        })
    }

    fn visit_stored_rows(
        &self,
        stream: &StreamId,
        plane: &str,
        after: Option<&str>,
        without: WithoutChecksum,
        visit: &mut dyn FnMut(Row) -> bool,
    ) -> Result<(), ReadError> {
        self.view(|view| {
            let Some(head) = view.head(stream)? else { return Ok(()) };
            // An id may be empty, so "after nothing" can't be "after the empty id".
            let sql = if after.is_some() {
                "SELECT id, seq, value, checksum FROM rows WHERE stream = ?1 AND plane = ?2 AND id > ?3 ORDER BY id"
            } else {
                "SELECT id, seq, value, checksum FROM rows WHERE stream = ?1 AND plane = ?2 AND ?3 = '' ORDER BY id"
            };
            let mut statement = view.conn.prepare_cached(sql).map_err(read_error)?;
            let mut rows = statement.query((head.id, plane, after.unwrap_or(""))).map_err(read_error)?;
            while let Some(row) = rows.next().map_err(read_error)? {
                let id: String = row.get(0).map_err(read_error)?;
                let key = RowKey { stream: head.id, plane, id: &id };
                let Some((seq, value)) = key.read(row, 1, without) else {
                    return Err(ReadError::damaged(row::damaged(stream.as_str(), plane, &id)));
                };
                if !visit(Row { id, seq, value }) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// The rows of a stream that has a damaged one. If they can't be folded, the error is the damage.
    fn fold_damaged_rows(&self, stream: &StreamId, damage: &Arc<Damage>) -> Result<RowTable, ReadError> {
        self.0.status.report_damaged_row(&self.0.program, stream.as_str(), damage);
        let damaged = || ReadError::Damaged(Arc::clone(damage));
        let maker = self.0.program.rows.ok_or_else(damaged)?;
        let folded = match self.fold_rows(stream, &maker, &|| false) {
            Ok(folded) => folded.ok_or_else(damaged)?,
            Err(ReadError::Damaged(_)) => return Err(damaged()),
            Err(
                error @ (ReadError::NoBlob(_)
                | ReadError::CursorAhead { .. }
                | ReadError::Store { .. }
                | ReadError::Closed),
            ) => return Err(error),
        };
        let table = folded.table.clone();
        if self.writes() {
            // A fold that could not be stored changes nothing for this reader; the next one folds it again.
            let _ = self.mark_damaged(stream).and_then(|()| self.replace_rows(vec![folded], &maker));
        }
        Ok(table)
    }
}
