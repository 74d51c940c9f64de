//! `CancelTimer`: a timer that should not fire any more.

use abide_kernel::id::TimerId;
use abide_kernel::input::Refusal;
use abide_kernel::tool::{RecordCall, ToolCall};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "CancelTimer",
    description: "End a timer; waits for it end with it.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(
        &["timer_id"],
        json!({ "timer_id": { "type": "string", "description": "The timer, as CreateTimer returned it." } }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let timer_id = TimerId::new(fields.get_text("timer_id")?);
    Ok(ToolCall::Record(RecordCall::CancelTimer { timer_id }))
}
