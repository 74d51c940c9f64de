//! `SendMessage`: says something to another agent.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{HostCall, SendMessage, ToolCall};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "SendMessage",
    description: "Say something to another agent: your supervisor, a child of yours, or any other by its name. It is kept until that agent reads it; an answer comes as a message of its own.",
    schema,
    instead: &[("to", "say `agent_id`."), ("message", "say `text`.")],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(
        &["agent_id", "text"],
        json!({
            "agent_id": { "type": "string" },
            "text": { "type": "string" },
            "correlation_id": {
                "type": "string",
                "description": "Comes with the message: whoever answers can name it, and a wait for it ends then.",
            },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let (agent_id, text) = (fields.get_text("agent_id")?, fields.get_text("text")?);
    let correlation_id = fields.optional_text("correlation_id")?;
    Ok(ToolCall::Host(HostCall::SendMessage(SendMessage { agent_id, text, correlation_id })))
}
