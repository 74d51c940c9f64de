//! Facts, rows and heads, as readers get them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use abide_kernel::id::Seq;
use abide_kernel::pack;
use abide_kernel::time::Time;
use serde_json::Value;

use crate::hash::Hash;
use crate::stream::StreamId;

/// A payload longer than this is stored once, by content, beside the facts: a fact's row stays small enough that
/// several share a page, and history can be read without large outputs.
pub(crate) const INLINE_LIMIT: usize = 4096;

/// A fact as the ledger holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub seq: Seq,
    pub at: Time,
    pub kind: Arc<str>,
    pub payload: Payload,
    pub hash: Hash,
}

#[derive(Clone, PartialEq, Eq)]
pub enum Payload {
    /// The bytes as they are stored: see `kernel::pack`.
    Stored(Arc<[u8]>),
    /// Cut out by `redact`. What remains is the digest, which the chain still needs.
    Redacted { digest: Hash },
}

/// Where a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub seq: Seq,
    pub hash: Hash,
}

/// A state as of a sequence, to start from. Disposable: it can always be made again from the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub stream: StreamId,
    pub seq: Seq,
    /// Of the shapes in `state`. A reader with another fingerprint rebuilds instead.
    pub fingerprint: String,
    pub state: Vec<u8>,
}

/// A snapshot, if there is one to start from, and the facts after it. A tail that ends before the head is too large to be
/// handed out at once; `read_within` goes on where it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    pub head: Head,
    pub snapshot: Option<Snapshot>,
    pub tail: Vec<Recorded>,
}

/// One line of a list or page, derived from facts.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub id: String,
    /// The fact that changed it last.
    pub seq: Seq,
    pub value: Value,
}

impl Row {
    /// A field of the row, if it is a text.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        self.value.get(field)?.as_str()
    }
}

/// Where a read ends: with the item that reaches either bound. One item is read, however large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub items: usize,
    /// Of payloads, as they are stored.
    pub bytes: usize,
}

impl Bounds {
    /// The facts that are read together with a snapshot: many small ones, or a few large ones.
    pub const TAIL: Bounds = Bounds { items: usize::MAX, bytes: 4 << 20 };

    #[must_use]
    pub const fn items(items: usize) -> Bounds {
        Bounds { items, bytes: usize::MAX }
    }
}

/// How much of a read's bytes is left.
#[derive(Debug)]
pub(crate) struct BytesLeft(usize);

impl BytesLeft {
    pub(crate) fn of(bounds: Bounds) -> BytesLeft {
        BytesLeft(bounds.bytes)
    }

    /// Counts a fact that was read. False when none may be read after it.
    pub(crate) fn count(&mut self, fact: &Recorded) -> bool {
        self.0 = self.0.saturating_sub(fact.payload.stored().map_or(0, <[u8]>::len));
        self.0 > 0
    }
}

/// A place in the order of all commits. Opaque: keep it, hand it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor(pub(crate) u64);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no cursor: use one that this ledger gave out, or \"start\"")]
pub struct BadCursor {
    text: String,
}

impl Cursor {
    /// Before the first fact.
    pub const START: Cursor = Cursor(0);

    /// The place that many facts before this one.
    #[must_use]
    pub fn back(self, facts: u64) -> Cursor {
        Cursor(self.0.saturating_sub(facts))
    }
}

/// The stored form of a payload. One that is too long for a row is not packed either, because it is text, mostly.
pub(crate) fn to_stored(payload: Vec<u8>) -> Vec<u8> {
    pack::to_stored(payload, INLINE_LIMIT)
}

impl Payload {
    /// The payload of bytes that are handed in.
    #[must_use]
    pub fn of(bytes: impl Into<Vec<u8>>) -> Payload {
        Payload::Stored(to_stored(bytes.into()).into())
    }

    #[must_use]
    pub fn stored(&self) -> Option<&[u8]> {
        match self {
            Payload::Stored(stored) => Some(stored),
            Payload::Redacted { .. } => None,
        }
    }

    /// The bytes that were handed in.
    #[must_use]
    pub fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        // Before they were stored, they were had back once; since then a hash holds them.
        self.stored().map(|stored| pack::from_stored(stored).unwrap_or_default())
    }

    /// The hash of the payload in the chain.
    #[must_use]
    pub fn digest(&self) -> Hash {
        match self {
            Payload::Stored(stored) => Hash::of(stored),
            Payload::Redacted { digest } => *digest,
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Payload::Stored(_) => {
                let bytes = self.bytes().unwrap_or_default();
                match std::str::from_utf8(&bytes) {
                    Ok(text) => f.write_str(text),
                    Err(_) => write!(f, "{} bytes", bytes.len()),
                }
            }
            Payload::Redacted { digest } => write!(f, "redacted {digest}"),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { f.write_str("start") } else { write!(f, "c{:x}", self.0) }
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Cursor, BadCursor> {
        if text == "start" {
            return Ok(Cursor::START);
        }
        let bad = || BadCursor { text: text.chars().take(40).collect() };
        let digits = text.strip_prefix('c').ok_or_else(bad)?;
        u64::from_str_radix(digits, 16).map(Cursor).map_err(|_| bad())
    }
}
