//! A task: a command or a child at work.

use serde::{Deserialize, Serialize};

use crate::budget::{LimitsView, UsedView};
use crate::id::{TaskId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::{ReadStatus, TaskKind, TaskStatus};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Task))]
pub struct TaskView {
    pub task_id: TaskId,
    pub kind: TaskKind,
    pub status: TaskStatus,
    pub summary: String,
    pub command: Option<String>,
    pub work_item_id: Option<WorkItemId>,
    pub child_agent_id: Option<String>,
    pub created_at: Time,
    pub ended_at: Option<Time>,
    pub exit_code: Option<i64>,
    pub signal: Option<i64>,
    pub output: Option<TaskOutput>,
    pub recovery: Option<String>,
    #[serde(default)]
    pub evidence: Vec<String>,
    /// What a child may use of its supervisor's budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<LimitsView>,
    /// What a child used that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<UsedView>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskOutput {
    pub bytes: u64,
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskStopped {
    pub task: TaskView,
    /// It was asked before; now it is made to.
    pub forced: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskTaken {
    pub accepted: bool,
    pub bytes: u64,
}

/// The output of a task that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutputRead {
    pub status: ReadStatus,
    pub output: String,
    /// Bytes from the offset on that are not kept any more.
    pub skipped: u64,
    pub next_offset: u64,
    pub total_bytes: u64,
}
