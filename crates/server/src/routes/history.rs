//! What happened, read from the facts: events, the transcript, decisions. Pages go forward from a seq, or are the
//! newest so many.

use std::fmt;
use std::sync::Arc;

use abide_api::types::{DecisionEntry, Event, TranscriptEntry};
use abide_api::{ErrorCode, Problem};
use abide_engine::fold::decode;
use abide_kernel::AgentState;
use abide_kernel::fact::Fact;
use abide_kernel::id::AgentId;
use abide_kernel::pack;
use abide_kernel::transcript;
use abide_ledger::{Bounds, Ledger, Recorded, StreamId};
use serde::Serialize;
use serde_json::Value;

use super::page::{Page, PageBuilder, READ_BYTES};
use super::{Met, agent, blocking, reserve};
use crate::call::Call;
use crate::problems;

/// What one fact is in a history: mostly one entry, or none.
type View<T> = fn(&StreamId, &AgentId, &Recorded) -> Vec<T>;

/// What is read at once.
const BATCH: Bounds = Bounds { items: 1_000, bytes: 1 << 20 };
/// What is read for one page, once it has an entry: a page of a history that has few entries may be short.
const SCANNED_MAX: u64 = 50_000;
const SCANNED_BYTES: usize = 64 << 20;
/// What is read for a page that has none yet. One without entries only says where to go on.
const SCANNED_IN_VAIN: u64 = 1_000_000;

pub(super) async fn list<T: Serialize + 'static>(call: Call, view: View<T>) -> Met {
    let id = agent(&call)?;
    let (limit, last) = (call.query.limit()?, call.query.last()?);
    let after = place(&call)?;
    if last.is_some() && after.is_some() {
        return Err(Problem::new(ErrorCode::BadQuery, "give after or last, not both"));
    }
    let reserved = reserve(&call, READ_BYTES).await?;
    let app = Arc::clone(&call.app);
    let page = blocking(move || {
        let ledger = app.host.ledger();
        let history = History::find(ledger, &id, view)?;
        match last {
            // A list like any other from there on: where the newest are too many for one page, it has a next.
            Some(last) => history.page(history.before_newest(last)?, last),
            None => history.page(after.unwrap_or_default(), limit),
        }
    })
    .await?;
    Ok(page.into_response(Some(reserved)))
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
            Err(Problem::new(ErrorCode::BadQuery, detail))
        }
    }
}

/// The facts of an agent, as far as they went when they were asked for.
struct History<'a, T> {
    ledger: &'a Ledger,
    stream: StreamId,
    id: &'a AgentId,
    view: View<T>,
    head: u64,
}

