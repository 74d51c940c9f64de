//! Tasks: commands of an agent.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use abide_views::vocabulary::ReadStatus;

use super::TaskView;

/// A command for an agent to run, as a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRun {
    #[schema(min_length = 1)]
    pub cmd: String,
    /// Relative to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// On a terminal of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tty: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepts_input: bool,
}

/// What a task wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskRead {
    /// ready, timeout or not_ready
    pub status: ReadStatus,
    pub task: TaskView,
    pub output: String,
    /// Bytes from the offset on that are not kept any more.
    pub skipped: u64,
    pub next_offset: u64,
    pub total_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskInput {
    #[schema(max_length = 65536)]
    pub input: String,
    /// No more comes after this: the task reads the end of its input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub close: bool,
}
