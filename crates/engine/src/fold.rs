//! From stored facts to a state: how a stream is read, whole or up to a moment of its past.

use abide_kernel::fact::DecodeError;
use abide_kernel::id::Seq;
use abide_ledger::{Bounds, Ledger, ReadError, Recorded, RowOp, StreamId};

use crate::machine::{Machine, row_ops};

/// Why a stream's state can't be had from its records.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{stream} can't be read: {source}")]
    Unreadable { stream: StreamId, source: ReadError },
    #[error("{stream} at seq {seq}: {source}")]
    Undecodable { stream: StreamId, seq: Seq, source: DecodeError },
    #[error("{stream} at seq {seq}: its content was cut out, so what follows can't be told")]
    Redacted { stream: StreamId, seq: Seq },
    #[error("{stream}: {source}")]
    IllegalFact { stream: StreamId, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{stream} ends at seq {end}, before seq {wanted}")]
    NotThatFar { stream: StreamId, end: Seq, wanted: Seq },
}

impl LoadError {
    /// Whether nothing is known to be damaged: the store could not be read at that moment, for example because the
    /// process had no file descriptor left. Reading again may well succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            LoadError::Unreadable { source: ReadError::Store { .. } | ReadError::Closed, .. } => true,
            LoadError::Unreadable {
                source: ReadError::Damaged(_) | ReadError::NoBlob(_) | ReadError::CursorAhead { .. },
                ..
            }
            | LoadError::Undecodable { .. }
            | LoadError::Redacted { .. }
            | LoadError::IllegalFact { .. }
            | LoadError::NotThatFar { .. } => false,
        }
    }
}

/// The fact in a record.
pub fn decode<M: Machine>(stream: &StreamId, recorded: &Recorded) -> Result<M::Fact, LoadError> {
    let Some(payload) = recorded.payload.stored() else {
        return Err(LoadError::Redacted { stream: stream.clone(), seq: recorded.seq });
    };
    M::decode(&recorded.kind, payload).map_err(|source| LoadError::Undecodable {
        stream: stream.clone(),
        seq: recorded.seq,
        source,
    })
}

/// The read rows of a stored fact; none where the stream is of another kind. A fact that does not decode has no rows;
/// verification names it by other means.
#[must_use]
pub fn rows_of_stored<M: Machine>(stream: &StreamId, recorded: &Recorded) -> Option<Vec<RowOp>> {
    M::id_of(stream)?;
    let fact = decode::<M>(stream, recorded).ok();
    Some(fact.map(|fact| row_ops::<M>(recorded.seq, recorded.at, &fact)).unwrap_or_default())
}

/// The stream as it is now: its newest snapshot and the facts since, or all of them. None if there is no such stream.
pub fn fold<M: Machine>(ledger: &Ledger, id: &M::Id) -> Result<Option<M>, LoadError> {
    let stream = M::stream_id(id);
    let unreadable = |source| LoadError::Unreadable { stream: stream.clone(), source };
    let Some(loaded) = ledger.load(&stream, M::FINGERPRINT).map_err(unreadable)? else { return Ok(None) };
    // A snapshot that does not read is as good as none: facts are the truth.
    let snapshot = loaded.snapshot.as_ref().and_then(|snapshot| M::from_snapshot(&snapshot.state));
    let unusable = snapshot.is_none() && loaded.snapshot.is_some();
    let mut state = snapshot.unwrap_or_else(|| M::empty(id.clone()));
    if !unusable {
        for recorded in &loaded.tail {
            apply(&stream, &mut state, recorded)?;
        }
    }
    drop(loaded.tail);
    replay(ledger, &stream, &mut state, loaded.head.seq)?;
    Ok(Some(state))
}

/// The stream as it was right after the fact `seq`.
pub fn fold_until<M: Machine>(ledger: &Ledger, id: &M::Id, seq: Seq) -> Result<M, LoadError> {
    let stream = M::stream_id(id);
    let mut state = M::empty(id.clone());
    replay(ledger, &stream, &mut state, seq)?;
    Ok(state)
}

/// Facts that are in memory at a time.
const BATCH: Bounds = Bounds { items: 1_000, bytes: 4 << 20 };

fn replay<M: Machine>(ledger: &Ledger, stream: &StreamId, state: &mut M, until: Seq) -> Result<(), LoadError> {
    while state.seq() < until {
        let items = usize::try_from(until - state.seq()).unwrap_or(usize::MAX).min(BATCH.items);
        let batch = ledger
            .read_within(stream, state.seq(), Bounds { items, ..BATCH })
            .map_err(|source| LoadError::Unreadable { stream: stream.clone(), source })?;
        if batch.is_empty() {
            return Err(LoadError::NotThatFar { stream: stream.clone(), end: state.seq(), wanted: until });
        }
        for recorded in &batch {
            apply(stream, state, recorded)?;
        }
    }
    Ok(())
}

fn apply<M: Machine>(stream: &StreamId, state: &mut M, recorded: &Recorded) -> Result<(), LoadError> {
    let fact = decode::<M>(stream, recorded)?;
    let illegal = |source: M::IllegalFact| LoadError::IllegalFact { stream: stream.clone(), source: Box::new(source) };
    state.apply(recorded.at, &fact).map_err(illegal)
}
