//! `AgentGet`: the whole picture of an agent, with what its records do not hold: it is read outside.

use abide_kernel::id::AgentId;
use abide_kernel::input::Refusal;
use abide_kernel::tool::{AgentGet, HostCall, ToolCall};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "AgentGet",
    description: "Look at an agent as the operator sees it: what it does, what it waits for, its timers, tasks and budget.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(&[], json!({ "agent_id": { "type": "string", "description": "Left out: yourself." } }))
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let wrong = |id: String| fields.wrong("agent_id", &Value::from(id), "give the name of an agent");
    let named = |id: String| AgentId::new(&id).map_err(|_| wrong(id));
    let agent_id = fields.optional_text("agent_id")?.map(named).transpose()?;
    Ok(ToolCall::Host(HostCall::AgentGet(AgentGet { agent_id })))
}
