//! What happened, read from the facts: events, the transcript, decisions. Pages go forward from a seq, or are the
//! newest so many.

use std::fmt;
use std::sync::Arc;

use abide_api::Problem;
use abide_api::types::Page;
use abide_engine::fold::decode;
use abide_kernel::fact::Fact;
use abide_kernel::id::AgentId;
use abide_kernel::pack;
use abide_kernel::transcript;
use abide_ledger::{Ledger, Recorded, StreamId};
use serde_json::{Value, json as object};

use super::{Met, agent, blocking, json};
use crate::gate::Call;
use crate::problems;

/// What one fact is in a history: mostly one entry, or none.
type View = fn(&StreamId, &AgentId, &Recorded) -> Vec<Value>;

/// Facts that are read at once, and at most for one page: a page of a history that has few entries may be short.
const BATCH: usize = 1_000;
const SCANNED_MAX: u64 = 50_000;

pub(super) async fn list(call: Call, view: View) -> Met {
    let id = agent(&call)?;
    let (limit, last) = (call.query.limit()?, call.query.last()?);
    let after = place(&call)?;
    if last.is_some() && after.is_some() {
        return Err(Problem::new(400, "bad_query", "give after or last, not both"));
    }
    let app = Arc::clone(&call.app);
    let page = blocking(move || {
        let ledger = app.host.ledger();
        match last {
            Some(last) => newest(ledger, &id, view, last),
            None => forward(ledger, &id, view, after.unwrap_or_default(), limit),
        }
    })
    .await?;
    Ok(json(200, &page))
}

/// Where a page ends: a fact whose entries were all shown, and how many of the next one's were.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    seq: u64,
    shown: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shown {
            0 => write!(f, "{}", self.seq),
            shown => write!(f, "{}.{shown}", self.seq),
        }
    }
}