impl<T: Serialize> History<'_, T> {
    fn find<'a>(ledger: &'a Ledger, id: &'a AgentId, view: View<T>) -> Result<History<'a, T>, Problem> {
        let stream = StreamId::agent(id);
        let head = ledger.head(&stream).map_err(|error| problems::unreadable(&error))?;
        let head = head.ok_or_else(|| problems::no_agent(id.as_str()))?.seq;
        Ok(History { ledger, stream, id, view, head })
    }

    /// Facts after a seq, no further than the history goes.
    fn read(&self, after: u64, most: usize) -> Result<Vec<Recorded>, Problem> {
        let left = usize::try_from(self.head.saturating_sub(after)).unwrap_or(usize::MAX);
        let bounds = Bounds { items: BATCH.items.min(most).min(left), ..BATCH };
        self.ledger.read_within(&self.stream, after, bounds).map_err(|error| problems::unreadable(&error))
    }

    fn page(&self, after: Place, limit: usize) -> Result<Page, Problem> {
        let mut page = PageBuilder::new(limit);
        let mut place = after;
        let mut bytes = 0;
        while place.seq < self.head {
            let scanned = place.seq - after.seq;
            let enough = if page.is_empty() { SCANNED_IN_VAIN } else { SCANNED_MAX };
            if scanned >= enough || (bytes >= SCANNED_BYTES && !page.is_empty()) {
                break;
            }
            let facts = self.read(place.seq, limit.max(64))?;
            if facts.is_empty() {
                break;
            }
            for recorded in &facts {
                bytes += recorded.payload.stored().map_or(0, <[u8]>::len);
                for entry in (self.view)(&self.stream, self.id, recorded).iter().skip(place.shown) {
                    if !page.push(entry) {
                        return Ok(page.finish(Some(&place.to_string())));
                    }
                    place.shown += 1;
                }
                place = Place { seq: recorded.seq, shown: 0 };
            }
        }
        let next = (place.seq < self.head).then(|| place.to_string());
        Ok(page.finish(next.as_deref()))
    }

    /// The place before the newest so many entries.
    fn before_newest(&self, last: usize) -> Result<Place, Problem> {
        let mut missing = last;
        let mut end = self.head;
        // Where every fact is an entry, these are all; where few are, the next look takes more.
        let mut batch = last.min(BATCH.items);
        while end > 0 && missing > 0 && self.head - end < SCANNED_MAX {
            let begin = end.saturating_sub(batch as u64);
            batch = (batch * 4).min(BATCH.items);
            for (seq, entries) in self.entries(begin, end)?.into_iter().rev() {
                match entries.checked_sub(missing) {
                    Some(before) => return Ok(Place { seq: seq - 1, shown: before }),
                    None => missing -= entries,
                }
            }
            end = begin;
        }
        Ok(Place { seq: end, shown: 0 })
    }

    /// How many entries each fact after `begin` up to `end` has.
    fn entries(&self, begin: u64, end: u64) -> Result<Vec<(u64, usize)>, Problem> {
        let mut counts = Vec::new();
        let mut after = begin;
        while after < end {
            let facts = self.read(after, usize::try_from(end - after).unwrap_or(usize::MAX))?;
            let Some(last) = facts.last() else { break };
            after = last.seq;
            counts.extend(facts.iter().map(|fact| (fact.seq, (self.view)(&self.stream, self.id, fact).len())));
        }
        Ok(counts)
    }
}

/// A fact as it goes out.
pub(super) fn event(id: &str, recorded: &Recorded) -> Event {
    let data = recorded.payload.stored().and_then(|stored| pack::read_stored::<Value>(stored).ok());
    Event {
        seq: recorded.seq,
        at: recorded.at.to_string(),
        agent_id: id.to_owned(),
        kind: recorded.kind.to_string(),
        redacted: data.is_none(),
        data: data.unwrap_or_default(),
    }
}

pub(super) fn events(_: &StreamId, id: &AgentId, recorded: &Recorded) -> Vec<Event> {
    vec![event(id.as_str(), recorded)]
}

pub(super) fn transcript(stream: &StreamId, _: &AgentId, recorded: &Recorded) -> Vec<TranscriptEntry> {
    decode::<AgentState>(stream, recorded)
        .map_or_else(|_| Vec::new(), |fact| transcript::entries(recorded.seq, recorded.at, &fact))
}

pub(super) fn decisions(stream: &StreamId, _: &AgentId, recorded: &Recorded) -> Vec<DecisionEntry> {
    match decode::<AgentState>(stream, recorded) {
        Ok(Fact::SchedulerDecided(fact)) => {
            vec![DecisionEntry { seq: recorded.seq, at: recorded.at, decision: fact.decision.into() }]
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
        let history = History::find(&ledger, &id, seldom).unwrap();
        let found = |last| {
            LOOKED.store(0, Ordering::Relaxed);
            let place = history.before_newest(last).unwrap();
            (place.seq, LOOKED.load(Ordering::Relaxed))
        };
        assert_eq!(found(1), (2_999, 1));
        assert_eq!(found(2), (2_989, 42));
        assert_eq!(found(1_000), (0, 3_000));
    }
}
