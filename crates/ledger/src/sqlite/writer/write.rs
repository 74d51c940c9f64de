//! One commit inside the open transaction: check everything, then write everything.

use abide_kernel::id::Seq;
use abide_kernel::pack;
use rusqlite::OptionalExtension;

use super::{Stop, Writer, commit_error};
use crate::SNAPSHOTS_KEPT;
use crate::commit::{Committed, ForkPoint, RowOp, Wake};
use crate::error::CommitError;
use crate::hash::{BlobId, Hash};
use crate::prepared::{Body, Prepared, PreparedAppend, PreparedFact};
use crate::record::{Cursor, INLINE_LIMIT, Snapshot};
use crate::rows;
use crate::sqlite::connection::MARK_EVERY;
use crate::sqlite::fact::Link;
use crate::sqlite::heads::Table;
use crate::sqlite::history::{StreamHead, View};
use crate::sqlite::row::{self, RowKey, WithoutChecksum};
use crate::sqlite::versions;
use crate::stream::StreamId;

/// Where an append starts from, known once it was checked.
enum Start {
    Known(StreamHead),
    New,
    Fork { parent: i64, fact: u64, hash: Hash },
}

const ADD_FACT: &str = "INSERT INTO facts (id, stream, seq, link, payload) VALUES (?, ?, ?, ?, ?)";
const ADD_MARK: &str = "INSERT INTO marks (stream, seq, fact) VALUES (?, ?, ?)";
const ADD_STREAM: &str =
    "INSERT INTO streams (id, name, born, parent, fork_seq, fork_fact, digest) VALUES (?, ?, ?, ?, ?, ?, ?)";
const ADD_HEAD: &str = "INSERT INTO heads (seq, hash, fact, stream) VALUES (?, ?, ?, ?)";
const SET_HEAD: &str = "UPDATE heads SET seq = ?, hash = ?, fact = ? WHERE stream = ?";
const SET_WAKE: &str = "INSERT INTO wakes (stream, due, why, digest) VALUES (?, ?, ?, ?)
    ON CONFLICT (stream) DO UPDATE SET due = excluded.due, why = excluded.why, digest = excluded.digest";
const GET_ROW: &str = "SELECT seq, value, checksum FROM rows WHERE stream = ? AND plane = ? AND id = ?";
const SET_ROW: &str = "INSERT INTO rows (stream, plane, id, seq, value, checksum) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (stream, plane, id) DO UPDATE SET seq = excluded.seq, value = excluded.value, checksum = excluded.checksum";

impl Writer {
    pub(crate) fn commit(&mut self, prepared: &Prepared) -> Result<Committed, Stop> {
        let starts = self.check(prepared).map_err(|refusal| {
            // An error that also ended the transaction is everyone's.
            if self.conn.is_autocommit() { Stop::Failed(refusal) } else { Stop::Refused(refusal) }
        })?;
        self.write(prepared, starts).map_err(Stop::Failed)
    }

    fn check(&mut self, prepared: &Prepared) -> Result<Vec<Start>, CommitError> {
        let mut starts = Vec::with_capacity(prepared.appends.len());
        for append in &prepared.appends {
            let head = self.head(&append.stream)?;
            let actual = head.map_or(0, |head| head.seq);
            if actual != append.expected {
                let stream = append.stream.clone();
                return Err(CommitError::Conflict { stream, expected: append.expected, actual });
            }
            starts.push(match (head, &append.fork_of) {
                (Some(head), _) => Start::Known(head),
                (None, None) => Start::New,
                (None, Some(point)) => self.fork_start(point)?,
            });
        }
        for (stream, _) in &prepared.wakes {
            self.seq_after(prepared, stream)?;
        }
        for Snapshot { stream, seq, .. } in &prepared.snapshots {
            if *seq == 0 || *seq > self.seq_after(prepared, stream)? {
                let what = "a snapshot is of a sequence that exists";
                return Err(CommitError::Malformed { stream: stream.clone(), what });
            }
        }
        Ok(starts)
    }

