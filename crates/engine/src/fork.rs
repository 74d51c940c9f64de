//! Forks: a new agent with the past of another, up to a moment. It begins stopped, and owns nothing of its parent's.

use abide_kernel::id::{AgentId, Fresh, Seq};
use abide_kernel::input::Input;
use abide_kernel::time::Time;
use abide_kernel::{AgentState, admit};
use abide_ledger::{Append, Commit, CommitError, ForkPoint, Ledger, ReadError, StreamId};

use crate::fold::{LoadError, decode, fold_until};
use crate::idempotency::{Claim, Response, record_completed};
use crate::machine::{row_ops, stored};

#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    #[error("no agent is called {0}")]
    NoParent(AgentId),
    #[error("an agent called {0} exists already; choose another name")]
    Exists(AgentId),
    #[error("{parent} has {head} facts; choose --at between 1 and {head}")]
    NoSuchMoment { parent: AgentId, head: Seq },
    #[error(transparent)]
    Damaged(#[from] LoadError),
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    #[error(transparent)]
    NotCommitted(#[from] CommitError),
}

/// Makes `name` a fork of `parent` as it was right after the fact `at`. Returns the fork's state. A claimed request is
/// recorded as met in the same commit.
pub fn fork(
    ledger: &Ledger,
    parent: &AgentId,
    at: Seq,
    name: &AgentId,
    now: Time,
    entropy: u64,
    claim: Option<(Claim, Response)>,
) -> Result<AgentState, ForkError> {
    let (from, to) = (StreamId::agent(parent), StreamId::agent(name));
    let head = ledger.head(&from)?.ok_or_else(|| ForkError::NoParent(parent.clone()))?;
    if ledger.head(&to)?.is_some() {
        return Err(ForkError::Exists(name.clone()));
    }
    if at == 0 || at > head.seq {
        return Err(ForkError::NoSuchMoment { parent: parent.clone(), head: head.seq });
    }
    let mut state: AgentState = fold_until(ledger, parent, at)?;
    let mut fresh = Fresh::new(now, entropy);
    let input = Input::Fork { agent_id: name.clone(), parent: parent.clone(), at_seq: at };
    let facts = match admit(&mut state, input, now, &mut fresh) {
        Ok(admitted) => admitted.facts,
        Err(refusal) => unreachable!("a fork of an agent that exists is never refused: {refusal}"),
    };
    let facts = (at + 1..).zip(&facts).map(|(seq, fact)| stored::<AgentState>(seq, now, fact)).collect();
    let mut point = ForkPoint::new(from.clone(), at);
    point.rows = shared_rows(ledger, &from, at)?;
    let append = Append { stream: to, expected: 0, at: now, facts, fork_of: Some(point) };
    let kept = claim.map(|(claim, response)| record_completed(claim, response, now));
    let appends = kept.into_iter().chain([append]).collect();
    ledger.commit(Commit { appends, ..Commit::default() }).wait()?;
    Ok(state)
}

/// The rows of the past that the fork shares, so that its lists show it.
fn shared_rows(ledger: &Ledger, from: &StreamId, at: Seq) -> Result<Vec<(Seq, abide_ledger::RowOp)>, ForkError> {
    let mut rows = Vec::new();
    let mut after = 0;
    while after < at {
        let wanted = usize::try_from(at - after).unwrap_or(usize::MAX).min(1_000);
        for recorded in ledger.read(from, after, wanted)? {
            after = recorded.seq;
            let fact = decode::<AgentState>(from, &recorded)?;
            rows.extend(
                row_ops::<AgentState>(recorded.seq, recorded.at, &fact).into_iter().map(|row| (recorded.seq, row)),
            );
        }
    }
    Ok(rows)
}
