//! The content of the memory store: one log of all facts, and per stream the places of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use abide_kernel::id::Seq;
use abide_kernel::time::Time;

use super::Answered;
use crate::commit::{Committed, ForkPoint, Wake};
use crate::error::{CommitError, Damage};
use crate::hash::{BlobId, Hash};
use crate::prepared::{Body, Prepared, PreparedAppend, PreparedFact};
use crate::program::{OldestReader, Program};
use crate::record::{Bounds, BytesLeft, Cursor, Head, INLINE_LIMIT, Loaded, Payload, Recorded, Row, Snapshot};
use crate::rows::RowTable;
use crate::stream::StreamId;
use crate::upkeep::VerifyReport;
use crate::{RowsOf, SNAPSHOTS_KEPT};

#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    log: Vec<(usize, Recorded)>,
    lanes: Vec<Lane>,
    names: BTreeMap<StreamId, usize>,
    wakes: BTreeSet<(Option<Time>, usize)>,
    kinds: HashSet<Arc<str>>,
    large: HashMap<BlobId, Arc<[u8]>>,
    oldest_reader: u32,
}

/// One stream.
#[derive(Debug, Clone)]
struct Lane {
    stream: StreamId,
    fork: Option<(usize, Seq)>,
    /// Places in the log of its own facts; the first has the sequence after the fork point, or 1.
    own: Vec<usize>,
    head: Head,
    rows: RowTable,
    wake: Option<Wake>,
    /// Oldest first.
    snapshots: Vec<Snapshot>,
}

impl Lane {
    fn base(&self) -> Seq {
        self.fork.map_or(0, |(_, seq)| seq)
    }
}

impl State {
    pub(crate) fn len(&self) -> u64 {
        self.log.len() as u64
    }

    pub(crate) fn commit(&mut self, prepared: Prepared) -> Answered {
        self.check(&prepared)?;
        self.oldest_reader = self.oldest_reader.max(prepared.reader);
        let mut heads = Vec::with_capacity(prepared.appends.len());
        for append in prepared.appends {
            heads.push(self.append(append));
        }
        for (stream, wake) in prepared.wakes {
            self.set_wake(&stream, wake);
        }
        for snapshot in prepared.snapshots {
            if let Some(&lane) = self.names.get(&snapshot.stream) {
                let kept = &mut self.lanes[lane].snapshots;
                kept.retain(|other| other.seq != snapshot.seq);
                kept.push(snapshot);
                kept.sort_by_key(|snapshot| snapshot.seq);
                let surplus = kept.len().saturating_sub(SNAPSHOTS_KEPT);
                kept.drain(..surplus);
            }
        }
        Ok(Committed { heads, cursor: Cursor(self.len()) })
    }

    /// Everything that can be refused is refused here, before the first change.
    fn check(&self, prepared: &Prepared) -> Result<(), CommitError> {
        for append in &prepared.appends {
            let actual = self.head(&append.stream).map_or(0, |head| head.seq);
            if actual != append.expected {
                let stream = append.stream.clone();
                return Err(CommitError::Conflict { stream, expected: append.expected, actual });
            }
            if let Some(ForkPoint { parent, seq, .. }) = &append.fork_of {
                let last = self.head(parent).map_or(0, |head| head.seq);
                if *seq == 0 || *seq > last {
                    return Err(CommitError::NoForkPoint { parent: parent.clone(), seq: *seq, last });
                }
            }
        }
        for (stream, _) in &prepared.wakes {
            self.head_after(prepared, stream)?;
        }
        for snapshot in &prepared.snapshots {
            if snapshot.seq == 0 || snapshot.seq > self.head_after(prepared, &snapshot.stream)? {
                let what = "a snapshot is of a sequence that exists";
                return Err(CommitError::Malformed { stream: snapshot.stream.clone(), what });
            }
        }
        Ok(())
    }

