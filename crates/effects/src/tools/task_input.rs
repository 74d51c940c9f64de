//! `TaskInput`: something for a task to read.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{ExecutorCall, TaskInput, ToolCall};
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{CallSubject, RulesOn, Tool, object};
use crate::limits::INPUT_BYTES;

pub(super) const TOOL: Tool = Tool {
    name: "TaskInput",
    description: "Write to a task that accepts input. A line ends with \\n; nothing is added.",
    schema,
    instead: &[("text", "say `input`.")],
    rules: RulesOn::Command,
    parse: |fields| parse(fields).map(|call| ToolCall::Executor(ExecutorCall::TaskInput(call))),
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

fn parse(fields: &Fields<'_>) -> Result<TaskInput, Refusal> {
    let (input, close) = (fields.get_text("input")?, fields.get_flag("close")?.unwrap_or(false));
    if (input.is_empty() && !close) || input.len() > INPUT_BYTES {
        let message = format!("`input` of TaskInput has {} bytes", input.len());
        return Err(invalid(message, format!("give 1 to {INPUT_BYTES} bytes at a time")));
    }
    Ok(TaskInput { task_id: fields.task_id("task_id")?, input, close })
}

pub(super) fn subject(call: &TaskInput) -> CallSubject {
    let whereto = Some(format!(" (to {})", call.task_id));
    CallSubject { command: Some(call.input.clone()), whereto, ..CallSubject::default() }
}
