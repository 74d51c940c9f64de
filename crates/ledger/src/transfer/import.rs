//! Taking a ledger in: all of it, or nothing.
//!
//! Every fact goes through the same check and write as a commit, inside one transaction, and must come out with the
//! hash that its line names.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::sync::Arc;

use abide_kernel::id::Seq;
use abide_kernel::pack;

use super::line::{Content, Line};
use super::{FOR_EVERY_READER, NAMES_ITS_READER, Transferred};
use crate::commit::{Committed, ForkPoint, RowOp, Wake};
use crate::error::{CommitError, ImportError, ReadError};
use crate::hash::{BlobId, Hash};
use crate::prepared::{Body, Prepared, PreparedAppend, PreparedFact};
use crate::program::{OldestReader, Program};
use crate::record::{Head, Payload, Recorded};
use crate::stream::StreamId;
use crate::upkeep::{OnProgress, Progress};
use crate::{Ledger, RowsOf};

/// Lines between two reports of progress.
const REPORT_EVERY: usize = 10_000;

/// Where an import goes, open for one change that is kept or undone whole.
pub(crate) trait Sink {
    fn head(&mut self, stream: &StreamId) -> Result<Option<Head>, CommitError>;
    /// Facts of a stream from the first to `upto`.
    fn prefix(&mut self, stream: &StreamId, upto: Seq) -> Result<Vec<Recorded>, CommitError>;
    fn put_blob(&mut self, id: BlobId, bytes: &[u8]) -> Result<(), CommitError>;
    fn get_blob(&mut self, id: &BlobId) -> Result<Vec<u8>, ReadError>;
    fn commit(&mut self, prepared: Prepared) -> Result<Committed, CommitError>;
}

impl Ledger {
    /// Takes in what `export_full` wrote. Its streams must not exist here yet. Refused with line and field, whole, when
    /// anything in it is not as it was written.
    pub fn import_full(
        &self,
        from: &mut dyn BufRead,
        rows_of: &RowsOf<'_>,
        progress: &mut OnProgress<'_>,
    ) -> Result<Transferred, ImportError> {
        let program = match self {
            Ledger::Memory(memory) => memory.program(),
            Ledger::Sqlite(sqlite) => sqlite.program(),
        };
        let mut import = |sink: &mut dyn Sink| Import::new(sink, rows_of, program).run(from, progress);
        match self {
            Ledger::Memory(memory) => memory.import(&mut import),
            Ledger::Sqlite(sqlite) => sqlite.import(&mut import),
        }
    }
}

struct Import<'a> {
    sink: &'a mut dyn Sink,
    rows_of: &'a RowsOf<'a>,
    program: Program,
    line: usize,
    counts: Transferred,
    /// Streams of this import, and where each stands.
    streams: BTreeMap<StreamId, Head>,
    /// A fork whose first fact has not come yet.
    fork: Option<(StreamId, ForkPoint)>,
    /// Streams whose head was compared.
    compared: BTreeSet<StreamId>,
}

