//! `PickWorkItem`: which work item has the focus.

use abide_kernel::id::WorkItemId;
use abide_kernel::input::Refusal;
use abide_kernel::tool::{RecordCall, ToolCall};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "PickWorkItem",
    description: "Make a work item the current one.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(&["work_item_id"], json!({ "work_item_id": { "type": "string" } }))
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let work_item_id = WorkItemId::new(fields.get_text("work_item_id")?);
    Ok(ToolCall::Record(RecordCall::PickWorkItem { work_item_id }))
}
