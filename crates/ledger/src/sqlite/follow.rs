//! All facts in commit order.

use std::collections::HashMap;

use super::Sqlite;
use super::history::View;
use crate::error::{Damage, ReadError};
use crate::hash::Hash;
use crate::record::{Bounds, BytesLeft, Cursor, Recorded};
use crate::stream::StreamId;

/// The result of reading a batch: the facts before a damaged one are handed out first.
pub(crate) struct Batch {
    pub facts: Vec<(Cursor, StreamId, Recorded)>,
    /// The fact after them could not be read; going on means going past it.
    pub damaged: Option<(Cursor, ReadError)>,
}

impl Sqlite {
    pub(crate) fn after(&self, cursor: Cursor, bounds: Bounds) -> Result<Batch, ReadError> {
        self.view(|view| {
            let end = view.end()?;
            if cursor.0 > end {
                return Err(ReadError::CursorAhead { cursor, end: Cursor(end) });
            }
            view.after(cursor, end, bounds)
        })
    }
}

impl View<'_> {
    fn after(&self, cursor: Cursor, end: u64, bounds: Bounds) -> Result<Batch, ReadError> {
        let last = end.min(cursor.0.saturating_add(bounds.items as u64));
        let (mut raw, mut left) = (Vec::new(), BytesLeft::of(bounds));
        self.scan(cursor.0 + 1, last, None, &mut |fact| {
            raw.push(fact);
            true
        })?;
        let mut batch = Batch { facts: Vec::with_capacity(raw.len()), damaged: None };
        // The hash that each stream's next fact follows, once its first here was looked up.
        let mut hashes: HashMap<i64, Hash> = HashMap::new();
        for fact in raw {
            let (id, at) = (fact.stream, Cursor(fact.id));
            let prev = match hashes.get(&id) {
                Some(hash) => Some(*hash),
                None if fact.prev == 0 => Some(Hash::NONE),
                None => self.fact(fact.prev)?.map(|prev| prev.hash),
            };
            hashes.insert(id, fact.hash);
            let stream = self.store.stream(self.conn, id)?.ok_or_else(|| {
                let what = "it has facts but no name".to_owned();
                ReadError::damaged(Damage::Stream { stream: format!("stream number {id}"), what })
            });
            let recorded = stream.and_then(|stream| {
                Ok((self.store.recorded(self.conn, &stream, &prev.unwrap_or(Hash::NONE), fact)?, stream))
            });
            match recorded {
                Ok((recorded, stream)) => {
                    let more = left.count(&recorded);
                    batch.facts.push((at, stream, recorded));
                    if !more {
                        break;
                    }
                }
                Err(error) => {
                    batch.damaged = Some((at, error));
                    break;
                }
            }
        }
        Ok(batch)
    }
}
