//! A commit: facts for one or more streams, and the changes that belong to them, all or nothing.

use std::borrow::Cow;

use abide_kernel::id::Seq;
use abide_kernel::time::Time;
use serde_json::Value;

use crate::record::{Cursor, Head, Snapshot};
use crate::stream::StreamId;

/// Everything in it becomes durable together, or nothing does.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// At most one per stream.
    pub appends: Vec<Append>,
    /// `None` takes the stream out of the wake index. A stream must exist by the end of this commit.
    pub wakes: Vec<(StreamId, Option<Wake>)>,
    pub snapshots: Vec<Snapshot>,
}

#[derive(Debug, Clone)]
pub struct Append {
    pub stream: StreamId,
    /// The sequence the caller saw last; zero for a stream that must not exist yet.
    pub expected: Seq,
    pub at: Time,
    /// At least one.
    pub facts: Vec<NewFact>,
    /// The new stream shares another's history up to here. Only with `expected` zero.
    pub fork_of: Option<ForkPoint>,
}

#[derive(Debug, Clone)]
pub struct ForkPoint {
    pub parent: StreamId,
    pub seq: Seq,
    /// The operations of each shared fact on the fork's own read rows, in order.
    pub rows: Vec<(Seq, RowOp)>,
}

#[derive(Debug, Clone)]
pub struct NewFact {
    pub kind: Cow<'static, str>,
    pub payload: Vec<u8>,
    pub rows: Vec<RowOp>,
}

/// A JSON merge patch (RFC 7396) onto the row (stream, plane, id). It creates the row; the patch `null` removes it.
#[derive(Debug, Clone, PartialEq)]
pub struct RowOp {
    pub plane: Cow<'static, str>,
    pub id: String,
    pub patch: Value,
}

/// When a stream wants to be looked at, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    /// `None` is at once.
    pub due: Option<Time>,
    pub why: String,
}

/// The answer to a commit that is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Where each append left its stream, in the order of the appends.
    pub heads: Vec<Head>,
    /// Just past the last fact of this commit.
    pub cursor: Cursor,
}

impl Commit {
    /// One append and nothing else.
    #[must_use]
    pub fn append(stream: StreamId, expected: Seq, at: Time, facts: Vec<NewFact>) -> Commit {
        Commit { appends: vec![Append { stream, expected, at, facts, fork_of: None }], ..Commit::default() }
    }
}

impl NewFact {
    #[must_use]
    pub fn new(kind: impl Into<Cow<'static, str>>, payload: impl Into<Vec<u8>>) -> NewFact {
        NewFact { kind: kind.into(), payload: payload.into(), rows: Vec::new() }
    }
}

impl ForkPoint {
    #[must_use]
    pub fn new(parent: StreamId, seq: Seq) -> ForkPoint {
        ForkPoint { parent, seq, rows: Vec::new() }
    }
}