/// A seq; and where one fact may have several entries, a place within the fact after it.
fn place(call: &Call) -> Result<Option<Place>, Problem> {
    let whole = call.operation.query.iter().any(|param| param.name == "after" && param.number);
    let within = call.query.text("after").filter(|_| !whole).and_then(|after| after.split_once('.'));
    let Some((seq, shown)) = within else {
        return Ok(call.query.number("after")?.map(|seq| Place { seq, shown: 0 }));
    };
    let digits = [seq, shown].iter().all(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    match (seq.parse(), shown.parse()) {
        (Ok(seq), Ok(shown)) if digits => Ok(Some(Place { seq, shown })),
        (Ok(_) | Err(_), _) => {
            let detail = format!("after takes the next of the page before, not {seq:?}.{shown:?}");
            Err(Problem::new(400, "bad_query", detail))
        }
    }
}

fn head(ledger: &Ledger, id: &AgentId) -> Result<(StreamId, u64), Problem> {
    let stream = StreamId::agent(id);
    let head = ledger.head(&stream).map_err(|error| problems::unreadable(&error))?;
    let head = head.ok_or_else(|| problems::no_agent(id.as_str()))?;
    Ok((stream, head.seq))
}

fn forward(ledger: &Ledger, id: &AgentId, view: View, after: Place, limit: usize) -> Result<Page<Value>, Problem> {
    let (stream, head) = head(ledger, id)?;
    let mut items = Vec::new();
    let mut place = after;
    let until = after.seq.saturating_add(SCANNED_MAX);
    while place.seq < head && place.seq < until {
        let facts = ledger.read(&stream, place.seq, BATCH.min(limit.max(64)));
        for recorded in &facts.map_err(|error| problems::unreadable(&error))? {
            let entries = view(&stream, id, recorded);
            let (more, room) = (entries.len().saturating_sub(place.shown), limit - items.len());
            if more > 0 && room == 0 {
                return Ok(Page { items, next: Some(place.to_string()) });
            }
            items.extend(entries.into_iter().skip(place.shown).take(room));
            if more > room {
                place.shown += room;
                return Ok(Page { items, next: Some(place.to_string()) });
            }
            place = Place { seq: recorded.seq, shown: 0 };
        }
    }
    Ok(Page { items, next: (place.seq < head).then(|| place.to_string()) })
}

fn newest(ledger: &Ledger, id: &AgentId, view: View, last: usize) -> Result<Page<Value>, Problem> {
    let (stream, head) = head(ledger, id)?;
    let mut items: Vec<Value> = Vec::new();
    let mut end = head;
    // Where every fact is an entry, these are all; where few are, the next look takes more.
    let mut batch = last.min(BATCH);
    while end > 0 && items.len() < last && head - end < SCANNED_MAX {
        let begin = end.saturating_sub(batch as u64);
        let wanted = usize::try_from(end - begin).unwrap_or(batch);
        batch = (batch * 4).min(BATCH);
        let facts = ledger.read(&stream, begin, wanted).map_err(|error| problems::unreadable(&error))?;
        let earlier: Vec<Value> = facts.iter().flat_map(|recorded| view(&stream, id, recorded)).collect();
        items = earlier.into_iter().chain(items).collect();
        end = begin;
    }
    let surplus = items.len().saturating_sub(last);
    Ok(Page { items: items.split_off(surplus), next: None })
}

/// A fact as it goes out.
pub(super) fn event(id: &str, recorded: &Recorded) -> Value {
    let data = recorded.payload.stored().and_then(|stored| pack::read_stored::<Value>(stored).ok());
    let mut event = object!({ "seq": recorded.seq, "at": recorded.at, "agent_id": id, "kind": &*recorded.kind });
    match data {
        Some(data) => event["data"] = data,
        None => {
            event["data"] = Value::Null;
            event["redacted"] = Value::Bool(true);
        }
    }
    event
}

pub(super) fn events(_: &StreamId, id: &AgentId, recorded: &Recorded) -> Vec<Value> {
    vec![event(id.as_str(), recorded)]
}

pub(super) fn transcript(stream: &StreamId, _: &AgentId, recorded: &Recorded) -> Vec<Value> {
    let Ok(fact) = decode(stream, recorded) else { return Vec::new() };
    let entries = transcript::entries(recorded.seq, recorded.at, &fact);
    entries.iter().map(|entry| serde_json::to_value(entry).unwrap_or_default()).collect()
}

pub(super) fn decisions(stream: &StreamId, _: &AgentId, recorded: &Recorded) -> Vec<Value> {
    match decode(stream, recorded) {
        Ok(Fact::SchedulerDecided(fact)) => {
            vec![object!({ "seq": recorded.seq, "at": recorded.at, "decision": fact.decision })]
        }
        Ok(_) | Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use abide_kernel::time::Time;
    use abide_ledger::{Commit, NewFact};

    use super::*;

    static LOOKED: AtomicUsize = AtomicUsize::new(0);

    /// Every tenth fact is an entry.
    fn seldom(_: &StreamId, _: &AgentId, recorded: &Recorded) -> Vec<Value> {
        LOOKED.fetch_add(1, Ordering::Relaxed);
        recorded.seq.is_multiple_of(10).then(|| Value::from(recorded.seq)).into_iter().collect()
    }

    #[test]
    fn the_newest_are_found_without_looking_at_much_more() {
        let (ledger, id) = (Ledger::memory(), AgentId::new("a").unwrap());
        let facts = (0..3_000).map(|_| NewFact::new("Said", b"{}".to_vec())).collect();
        ledger.commit(Commit::append(StreamId::agent(&id), 0, Time::from_ms(1), facts)).wait().unwrap();
        let found = |last| {
            LOOKED.store(0, Ordering::Relaxed);
            let page = newest(&ledger, &id, seldom, last).unwrap();
            let seqs: Vec<u64> = page.items.iter().filter_map(Value::as_u64).collect();
            assert!(seqs.is_sorted() && seqs.last() == Some(&3_000), "{seqs:?}");
            (seqs.len(), LOOKED.load(Ordering::Relaxed))
        };
        assert_eq!(found(1), (1, 1));
        assert_eq!(found(2), (2, 42));
        assert_eq!(found(1_000), (300, 3_000));
    }
}
