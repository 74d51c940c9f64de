//! `TaskInput`: something for a task to read.

use abide_kernel::id::TaskId;
use abide_kernel::input::{Does, Refusal};
use abide_kernel::vocabulary::SideEffect;
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{Tool, object};
use crate::limits::INPUT_BYTES;

pub(super) const TOOL: Tool = Tool {
    name: "TaskInput",
    description: "Write to a task that accepts input. A line ends with \\n; nothing is added.",
    schema,
    instead: &[("text", "say `input`.")],
    read: |fields| parse(fields).map(|_| Does::World(SideEffect::Unknown)),
};

fn schema() -> Value {
    object(&["task_id", "input"], json!({ "task_id": { "type": "string" }, "input": { "type": "string" } }))
}

pub(crate) fn call(input: &Value) -> Result<(TaskId, String), Refusal> {
    parse(&TOOL.fields(input)?)
}

fn parse(fields: &Fields<'_>) -> Result<(TaskId, String), Refusal> {
    let input = fields.text("input")?;
    if input.is_empty() || input.len() > INPUT_BYTES {
        let message = format!("`input` of TaskInput has {} bytes", input.len());
        return Err(invalid(message, format!("give 1 to {INPUT_BYTES} bytes at a time")));
    }
    Ok((fields.task("task_id")?, input))
}
