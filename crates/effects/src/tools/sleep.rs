//! `Sleep`: the turn ends. With a duration, the agent leaves its own work alone for that long; input still wakes it.

use abide_kernel::input::Refusal;
use abide_kernel::limits::TIMER_AHEAD_MAX_MS;
use abide_kernel::tool::{RecordCall, ToolCall};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "Sleep",
    description: "End this turn and rest until something comes in, or for a while; messages wake you in any case.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(
        &[],
        json!({
            "reason": { "type": "string", "description": "Why, in words for the operator." },
            "duration_ms": {
                "type": "integer", "minimum": 0, "maximum": TIMER_AHEAD_MAX_MS,
                "description": "How long to rest at most. Left out: until something comes in.",
            },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let reason = fields.optional_text("reason")?;
    let duration_ms = fields.duration_ms("duration_ms", 0..=TIMER_AHEAD_MAX_MS)?;
    Ok(ToolCall::Record(RecordCall::Sleep { reason, duration_ms }))
}
