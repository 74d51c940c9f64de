//! The one row that says what an agent is. Damage that can't be repaired is the affair of its own agent: a list of many
//! agents goes on without its row.

use std::collections::BTreeSet;

use abide_kernel::read_rows::{AGENT_PLANE, AGENT_ROW};
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{AgentKind, Role, Status};
use abide_ledger::{Ledger, ReadError, StreamId};
use serde::Deserialize;

/// The fields that lists need. A row leaves out null fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentRow {
    pub status: Option<Status>,
    pub kind: Option<AgentKind>,
    pub role: Option<Role>,
    pub model: String,
    pub default_model: bool,
    pub created_at: Option<Time>,
    pub archived: bool,
    pub secrets: BTreeSet<String>,
}

/// `None` if it is damaged, and so are the facts that it was made of.
pub(crate) fn readable_agent_row(ledger: &Ledger, stream: &StreamId) -> Result<Option<AgentRow>, ReadError> {
    match ledger.rows(stream, AGENT_PLANE, None, 1) {
        Ok(rows) => {
            let row = rows.into_iter().find(|row| row.id == AGENT_ROW);
            Ok(Some(row.and_then(|row| AgentRow::deserialize(row.value).ok()).unwrap_or_default()))
        }
        Err(ReadError::Damaged(_)) => Ok(None),
        Err(
            error
            @ (ReadError::NoBlob(_) | ReadError::CursorAhead { .. } | ReadError::Store { .. } | ReadError::Closed),
        ) => Err(error),
    }
}
