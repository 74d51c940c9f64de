//! Finding a stream's history: through table and segments alike, and through the streams it forks from.
//!
//! A view lives inside one read transaction, so that what it sees in the tables fits together while facts move into
//! the archive.

use abide_kernel::id::Seq;
use rusqlite::{Connection, OptionalExtension};

use super::fact::{Part, RawFact, Store, read_error};
use crate::error::{Damage, ReadError};
use crate::hash::Hash;
use crate::record::{Bounds, BytesLeft, Head, Recorded};
use crate::stream::StreamId;

/// A stream and where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamHead {
    pub id: i64,
    pub seq: Seq,
    pub hash: Hash,
    /// The rowid of the last fact.
    pub fact: u64,
}

impl StreamHead {
    pub(crate) fn head(&self) -> Head {
        Head { seq: self.seq, hash: self.hash }
    }
}

/// The part of a history that one stream holds: facts after `floor` up to `top`.
#[derive(Debug, Clone, Copy)]
struct HistoryRange {
    stream: i64,
    floor: Seq,
    top: Seq,
    /// Rowids: of the first fact this stream ever had, and of the fact at `top`.
    born: u64,
    fact: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub conn: &'a Connection,
    pub store: &'a Store,
    /// Facts up to this rowid are in segments, all later ones in the table.
    pub archived: u64,
}

/// A read becomes a scan when at most this many rows are passed over for each one wanted: stepping to the next row
/// costs about a tenth of looking one up.
const SCAN_FACTOR: u64 = 8;