    fn fork_start(&mut self, point: &ForkPoint) -> Result<Start, CommitError> {
        let ForkPoint { parent, seq, .. } = point;
        let head = self.head(parent)?;
        let last = head.map_or(0, |head| head.seq);
        match head {
            Some(head) if *seq > 0 && *seq <= last => {
                let (fact, hash) = View::new(&self.conn, &self.store)?.locate(parent, &head, *seq)?;
                Ok(Start::Fork { parent: head.id, fact, hash })
            }
            Some(_) | None => Err(CommitError::NoForkPoint { parent: parent.clone(), seq: *seq, last }),
        }
    }

    pub(crate) fn head(&mut self, stream: &StreamId) -> Result<Option<StreamHead>, CommitError> {
        if let Some(head) = self.heads.get(stream) {
            return Ok(Some(head));
        }
        // No view is needed to look a head up, and so no look at the segments either.
        let head = View { conn: &self.conn, store: &self.store, archived: 0 }.head(stream)?;
        if let Some(head) = head {
            self.heads.remember(stream, head);
        }
        Ok(head)
    }

    fn seq_after(&mut self, prepared: &Prepared, stream: &StreamId) -> Result<Seq, CommitError> {
        if let Some(seq) = prepared.seq_after(stream) {
            return Ok(seq);
        }
        match self.head(stream)? {
            Some(head) => Ok(head.seq),
            None => Err(CommitError::NoStream { stream: stream.clone() }),
        }
    }

    fn write(&mut self, prepared: &Prepared, starts: Vec<Start>) -> Result<Committed, CommitError> {
        if prepared.reader > self.oldest_reader {
            self.raise_oldest_reader(prepared.reader)?;
        }
        let mut heads = Vec::with_capacity(starts.len());
        for (append, start) in prepared.appends.iter().zip(starts) {
            heads.push(self.append(append, start)?.head());
        }
        for (stream, wake) in &prepared.wakes {
            self.set_wake(stream, wake.as_ref())?;
        }
        for snapshot in &prepared.snapshots {
            self.add_snapshot(snapshot)?;
        }
        Ok(Committed { heads, cursor: Cursor(self.last_fact) })
    }

    /// In the transaction of the first fact that needs it: no older program ever sees one without the other.
    fn raise_oldest_reader(&mut self, reader: u32) -> Result<(), CommitError> {
        let (number, program) = (i64::from(reader), self.program.brought(reader));
        versions::set(&self.conn, versions::OLDEST_READER, number, program).map_err(commit_error)?;
        self.oldest_reader = reader;
        Ok(())
    }

    fn append(&mut self, append: &PreparedAppend, start: Start) -> Result<StreamHead, CommitError> {
        let mut head = match start {
            Start::Known(head) => head,
            Start::New => self.create(append, None)?,
            Start::Fork { parent, fact, hash } => self.create(append, Some((parent, fact, hash)))?,
        };
        for fact in &append.facts {
            head = self.add_fact(append, fact, &head)?;
            for op in &fact.rows {
                self.patch_row(head.id, head.seq, op)?;
            }
        }
        self.heads.change(&append.stream, head);
        Ok(head)
    }

    fn add_fact(
        &mut self,
        append: &PreparedAppend,
        fact: &PreparedFact,
        head: &StreamHead,
    ) -> Result<StreamHead, CommitError> {
        let (seq, id) = (head.seq + 1, self.last_fact + 1);
        let hash = head.hash.then(seq, append.at, &fact.kind, &fact.digest);
        let kind = self.kind(&fact.kind)?;
        let (form, stored): (u8, &[u8]) = match &fact.body {
            Body::Stored(bytes) if bytes.len() <= INLINE_LIMIT => (0, bytes),
            Body::Stored(bytes) => {
                // Upkeep takes blobs away while it has the writer; one that was there when this was handed in may be gone.
                if !self.store.blobs.exists(&BlobId(fact.digest)) {
                    self.store.blobs.put(fact.digest, bytes)?;
                }
                (1, &fact.digest.0)
            }
            Body::Redacted => (2, &fact.digest.0),
        };
        let link = Link { form, at: append.at, kind, prev: head.fact, hash };
        let mut add = self.conn.prepare_cached(ADD_FACT).map_err(commit_error)?;
        add.execute((id, head.id, seq, &link.encode()[..], stored)).map_err(commit_error)?;
        if seq.is_multiple_of(MARK_EVERY) {
            let mut add = self.conn.prepare_cached(ADD_MARK).map_err(commit_error)?;
            add.execute((head.id, seq, id)).map_err(commit_error)?;
        }
        if form == 2 {
            let sql = "INSERT INTO redactions (stream, seq) VALUES (?, ?)";
            self.conn.execute(sql, (head.id, seq)).map_err(commit_error)?;
        }
        drop(add);
        self.last_fact = id;
        Ok(StreamHead { id: head.id, seq, hash, fact: id })
    }

