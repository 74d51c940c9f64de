//! A whole ledger as text, one JSON object a line, and back.
//!
//! ```text
//! {"abide_ledger":1}        or {"abide_ledger":2,"oldest_reader":N,"program":VERSION}
//! {"blob":HASH,"text":…}                                    every blob, by hash
//! {"fork":STREAM,"of":STREAM,"seq":N}                       before the fork's first fact
//! {"stream":STREAM,"seq":N,"at":TIME,"kind":…,"text":…,"hash":HASH}      every fact, in commit order
//! {"wake":STREAM,"due":TIME or null,"why":…}
//! {"head":STREAM,"seq":N,"hash":HASH}                       every stream, by name
//! {"end":{"facts":N,"streams":N,"blobs":N},"digest":HASH}   over all bytes before this line
//! ```
//!
//! A payload that is stored packed is `"packed"` in place of `"text"`: the same text, but its hash is over the packed
//! bytes. Bytes that are no UTF-8 are `"hex"`; a large payload is `"blob"`, one that was cut out `"redacted"`, both with
//! the payload's hash. Read rows and snapshots are left out: they are made again. The same
//! ledger gives the same bytes, wherever it is kept.
//!
//! An export whose facts every version can read has format 1, which every version imports. One that needs a later reader
//! has format 2, which the versions before that reader refuse: the first of them because they do not know the number.

mod export;
mod import;
mod line;

pub(crate) use import::Sink;

/// The format of an export that every version can import.
const FOR_EVERY_READER: u64 = 1;
/// The format of an export that names the oldest reader of its facts.
const NAMES_ITS_READER: u64 = 2;

/// The counts of an export or an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Transferred {
    pub facts: u64,
    pub streams: u64,
    pub blobs: u64,
}
