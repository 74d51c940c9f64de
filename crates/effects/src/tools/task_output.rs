//! `TaskOutput`: what a task wrote, perhaps once it has ended.

use abide_kernel::id::TaskId;
use abide_kernel::input::{Does, Refusal};
use abide_kernel::vocabulary::SideEffect;
use serde_json::{Value, json};

use super::fields::Fields;
use super::{Tool, object};
use crate::limits::{TASK_OUTPUT_BYTES, TASK_WAIT_MAX_MS, TASK_WAIT_MS};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOutput {
    pub task_id: TaskId,
    /// Wait for its end.
    pub block: bool,
    pub timeout_ms: u64,
    /// Left out: the newest.
    pub offset: Option<u64>,
}

impl TaskOutput {
    /// Where to read from, of so much.
    #[must_use]
    pub fn from(&self, total: u64) -> u64 {
        self.offset.unwrap_or_else(|| total.saturating_sub(TASK_OUTPUT_BYTES as u64))
    }
}

pub(super) const TOOL: Tool = Tool {
    name: "TaskOutput",
    description: "Read what a task wrote. Waits for its end, up to timeout_ms, unless block is false. Once its end was returned, its result does not come again.",
    schema,
    instead: &[("limit", "say `offset`, and go on from `next_offset`.")],
    read: |fields| parse(fields).map(|_| Does::World(SideEffect::ReadOnly)),
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

pub(crate) fn call(input: &Value) -> Result<TaskOutput, Refusal> {
    parse(&TOOL.fields(input)?)
}

fn parse(fields: &Fields<'_>) -> Result<TaskOutput, Refusal> {
    Ok(TaskOutput {
        task_id: fields.task("task_id")?,
        block: fields.flag("block")?.unwrap_or(true),
        timeout_ms: fields.ms("timeout_ms", 0..=TASK_WAIT_MAX_MS)?.unwrap_or(TASK_WAIT_MS),
        offset: fields.number("offset", 0..=u64::from(u32::MAX) << 20)?,
    })
}
