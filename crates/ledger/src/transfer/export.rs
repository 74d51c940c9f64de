//! Writing a ledger out.

use std::collections::BTreeMap;
use std::io::Write;

use abide_kernel::id::Seq;
use abide_kernel::pack;
use abide_kernel::time::Time;
use serde::Serialize;

use super::{FOR_EVERY_READER, NAMES_ITS_READER, Transferred};
use crate::Ledger;
use crate::error::ExportError;
use crate::hash::{Hash, to_hex};
use crate::program::OldestReader;
use crate::record::{Cursor, Head, INLINE_LIMIT, Payload, Recorded};
use crate::stream::StreamId;
use crate::upkeep::{OnProgress, Progress};

/// Facts read at a time.
const BATCH: usize = 1000;

#[derive(Serialize)]
struct FirstLine {
    abide_ledger: u64,
    #[serde(flatten)]
    oldest_reader: Option<ReaderFields>,
}

#[derive(Serialize)]
struct ReaderFields {
    oldest_reader: u32,
    program: String,
}

impl FirstLine {
    fn of(oldest: OldestReader) -> FirstLine {
        let OldestReader { reader: oldest_reader, program } = oldest;
        match oldest_reader {
            0 | 1 => FirstLine { abide_ledger: FOR_EVERY_READER, oldest_reader: None },
            _ => {
                let oldest_reader = Some(ReaderFields { oldest_reader, program });
                FirstLine { abide_ledger: NAMES_ITS_READER, oldest_reader }
            }
        }
    }
}

#[derive(Serialize)]
struct BlobLine {
    blob: String,
    #[serde(flatten)]
    bytes: Content,
}

#[derive(Serialize)]
struct ForkLine<'a> {
    fork: &'a str,
    of: &'a str,
    seq: Seq,
}

#[derive(Serialize)]
struct FactLine<'a> {
    stream: &'a str,
    seq: Seq,
    at: Time,
    kind: &'a str,
    #[serde(flatten)]
    payload: Content,
    hash: String,
}

#[derive(Serialize)]
struct WakeLine<'a> {
    wake: &'a str,
    due: Option<Time>,
    why: &'a str,
}

#[derive(Serialize)]
struct HeadLine<'a> {
    head: &'a str,
    seq: Seq,
    hash: String,
}

#[derive(Serialize)]
struct EndLine {
    end: Transferred,
    digest: String,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Content {
    Text(String),
    /// Text that is stored packed, by the only version there is.
    Packed(String),
    Hex(String),
    Blob(String),
    Redacted(String),
}

impl Content {
    fn of(bytes: &[u8]) -> Content {
        match std::str::from_utf8(bytes) {
            Ok(text) => Content::Text(text.to_owned()),
            Err(_) => Content::Hex(to_hex(bytes)),
        }
    }
}

impl Ledger {
    /// Everything, without loss; the same bytes for the same ledger.
    ///
    /// Facts end where the ledger ended when it began. Wakes are as they are when it gets to them, so while others
    /// commit a wake may be newer than the facts; the runtime looks at every waking stream anyway.
    pub fn export_full(&self, to: &mut dyn Write, progress: &mut OnProgress<'_>) -> Result<Transferred, ExportError> {
        let end = self.end()?;
        let mut out = Out { to, hasher: blake3::Hasher::new() };
        // Read after the end was, so it covers every fact up to there.
        out.line(&FirstLine::of(self.oldest_reader()?))?;
        let mut counts = Transferred::default();
        for id in self.blob_ids()? {
            out.line(&BlobLine { blob: id.to_string(), bytes: Content::of(&self.get_blob(&id)?) })?;
            counts.blobs += 1;
        }
        let heads = self.export_facts(end, &mut out, progress)?;
        for (stream, wake) in self.wakes(None, usize::MAX)? {
            if heads.contains_key(&stream) {
                out.line(&WakeLine { wake: stream.as_str(), due: wake.due, why: &wake.why })?;
            }
        }
        for (stream, head) in &heads {
            out.line(&HeadLine { head: stream.as_str(), seq: head.seq, hash: head.hash.to_string() })?;
        }
        counts.facts = end.0;
        counts.streams = heads.len() as u64;
        let digest = Hash(*out.hasher.finalize().as_bytes()).to_string();
        out.line(&EndLine { end: counts, digest })?;
        out.to.flush()?;
        Ok(counts)
    }

    fn export_facts(
        &self,
        end: Cursor,
        out: &mut Out<'_>,
        progress: &mut OnProgress<'_>,
    ) -> Result<BTreeMap<StreamId, Head>, ExportError> {
        let mut heads = BTreeMap::new();
        let mut follow = self.follow(Cursor::START);
        while follow.cursor() < end {
            let left = usize::try_from(end.0 - follow.cursor().0).unwrap_or(BATCH);
            for (_, stream, fact) in follow.next_batch(left.min(BATCH))? {
                if !heads.contains_key(&stream)
                    && let Some((parent, seq)) = self.origin(&stream)?
                {
                    out.line(&ForkLine { fork: stream.as_str(), of: parent.as_str(), seq })?;
                }
                out.line(&fact_line(&stream, &fact))?;
                heads.insert(stream, Head { seq: fact.seq, hash: fact.hash });
            }
            progress(Progress { what: "exporting facts", done: follow.cursor().0, total: end.0 });
        }
        Ok(heads)
    }
}

fn fact_line<'a>(stream: &'a StreamId, fact: &'a Recorded) -> FactLine<'a> {
    let payload = match &fact.payload {
        Payload::Redacted { digest } => Content::Redacted(digest.to_string()),
        Payload::Stored(stored) if stored.len() > INLINE_LIMIT => Content::Blob(Hash::of(stored).to_string()),
        Payload::Stored(stored) => {
            let bytes = fact.payload.bytes().unwrap_or_default();
            match Content::of(&bytes) {
                Content::Text(text) if pack::is_packed(stored) => Content::Packed(text),
                other @ (Content::Text(_)
                | Content::Packed(_)
                | Content::Hex(_)
                | Content::Blob(_)
                | Content::Redacted(_)) => other,
            }
        }
    };
    let (at, kind, hash) = (fact.at, &*fact.kind, fact.hash.to_string());
    FactLine { stream: stream.as_str(), seq: fact.seq, at, kind, payload, hash }
}

struct Out<'a> {
    to: &'a mut dyn Write,
    hasher: blake3::Hasher,
}

impl Out<'_> {
    fn line(&mut self, line: &impl Serialize) -> Result<(), ExportError> {
        let mut text = serde_json::to_vec(line).map_err(std::io::Error::from)?;
        text.push(b'\n');
        self.hasher.update(&text);
        self.to.write_all(&text)?;
        Ok(())
    }
}
