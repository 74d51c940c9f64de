//! Archived facts: a file per stretch of the log, in compressed blocks.
//!
//! A segment holds a whole range of rowids, whatever streams they belong to: so every pointer into it stays good, the
//! order of commits stays known, and finding a fact needs no index but the range. The file is
//!
//! ```text
//! magic · block … · index · [offset of the index, its length, its digest] · magic
//! ```
//!
//! where a block is compressed by itself and has its own digest in the index: damage costs one block, not the file.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use abide_kernel::time::Time;
use rusqlite::{Connection, OptionalExtension};

use super::fact::{Part, RawBody, RawFact, read_error};
use crate::error::{Damage, ReadError};
use crate::hash::Hash;

mod codec;

use codec::{BlockRef, Index};
pub(crate) use codec::{Encoder, StreamRange};

/// Decoded blocks kept at hand, a few MiB: a walk back through history stays within a few of them.
const BLOCKS_KEPT: usize = 32;

#[derive(Debug)]
pub(crate) struct Segments {
    folder: PathBuf,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    files: HashMap<String, Arc<Segment>>,
    /// Most recently used last.
    blocks: Vec<(String, usize, Arc<Vec<RawFact>>)>,
}

/// One open segment file.
#[derive(Debug)]
pub(crate) struct Segment {
    pub name: String,
    file: File,
    pub index: Index,
}

/// A row of the table `segments`.
#[derive(Debug, Clone)]
pub(crate) struct SegmentRow {
    pub first: u64,
    pub last: u64,
    pub file: String,
    pub digest: Hash,
}

impl Segments {
    pub(crate) fn new(folder: PathBuf) -> Segments {
        Segments { folder, open: Mutex::default() }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    pub(crate) fn rows(conn: &Connection) -> Result<Vec<SegmentRow>, ReadError> {
        let sql = "SELECT first, last, file, digest FROM segments ORDER BY first";
        let mut statement = conn.prepare_cached(sql).map_err(read_error)?;
        let rows = statement.query_map([], segment_row).map_err(read_error)?;
        rows.collect::<Result<_, _>>().map_err(read_error)
    }

    pub(crate) fn fact(&self, conn: &Connection, id: u64) -> Result<Option<RawFact>, ReadError> {
        let mut found = None;
        self.scan(conn, id, id, None, &mut |fact| {
            found = Some(fact);
            false
        })?;
        Ok(found)
    }

    /// False when `each` had enough.
    pub(crate) fn scan(
        &self,
        conn: &Connection,
        first: u64,
        last: u64,
        part: Option<Part>,
        each: &mut dyn FnMut(RawFact) -> bool,
    ) -> Result<bool, ReadError> {
        let sql = "SELECT first, last, file, digest FROM segments WHERE first <= ?1 AND last >= ?1 ORDER BY first DESC LIMIT 1";
        let mut next = first;
        while next <= last {
            let mut statement = conn.prepare_cached(sql).map_err(read_error)?;
            let Some(row) = statement.query_row([next], segment_row).optional().map_err(read_error)? else {
                let what = format!("no segment holds fact number {next}");
                return Err(ReadError::damaged(Damage::Segment { file: String::new(), what }));
            };
            let segment = self.segment(&row)?;
            for (i, block) in segment.index.blocks.iter().enumerate() {
                if block.first + u64::from(block.count) <= next || block.first > last {
                    continue;
                }
                if part.is_some_and(|part| !segment.index.streams.contains_key(&part.stream)) {
                    continue;
                }
                for fact in self.block(&segment, i, block)?.iter() {
                    let wanted = fact.id >= next && fact.id <= last && part.is_none_or(|part| part.holds(fact));
                    if wanted && !each(fact.clone()) {
                        return Ok(false);
                    }
                }
            }
            next = row.last + 1;
        }
        Ok(true)
    }

    pub(crate) fn segment(&self, row: &SegmentRow) -> Result<Arc<Segment>, ReadError> {
        let mut open = self.lock();
        if let Some(segment) = open.files.get(&row.file) {
            return Ok(Arc::clone(segment));
        }
        let segment = Arc::new(Segment::open(&self.path(&row.file), row)?);
        open.files.insert(row.file.clone(), Arc::clone(&segment));
        Ok(segment)
    }

    fn block(&self, segment: &Segment, i: usize, block: &BlockRef) -> Result<Arc<Vec<RawFact>>, ReadError> {
        let mut open = self.lock();
        if let Some(at) = open.blocks.iter().position(|(name, index, _)| *name == segment.name && *index == i) {
            let hit = open.blocks.remove(at);
            let facts = Arc::clone(&hit.2);
            open.blocks.push(hit);
            return Ok(facts);
        }
        drop(open);
        let facts = Arc::new(segment.decode(block)?);
        let mut open = self.lock();
        if open.blocks.len() >= BLOCKS_KEPT {
            open.blocks.remove(0);
        }
        open.blocks.push((segment.name.clone(), i, Arc::clone(&facts)));
        Ok(facts)
    }

    /// The file is about to go: nothing may be served from it any more.
    pub(crate) fn forget(&self, file: &str) {
        let mut open = self.lock();
        open.files.remove(file);
        open.blocks.retain(|(name, _, _)| name != file);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().expect("the cache is never held across a panic")
    }
}

impl Segment {
    fn open(path: &Path, row: &SegmentRow) -> Result<Segment, ReadError> {
        let damaged =
            |what: &str| ReadError::damaged(Damage::Segment { file: row.file.clone(), what: what.to_owned() });
        let file = File::open(path).map_err(|error| damaged(&format!("it can't be opened: {error}")))?;
        let size = file.metadata().map_err(|error| damaged(&error.to_string()))?.len();
        let read = |offset: u64, length: usize| -> Option<Vec<u8>> {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset).ok()?;
            Some(bytes)
        };
        let trailer = size.checked_sub(codec::TRAILER as u64).and_then(|at| read(at, codec::TRAILER));
        let (offset, length, digest) =
            trailer.as_deref().and_then(codec::trailer).ok_or_else(|| damaged("it has no end: it was cut short"))?;
        let in_bounds = offset.checked_add(u64::from(length)).is_some_and(|end| end <= size);
        let index = if in_bounds { read(offset, length as usize) } else { None };
        let index = index.filter(|bytes| Hash::of(bytes) == digest).ok_or_else(|| damaged("its index is damaged"))?;
        if digest != row.digest {
            return Err(damaged("it is not the file that was archived"));
        }
        let index = Index::decode(&index).ok_or_else(|| damaged("its index can't be read"))?;
        Ok(Segment { name: row.file.clone(), file, index })
    }