    fn head_after(&self, prepared: &Prepared, stream: &StreamId) -> Result<Seq, CommitError> {
        prepared
            .seq_after(stream)
            .or_else(|| self.head(stream).map(|head| head.seq))
            .ok_or_else(|| CommitError::NoStream { stream: stream.clone() })
    }

    fn append(&mut self, append: PreparedAppend) -> Head {
        let lane = match self.names.get(&append.stream) {
            Some(&lane) => lane,
            None => self.create(&append),
        };
        let mut head = self.lanes[lane].head;
        for fact in append.facts {
            let seq = head.seq + 1;
            let hash = head.hash.then(seq, append.at, &fact.kind, &fact.digest);
            head = Head { seq, hash };
            let PreparedFact { kind, body, digest, rows } = fact;
            for op in &rows {
                self.lanes[lane].rows.apply(seq, op);
            }
            let payload = match body {
                Body::Stored(bytes) => Payload::Stored(self.keep(bytes, digest)),
                Body::Redacted => Payload::Redacted { digest },
            };
            let kind = self.intern(&kind);
            self.lanes[lane].own.push(self.log.len());
            self.log.push((lane, Recorded { seq, at: append.at, kind, payload, hash }));
        }
        self.lanes[lane].head = head;
        head
    }

    fn create(&mut self, append: &PreparedAppend) -> usize {
        let mut rows = RowTable::default();
        let (fork, head) = match &append.fork_of {
            None => (None, Head { seq: 0, hash: Hash::NONE }),
            Some(point) => {
                for (seq, op) in &point.rows {
                    rows.apply(*seq, op);
                }
                let parent = self.names[&point.parent];
                let hash = self.fact(parent, point.seq).hash;
                (Some((parent, point.seq)), Head { seq: point.seq, hash })
            }
        };
        let lane = self.lanes.len();
        let stream = append.stream.clone();
        self.names.insert(stream.clone(), lane);
        self.lanes.push(Lane { stream, fork, own: Vec::new(), head, rows, wake: None, snapshots: Vec::new() });
        lane
    }

    fn keep(&mut self, bytes: Vec<u8>, digest: Hash) -> Arc<[u8]> {
        if bytes.len() <= INLINE_LIMIT {
            return Arc::from(bytes);
        }
        Arc::clone(self.large.entry(BlobId(digest)).or_insert_with(|| Arc::from(bytes)))
    }

    fn intern(&mut self, kind: &str) -> Arc<str> {
        if let Some(known) = self.kinds.get(kind) {
            return Arc::clone(known);
        }
        let kind: Arc<str> = Arc::from(kind);
        self.kinds.insert(Arc::clone(&kind));
        kind
    }

    fn set_wake(&mut self, stream: &StreamId, wake: Option<Wake>) {
        let Some(&lane) = self.names.get(stream) else { return };
        if let Some(old) = &self.lanes[lane].wake {
            self.wakes.remove(&(old.due, lane));
        }
        if let Some(new) = &wake {
            self.wakes.insert((new.due, lane));
        }
        self.lanes[lane].wake = wake;
    }

    /// A fact of the lane's visible history. The sequence must be in it.
    fn fact(&self, lane: usize, seq: Seq) -> &Recorded {
        &self.log[self.place_of(lane, seq)].1
    }

    /// Where in the log that fact is.
    fn place_of(&self, mut lane: usize, seq: Seq) -> usize {
        while let Some((parent, base)) = self.lanes[lane].fork
            && seq <= base
        {
            lane = parent;
        }
        let own = &self.lanes[lane];
        own.own[place(seq - own.base() - 1)]
    }

    pub(crate) fn head(&self, stream: &StreamId) -> Option<Head> {
        self.names.get(stream).map(|&lane| self.lanes[lane].head)
    }

    pub(crate) fn origin(&self, stream: &StreamId) -> Option<(StreamId, Seq)> {
        let (parent, seq) = self.lanes[*self.names.get(stream)?].fork?;
        Some((self.lanes[parent].stream.clone(), seq))
    }

