//! `TaskStatus`: the record of one task.

use abide_kernel::input::{Act, Does};
use serde_json::{Value, json};

use super::{Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "TaskStatus",
    description: "Look at one task: whether it runs, and how it ended.",
    schema,
    instead: &[],
    read: |fields| Ok(Does::Act(Act::ShowTask { task_id: fields.task("task_id")? })),
};

fn schema() -> Value {
    object(&["task_id"], json!({ "task_id": { "type": "string" } }))
}
