//! A fact as it is stored, and what makes it readable: its kind's name, its payload's bytes, and the chain.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use abide_kernel::id::Seq;
use abide_kernel::time::Time;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};

use super::blobs::Blobs;
use super::home::Home;
use super::segment::Segments;
use crate::error::{Damage, ReadError};
use crate::hash::{BlobId, Hash};
use crate::record::{Payload, Recorded};
use crate::stream::StreamId;

#[derive(Debug, Clone)]
pub(crate) struct RawFact {
    pub id: u64,
    pub stream: i64,
    pub seq: Seq,
    pub at: Time,
    pub kind: i64,
    pub body: RawBody,
    pub hash: Hash,
    /// The stream's fact before this one; for a fork's first, the parent's fact it forks from; zero for none.
    pub prev: u64,
}

#[derive(Debug, Clone)]
pub(crate) enum RawBody {
    Inline(Arc<[u8]>),
    Blob(Hash),
    Redacted(Hash),
}

impl RawBody {
    pub(crate) fn form(&self) -> u8 {
        match self {
            RawBody::Inline(_) => 0,
            RawBody::Blob(_) => 1,
            RawBody::Redacted(_) => 2,
        }
    }

    pub(crate) fn stored(&self) -> &[u8] {
        match self {
            RawBody::Inline(bytes) => bytes,
            RawBody::Blob(digest) | RawBody::Redacted(digest) => &digest.0,
        }
    }

    pub(crate) fn from_stored(form: i64, bytes: &[u8]) -> Option<RawBody> {
        match form {
            0 => Some(RawBody::Inline(Arc::from(bytes))),
            1 => Hash::from_slice(bytes).map(RawBody::Blob),
            2 => Hash::from_slice(bytes).map(RawBody::Redacted),
            _ => None,
        }
    }

    pub(crate) fn digest(&self) -> Hash {
        match self {
            RawBody::Inline(bytes) => Hash::of(bytes),
            RawBody::Blob(digest) | RawBody::Redacted(digest) => *digest,
        }
    }
}

impl RawFact {
    /// From a row `id, stream, seq, at, kind, form, payload, hash, prev`. A value of the wrong type is damage, and says in which column.
    pub(crate) fn from_row(row: &Row<'_>) -> Result<RawFact, rusqlite::Error> {
        let wrong = |column: usize, name: &str| {
            rusqlite::Error::InvalidColumnType(column, name.to_owned(), rusqlite::types::Type::Blob)
        };
        let blob = |column: usize| match row.get_ref(column)? {
            ValueRef::Blob(bytes) => Ok(bytes),
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => {
                Err(wrong(column, "bytes"))
            }
        };
        Ok(RawFact {
            id: row.get(0)?,
            stream: row.get(1)?,
            seq: row.get(2)?,
            at: Time::from_ms(row.get(3)?),
            kind: row.get(4)?,
            body: RawBody::from_stored(row.get(5)?, blob(6)?).ok_or_else(|| wrong(6, "payload"))?,
            hash: Hash::from_slice(blob(7)?).ok_or_else(|| wrong(7, "hash"))?,
            prev: row.get(8)?,
        })
    }
}

/// What all connections to one home share.
#[derive(Debug)]
pub(crate) struct Store {
    pub home: Home,
    pub blobs: Blobs,
    pub segments: Segments,
    /// Names of kinds, by id. A name that was once committed never changes.
    kinds: Mutex<HashMap<i64, Arc<str>>>,
    streams: Mutex<HashMap<i64, StreamId>>,
}

/// Names of streams that followers keep at hand. Past this they are looked up again.
const STREAM_NAMES: usize = 65_536;

impl Store {
    pub(crate) fn new(home: Home) -> Store {
        let (blobs, segments) = (Blobs::new(home.blobs()), Segments::new(home.archive()));
        Store { home, blobs, segments, kinds: Mutex::default(), streams: Mutex::default() }
    }

    pub(crate) fn kind(&self, conn: &Connection, id: i64) -> Result<Option<Arc<str>>, ReadError> {
        let mut kinds = self.kinds.lock().expect("names are never held across a panic");
        if let Some(name) = kinds.get(&id) {
            return Ok(Some(Arc::clone(name)));
        }
        let found = conn
            .prepare_cached("SELECT name FROM kinds WHERE id = ?")
            .and_then(|mut statement| statement.query_row([id], |row| row.get::<_, String>(0)).optional())
            .map_err(read_error)?;
        let Some(name) = found else { return Ok(None) };
        let name: Arc<str> = Arc::from(name);
        kinds.insert(id, Arc::clone(&name));
        Ok(Some(name))
    }

    pub(crate) fn stream(&self, conn: &Connection, id: i64) -> Result<Option<StreamId>, ReadError> {
        let mut streams = self.streams.lock().expect("names are never held across a panic");
        if let Some(name) = streams.get(&id) {
            return Ok(Some(name.clone()));
        }
        let found = conn
            .prepare_cached("SELECT name FROM streams WHERE id = ?")
            .and_then(|mut statement| statement.query_row([id], |row| row.get::<_, String>(0)).optional())
            .map_err(read_error)?;
        let Some(name) = found.and_then(|name| name.parse::<StreamId>().ok()) else { return Ok(None) };
        if streams.len() >= STREAM_NAMES {
            streams.clear();
        }
        streams.insert(id, name.clone());
        Ok(Some(name))
    }

    /// The fact as a reader gets it, if it follows `prev` and is whole.
    pub(crate) fn recorded(
        &self,
        conn: &Connection,
        stream: &StreamId,
        prev: &Hash,
        raw: RawFact,
    ) -> Result<Recorded, ReadError> {
        let damaged = |what: String| ReadError::damaged(Damage::Fact { stream: stream.clone(), seq: raw.seq, what });
        let Some(kind) = self.kind(conn, raw.kind)? else {
            return Err(damaged(format!("its kind {} has no name", raw.kind)));
        };
        if prev.then(raw.seq, raw.at, &kind, &raw.body.digest()) != raw.hash {
            return Err(damaged("its hash does not follow from its content and the fact before it".to_owned()));
        }
        let payload = match raw.body {
            RawBody::Inline(bytes) => Payload::Bytes(bytes),
            RawBody::Redacted(digest) => Payload::Redacted { digest },
            RawBody::Blob(digest) => match self.blobs.get(&BlobId(digest)) {
                Ok(bytes) => Payload::Bytes(bytes),
                Err(ReadError::NoBlob(id)) => return Err(damaged(format!("its payload, blob {id}, is missing"))),
                Err(ReadError::Damaged(blob)) => return Err(damaged(format!("its payload is damaged: {blob}"))),
                Err(other @ (ReadError::CursorAhead { .. } | ReadError::Store { .. } | ReadError::Closed)) => {
                    return Err(other);
                }
            },
        };
        Ok(Recorded { seq: raw.seq, at: raw.at, kind, payload, hash: raw.hash })
    }
}

/// What SQLite's refusal to read means to a reader.
pub(crate) fn read_error(error: rusqlite::Error) -> ReadError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    let detail = error.to_string();
    match (error.sqlite_error_code(), &error) {
        (Some(DatabaseCorrupt | NotADatabase), _)
        | (
            None,
            rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::Utf8Error(..),
        ) => ReadError::damaged(Damage::Database { detail }),
        (Some(_) | None, _) => ReadError::Store { detail },
    }
}
