//! `abide ledger fork`: a new agent with the past of another.

use abide_api::types::Fork;
use abide_engine::fork::{ForkError, fork};
use abide_kernel::id::{AgentId, Seq};
use abide_ledger::Options;
use serde_json::{Value, json};

use crate::cli::PlaceArgs;
use crate::connection::{self, block_on};
use crate::output::{Failed, Output, one_line};
use crate::{clock, home};

pub fn run(id: &AgentId, at: Seq, name: &AgentId, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let value = match connection::find_if_any(place)? {
        Some(client) => {
            let fork = Fork { agent: id.to_string(), at, name: name.to_string() };
            block_on(async { Ok(client.fork(&fork).await?) })?
        }
        None => of_home(id, at, name, place)?,
    };
    out.result(&value, || {
        let status = value.get("status").and_then(Value::as_str).unwrap_or("stopped");
        format!("{name} has the past of {id} up to seq {at}; it is {}\n", one_line(status))
    })
}

fn of_home(id: &AgentId, at: Seq, name: &AgentId, place: &PlaceArgs) -> anyhow::Result<Value> {
    let ledger = home::open_existing(place, Options::default())?;
    let state = fork(&ledger, id, at, name, clock::now(), clock::entropy(), None).map_err(|error| match error {
        ForkError::NoParent(parent) => super::no_agent(&ledger, &parent),
        refused @ (ForkError::Exists(_) | ForkError::NoSuchMoment { .. }) => {
            Failed::Refused(refused.to_string()).into()
        }
        other @ (ForkError::Damaged(_) | ForkError::Unreadable(_) | ForkError::NotCommitted(_)) => other.into(),
    })?;
    Ok(json!({ "agent_id": name, "parent": id, "at_seq": at, "seq": state.seq, "status": state.status() }))
}