    pub(crate) fn decode(&self, block: &BlockRef) -> Result<Vec<RawFact>, ReadError> {
        let damaged = |what: String| ReadError::damaged(Damage::Segment { file: self.name.clone(), what });
        let whole = |problem: &str| {
            damaged(format!(
                "{problem}, in the block of facts number {} to {}",
                block.first,
                block.first + u64::from(block.count) - 1
            ))
        };
        let mut packed = vec![0; block.length as usize];
        self.file.read_exact_at(&mut packed, block.offset).map_err(|error| whole(&error.to_string()))?;
        if Hash::of(&packed) != block.digest {
            return Err(whole("its bytes are not what was archived"));
        }
        let bytes = zstd::bulk::decompress(&packed, block.raw as usize).map_err(|error| whole(&error.to_string()))?;
        codec::decode_facts(&bytes, block).ok_or_else(|| whole("its records can't be read"))
    }
}

fn segment_row(row: &rusqlite::Row<'_>) -> Result<SegmentRow, rusqlite::Error> {
    let digest: Vec<u8> = row.get(3)?;
    let digest = Hash::from_slice(&digest)
        .ok_or_else(|| rusqlite::Error::InvalidColumnType(3, "digest".into(), rusqlite::types::Type::Blob))?;
    Ok(SegmentRow { first: row.get(0)?, last: row.get(1)?, file: row.get(2)?, digest })
}

/// A fact's time as it is stored.
fn time(ms: i64) -> Time {
    Time::from_ms(ms)
}

/// The stored bytes of a body, from its form.
fn body(form: u8, bytes: &[u8]) -> Option<RawBody> {
    RawBody::from_stored(form, bytes)
}
