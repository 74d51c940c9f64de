//! Requests that must not be met twice. A key that was used is a stream of its own, written in the same commit as what
//! the request changed; a key whose request is under way is held here, in memory, until it is answered.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use abide_kernel::AgentState;
use abide_kernel::id::Seq;
use abide_kernel::limits;
use abide_kernel::pack;
use abide_kernel::time::Time;
use abide_ledger::{Append, Commit, Ledger, NewFact, ReadError, StreamId};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// How long a key is good for.
const KEPT_MS: u64 = 24 * 3_600_000;

/// The keys of requests that are under way.
#[derive(Debug, Default)]
pub(crate) struct KeyLocks(Arc<Mutex<HashSet<StreamId>>>);

/// The right to meet a request: recorded with the answer, in the same commit, so that a repeat finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub key: StreamId,
    /// Where the key's stream is: zero, unless the key was used long ago.
    pub expected: Seq,
    /// A digest of the request, to tell another one under the same key.
    pub request: String,
    /// Locks the key until the request is answered.
    pub hold: Option<Arc<KeyLock>>,
}

/// The result of an input, as it is answered and, for a claimed request, stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Response<M: Machine = AgentState> {
    pub answer: M::Answer,
    /// The first fact of it; where there is none, the last one before it.
    pub seq: Seq,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<M::Summary>,
}

/// A request that was met, as its key's stream keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct CompletedRequest<M: Machine> {
    pub request: String,
    pub answered: Response<M>,
}

/// The fact of a key's stream.
const REQUEST_MET: &str = "request.met";

/// The state of a request under its key.
#[derive(Debug)]
pub enum ClaimOutcome<M: Machine = AgentState> {
    /// It is new. The holder of the claim may execute it; dropping the claim releases the key.
    New(Claim),
    /// It was met, and this was the answer.
    Completed(Response<M>),
    /// The key was used for another request.
    OtherRequest,
    /// It is being met right now.
    InProgress,
}

/// A key that is being used. Dropping the last of it lets the key go.
#[derive(Debug)]
pub struct KeyLock {
    key: StreamId,
    held: Arc<Mutex<HashSet<StreamId>>>,
}

impl PartialEq for KeyLock {
    fn eq(&self, other: &KeyLock) -> bool {
        self.key == other.key
    }
}

impl Eq for KeyLock {}

impl Drop for KeyLock {
    fn drop(&mut self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// The record of a request that was met.
#[must_use]
pub fn record_completed<M: Machine>(claim: Claim, answered: Response<M>, at: Time) -> Append {
    let payload = match serde_json::to_vec(&CompletedRequest { request: claim.request, answered }) {
        Ok(payload) => payload,
        Err(error) => unreachable!("an answer has only string keys and finite numbers: {error}"),
    };
    let facts = vec![NewFact::new(REQUEST_MET, payload)];
    Append { stream: claim.key, expected: claim.expected, at, facts, fork_of: None }
}

impl KeyLocks {
    pub fn claim<M: Machine>(
        &self,
        ledger: &Ledger,
        key: StreamId,
        request: String,
        now: Time,
    ) -> Result<ClaimOutcome<M>, ReadError> {
        let held = Arc::clone(&self.0);
        if !held.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone()) {
            return Ok(ClaimOutcome::InProgress);
        }
        // The key is locked before it is looked up: an earlier holder released it only after its answer was durable.
        let hold = Some(Arc::new(KeyLock { key: key.clone(), held }));
        let Some(head) = ledger.head(&key)? else {
            return Ok(ClaimOutcome::New(Claim { key, expected: 0, request, hold }));
        };
        let last = ledger.read(&key, head.seq - 1, 1)?;
        let read = |payload: &[u8]| pack::read_stored::<CompletedRequest<M>>(payload).ok();
        let known = last.first().and_then(|fact| Some((fact.at, read(fact.payload.stored()?)?)));
        Ok(match known {
            Some((at, met)) if now.since_ms(at) < KEPT_MS => {
                if at.since_ms(now) > limits::CLOCK_SLACK_MS {
                    begin_anew(ledger, key, head.seq, &met, now);
                }
                if met.request == request { ClaimOutcome::Completed(met.answered) } else { ClaimOutcome::OtherRequest }
            }
            Some(_) | None => ClaimOutcome::New(Claim { key, expected: head.seq, request, hold }),
        })
    }
}

/// A key that was used while the clock was ahead would be good until the clock is there again. It is good for as long as
/// one that is used now. Where that can't be recorded, the next one who asks tries again.
fn begin_anew<M: Machine>(ledger: &Ledger, key: StreamId, expected: Seq, met: &CompletedRequest<M>, now: Time) {
    let claim = Claim { key, expected, request: met.request.clone(), hold: None };
    let commit = Commit { appends: vec![record_completed(claim, met.answered.clone(), now)], ..Commit::default() };
    if let Err(error) = ledger.commit(commit).wait() {
        tracing::warn!(%error, "how long a request is remembered could not be recorded");
    }
}
