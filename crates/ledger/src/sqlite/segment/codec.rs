//! The bytes of a segment file.

use std::collections::BTreeMap;

use abide_kernel::id::Seq;

use crate::hash::Hash;
use crate::sqlite::fact::RawFact;

const MAGIC: &[u8; 8] = b"abseg\x001\n";
/// Offset, length, digest, magic.
pub(crate) const TRAILER: usize = 8 + 4 + 32 + 8;
/// Enough for a compressor to find what repeats; little enough that one fact costs tens of microseconds.
const BLOCK_BYTES: usize = 64 * 1024;
const LEVEL: i32 = 3;

#[derive(Debug, Clone)]
pub(crate) struct BlockRef {
    pub first: u64,
    pub count: u32,
    pub offset: u64,
    pub length: u32,
    pub raw: u32,
    pub digest: Hash,
}

/// The part of one stream that a segment holds: its first and last fact there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamRange {
    pub first: (Seq, Hash),
    pub last: (Seq, Hash),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    pub blocks: Vec<BlockRef>,
    pub streams: BTreeMap<i64, StreamRange>,
}

/// Builds a segment's bytes, fact by fact.
#[derive(Debug)]
pub(crate) struct Encoder {
    bytes: Vec<u8>,
    index: Index,
    block: Vec<u8>,
    first: u64,
    count: u32,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder { bytes: MAGIC.to_vec(), index: Index::default(), block: Vec::new(), first: 0, count: 0 }
    }

    pub(crate) fn push(&mut self, fact: &RawFact) -> std::io::Result<()> {
        if self.count == 0 {
            self.first = fact.id;
        }
        self.count += 1;
        let here = (fact.seq, fact.hash);
        self.index
            .streams
            .entry(fact.stream)
            .and_modify(|edge| edge.last = here)
            .or_insert(StreamRange { first: here, last: here });
        let out = &mut self.block;
        out.extend_from_slice(&fact.stream.to_le_bytes());
        out.extend_from_slice(&fact.seq.to_le_bytes());
        out.extend_from_slice(&fact.at.as_ms().to_le_bytes());
        out.extend_from_slice(&fact.kind.to_le_bytes());
        out.extend_from_slice(&fact.prev.to_le_bytes());
        out.extend_from_slice(&fact.hash.0);
        let stored = fact.body.stored();
        out.push(fact.body.form());
        out.extend_from_slice(&u32::try_from(stored.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(stored);
        if self.block.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let packed = zstd::bulk::compress(&self.block, LEVEL)?;
        self.index.blocks.push(BlockRef {
            first: self.first,
            count: self.count,
            offset: self.bytes.len() as u64,
            length: u32::try_from(packed.len()).unwrap_or(u32::MAX),
            raw: u32::try_from(self.block.len()).unwrap_or(u32::MAX),
            digest: Hash::of(&packed),
        });
        self.bytes.extend_from_slice(&packed);
        self.block.clear();
        self.count = 0;
        Ok(())
    }

    /// Compressed bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.block.len() / 4
    }

    /// The file, and the digest of its index, which covers the digests of all its blocks.
    pub(crate) fn finish(mut self) -> std::io::Result<(Vec<u8>, Hash)> {
        self.flush()?;
        let index = self.index.encode();
        let digest = Hash::of(&index);
        let offset = self.bytes.len() as u64;
        let mut bytes = self.bytes;
        bytes.extend_from_slice(&index);
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(index.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&digest.0);
        bytes.extend_from_slice(MAGIC);
        Ok((bytes, digest))
    }
}

/// Where the index is, how long, and its digest.
pub(crate) fn trailer(bytes: &[u8]) -> Option<(u64, u32, Hash)> {
    let mut from = Bytes(bytes);
    let found = (from.u64()?, from.u32()?, from.hash()?);
    (from.0 == MAGIC).then_some(found)
}

pub(crate) fn decode_facts(bytes: &[u8], block: &BlockRef) -> Option<Vec<RawFact>> {
    let mut from = Bytes(bytes);
    let mut facts = Vec::with_capacity(block.count as usize);
    for i in 0..block.count {
        let (stream, seq) = (from.i64()?, from.u64()?);
        let at = super::time(from.i64()?);
        let (kind, prev, hash) = (from.i64()?, from.u64()?, from.hash()?);
        let form = from.take(1)?[0];
        let length = from.u32()? as usize;
        let body = super::body(form, from.take(length)?)?;
        facts.push(RawFact { id: block.first + u64::from(i), stream, seq, at, kind, body, hash, prev });
    }
    from.0.is_empty().then_some(facts)
}

impl Index {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&u32::try_from(self.blocks.len()).unwrap_or(u32::MAX).to_le_bytes());
        for block in &self.blocks {
            out.extend_from_slice(&block.first.to_le_bytes());
            out.extend_from_slice(&block.count.to_le_bytes());
            out.extend_from_slice(&block.offset.to_le_bytes());
            out.extend_from_slice(&block.length.to_le_bytes());
            out.extend_from_slice(&block.raw.to_le_bytes());
            out.extend_from_slice(&block.digest.0);
        }
        out.extend_from_slice(&u32::try_from(self.streams.len()).unwrap_or(u32::MAX).to_le_bytes());
        for (stream, edge) in &self.streams {
            out.extend_from_slice(&stream.to_le_bytes());
            for (seq, hash) in [edge.first, edge.last] {
                out.extend_from_slice(&seq.to_le_bytes());
                out.extend_from_slice(&hash.0);
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Index> {
        let mut from = Bytes(bytes);
        let mut index = Index::default();
        for _ in 0..from.u32()? {
            index.blocks.push(BlockRef {
                first: from.u64()?,
                count: from.u32()?,
                offset: from.u64()?,
                length: from.u32()?,
                raw: from.u32()?,
                digest: from.hash()?,
            });
        }
        for _ in 0..from.u32()? {
            let stream = from.i64()?;
            let first = (from.u64()?, from.hash()?);
            let last = (from.u64()?, from.hash()?);
            index.streams.insert(stream, StreamRange { first, last });
        }
        from.0.is_empty().then_some(index)
    }
}

/// Little-endian fields off the front of a slice; `None` past its end.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn i64(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn hash(&mut self) -> Option<Hash> {
        Hash::from_slice(self.take(32)?)
    }
}