    fn create(&mut self, append: &PreparedAppend, fork: Option<(i64, u64, Hash)>) -> Result<StreamHead, CommitError> {
        let id = self.last_stream + 1;
        let born = self.last_fact + 1;
        let seq = append.fork_of.as_ref().map_or(0, |point| point.seq);
        let (parent, fact, hash) = match fork {
            Some((parent, fact, hash)) => (Some(parent), fact, hash),
            None => (None, 0, Hash::NONE),
        };
        let digest = stream_digest(id, append.stream.as_str(), born, parent, seq, fact);
        self.conn
            .prepare_cached(ADD_STREAM)
            .and_then(|mut add| add.execute((id, append.stream.as_str(), born, parent, seq, fact, &digest.0[..])))
            .map_err(commit_error)?;
        self.last_stream = id;
        for (seq, op) in append.fork_of.iter().flat_map(|point| &point.rows) {
            self.patch_row(id, *seq, op)?;
        }
        Ok(StreamHead { id, seq, hash, fact })
    }

    pub(crate) fn patch_row(&self, stream: i64, seq: Seq, op: &RowOp) -> Result<(), CommitError> {
        let key = (stream, op.plane.as_ref(), op.id.as_str());
        let cached = |sql| self.conn.prepare_cached(sql).map_err(commit_error);
        let row_key = RowKey { stream, plane: &op.plane, id: &op.id };
        // A row without a checksum is one of an older version, and is rebuilt later.
        let before = cached(GET_ROW)?
            .query_row(key, |row| Ok(row_key.read(row, 0, WithoutChecksum::Taken)))
            .optional()
            .map_err(commit_error)?;
        let before = match before {
            None => None,
            Some(Some((_, value))) => Some(value),
            // On top of nothing the patch would be half a row with a checksum of its own.
            Some(None) => return self.leave_damaged_row(stream, op),
        };
        match rows::patched(before, &op.patch) {
            Some(value) => self.set_row(stream, &op.plane, &op.id, seq, &value)?,
            None => {
                let sql = "DELETE FROM rows WHERE stream = ? AND plane = ? AND id = ?";
                cached(sql)?.execute(key).map_err(commit_error)?;
            }
        }
        Ok(())
    }

    /// Leaves a damaged row as it is, and has all rows of its stream rebuilt before they are read.
    fn leave_damaged_row(&self, stream: i64, op: &RowOp) -> Result<(), CommitError> {
        let name = "SELECT name FROM streams WHERE id = ?";
        let name = self.conn.query_row(name, [stream], |row| row.get::<_, String>(0)).map_err(commit_error)?;
        self.status.report_damaged_row(&self.program, &name, &row::damaged(&name, &op.plane, &op.id));
        match self.program.rows {
            Some(_) => self.mark_rows_outdated(stream),
            None => Ok(()),
        }
    }

    pub(crate) fn set_row(
        &self,
        stream: i64,
        plane: &str,
        id: &str,
        seq: Seq,
        value: &serde_json::Value,
    ) -> Result<(), CommitError> {
        let stored = pack::to_stored(value.to_string().into_bytes(), usize::MAX);
        let checksum = RowKey { stream, plane, id }.checksum(seq, &stored);
        let mut set = self.conn.prepare_cached(SET_ROW).map_err(commit_error)?;
        set.execute((stream, plane, id, seq, stored, checksum)).map(|_| ()).map_err(commit_error)
    }

