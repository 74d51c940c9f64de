//! What a kind of stream gives to the loop: its names, its facts, the state that they fold to, and the rules by which an
//! input becomes facts and effects.
//!
//! The loop (`core`), folding (`fold`) and the host (`streams`) know streams by this trait only. Everything in it is pure:
//! time and entropy are handed in, and nothing here reads or writes.

use std::fmt::{Debug, Display};
use std::hash::Hash;

use abide_kernel::fact::DecodeError;
use abide_kernel::id::{Fresh, Seq};
use abide_kernel::input::Refusal;
use abide_kernel::read_rows::Row;
use abide_kernel::time::Time;
use abide_kernel::wake::Wake;
use abide_ledger::{NewFact, RowOp, StreamId};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The state machine of one kind of stream. A value of it is the state of one stream.
pub trait Machine: Clone + Debug + PartialEq + Send + 'static {
    type Id: Clone + Eq + Ord + Hash + Debug + Display + Send + Sync + 'static;
    /// What is asked of a stream or reported to it.
    type Input: Clone + Debug + PartialEq + Send + 'static;
    type Fact: Debug + PartialEq + Send + 'static;
    /// What is to be done in the world once the facts behind it are durable.
    type Effect: Debug + PartialEq + Send + 'static;
    type Answer: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + 'static;
    /// What an asker is shown of the state that an input left.
    type Summary: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + 'static;
    /// What a stream is told when it is loaded: what is left of it in the world, and the settings.
    type Boot: Clone + Debug + Send + 'static;
    /// Why a fact can't follow the facts before it.
    type IllegalFact: std::error::Error + Send + Sync + 'static;

    /// Tells apart snapshots of another shape, or folded by other rules.
    const FINGERPRINT: &'static str;

    fn stream_id(id: &Self::Id) -> StreamId;
    /// None for the stream of another kind.
    fn id_of(stream: &StreamId) -> Option<Self::Id>;

    /// The state before the first fact.
    fn empty(id: Self::Id) -> Self;
    fn id(&self) -> &Self::Id;
    /// The last fact that was applied; zero before the first.
    fn seq(&self) -> Seq;
    /// Changes the state by one fact.
    fn apply(&mut self, at: Time, fact: &Self::Fact) -> Result<(), Self::IllegalFact>;
    fn snapshot(&self) -> Vec<u8>;
    /// None if it does not read.
    fn from_snapshot(bytes: &[u8]) -> Option<Self>;
    /// How many records the state holds: a larger one is written down less often.
    fn records(&self) -> u64;

    /// The name under which a fact is stored.
    fn kind(fact: &Self::Fact) -> &'static str;
    fn encode(fact: &Self::Fact) -> Vec<u8>;
    fn decode(kind: &str, payload: &[u8]) -> Result<Self::Fact, DecodeError>;
    /// The read rows that a fact changes.
    fn rows(seq: Seq, at: Time, fact: &Self::Fact) -> Vec<Row>;

    /// Makes facts of an input, and applies them. On a refusal the state is as it was.
    fn admit(&mut self, input: Self::Input, now: Time, fresh: &mut Fresh) -> Result<Admitted<Self>, Refusal>;
    /// Decides on the state what comes next, and applies it. Not called before the first fact.
    fn decide(&mut self, now: Time, fresh: &mut Fresh) -> (Vec<Self::Fact>, Vec<Self::Effect>);
    /// What the loop tells a stream, as an input of its kind.
    fn signal(signal: Signal<Self::Boot>) -> Self::Input;
    /// Whether the input begins a stream. The settings reach a new stream in the same commit.
    fn creates(input: &Self::Input) -> bool;
    /// Whether a stream that could not be loaded is to be tried again for this input.
    fn retries(input: &Self::Input) -> bool;
    fn summary(&self, now: Time) -> Self::Summary;

    /// The stream's place in the wake index.
    fn wake(&self) -> Wake;
    /// When `Signal::FireDue` is to be given; none where the stream would refuse it.
    fn next_due(&self) -> Option<Time>;
    /// Whether the last fact is later than the clock shows now, by more than clocks are adjusted by themselves.
    fn clock_was_set_back(&self, now: Time) -> bool;
    /// Whether something is under way that only this process can see to its end.
    fn is_busy(&self) -> bool;
}

/// What an admitted input came to.
#[derive(Debug, PartialEq)]
pub struct Admitted<M: Machine> {
    pub facts: Vec<M::Fact>,
    pub effects: Vec<M::Effect>,
    pub answer: M::Answer,
}

/// What the loop itself tells a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal<B> {
    /// It was loaded: whatever was in flight is cut.
    Boot(B),
    /// Time has passed: fire what is due.
    FireDue,
    /// The clock shows an earlier time than the last fact has.
    FollowClock,
    /// The process is about to end.
    Shutdown { at_once: bool, reason: String },
    /// Its loop crashed too often.
    Quarantine { reason: String },
}

/// A fact as the ledger takes it: its bytes, and the rows that lists show.
#[must_use]
pub fn stored<M: Machine>(seq: Seq, at: Time, fact: &M::Fact) -> NewFact {
    NewFact { kind: M::kind(fact).into(), payload: M::encode(fact), rows: row_ops::<M>(seq, at, fact) }
}

/// The read rows of a fact, in the ledger's terms.
#[must_use]
pub fn row_ops<M: Machine>(seq: Seq, at: Time, fact: &M::Fact) -> Vec<RowOp> {
    let row_op = |row: Row| RowOp { plane: row.plane.into(), id: row.id, patch: row.patch };
    M::rows(seq, at, fact).into_iter().map(row_op).collect()
}
