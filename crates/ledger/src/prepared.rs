//! A commit made ready on its caller's thread: shape checked, payloads digested. The writer only checks heads, chains
//! and writes, because every store has one writer and many callers.

use std::borrow::Cow;

use abide_kernel::id::Seq;
use abide_kernel::time::Time;

use crate::commit::{Commit, ForkPoint, NewFact, RowOp, Wake};
use crate::error::CommitError;
use crate::hash::Hash;
use crate::program::Program;
use crate::record::{Snapshot, to_stored};
use crate::stream::StreamId;

#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub appends: Vec<PreparedAppend>,
    pub wakes: Vec<(StreamId, Option<Wake>)>,
    pub snapshots: Vec<Snapshot>,
    /// The oldest reader that can read every fact of it.
    pub reader: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct PreparedAppend {
    pub stream: StreamId,
    pub expected: Seq,
    pub at: Time,
    pub facts: Vec<PreparedFact>,
    pub fork_of: Option<ForkPoint>,
}

#[derive(Debug, Clone)]
pub(crate) struct PreparedFact {
    pub kind: Cow<'static, str>,
    pub body: Body,
    pub digest: Hash,
    pub rows: Vec<RowOp>,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// As it is stored, in the fact's row or in a blob.
    Stored(Vec<u8>),
    /// Only an import brings facts that were cut out elsewhere.
    Redacted,
}

impl Prepared {
    pub(crate) fn new(commit: Commit, program: &Program) -> Result<Prepared, CommitError> {
        let Commit { appends, wakes, snapshots } = commit;
        let mut reader = 1;
        for (i, append) in appends.iter().enumerate() {
            let malformed = |what| Err(CommitError::Malformed { stream: append.stream.clone(), what });
            if append.facts.is_empty() {
                return malformed("an append brings at least one fact");
            }
            if appends[..i].iter().any(|earlier| earlier.stream == append.stream) {
                return malformed("a commit has one append per stream: put its facts together");
            }
            if append.fork_of.is_some() && append.expected != 0 {
                return malformed("a fork is a new stream: expect sequence zero");
            }
            for fact in &append.facts {
                reader = reader.max((program.reader_of)(&fact.kind, &fact.payload));
            }
        }
        let appends = appends
            .into_iter()
            .map(|append| PreparedAppend {
                stream: append.stream,
                expected: append.expected,
                at: append.at,
                facts: append.facts.into_iter().map(PreparedFact::new).collect(),
                fork_of: append.fork_of,
            })
            .collect();
        Ok(Prepared { appends, wakes, snapshots, reader })
    }
}

impl PreparedFact {
    fn new(fact: NewFact) -> PreparedFact {
        let stored = to_stored(fact.payload);
        let digest = Hash::of(&stored);
        PreparedFact { kind: fact.kind, body: Body::Stored(stored), digest, rows: fact.rows }
    }
}

impl Prepared {
    /// Where this commit leaves a stream that it appends to.
    pub(crate) fn seq_after(&self, stream: &StreamId) -> Option<Seq> {
        let append = self.appends.iter().find(|append| append.stream == *stream)?;
        let base = append.fork_of.as_ref().map_or(append.expected, |point| point.seq);
        Some(base + append.facts.len() as u64)
    }
}
