//! `TaskStop`: asks a task to end; the second time it is made to.

use abide_kernel::tool::{RecordCall, ToolCall};
use serde_json::{Value, json};

use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "TaskStop",
    description: "Stop a task and everything it started. It is asked first; stop it again, and it is forced.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse: |fields| Ok(ToolCall::Record(RecordCall::StopTask { task_id: fields.task_id("task_id")? })),
};

fn schema() -> Value {
    object(&["task_id"], json!({ "task_id": { "type": "string" } }))
}
