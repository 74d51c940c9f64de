//! `TaskStop`: asks a task to end; the second time it is made to.

use abide_kernel::input::{Act, Does};
use serde_json::{Value, json};

use super::{Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "TaskStop",
    description: "Stop a task and everything it started. It is asked first; stop it again, and it is forced.",
    schema,
    instead: &[],
    read: |fields| Ok(Does::Act(Act::StopTask { task_id: fields.task("task_id")? })),
};

fn schema() -> Value {
    object(&["task_id"], json!({ "task_id": { "type": "string" } }))
}
