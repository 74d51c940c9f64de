//! The heads that the writer remembers: of the streams it wrote to lately, and of those in the open transaction.
//!
//! Loaded when first asked for, so opening a ledger costs nothing per stream. Two generations bound it: when the
//! young one is full it becomes the old one, and what nobody asked for since is dropped.

use std::collections::HashMap;

use super::history::StreamHead;
use crate::stream::StreamId;

/// Per generation; about ten MiB.
const GENERATION: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct Heads {
    young: HashMap<StreamId, CachedHead>,
    old: HashMap<StreamId, CachedHead>,
    /// Changed in this transaction and not yet in the table.
    changed: Vec<StreamId>,
}

#[derive(Debug, Clone, Copy)]
struct CachedHead {
    head: StreamHead,
    table: Table,
}

/// How the table's row compares with what is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Same,
    Behind,
    /// The stream is new in this transaction.
    Missing,
}

impl Heads {
    pub(crate) fn get(&mut self, stream: &StreamId) -> Option<StreamHead> {
        if let Some(known) = self.young.get(stream) {
            return Some(known.head);
        }
        let (stream, known) = self.old.remove_entry(stream)?;
        self.young.insert(stream, known);
        Some(known.head)
    }

    pub(crate) fn remember(&mut self, stream: &StreamId, head: StreamHead) {
        self.young.insert(stream.clone(), CachedHead { head, table: Table::Same });
    }

    pub(crate) fn change(&mut self, stream: &StreamId, head: StreamHead) {
        match self.young.get_mut(stream) {
            Some(known) => {
                known.head = head;
                if known.table == Table::Same {
                    known.table = Table::Behind;
                    self.changed.push(stream.clone());
                }
            }
            None => {
                self.young.insert(stream.clone(), CachedHead { head, table: Table::Missing });
                self.changed.push(stream.clone());
            }
        }
    }

    /// Takes the changes that must be written to the table before the transaction ends.
    pub(crate) fn take_changed(&mut self) -> Vec<(StreamHead, Table)> {
        let young = &mut self.young;
        let changed = self.changed.drain(..).filter_map(|stream| {
            let known = young.get_mut(&stream)?;
            Some((known.head, std::mem::replace(&mut known.table, Table::Same)))
        });
        changed.collect()
    }

    /// The transaction is durable: now, and only now, something may be dropped.
    pub(crate) fn settle(&mut self) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Heads::default();
    }
}
