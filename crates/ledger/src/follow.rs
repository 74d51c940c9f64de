//! Following the ledger: every fact of every stream, in commit order, as it becomes durable.

use std::time::Duration;

use tokio::sync::watch;

use crate::Ledger;
use crate::error::ReadError;
use crate::receipt::block_on_for;
use crate::record::{Bounds, Cursor, Recorded};
use crate::stream::StreamId;

/// A place in the ledger that moves forward. Archived facts are still there: no cursor is ever too old.
#[derive(Debug)]
pub struct Follow {
    ledger: Ledger,
    cursor: Cursor,
    /// Where the ledger ends, as far as this process wrote it.
    end: watch::Receiver<u64>,
    /// The damage after the facts that were handed out.
    damaged: Option<(Cursor, ReadError)>,
}

impl Follow {
    pub(crate) fn new(ledger: Ledger, cursor: Cursor) -> Follow {
        let end = match &ledger {
            Ledger::Memory(memory) => memory.end(),
            Ledger::Sqlite(sqlite) => sqlite.end(),
        };
        Follow { ledger, cursor, end, damaged: None }
    }

    /// Just past the last fact handed out.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The next facts, at most `limit`; none when there are no more yet. A damaged fact is an error once, in its
    /// place; the call after that goes on behind it.
    pub fn next_batch(&mut self, limit: usize) -> Result<Vec<(Cursor, StreamId, Recorded)>, ReadError> {
        self.next_within(Bounds::items(limit))
    }

    /// The same within two bounds: a few facts may be large.
    pub fn next_within(&mut self, bounds: Bounds) -> Result<Vec<(Cursor, StreamId, Recorded)>, ReadError> {
        if let Some((past, error)) = self.damaged.take() {
            self.cursor = past;
            return Err(error);
        }
        let facts = match &self.ledger {
            Ledger::Memory(memory) => {
                let cursor = self.cursor;
                memory.with_state(|state| {
                    let end = Cursor(state.len());
                    if cursor > end {
                        Err(ReadError::CursorAhead { cursor, end })
                    } else {
                        Ok(state.after(cursor, bounds))
                    }
                })??
            }
            Ledger::Sqlite(sqlite) => {
                let batch = sqlite.after(self.cursor, bounds)?;
                self.damaged = batch.damaged;
                batch.facts
            }
        };
        match (facts.last(), self.damaged.take()) {
            (Some((last, _, _)), damaged) => {
                self.cursor = *last;
                self.damaged = damaged;
                Ok(facts)
            }
            (None, Some((past, error))) => {
                self.cursor = past;
                Err(error)
            }
            (None, None) => Ok(facts),
        }
    }

    /// Whether there is more than was handed out, as far as this process wrote it: cheap enough to ask before reading.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        *self.end.borrow() > self.cursor.0
    }

    /// Waits until there is more than was handed out, or for `timeout`. True when there is.
    ///
    /// A ledger opened to be read only hears nothing of its writer, in another process: there this only looks.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        if let Ledger::Sqlite(sqlite) = &self.ledger
            && !sqlite.writes()
        {
            return sqlite.cursor().is_ok_and(|end| end > self.cursor);
        }
        let cursor = self.cursor.0;
        block_on_for(self.end.wait_for(|end| *end > cursor), timeout).is_some_and(|found| found.is_ok())
    }

    /// The same without a limit, for async code. An error means that the ledger was closed.
    pub async fn more(&mut self) -> Result<(), ReadError> {
        let cursor = self.cursor.0;
        self.end.wait_for(|end| *end > cursor).await.map(|_| ()).map_err(|_| ReadError::Closed)
    }
}
