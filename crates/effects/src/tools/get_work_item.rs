//! `GetWorkItem`: one work item with its plan, todo list and report.

use abide_kernel::id::WorkItemId;
use abide_kernel::tool::{RecordCall, ToolCall};
use serde_json::{Value, json};

use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "GetWorkItem",
    description: "Look at one work item: its plan, todo list, what blocks it and where it stands.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse: |fields| {
        let work_item_id = WorkItemId::new(fields.get_text("work_item_id")?);
        Ok(ToolCall::Record(RecordCall::ShowWorkItem { work_item_id }))
    },
};

fn schema() -> Value {
    object(&["work_item_id"], json!({ "work_item_id": { "type": "string" } }))
}
