//! `CancelWait`: what was awaited no longer matters.

use abide_kernel::id::WaitId;
use abide_kernel::input::Refusal;
use abide_kernel::tool::{RecordCall, ToolCall};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "CancelWait",
    description: "End a wait that no longer matters.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(
        &["waiting_intent_id"],
        json!({ "waiting_intent_id": { "type": "string", "description": "The wait, as WaitFor returned it." } }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let waiting_intent_id = WaitId::new(fields.get_text("waiting_intent_id")?);
    Ok(ToolCall::Record(RecordCall::CancelWait { waiting_intent_id }))
}
