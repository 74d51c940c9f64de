//! `AgentGet`: the whole picture of an agent. Its own is in its state; another's has to be read outside.

use abide_kernel::id::AgentId;
use abide_kernel::input::{Act, Does, Refusal};
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
    let Some(id) = fields.optional_text("agent_id")? else { return Ok(Does::Act(Act::ShowAgent)) };
    match AgentId::new(&id) {
        Ok(_) => Ok(Does::World(SideEffect::ReadOnly)),
        Err(_) => Err(fields.wrong("agent_id", &Value::from(id), "give the name of an agent")),
    }
}