impl<'a> Import<'a> {
    fn new(sink: &'a mut dyn Sink, rows_of: &'a RowsOf<'a>, program: Program) -> Import<'a> {
        let (streams, compared) = (BTreeMap::new(), BTreeSet::new());
        Import { sink, rows_of, program, line: 0, counts: Transferred::default(), streams, fork: None, compared }
    }

    fn run(mut self, from: &mut dyn BufRead, progress: &mut OnProgress<'_>) -> Result<Transferred, ImportError> {
        let mut hasher = blake3::Hasher::new();
        let mut text = Vec::new();
        loop {
            text.clear();
            from.read_until(b'\n', &mut text)?;
            self.line += 1;
            if text.pop() != Some(b'\n') {
                return Err(
                    self.bad("the whole line", "the file ends here, without the line \"end\": it was cut short")
                );
            }
            let digest = Hash(*hasher.finalize().as_bytes());
            hasher.update(&text).update(b"\n");
            let line = Line::parse(&text, self.line)?;
            match (self.line, &line) {
                (1, Line::First { .. }) => {}
                (1, _) | (_, Line::First { .. }) => {
                    return Err(self.bad("field \"abide_ledger\"", "an export begins with it, and has it once"));
                }
                (_, _) => {}
            }
            if let Line::End { counts, digest: named } = line {
                self.end(counts, named, digest)?;
                return match from.fill_buf()? {
                    [] => Ok(self.counts),
                    _ => {
                        self.line += 1;
                        Err(self.bad("the whole line", "something follows the end"))
                    }
                };
            }
            self.take(line)?;
            if self.line.is_multiple_of(REPORT_EVERY) {
                progress(Progress { what: "importing lines", done: self.line as u64, total: 0 });
            }
        }
    }

    fn take(&mut self, line: Line) -> Result<(), ImportError> {
        match line {
            Line::First { format, oldest_reader } => self.begin(format, oldest_reader),
            Line::Blob { id, bytes } => {
                self.counts.blobs += 1;
                Ok(self.sink.put_blob(id, &bytes)?)
            }
            Line::Fork { stream, parent, seq } => self.begin_fork(stream, parent, seq),
            Line::Fact { stream, seq, at, kind, payload, hash } => {
                let (body, payload) = self.payload(payload)?;
                let fact = Recorded { seq, at, kind: Arc::from(kind), payload, hash };
                self.fact(stream, fact, body)
            }
            Line::Wake { stream, due, why } => {
                self.known(&stream, "wake")?;
                let wakes = vec![(stream, Some(Wake { due, why }))];
                self.sink.commit(Prepared { appends: vec![], wakes, snapshots: vec![], reader: 1 })?;
                Ok(())
            }
            Line::Head { stream, seq, hash } => {
                let head = self.known(&stream, "head")?;
                if head != (Head { seq, hash }) {
                    return Err(
                        self.bad("field \"hash\"", &format!("{stream} ends at {} with {}", head.seq, head.hash))
                    );
                }
                self.compared.insert(stream);
                Ok(())
            }
            Line::End { .. } => Ok(()),
        }
    }

    fn begin(&mut self, format: u64, oldest: OldestReader) -> Result<(), ImportError> {
        let Program { reader: knows, version, .. } = self.program;
        if oldest.reader > knows {
            return Err(ImportError::NewerFacts { needs: oldest.reader, knows, version, wrote: oldest.program });
        }
        if !(FOR_EVERY_READER..=NAMES_ITS_READER).contains(&format) {
            let known = format!("format {format} is not known here, only up to {NAMES_ITS_READER}");
            return Err(self.bad("field \"abide_ledger\"", &format!("{known}: use the version that wrote it")));
        }
        // The facts say what they need themselves; what the export says is believed as well.
        let reader = oldest.reader;
        self.sink.commit(Prepared { appends: vec![], wakes: vec![], snapshots: vec![], reader })?;
        Ok(())
    }

    fn begin_fork(&mut self, stream: StreamId, parent: StreamId, seq: Seq) -> Result<(), ImportError> {
        let last = self.known(&parent, "of")?.seq;
        if seq == 0 || seq > last {
            return Err(self.bad("field \"seq\"", &format!("{parent} has facts 1 to {last}")));
        }
        let shared = self.sink.prefix(&parent, seq)?;
        let rows = shared.iter().flat_map(|fact| {
            let ops = (self.rows_of)(&stream, fact);
            ops.into_iter().map(|op| (fact.seq, op)).collect::<Vec<(Seq, RowOp)>>()
        });
        let point = ForkPoint { parent, seq, rows: rows.collect() };
        self.fork = Some((stream, point));
        Ok(())
    }

    fn fact(&mut self, stream: StreamId, fact: Recorded, body: Body) -> Result<(), ImportError> {
        let fork_of = match self.fork.take() {
            Some((fork, point)) if fork == stream => Some(point),
            Some(_) => return Err(self.bad("field \"stream\"", "the fork named before has its first fact here")),
            None => None,
        };
        if fork_of.is_some() && self.streams.contains_key(&stream) {
            return Err(self.bad("field \"stream\"", "it exists: it can't begin as a fork"));
        }
        let expected = match self.streams.get(&stream) {
            Some(head) => head.seq,
            None if self.sink.head(&stream)?.is_some() => return Err(ImportError::Exists { stream }),
            None => 0,
        };
        let before = fork_of.as_ref().map_or(expected, |point| point.seq);
        if fact.seq != before + 1 {
            return Err(self.bad("field \"seq\"", &format!("{stream} goes on with {}", before + 1)));
        }
        let rows = (self.rows_of)(&stream, &fact);
        let reader = (self.program.reader_of)(&fact.kind, fact.payload.stored().unwrap_or_default());
        let prepared = PreparedFact { kind: fact.kind.to_string().into(), body, digest: fact.payload.digest(), rows };
        let append = PreparedAppend { stream: stream.clone(), expected, at: fact.at, facts: vec![prepared], fork_of };
        let prepared = Prepared { appends: vec![append], wakes: vec![], snapshots: vec![], reader };
        let committed = self.sink.commit(prepared)?;
        let head = committed.heads[0];
        if head.hash != fact.hash {
            return Err(self.bad("field \"hash\"", &format!("what this line says has the hash {}", head.hash)));
        }
        self.counts.facts += 1;
        self.streams.insert(stream, head);
        Ok(())
    }

    fn payload(&mut self, content: Content) -> Result<(Body, Payload), ImportError> {
        let stored = match content {
            Content::Bytes(bytes) => pack::raw_to_stored(bytes),
            Content::Packed(packed) => packed,
            Content::Redacted(digest) => return Ok((Body::Redacted, Payload::Redacted { digest })),
            Content::Blob(digest) => {
                self.sink.get_blob(&BlobId(digest)).map_err(|error| self.bad("field \"blob\"", &error.to_string()))?
            }
        };
        Ok((Body::Stored(stored.clone()), Payload::Stored(Arc::from(stored))))
    }

    fn known(&self, stream: &StreamId, field: &str) -> Result<Head, ImportError> {
        let head = self.streams.get(stream).copied();
        head.ok_or_else(|| self.bad(&format!("field {field:?}"), &format!("no fact of {stream} came before")))
    }

    fn end(&mut self, counts: Transferred, named: Hash, digest: Hash) -> Result<(), ImportError> {
        self.counts.streams = self.streams.len() as u64;
        if let Some(stream) = self.streams.keys().find(|stream| !self.compared.contains(*stream)) {
            return Err(self.bad("field \"end\"", &format!("the head of {stream} is missing")));
        }
        if counts != self.counts {
            return Err(self.bad(
                "field \"end\"",
                &format!(
                    "before it came {} facts, {} streams and {} blobs",
                    self.counts.facts, self.counts.streams, self.counts.blobs
                ),
            ));
        }
        if named != digest {
            return Err(self.bad("field \"digest\"", "some line before this one was changed"));
        }
        Ok(())
    }

    fn bad(&self, field: &str, what: &str) -> ImportError {
        ImportError::Line { line: self.line, field: field.to_owned(), what: what.to_owned() }
    }
}
