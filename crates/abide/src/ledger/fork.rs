use abide_engine::fork::{ForkError, fork};
use abide_kernel::id::{AgentId, Seq};
use abide_ledger::Options;
use serde_json::json;

use crate::cli::HomeArgs;
use crate::output::{Failed, Output};
use crate::{clock, home};

pub fn run(id: &AgentId, at: Seq, name: &AgentId, args: &HomeArgs, out: &Output) -> anyhow::Result<()> {
    let ledger = home::open_existing(args, Options::default())?;
    let state = fork(&ledger, id, at, name, clock::now(), clock::entropy(), None).map_err(|error| match error {
        ForkError::NoParent(parent) => super::no_agent(&ledger, &parent),
        refused @ (ForkError::Exists(_) | ForkError::NoSuchMoment { .. }) => {
            Failed::Refused(refused.to_string()).into()
        }
        other @ (ForkError::Damaged(_) | ForkError::Unreadable(_) | ForkError::NotCommitted(_)) => other.into(),
    })?;
    let value = json!({ "agent_id": name, "parent": id, "at_seq": at, "seq": state.seq, "status": state.status() });
    out.result(&value, || format!("{name} has the past of {id} up to seq {at}; it is {}\n", state.status()))
}
