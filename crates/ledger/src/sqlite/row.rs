//! Read rows as they are stored: a value, and a checksum over everything that the row says. A row that fails its checksum
//! is never shown; it is folded anew from the facts.

use abide_kernel::id::Seq;
use abide_kernel::pack;
use serde_json::Value;

use crate::error::Damage;
use crate::hash::Hash;

/// Which row it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowKey<'a> {
    pub stream: i64,
    pub plane: &'a str,
    pub id: &'a str,
}

/// How a row without a checksum is read. Older versions made such rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithoutChecksum {
    Taken,
    Damaged,
}

impl RowKey<'_> {
    /// 64 bits are enough to notice damage. They keep nobody from changing a row on purpose.
    pub(crate) fn checksum(&self, seq: Seq, stored: &[u8]) -> i64 {
        let (stream, seq) = (self.stream.to_le_bytes(), seq.to_le_bytes());
        let Hash(digest) = Hash::of_fields(&[&stream, self.plane.as_bytes(), self.id.as_bytes(), &seq, stored]);
        let [a, b, c, d, e, f, g, h, ..] = digest;
        i64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// The row's `seq` and value, if they are as they were written. Its `seq`, `value` and `checksum` are columns `first` and on.
    pub(crate) fn read(&self, row: &rusqlite::Row<'_>, first: usize, without: WithoutChecksum) -> Option<(Seq, Value)> {
        let seq: Seq = row.get(first).ok()?;
        let stored = row.get_ref(first + 1).ok()?.as_blob().ok()?;
        let intact = match row.get::<_, Option<i64>>(first + 2).ok()? {
            Some(checksum) => checksum == self.checksum(seq, stored),
            None => without == WithoutChecksum::Taken,
        };
        if !intact {
            return None;
        }
        Some((seq, pack::read_stored(stored).ok()?))
    }
}

pub(crate) fn damaged(stream: &str, plane: &str, id: &str) -> Damage {
    let what = "its checksum does not match".to_owned();
    Damage::Row { stream: stream.to_owned(), plane: plane.to_owned(), id: id.to_owned(), what }
}
