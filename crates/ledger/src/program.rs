//! The program that opens a ledger, as far as the ledger has to know it: what it can read, and how it makes read rows.
//!
//! The ledger itself never asks what a payload means. It is told here since which reader a fact can be read, so that it
//! can refuse a home to a program that is too old for it.

use crate::commit::RowOp;
use crate::error::Damage;
use crate::record::Recorded;
use crate::stream::StreamId;

#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// The version that people know: `0.1.0`.
    pub version: &'static str,
    /// The highest reader version whose facts this program can decode.
    pub reader: u32,
    /// The program versions that brought each reader, from the first reader on. A reader past the end came with this
    /// program.
    pub readers: &'static [&'static str],
    /// The reader version that a fact of this kind and payload needs. The payload is JSON or packed, and empty where it
    /// was redacted.
    pub reader_of: fn(&str, &[u8]) -> u32,
    /// `None`: the rows are the caller's own affair, and are never rebuilt because of a version.
    pub rows: Option<RowMaker>,
    /// Called with damage to rows that was found while they were read or written, once per row until it is repaired, on
    /// the thread that found it.
    pub on_damage: fn(&Damage),
}

/// The function that makes read rows of facts, and a fingerprint that differs whenever it would make other rows.
#[derive(Debug, Clone, Copy)]
pub struct RowMaker {
    pub fingerprint: &'static str,
    pub rows_of: fn(&StreamId, &Recorded) -> Vec<RowOp>,
}

impl Default for Program {
    fn default() -> Program {
        Program {
            version: env!("CARGO_PKG_VERSION"),
            reader: 1,
            readers: &[],
            reader_of: |_, _| 1,
            rows: None,
            on_damage: |_| {},
        }
    }
}

impl Program {
    /// The version that brought a reader: the oldest program that can be used with facts that need it.
    pub(crate) fn brought(&self, reader: u32) -> &'static str {
        let place = usize::try_from(reader).ok().and_then(|reader| reader.checked_sub(1));
        place.and_then(|place| self.readers.get(place)).copied().unwrap_or(self.version)
    }
}

/// The oldest reader that can read everything in a ledger, and the program version that brought that reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldestReader {
    pub reader: u32,
    pub program: String,
}

/// A home that was brought from an older format to this program's when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upgraded {
    pub from: i64,
    pub to: i64,
}