impl<'a> View<'a> {
    pub(crate) fn new(conn: &'a Connection, store: &'a Store) -> Result<View<'a>, ReadError> {
        let archived = conn
            .prepare_cached("SELECT last FROM segments ORDER BY first DESC LIMIT 1")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)).optional())
            .map_err(read_error)?
            .unwrap_or(0);
        Ok(View { conn, store, archived })
    }

    pub(crate) fn head(&self, stream: &StreamId) -> Result<Option<StreamHead>, ReadError> {
        let sql =
            "SELECT s.id, h.seq, h.hash, h.fact FROM streams s LEFT JOIN heads h ON h.stream = s.id WHERE s.name = ?";
        let mut statement = self.conn.prepare_cached(sql).map_err(read_error)?;
        let found = statement
            .query_row([stream.as_str()], |row| {
                Ok((
                    row.get(0)?,
                    row.get::<_, Option<u64>>(1)?,
                    row.get::<_, Option<Vec<u8>>>(2)?,
                    row.get::<_, Option<u64>>(3)?,
                ))
            })
            .optional()
            .map_err(read_error)?;
        let Some((id, seq, hash, fact)) = found else { return Ok(None) };
        match (seq, hash.as_deref().and_then(Hash::from_slice), fact) {
            (Some(seq), Some(hash), Some(fact)) => Ok(Some(StreamHead { id, seq, hash, fact })),
            (_, _, _) => Err(ReadError::damaged(Damage::Stream {
                stream: stream.to_string(),
                what: "its head is missing".to_owned(),
            })),
        }
    }

    /// The stream's own reach first, then its parent's, and so on.
    fn lineage(&self, stream: &StreamId, head: &StreamHead) -> Result<Vec<HistoryRange>, ReadError> {
        let sql = "SELECT born, parent, fork_seq, fork_fact FROM streams WHERE id = ?";
        let mut statement = self.conn.prepare_cached(sql).map_err(read_error)?;
        let (mut id, mut top, mut fact) = (head.id, head.seq, head.fact);
        let mut lineage = Vec::with_capacity(1);
        loop {
            let row = |row: &rusqlite::Row<'_>| -> Result<(u64, Option<i64>, u64, u64), rusqlite::Error> {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            };
            let found = statement.query_row([id], row).optional().map_err(read_error)?;
            // A parent is older than its fork, so its id is smaller: no damage makes this go round.
            let Some((born, parent, fork_seq, fork_fact)) =
                found.filter(|(_, parent, fork_seq, _)| parent.is_none_or(|parent| parent < id && *fork_seq > 0))
            else {
                let what = "the stream it forks from is not what it was".to_owned();
                return Err(ReadError::damaged(Damage::Stream { stream: stream.to_string(), what }));
            };
            if fork_seq < top {
                lineage.push(HistoryRange { stream: id, floor: fork_seq, top, born, fact });
            }
            let Some(parent) = parent else { return Ok(lineage) };
            // A fork of a fork may begin before its parent's own first fact.
            if fork_seq <= top {
                (top, fact) = (fork_seq, fork_fact);
            }
            id = parent;
        }
    }

    /// Facts after `after`, chain checked. The head itself is checked when the read reaches it.
    pub(crate) fn read(
        &self,
        stream: &StreamId,
        head: &StreamHead,
        after: Seq,
        bounds: Bounds,
    ) -> Result<Vec<Recorded>, ReadError> {
        let last = head.seq.min(after.saturating_add(bounds.items as u64));
        if after >= last {
            return Ok(Vec::new());
        }
        // One fact more, in front: the chain goes on from its hash.
        let from = after.saturating_sub(1);
        let mut raw = Vec::with_capacity(usize::try_from(last - from).unwrap_or(0).min(1 << 20));
        for reach in self.lineage(stream, head)?.iter().rev() {
            let (low, high) = (from.max(reach.floor), last.min(reach.top));
            if low < high {
                self.collect(stream, reach, low, high, &mut raw)?;
            }
        }
        if raw.len() as u64 != last - from {
            return Err(ReadError::damaged(missing_fact(stream, from + 1)));
        }
        let mut raw = raw.into_iter();
        let mut prev = if after == 0 { Hash::NONE } else { raw.next().map_or(Hash::NONE, |fact| fact.hash) };
        let (mut facts, mut left) = (Vec::with_capacity(raw.len()), BytesLeft::of(bounds));
        let mut more = true;
        for fact in raw {
            if !more {
                return Ok(facts);
            }
            let fact = self.store.recorded(self.conn, stream, &prev, fact)?;
            prev = fact.hash;
            more = left.count(&fact);
            facts.push(fact);
        }
        if last == head.seq && prev != head.hash {
            let what = "it is not the fact that the stream's head names".to_owned();
            return Err(ReadError::damaged(Damage::Fact { stream: stream.clone(), seq: last, what }));
        }
        Ok(facts)
    }

    /// Where the fact is that a fork begins from, and its hash.
    pub(crate) fn locate(&self, stream: &StreamId, head: &StreamHead, seq: Seq) -> Result<(u64, Hash), ReadError> {
        let missing = || ReadError::damaged(missing_fact(stream, seq));
        for reach in self.lineage(stream, head)? {
            if reach.floor < seq && seq <= reach.top {
                let mut found = Vec::new();
                self.collect(stream, &reach, seq - 1, seq, &mut found)?;
                return found.first().map(|fact| (fact.id, fact.hash)).ok_or_else(missing);
            }
        }
        Err(missing())
    }

    /// Appends the facts after `low` up to `high`, which lie in `reach`, in order.
    fn collect(
        &self,
        stream: &StreamId,
        reach: &HistoryRange,
        low: Seq,
        high: Seq,
        into: &mut Vec<RawFact>,
    ) -> Result<(), ReadError> {
        let mark = |sql: &str, from: Seq, to: Seq| {
            let found =
                |row: &rusqlite::Row<'_>| -> Result<(Seq, u64), rusqlite::Error> { Ok((row.get(0)?, row.get(1)?)) };
            let mut statement = self.conn.prepare_cached(sql)?;
            statement.query_row((reach.stream, from, to), found).optional()
        };
        let above = "SELECT seq, fact FROM marks WHERE stream = ? AND seq >= ? AND seq <= ? ORDER BY seq LIMIT 1";
        let below = "SELECT seq, fact FROM marks WHERE stream = ? AND seq > ? AND seq <= ? ORDER BY seq DESC LIMIT 1";
        let above = if high < reach.top { mark(above, high, reach.top).map_err(read_error)? } else { None };
        let (top, end) = above.unwrap_or((reach.top, reach.fact));
        let (bottom, begin) =
            mark(below, reach.floor, low + 1).map_err(read_error)?.unwrap_or((reach.floor + 1, reach.born));
        let start = into.len();
        let dense = end.saturating_sub(begin) <= SCAN_FACTOR * top.saturating_sub(low);
        // Rowids grow at least as fast as sequences, so where facts of a stream lie side by side, as an agent alone at
        // work writes them, the scan passes over nothing. A mark may be damaged: no arithmetic on it overflows.
        let first = begin.saturating_add((low + 1).saturating_sub(bottom));
        let last = end.saturating_sub(top.saturating_sub(high));
        let part = Part { stream: reach.stream, first: low + 1, last: high };
        let scanned = dense
            && self
                .scan(first, last, Some(part), &mut |fact| {
                    into.push(fact);
                    true
                })
                .is_ok();
        // A scan passes over facts that nobody asked for; damage to one of those must not stand in the way.
        if !scanned {
            into.truncate(start);
            self.walk(stream, reach, end, top, low, high, into)?;
        }
        let expected =
            (low + 1..=high).zip(into[start..].iter().map(|fact| Some(fact.seq)).chain(std::iter::repeat(None)));
        match expected.into_iter().find(|(seq, found)| *found != Some(*seq)) {
            Some((seq, _)) => Err(ReadError::damaged(missing_fact(stream, seq))),
            None => Ok(()),
        }
    }

    /// From the fact at (`top`, rowid `end`) back along the pointers.
    #[expect(clippy::too_many_arguments, reason = "a range within a range; naming the pair would not make it clearer")]
    fn walk(
        &self,
        stream: &StreamId,
        reach: &HistoryRange,
        end: u64,
        top: Seq,
        low: Seq,
        high: Seq,
        into: &mut Vec<RawFact>,
    ) -> Result<(), ReadError> {
        let (start, mut id) = (into.len(), end);
        for seq in (low + 1..=top).rev() {
            let fact = self.fact(id)?.filter(|fact| fact.seq == seq && fact.stream == reach.stream && fact.prev < id);
            let Some(fact) = fact else { return Err(ReadError::damaged(missing_fact(stream, seq))) };
            id = fact.prev;
            if seq <= high {
                into.push(fact);
            }
        }
        into[start..].reverse();
        Ok(())
    }

    pub(crate) fn fact(&self, id: u64) -> Result<Option<RawFact>, ReadError> {
        if id <= self.archived {
            return self.store.segments.fact(self.conn, id);
        }
        let mut statement = self.conn.prepare_cached(FACT_BY_ID).map_err(read_error)?;
        statement.query_row([id], RawFact::from_row).optional().map_err(read_error)
    }

    /// Facts from rowid `first` to `last`, all or one stream's part, in commit order, until `each` says false.
    pub(crate) fn scan(
        &self,
        first: u64,
        last: u64,
        part: Option<Part>,
        each: &mut dyn FnMut(RawFact) -> bool,
    ) -> Result<(), ReadError> {
        if first <= self.archived && !self.store.segments.scan(self.conn, first, last.min(self.archived), part, each)? {
            return Ok(());
        }
        let first = first.max(self.archived + 1);
        if first > last {
            return Ok(());
        }
        // One statement each, so that neither carries a condition it does not need.
        let mut statement =
            self.conn.prepare_cached(if part.is_some() { SCAN_PART } else { SCAN_ALL }).map_err(read_error)?;
        let mut rows = match part {
            Some(part) => statement.query((first, last, part.stream, part.first, part.last)),
            None => statement.query((first, last)),
        }
        .map_err(read_error)?;
        while let Some(row) = rows.next().map_err(read_error)? {
            if !each(RawFact::from_row(row).map_err(read_error)?) {
                break;
            }
        }
        Ok(())
    }

    /// The rowid of the last fact.
    pub(crate) fn end(&self) -> Result<u64, ReadError> {
        let mut statement = self.conn.prepare_cached("SELECT max(id) FROM facts").map_err(read_error)?;
        let last: Option<u64> = statement.query_row([], |row| row.get(0)).map_err(read_error)?;
        Ok(last.unwrap_or(0).max(self.archived))
    }
}

pub(crate) const FACT_BY_ID: &str = "SELECT id, stream, seq, link, payload FROM facts WHERE id = ?";
const SCAN_ALL: &str = "SELECT id, stream, seq, link, payload FROM facts WHERE id BETWEEN ? AND ? ORDER BY id";
const SCAN_PART: &str = "SELECT id, stream, seq, link, payload FROM facts
    WHERE id BETWEEN ? AND ? AND stream = ? AND seq BETWEEN ? AND ? ORDER BY id";

fn missing_fact(stream: &StreamId, seq: Seq) -> Damage {
    Damage::Fact { stream: stream.clone(), seq, what: "it is not where the facts around it say it is".to_owned() }
}
