//! An agent's past, read from its records for whoever asks the model: no more than a prompt could hold.

use std::collections::BTreeSet;

use abide_effects::model;
use abide_engine::fold::decode;
use abide_kernel::Fact;
use abide_kernel::id::{AgentId, Seq};
use abide_kernel::prompt::talk::{Spoken, Told, talk};
use abide_ledger::{Ledger, StreamId};
use serde_json::Value;

const BATCH: u64 = 256;
/// Facts that are read for one prompt. What lies before them should have been summarised long ago.
const FACTS_MAX: u64 = 20_000;
/// Bytes of them, as stored.
const BYTES_MAX: usize = 8 << 20;

/// What was said since `after`, oldest first, and whether there was more than is read.
pub(super) struct Past {
    pub turns: Vec<Spoken>,
    pub left_out: bool,
}

pub(super) fn read(ledger: &Ledger, agent: &AgentId, after: Seq) -> Result<Past, String> {
    let stream = StreamId::agent(agent);
    let head = ledger.head(&stream).map_err(|error| error.to_string())?.map_or(0, |head| head.seq);
    let (mut batches, mut bytes, mut end) = (Vec::new(), 0, head);
    while end > after && head - end < FACTS_MAX && bytes < BYTES_MAX {
        let begin = end.saturating_sub(BATCH).max(after);
        let told = told(ledger, &stream, begin, end - begin, &mut bytes)?;
        batches.push(told);
        end = begin;
    }
    batches.reverse();
    let near: Vec<Told> = batches.into_iter().flatten().collect();
    // A turn may be about a message that lies before all of this.
    let far: BTreeSet<Seq> = near.iter().filter_map(message_seq).filter(|seq| *seq <= end).collect();
    let mut facts = Vec::new();
    for seq in far {
        facts.extend(told(ledger, &stream, seq - 1, 1, &mut bytes)?);
    }
    facts.extend(near);
    Ok(Past { turns: talk(&facts), left_out: end > after })
}

#[allow(clippy::wildcard_enum_match_arm, reason = "of all facts, a turn's beginning is meant")]
fn message_seq(told: &Told) -> Option<Seq> {
    match &told.fact {
        Fact::TurnStarted(started) => started.message_seq,
        _ => None,
    }
}

/// A fact that was cut out of the records is passed over: nobody is to see it.
fn told(ledger: &Ledger, stream: &StreamId, after: Seq, count: u64, bytes: &mut usize) -> Result<Vec<Told>, String> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let recorded = ledger.read(stream, after, count).map_err(|error| error.to_string())?;
    let mut told = Vec::with_capacity(recorded.len());
    for recorded in &recorded {
        let Some(payload) = recorded.payload.stored() else { continue };
        *bytes += payload.len();
        let fact = decode(stream, recorded).map_err(|damage| damage.to_string())?;
        told.push(Told { seq: recorded.seq, at: recorded.at, fact });
    }
    Ok(told)
}

/// What its calls came to, for scripts that ask: a few reads of the disk, and most never ask.
#[derive(Debug)]
pub(super) struct Results {
    pub ledger: Ledger,
    pub stream: StreamId,
}

/// How far back anybody looks for a result.
const SCANNED_MAX: u64 = 20_000;

impl model::Past for Results {
    fn tool_results(&self, count: usize) -> Vec<Value> {
        let mut results = Vec::new();
        let Ok(Some(head)) = self.ledger.head(&self.stream) else { return results };
        let mut end = head.seq;
        while end > 0 && results.len() < count && head.seq - end < SCANNED_MAX {
            let begin = end.saturating_sub(BATCH);
            let wanted = usize::try_from(end - begin).unwrap_or_default();
            let Ok(facts) = self.ledger.read(&self.stream, begin, wanted) else { break };
            let finished = facts.iter().rev().filter_map(|recorded| match decode(&self.stream, recorded) {
                Ok(Fact::ToolFinished(finished)) => Some(finished.result),
                Ok(_) | Err(_) => None,
            });
            results.extend(finished);
            end = begin;
        }
        results.truncate(count);
        results
    }
}
