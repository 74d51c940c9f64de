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
    object(
        &["task_id", "input"],
        json!({
            "task_id": { "type": "string" },
            "input": { "type": "string" },
            "close": { "type": "boolean", "description": "No more comes after this: the task reads the end of its input." },
        }),
    )
}

/// Something to write, and whether it is the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskInput {
    pub task_id: TaskId,
    pub input: String,
    pub close: bool,
}

pub(crate) fn call(input: &Value) -> Result<TaskInput, Refusal> {
    parse(&TOOL.fields(input)?)
}

fn parse(fields: &Fields<'_>) -> Result<TaskInput, Refusal> {
    let (input, close) = (fields.text("input")?, fields.flag("close")?.unwrap_or(false));
    if (input.is_empty() && !close) || input.len() > INPUT_BYTES {
        let message = format!("`input` of TaskInput has {} bytes", input.len());
        return Err(invalid(message, format!("give 1 to {INPUT_BYTES} bytes at a time")));
    }
    Ok(TaskInput { task_id: fields.task("task_id")?, input, close })
}
