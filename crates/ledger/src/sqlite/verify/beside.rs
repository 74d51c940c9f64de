//! Tables beside the log: heads, marks, rows, wakes, snapshots, redactions, blobs.

use abide_kernel::id::Seq;
use rusqlite::OptionalExtension;

use super::Verification;
use crate::error::{Damage, ReadError};
use crate::hash::Hash;
use crate::sqlite::fact::read_error;
use crate::sqlite::row::{self, RowKey, WithoutChecksum};
use crate::sqlite::upgrade_steps::FORMAT;
use crate::sqlite::versions;
use crate::sqlite::writer::{snapshot_digest, wake_digest};

impl Verification<'_, '_> {
    pub(super) fn blobs(&mut self) -> Result<(), ReadError> {
        let blobs = &self.view.store.blobs;
        let list = blobs.list().map_err(|error| ReadError::Store { detail: error.to_string() })?;
        for (id, _) in list {
            self.report.blobs += 1;
            match self.view.store.blobs.get(&id) {
                Ok(_) => {
                    self.whole.insert(id.0);
                }
                Err(error) => self.report.found(super::as_damage(error)),
            }
        }
        Ok(())
    }

    pub(super) fn load_redactions(&mut self) -> Result<(), ReadError> {
        let mut statement = self.view.conn.prepare("SELECT stream, seq FROM redactions").map_err(read_error)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(read_error)?;
        self.redactions = rows.collect::<Result<_, _>>().map_err(read_error)?;
        Ok(())
    }

    pub(super) fn leftover_redactions(&mut self) -> Result<(), ReadError> {
        for (stream, seq) in std::mem::take(&mut self.redactions) {
            let what = format!("fact {seq} was cut out, and is not");
            self.report.found(Damage::Stream { stream: self.called(stream), what });
        }
        Ok(())
    }

    pub(super) fn heads(&mut self) -> Result<(), ReadError> {
        let mut statement = self.view.conn.prepare("SELECT stream, seq, hash, fact FROM heads").map_err(read_error)?;
        let mut rows = statement.query([]).map_err(read_error)?;
        let mut seen = std::collections::HashSet::new();
        while let Some(row) = rows.next().map_err(read_error)? {
            let columns = || -> Result<(i64, Seq, Vec<u8>, u64), rusqlite::Error> {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            };
            let (stream, seq, hash, fact) = match columns() {
                Ok(columns) => columns,
                Err(error) => {
                    let stream = row.get::<_, i64>(0).map_or_else(|_| "a stream".to_owned(), |id| self.called(id));
                    self.report.found(Damage::Stream { stream, what: format!("its head: {error}") });
                    continue;
                }
            };
            seen.insert(stream);
            let Some(chain) = self.chains.get(&stream) else {
                let what = "it has a head but no facts".to_owned();
                self.report.found(Damage::Stream { stream: self.called(stream), what });
                continue;
            };
            let matches = chain.seq == seq && chain.hash.0[..] == hash[..] && chain.fact == fact;
            // A head in a gap can't be compared; the gap is named already.
            if !matches && !self.in_gap(fact) {
                let what = format!("its head is at fact {seq}, the last one found is {}", chain.seq);
                self.report.found(Damage::Stream { stream: self.called(stream), what });
            }
        }
        let missing: Vec<String> =
            self.lineages.iter().filter(|(id, _)| !seen.contains(id)).map(|(id, _)| self.called(id)).collect();
        for stream in missing {
            self.report.found(Damage::Stream { stream, what: "its head is missing".to_owned() });
        }
        Ok(())
    }

    pub(super) fn check_mark(&mut self, stream: i64, seq: Seq, fact: u64) {
        self.marks += 1;
        let sql = "SELECT fact FROM marks WHERE stream = ? AND seq = ?";
        let found = self
            .view
            .conn
            .prepare_cached(sql)
            .and_then(|mut one| one.query_row((stream, seq), |row| row.get::<_, u64>(0)).optional());
        match found {
            Ok(Some(found)) if found == fact => {}
            Ok(_) | Err(_) => {
                let what = format!("the mark at fact {seq} is wrong");
                self.report.found(Damage::Stream { stream: self.called(stream), what });
            }
        }
    }

    pub(super) fn marks(&mut self) -> Result<(), ReadError> {
        let marks: u64 =
            self.view.conn.query_row("SELECT count(*) FROM marks", [], |row| row.get(0)).map_err(read_error)?;
        if marks != self.marks && self.gaps.is_empty() {
            let detail = format!("there are {marks} marks for {} places", self.marks);
            self.report.found(Damage::Database { detail });
        }
        Ok(())
    }

