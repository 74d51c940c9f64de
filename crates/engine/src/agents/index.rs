//! The agents that are not archived, by name. A home keeps the records of every agent that ever was, and a list of those
//! that are there must not get slower with each one that is gone.
//!
//! The names are derived: they are read from the rows of agents at the first list, and kept in step from then on.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use abide_kernel::id::AgentId;
use abide_kernel::read_rows::{AGENT_PLANE, AGENT_ROW};
use abide_ledger::{Ledger, ReadError};

/// Streams that are looked through at a time.
const PAGE: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct AgentIndex(Mutex<NameIndex>);

#[derive(Debug, Default)]
struct NameIndex {
    /// Whether the names that the ledger has are among these.
    complete: bool,
    present: BTreeSet<AgentId>,
    /// Agents that were archived while nothing was read yet: their rows may have been read before.
    gone: BTreeSet<AgentId>,
}

impl AgentIndex {
    /// The agent exists.
    pub fn add(&self, agent: &AgentId) {
        self.lock().present.insert(agent.clone());
    }

    /// It was archived.
    pub fn remove(&self, agent: &AgentId) {
        let mut names = self.lock();
        names.present.remove(agent);
        if !names.complete {
            names.gone.insert(agent.clone());
        }
    }

    /// The next agents in the order of their names.
    pub fn page(&self, ledger: &Ledger, after: Option<&AgentId>, limit: usize) -> Result<Vec<AgentId>, ReadError> {
        if !self.lock().complete {
            let found = read(ledger)?;
            let mut names = self.lock();
            let gone = std::mem::take(&mut names.gone);
            names.present.extend(found.into_iter().filter(|agent| !gone.contains(agent)));
            names.complete = true;
        }
        let from = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.clone()));
        Ok(self.lock().present.range((from, Bound::Unbounded)).take(limit).cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, NameIndex> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Every agent whose row does not say that it is archived. One whose records are damaged is among them.
fn read(ledger: &Ledger) -> Result<Vec<AgentId>, ReadError> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let streams = ledger.streams(after.as_ref(), PAGE)?;
        for (stream, _) in &streams {
            // Agents come first among the streams.
            let Some(name) = stream.agent_name() else { return Ok(found) };
            let archived = match ledger.rows(stream, AGENT_PLANE, None, 1) {
                Ok(rows) => rows.iter().any(|row| row.id == AGENT_ROW && row.value["archived"] == true),
                Err(ReadError::Damaged(_)) => false,
                Err(error) => return Err(error),
            };
            found.extend(AgentId::new(name).ok().filter(|_| !archived));
        }
        match streams.into_iter().next_back() {
            Some((last, _)) => after = Some(last),
            None => return Ok(found),
        }
    }
}
