//! `RevokeTrigger`: a URL that should open nothing any more.

use abide_kernel::id::TriggerId;
use abide_kernel::input::Refusal;
use abide_kernel::tool::{RecordCall, ToolCall};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "RevokeTrigger",
    description: "End a trigger: its URL opens nothing any more, and waits for it end with it.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(
        &["trigger_id"],
        json!({ "trigger_id": { "type": "string", "description": "The trigger, as CreateTrigger returned it." } }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let trigger_id = TriggerId::new(fields.get_text("trigger_id")?);
    Ok(ToolCall::Record(RecordCall::RevokeTrigger { trigger_id }))
}
