//! `TaskOutput`: what a task wrote, perhaps once it has ended.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{ExecutorCall, TaskOutput, ToolCall};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};
use crate::limits::{TASK_WAIT_MAX_MS, TASK_WAIT_MS};

pub(super) const TOOL: Tool = Tool {
    name: "TaskOutput",
    description: "Read what a task wrote. Waits for its end, up to timeout_ms, unless block is false. Once its end was returned, its result does not come again.",
    schema,
    instead: &[("limit", "say `offset`, and go on from `next_offset`.")],
    rules: RulesOn::Name,
    parse: |fields| parse(fields).map(|call| ToolCall::Executor(ExecutorCall::TaskOutput(call))),
};

fn schema() -> Value {
    object(
        &["task_id"],
        json!({
            "task_id": { "type": "string" },
            "block": { "type": "boolean", "description": "Wait for its end. Left out: true." },
            "timeout_ms": {
                "type": "integer", "minimum": 0, "maximum": TASK_WAIT_MAX_MS,
                "description": format!("How long to wait. Left out: {TASK_WAIT_MS}."),
            },
            "offset": { "type": "integer", "minimum": 0, "description": "From this byte on. Left out: the newest." },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<TaskOutput, Refusal> {
    Ok(TaskOutput {
        task_id: fields.task_id("task_id")?,
        block: fields.get_flag("block")?.unwrap_or(true),
        timeout_ms: fields.duration_ms("timeout_ms", 0..=TASK_WAIT_MAX_MS)?.unwrap_or(TASK_WAIT_MS),
        offset: fields.number("offset", 0..=u64::from(u32::MAX) << 20)?,
    })
}
