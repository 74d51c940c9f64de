//! One agent as the files of a fixture: its records as they are, and what happened as events.

use abide_kernel::AgentState;
use abide_kernel::fixture::{self, Files, History};
use abide_kernel::id::{AgentId, Seq};
use abide_ledger::{Bounds, Ledger, Progress, StreamId};

use crate::fold::{LoadError, decode, fold_until};

/// The bound of one read of the ledger.
const BATCH: Bounds = Bounds { items: 1_000, bytes: 1 << 20 };

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{0}")]
    Damage(#[from] LoadError),
    #[error("{agent} has more than {max_bytes} bytes of records")]
    TooLarge { agent: AgentId, max_bytes: usize },
}

/// The files, and how many facts they hold. None if there is no such agent. All of it is held in memory, so it is
/// refused where the facts have more than `max_bytes`.
pub fn records(
    ledger: &Ledger,
    agent: &AgentId,
    max_bytes: usize,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<(Seq, Files)>, ExportError> {
    let stream = StreamId::agent(agent);
    let unreadable = |source| LoadError::Unreadable { stream: stream.clone(), source };
    let Some(head) = ledger.head(&stream).map_err(unreadable)? else { return Ok(None) };
    let state: AgentState = fold_until(ledger, agent, head.seq)?;
    let mut history = History::default();
    let (mut after, mut left) = (0, max_bytes);
    while after < head.seq {
        // No further than the state: an agent that is awake may have gone on.
        let items = usize::try_from(head.seq - after).unwrap_or(usize::MAX).min(BATCH.items);
        for recorded in ledger.read_within(&stream, after, Bounds { items, ..BATCH }).map_err(unreadable)? {
            after = recorded.seq;
            let bytes = recorded.payload.stored().map_or(0, <[u8]>::len);
            let too_large = || ExportError::TooLarge { agent: agent.clone(), max_bytes };
            left = left.checked_sub(bytes).ok_or_else(too_large)?;
            history.add(recorded.seq, recorded.at, &decode::<AgentState>(&stream, &recorded)?);
        }
        progress(Progress { what: "exporting", done: after, total: head.seq });
    }
    Ok(Some((head.seq, fixture::files(&state, state.at, history))))
}
