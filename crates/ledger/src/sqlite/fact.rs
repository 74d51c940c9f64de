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

/// The header of a fact, besides its place and its payload. In the table it is one column, fixed in width: form · time ·
/// kind · rowid of the fact before · hash, numbers with the least byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// The form of the payload column: 0 the payload as it is stored, 1 the digest of a blob, 2 the digest of what was cut
    /// out.
    pub form: u8,
    pub at: Time,
    pub kind: i64,
    pub prev: u64,
    pub hash: Hash,
}

impl Link {
    const LEN: usize = 1 + 8 + 8 + 8 + 32;

    pub(crate) fn encode(&self) -> [u8; Link::LEN] {
        let mut bytes = [0; Link::LEN];
        bytes[0] = self.form;
        bytes[1..9].copy_from_slice(&self.at.as_ms().to_le_bytes());
        bytes[9..17].copy_from_slice(&self.kind.to_le_bytes());
        bytes[17..25].copy_from_slice(&self.prev.to_le_bytes());
        bytes[25..].copy_from_slice(&self.hash.0);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Link> {
        let (&form, rest) = bytes.split_first()?;
        let (at, rest) = rest.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        let (prev, rest) = rest.split_first_chunk()?;
        Some(Link {
            form,
            at: Time::from_ms(i64::from_le_bytes(*at)),
            kind: i64::from_le_bytes(*kind),
            prev: u64::from_le_bytes(*prev),
            hash: Hash::from_slice(rest)?,
        })
    }
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

    pub(crate) fn from_stored(form: u8, bytes: &[u8]) -> Option<RawBody> {
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
    /// From a row `id, stream, seq, link, payload`. A value of the wrong type is damage, and says in which column.
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
        let (id, stream, seq) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let Link { form, at, kind, prev, hash } = Link::decode(blob(3)?).ok_or_else(|| wrong(3, "link"))?;
        let body = RawBody::from_stored(form, blob(4)?).ok_or_else(|| wrong(4, "payload"))?;
        Ok(RawFact { id, stream, seq, at, kind, body, hash, prev })
    }

    pub(crate) fn link(&self) -> Link {
        Link { form: self.body.form(), at: self.at, kind: self.kind, prev: self.prev, hash: self.hash }
    }
}

/// Some facts of one stream: sequences `first` to `last`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub stream: i64,
    pub first: Seq,
    pub last: Seq,
}

impl Part {
    pub(crate) fn holds(&self, fact: &RawFact) -> bool {
        fact.stream == self.stream && (self.first..=self.last).contains(&fact.seq)
    }
}

/// Shared data of all connections to one home.
#[derive(Debug)]
pub(crate) struct Store {
    pub home: Home,
    pub blobs: Blobs,
    pub segments: Segments,
    /// Names of kinds, by id; every fact read asks for one. A name that was once committed never changes.
    kinds: Mutex<Vec<Option<Arc<str>>>>,
    streams: Mutex<HashMap<i64, StreamId>>,
}

/// Kinds are numbered from 1 as they first come, and there are as many as the program has variants of facts. A number
/// past this is looked up each time.
const KIND_NAMES: usize = 1024;

/// Names of streams that followers keep at hand. Past this they are looked up again.
const STREAM_NAMES: usize = 65_536;

impl Store {
    pub(crate) fn new(home: Home) -> Store {
        let (blobs, segments) = (Blobs::new(home.blobs()), Segments::new(home.archive()));
        Store { home, blobs, segments, kinds: Mutex::default(), streams: Mutex::default() }
    }

    pub(crate) fn kind(&self, conn: &Connection, id: i64) -> Result<Option<Arc<str>>, ReadError> {
        let mut kinds = self.kinds.lock().expect("names are never held across a panic");
        let place = usize::try_from(id).ok().filter(|place| *place < KIND_NAMES);
        if let Some(Some(name)) = place.and_then(|place| kinds.get(place)) {
            return Ok(Some(Arc::clone(name)));
        }
        let found = conn
            .prepare_cached("SELECT name FROM kinds WHERE id = ?")
            .and_then(|mut statement| statement.query_row([id], |row| row.get::<_, String>(0)).optional())
            .map_err(read_error)?;
        let Some(name) = found else { return Ok(None) };
        let name: Arc<str> = Arc::from(name);
        if let Some(place) = place {
            if kinds.len() <= place {
                kinds.resize(place + 1, None);
            }
            kinds[place] = Some(Arc::clone(&name));
        }
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
            RawBody::Inline(bytes) => Payload::Stored(bytes),
            RawBody::Redacted(digest) => Payload::Redacted { digest },
            RawBody::Blob(digest) => match self.blobs.get(&BlobId(digest)) {
                Ok(bytes) => Payload::Stored(bytes),
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

/// The error for a reader, from an error of SQLite.
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