    pub(crate) fn streams(&self, after: Option<&StreamId>, limit: usize) -> Vec<(StreamId, Head)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        let names = self.names.range((from, Unbounded)).take(limit);
        names.map(|(stream, &lane)| (stream.clone(), self.lanes[lane].head)).collect()
    }

    pub(crate) fn read(&self, stream: &StreamId, after: Seq, bounds: Bounds) -> Vec<Recorded> {
        let Some(&lane) = self.names.get(stream) else { return Vec::new() };
        let last = self.lanes[lane].head.seq.min(after.saturating_add(bounds.items as u64));
        let (mut facts, mut left) = (Vec::new(), BytesLeft::of(bounds));
        for seq in after + 1..=last {
            let fact = self.fact(lane, seq).clone();
            let more = left.count(&fact);
            facts.push(fact);
            if !more {
                break;
            }
        }
        facts
    }

    pub(crate) fn load(&self, stream: &StreamId, fingerprint: &str) -> Option<Loaded> {
        let lane = &self.lanes[*self.names.get(stream)?];
        let snapshot = lane.snapshots.iter().rev().find(|snapshot| snapshot.fingerprint == fingerprint).cloned();
        let after = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
        Some(Loaded { head: lane.head, snapshot, tail: self.read(stream, after, Bounds::TAIL) })
    }

    pub(crate) fn after(&self, cursor: Cursor, bounds: Bounds) -> Vec<(Cursor, StreamId, Recorded)> {
        let from = place(cursor.0);
        let (mut facts, mut left) = (Vec::new(), BytesLeft::of(bounds));
        for (i, (lane, fact)) in self.log.iter().enumerate().skip(from).take(bounds.items) {
            facts.push((Cursor(i as u64 + 1), self.lanes[*lane].stream.clone(), fact.clone()));
            if !left.count(fact) {
                break;
            }
        }
        facts
    }

    pub(crate) fn visit_rows(
        &self,
        stream: &StreamId,
        plane: &str,
        after: Option<&str>,
        visit: &mut dyn FnMut(Row) -> bool,
    ) {
        if let Some(&lane) = self.names.get(stream) {
            self.lanes[lane].rows.visit(plane, after, visit);
        }
    }

    pub(crate) fn row_ids(&self, plane: &str) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        for lane in self.lanes.iter().filter(|lane| lane.stream.agent_name().is_some()) {
            lane.rows.visit(plane, None, &mut |row| {
                ids.insert(row.id);
                true
            });
        }
        ids
    }

    pub(crate) fn wakes(&self, due_by: Option<Time>, limit: usize) -> Vec<(StreamId, Wake)> {
        let due = self.wakes.iter().take_while(|(due, _)| due_by.is_none_or(|by| due.is_none_or(|due| due <= by)));
        due.filter_map(|(_, lane)| {
            let lane = &self.lanes[*lane];
            Some((lane.stream.clone(), lane.wake.clone()?))
        })
        .take(limit)
        .collect()
    }

    pub(crate) fn wakes_because(&self, why: &str) -> Vec<StreamId> {
        let all = self.wakes(None, usize::MAX).into_iter();
        all.filter(|(_, wake)| wake.why == why).map(|(stream, _)| stream).collect()
    }

    pub(crate) fn due(&self, after: Time, until: Time, limit: usize) -> Vec<(StreamId, Time)> {
        let timed = self.wakes.iter().filter_map(|(due, lane)| Some((due.as_ref()?, lane)));
        timed
            .filter(|(due, _)| **due > after && **due <= until)
            .map(|(due, lane)| (self.lanes[*lane].stream.clone(), *due))
            .take(limit)
            .collect()
    }

    pub(crate) fn waits_recorded_after(&self, now: Time) -> Vec<StreamId> {
        let later = |lane: &&Lane| lane.own.last().is_some_and(|place| self.log[*place].1.at > now);
        let waits = |lane: &&Lane| lane.wake.as_ref().is_some_and(|wake| wake.due.is_some());
        self.lanes.iter().filter(waits).filter(later).map(|lane| lane.stream.clone()).collect()
    }

    pub(crate) fn large_payload(&self, id: &BlobId) -> Option<&Arc<[u8]>> {
        self.large.get(id)
    }

    pub(crate) fn large_payload_ids(&self) -> impl Iterator<Item = BlobId> {
        self.large.keys().copied()
    }

    /// Cuts the payload out, wherever in the stream's lineage the fact lives. False when there is no such fact.
    pub(crate) fn redact(&mut self, stream: &StreamId, seq: Seq) -> bool {
        let Some(&lane) = self.names.get(stream).filter(|&&lane| seq > 0 && seq <= self.lanes[lane].head.seq) else {
            return false;
        };
        let at = self.place_of(lane, seq);
        let digest = self.log[at].1.payload.digest();
        self.log[at].1.payload = Payload::Redacted { digest };
        for lane in &mut self.lanes {
            lane.snapshots.clear();
        }
        let still_used = |(_, fact): &(usize, Recorded)| fact.payload.stored().is_some_and(|b| Hash::of(b) == digest);
        if self.large.contains_key(&BlobId(digest)) && !self.log.iter().any(still_used) {
            self.large.remove(&BlobId(digest));
        }
        true
    }

    pub(crate) fn rebuild_rows(&mut self, rows_of: &RowsOf<'_>) {
        for lane in 0..self.lanes.len() {
            self.lanes[lane].rows = self.folded_rows(lane, rows_of);
        }
    }

    /// The rows that a lane should have.
    fn folded_rows(&self, lane: usize, rows_of: &RowsOf<'_>) -> RowTable {
        let mut rows = RowTable::default();
        let stream = &self.lanes[lane].stream;
        for seq in 1..=self.lanes[lane].head.seq {
            for op in rows_of(stream, self.fact(lane, seq)) {
                rows.apply(seq, &op);
            }
        }
        rows
    }

    /// There is nothing to be damaged but by a bug of ours: the chains, and the rows against the facts.
    pub(crate) fn verify(&self, rows_of: &RowsOf<'_>) -> VerifyReport {
        let mut report =
            VerifyReport { streams: self.lanes.len() as u64, facts: self.len(), ..VerifyReport::default() };
        report.snapshots = self.snapshots() as u64;
        report.wakes = self.wakes.len() as u64;
        for (at, lane) in self.lanes.iter().enumerate() {
            let mut prev = Hash::NONE;
            for seq in 1..=lane.head.seq {
                let fact = self.fact(at, seq);
                let hash = prev.then(fact.seq, fact.at, &fact.kind, &fact.payload.digest());
                if fact.seq != seq || fact.hash != hash {
                    let what = "its hash does not follow from its content and the fact before it".to_owned();
                    report.found(Damage::Fact { stream: lane.stream.clone(), seq, what });
                }
                if fact.payload.stored().is_none() && seq > lane.base() {
                    report.redacted.push((lane.stream.clone(), seq));
                }
                prev = fact.hash;
            }
            if prev != lane.head.hash {
                let what = "its head is not its last fact".to_owned();
                report.found(Damage::Stream { stream: lane.stream.to_string(), what });
            }
            let ought = self.folded_rows(at, rows_of);
            for (plane, id) in lane.rows.differences(&ought) {
                let what = "it is not what the facts make of it".to_owned();
                report.found(Damage::Row { stream: lane.stream.to_string(), plane, id, what });
            }
            report.rows += lane.rows.iter().count() as u64;
        }
        report
    }

    pub(crate) fn oldest_reader(&self) -> OldestReader {
        OldestReader { reader: self.oldest_reader.max(1), program: Program::default().version.to_owned() }
    }

    pub(crate) fn snapshots(&self) -> usize {
        self.lanes.iter().map(|lane| lane.snapshots.len()).sum()
    }

    pub(crate) fn stream_count(&self) -> usize {
        self.lanes.len()
    }
}

/// A place in a vector that is known to be this long.
fn place(index: u64) -> usize {
    usize::try_from(index).expect("memory does not hold more than an address can name")
}
