//! `AgentGet`: the whole picture of an agent, with what its records do not hold: it is read outside.

use abide_kernel::id::AgentId;
use abide_kernel::input::{Does, Refusal};
use abide_kernel::vocabulary::SideEffect;
use serde_json::{Value, json};

use super::fields::Fields;
use super::{Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "AgentGet",
    description: "Look at an agent as the operator sees it: what it does, what it waits for, its timers, tasks and budget.",
    schema,
    instead: &[],
    read,
};

fn schema() -> Value {
    object(&[], json!({ "agent_id": { "type": "string", "description": "Left out: yourself." } }))
}

fn read(fields: &Fields<'_>) -> Result<Does, Refusal> {
    match fields.optional_text("agent_id")? {
        Some(id) if AgentId::new(&id).is_err() => {
            Err(fields.wrong("agent_id", &Value::from(id), "give the name of an agent"))
        }
        Some(_) | None => Ok(Does::World(SideEffect::ReadOnly)),
    }
}
