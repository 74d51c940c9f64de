//! One agent as the files of a fixture: its records as they are, and what happened as events.

use abide_kernel::fixture::{self, Files, History};
use abide_kernel::id::{AgentId, Seq};
use abide_ledger::{Ledger, Progress, StreamId};

use crate::fold::{Damage, decode, fold_until};

/// The files, and how many facts they hold. None if there is no such agent.
pub fn records(
    ledger: &Ledger,
    agent: &AgentId,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<(Seq, Files)>, Damage> {
    let stream = StreamId::agent(agent);
    let unreadable = |source| Damage::Unreadable { stream: stream.clone(), source };
    let Some(head) = ledger.head(&stream).map_err(unreadable)? else { return Ok(None) };
    let state = fold_until(ledger, agent, head.seq)?;
    let mut history = History::default();
    let mut after = 0;
    while after < head.seq {
        // No further than the state: an agent that is awake may have gone on.
        let wanted = usize::try_from(head.seq - after).unwrap_or(usize::MAX).min(1_000);
        for recorded in ledger.read(&stream, after, wanted).map_err(unreadable)? {
            after = recorded.seq;
            history.add(recorded.seq, recorded.at, &decode(&stream, &recorded)?);
        }
        progress(Progress { what: "exporting", done: after, total: head.seq });
    }
    Ok(Some((head.seq, fixture::files(&state, state.at, history))))
}
