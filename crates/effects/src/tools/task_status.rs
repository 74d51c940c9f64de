//! `TaskStatus`: the record of one task.

use abide_kernel::tool::{RecordCall, ToolCall};
use serde_json::{Value, json};

use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "TaskStatus",
    description: "Look at one task: whether it runs, and how it ended.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse: |fields| Ok(ToolCall::Record(RecordCall::ShowTask { task_id: fields.task_id("task_id")? })),
};

fn schema() -> Value {
    object(&["task_id"], json!({ "task_id": { "type": "string" } }))
}