    fn set_wake(&mut self, stream: &StreamId, wake: Option<&Wake>) -> Result<(), CommitError> {
        let Some(StreamHead { id, .. }) = self.head(stream)? else {
            return Err(CommitError::NoStream { stream: stream.clone() });
        };
        let cached = |sql| self.conn.prepare_cached(sql).map_err(commit_error);
        match wake {
            None => cached("DELETE FROM wakes WHERE stream = ?")?.execute([id]),
            Some(Wake { due, why }) => {
                let due = due.map(|due| due.as_ms());
                cached(SET_WAKE)?.execute((id, due, why, &wake_digest(id, due, why).0[..]))
            }
        }
        .map(|_| ())
        .map_err(commit_error)
    }

    fn add_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), CommitError> {
        let Some(StreamHead { id, .. }) = self.head(&snapshot.stream)? else {
            return Err(CommitError::NoStream { stream: snapshot.stream.clone() });
        };
        let Snapshot { seq, fingerprint, state, .. } = snapshot;
        let digest = snapshot_digest(id, *seq, fingerprint, state);
        let cached = |sql| self.conn.prepare_cached(sql).map_err(commit_error);
        cached("DELETE FROM snapshots WHERE stream = ? AND seq = ?")?.execute((id, seq)).map_err(commit_error)?;
        cached("INSERT INTO snapshots (stream, seq, fingerprint, digest, state) VALUES (?, ?, ?, ?, ?)")?
            .execute((id, seq, fingerprint, &digest.0[..], state))
            .map_err(commit_error)?;
        let surplus = "DELETE FROM snapshots WHERE stream = ?1 AND seq <=
            (SELECT seq FROM snapshots WHERE stream = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)";
        cached(surplus)?.execute((id, SNAPSHOTS_KEPT)).map(|_| ()).map_err(commit_error)
    }

    /// Once per stream and transaction, however many facts it got.
    pub(crate) fn write_heads(&mut self) -> Result<(), CommitError> {
        let changed = self.heads.take_changed();
        if changed.is_empty() {
            return Ok(());
        }
        // Not one upsert for both: with as many streams as facts this is half of the writing, and an update in place
        // is the cheapest there is.
        let mut set = self.conn.prepare_cached(SET_HEAD).map_err(commit_error)?;
        let mut add = self.conn.prepare_cached(ADD_HEAD).map_err(commit_error)?;
        for (head, table) in changed {
            let statement = match table {
                Table::Missing => &mut add,
                Table::Behind | Table::Same => &mut set,
            };
            statement.execute((head.seq, &head.hash.0[..], head.fact, head.id)).map_err(commit_error)?;
        }
        Ok(())
    }
}

/// Over everything a stream's row says: unlike a fact, nothing else vouches for it.
pub(crate) fn stream_digest(id: i64, name: &str, born: u64, parent: Option<i64>, seq: Seq, fact: u64) -> Hash {
    Hash::of_fields(&[
        &id.to_le_bytes(),
        name.as_bytes(),
        &born.to_le_bytes(),
        &parent.unwrap_or(0).to_le_bytes(),
        &seq.to_le_bytes(),
        &fact.to_le_bytes(),
    ])
}

pub(crate) fn wake_digest(stream: i64, due: Option<i64>, why: &str) -> Hash {
    let due = due.map(i64::to_le_bytes);
    Hash::of_fields(&[&stream.to_le_bytes(), due.as_ref().map_or(&[][..], |due| &due[..]), why.as_bytes()])
}

pub(crate) fn snapshot_digest(stream: i64, seq: Seq, fingerprint: &str, state: &[u8]) -> Hash {
    // The state by itself first: hashed from its beginning, all lanes of the processor work on it.
    let state = Hash::of(state);
    Hash::of_fields(&[&stream.to_le_bytes(), &seq.to_le_bytes(), fingerprint.as_bytes(), &state.0])
}
