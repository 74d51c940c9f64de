//! `CompleteWorkItem`: the goal is reached, and here is what came of it.

use abide_kernel::id::WorkItemId;
use abide_kernel::input::Refusal;
use abide_kernel::tool::{RecordCall, ToolCall};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "CompleteWorkItem",
    description: "Say that a work item's objective is reached, and report what came of it. It can't be reopened.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(
        &["work_item_id", "report"],
        json!({
            "work_item_id": { "type": "string" },
            "report": { "type": "string", "description": "What was done and how you know that it works." },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let work_item_id = WorkItemId::new(fields.get_text("work_item_id")?);
    let report = fields.get_text("report")?;
    Ok(ToolCall::Record(RecordCall::CompleteWorkItem { work_item_id, report }))
}