    /// Compares only rows that today's function made: others are to be rebuilt, which is no damage.
    pub(super) fn rows(&mut self) -> Result<(), ReadError> {
        for (stream, chain) in &mut self.chains {
            if self.outdated.contains(*stream) {
                self.report.outdated_rows += 1;
                chain.rows_known = false;
            }
        }
        let sql = "SELECT stream, plane, id, seq, value, checksum FROM rows ORDER BY stream, plane, id";
        let mut statement = self.view.conn.prepare(sql).map_err(read_error)?;
        let mut rows = statement.query([]).map_err(read_error)?;
        while let Some(row) = rows.next().map_err(read_error)? {
            self.report.rows += 1;
            let columns =
                || -> Result<(i64, String, String), rusqlite::Error> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
            let (stream, plane, id) = columns().map_err(read_error)?;
            let is = RowKey { stream, plane: &plane, id: &id }.read(row, 3, WithoutChecksum::Damaged);
            let known = self.chains.get_mut(&stream).filter(|chain| chain.rows_known);
            let Some(chain) = known else {
                if self.lineages.get(stream).is_none() {
                    let what = "it belongs to no stream".to_owned();
                    self.report.found(Damage::Row { stream: self.called(stream), plane, id, what });
                }
                continue;
            };
            let ought = chain.rows.remove(&plane, &id);
            match is {
                None => self.report.found(row::damaged(&self.called(stream), &plane, &id)),
                is if ought.is_some() && is == ought => {}
                Some(_) => {
                    let what = "it is not what the facts make of it".to_owned();
                    self.report.found(Damage::Row { stream: self.called(stream), plane, id, what });
                }
            }
        }
        let mut missing = Vec::new();
        for (stream, chain) in self.chains.iter().filter(|(_, chain)| chain.rows_known) {
            for (plane, id, _, _) in chain.rows.iter() {
                let what = "it is missing".to_owned();
                missing.push(Damage::Row { stream: self.called(*stream), plane: plane.into(), id: id.into(), what });
            }
        }
        missing.into_iter().for_each(|damage| self.report.found(damage));
        Ok(())
    }

    pub(super) fn wakes(&mut self) -> Result<(), ReadError> {
        let mut statement = self.view.conn.prepare("SELECT stream, due, why, digest FROM wakes").map_err(read_error)?;
        let mut rows = statement.query([]).map_err(read_error)?;
        while let Some(row) = rows.next().map_err(read_error)? {
            self.report.wakes += 1;
            let columns = || -> Result<(Option<i64>, String, Vec<u8>), rusqlite::Error> {
                Ok((row.get(1)?, row.get(2)?, row.get(3)?))
            };
            let stream: i64 = row.get(0).map_err(read_error)?;
            let whole = columns().is_ok_and(|(due, why, digest)| wake_digest(stream, due, &why).0[..] == digest[..]);
            if !whole || self.lineages.get(stream).is_none() {
                let what = "it is not what was written".to_owned();
                self.report.found(Damage::Wake { stream: self.called(stream), what });
            }
        }
        Ok(())
    }

    pub(super) fn versions(&mut self) -> Result<(), ReadError> {
        for name in [versions::FORMAT, versions::OLDEST_READER, versions::ROWS] {
            let found = versions::read(self.view.conn, name);
            let damage = match found {
                Ok(version) if !version.intact => {
                    "it is not what was written: `abide ledger verify --rebuild-rows` writes it again".to_owned()
                }
                Ok(version) if name == versions::FORMAT && version.number != FORMAT => {
                    format!("it says {}, and the database has format {FORMAT}", version.number)
                }
                Ok(_) => continue,
                Err(error) => error.to_string(),
            };
            self.report.found(Damage::Version { name: name.to_owned(), what: damage });
        }
        Ok(())
    }

    pub(super) fn snapshots(&mut self) -> Result<(), ReadError> {
        let sql = "SELECT stream, seq, fingerprint, digest, state FROM snapshots";
        let mut statement = self.view.conn.prepare(sql).map_err(read_error)?;
        let mut rows = statement.query([]).map_err(read_error)?;
        while let Some(row) = rows.next().map_err(read_error)? {
            self.report.snapshots += 1;
            let columns = || -> Result<(String, Vec<u8>, Vec<u8>), rusqlite::Error> {
                Ok((row.get(2)?, row.get(3)?, row.get(4)?))
            };
            let (stream, seq): (i64, Seq) = (row.get(0).unwrap_or(0), row.get(1).unwrap_or(0));
            let whole = columns().is_ok_and(|(fingerprint, digest, state)| {
                Hash::from_slice(&digest) == Some(snapshot_digest(stream, seq, &fingerprint, &state))
            });
            if !whole {
                let what = "it is not what was written; it will be made again".to_owned();
                self.report.found(Damage::Snapshot { stream: self.called(stream), seq, what });
            }
        }
        Ok(())
    }

    /// A stream's name, or at least its number.
    fn called(&self, stream: i64) -> String {
        self.lineages.name(stream).map_or_else(|_| format!("stream number {stream}"), ToString::to_string)
    }
}
