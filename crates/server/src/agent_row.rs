//! The one row that says what an agent is. Damage that can't be repaired is the affair of its own agent: a list of many
//! agents goes on without its row.

use abide_kernel::rows::{AGENT_PLANE, AGENT_ROW};
use abide_ledger::{Ledger, ReadError, StreamId};
use serde_json::Value;

/// `None` if it is damaged, and so are the facts that it was made of.
pub(crate) fn readable_agent_row(ledger: &Ledger, stream: &StreamId) -> Result<Option<Value>, ReadError> {
    match ledger.rows(stream, AGENT_PLANE, None, 1) {
        Ok(rows) => Ok(Some(rows.into_iter().find(|row| row.id == AGENT_ROW).map(|row| row.value).unwrap_or_default())),
        Err(ReadError::Damaged(_)) => Ok(None),
        Err(
            error
            @ (ReadError::NoBlob(_) | ReadError::CursorAhead { .. } | ReadError::Store { .. } | ReadError::Closed),
        ) => Err(error),
    }
}
