//! `abide ledger fork`: a new agent with the past of another.

use abide_api::types::{Fork, Forked};
use abide_engine::fork::{ForkError, fork};
use abide_kernel::id::{AgentId, Seq};
use abide_ledger::Options;
use serde::Serialize;

use crate::cli::PlaceArgs;
use crate::connection::{self, block_on};
use crate::output::{Failed, Output};
use crate::{clock, home};

/// The result. `seq` is there if the home was opened without a daemon.
#[derive(Serialize)]
struct ForkResult {
    #[serde(flatten)]
    forked: Forked,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<Seq>,
}

pub fn run(id: &AgentId, at: Seq, name: &AgentId, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let result = match connection::find_if_any(place)? {
        Some(client) => {
            let fork = Fork { agent: id.to_string(), at, name: name.to_string() };
            block_on(async { Ok(ForkResult { forked: client.fork(&fork).await?, seq: None }) })?
        }
        None => fork_home(id, at, name, place)?,
    };
    out.result(&result, || format!("{name} has the past of {id} up to seq {at}; it is {}\n", result.forked.status))
}

fn fork_home(id: &AgentId, at: Seq, name: &AgentId, place: &PlaceArgs) -> anyhow::Result<ForkResult> {
    let ledger = home::open_existing(place, Options::default())?;
    let state = fork(&ledger, id, at, name, clock::now(), clock::entropy(), None).map_err(|error| match error {
        ForkError::NoParent(parent) => super::no_agent(&ledger, &parent),
        refused @ (ForkError::Exists(_) | ForkError::NoSuchMoment { .. }) => {
            Failed::Refused(refused.to_string()).into()
        }
        other @ (ForkError::Damaged(_) | ForkError::Unreadable(_) | ForkError::NotCommitted(_)) => other.into(),
    })?;
    let forked = Forked { agent_id: name.clone(), parent: id.clone(), at_seq: at, status: state.status() };
    Ok(ForkResult { forked, seq: Some(state.seq) })
}
