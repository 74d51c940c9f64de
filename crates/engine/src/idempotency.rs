//! Requests that must not be met twice. A key that was used is a stream of its own, written in the same commit as what
//! the request changed; a key whose request is under way is held here, in memory, until it is answered.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use abide_kernel::id::Seq;
use abide_kernel::limits;
use abide_kernel::pack;
use abide_kernel::time::Time;
use abide_ledger::{Commit, ReadError, StreamId};

use super::Shared;
use crate::core::{Answered, Claim, Met, keep};

/// How long a key is good for.
const KEPT_MS: u64 = 24 * 3_600_000;

#[derive(Debug, Default)]
pub(crate) struct Keys(Arc<Mutex<HashSet<StreamId>>>);

/// What is known of a request under its key.
#[derive(Debug)]
pub enum Claimed {
    /// It is new. Whoever has this may meet it; dropping it lets the key go.
    New(Claim),
    /// It was met, and this was the answer.
    Met(Answered),
    /// The key was used for another request.
    Other,
    /// It is being met right now.
    UnderWay,
}

/// A key that is being used. Dropping the last of it lets the key go.
#[derive(Debug)]
pub struct Holding {
    key: StreamId,
    held: Arc<Mutex<HashSet<StreamId>>>,
}

impl PartialEq for Holding {
    fn eq(&self, other: &Holding) -> bool {
        self.key == other.key
    }
}

impl Eq for Holding {}

impl Drop for Holding {
    fn drop(&mut self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

pub(super) fn claim(shared: &Shared, key: StreamId, request: String, now: Time) -> Result<Claimed, ReadError> {
    let held = Arc::clone(&shared.keys.0);
    if !held.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone()) {
        return Ok(Claimed::UnderWay);
    }
    // Held before it is looked up: whoever met it before us has let go of it only after it was durable.
    let hold = Some(Arc::new(Holding { key: key.clone(), held }));
    let Some(head) = shared.ledger.head(&key)? else {
        return Ok(Claimed::New(Claim { key, expected: 0, request, hold }));
    };
    let last = shared.ledger.read(&key, head.seq - 1, 1)?;
    let known = last.first().and_then(|fact| Some((fact.at, pack::read_stored::<Met>(fact.payload.stored()?).ok()?)));
    Ok(match known {
        Some((at, met)) if now.since_ms(at) < KEPT_MS => {
            if at.since_ms(now) > limits::CLOCK_SLACK_MS {
                begin_anew(shared, key, head.seq, &met, now);
            }
            if met.request == request { Claimed::Met(met.answered) } else { Claimed::Other }
        }
        Some(_) | None => Claimed::New(Claim { key, expected: head.seq, request, hold }),
    })
}

/// A key that was used while the clock was ahead would be good until the clock is there again. It is good for as long as
/// one that is used now. Where that can't be recorded, the next one who asks tries again.
fn begin_anew(shared: &Shared, key: StreamId, expected: Seq, met: &Met, now: Time) {
    let claim = Claim { key, expected, request: met.request.clone(), hold: None };
    let commit = Commit { appends: vec![keep(claim, met.answered.clone(), now)], ..Commit::default() };
    if let Err(error) = shared.ledger.commit(commit).wait() {
        tracing::warn!(%error, "how long a request is remembered could not be recorded");
    }
}
