//! Calls that the executor runs: commands and tasks, files, skills, the web, the choice of a workspace.

use super::{FileCall, WorkspacePath};
use crate::id::TaskId;
use crate::vocabulary::{SideEffect, WorkspaceMode};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutorCall {
    ExecCommand(ExecCommand),
    TaskOutput(TaskOutput),
    TaskInput(TaskInput),
    File(FileCall),
    ReadSkill(ReadSkill),
    WebFetch(WebFetch),
    UseWorkspace(UseWorkspace),
}

/// A command as it is to be started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    pub command: String,
    pub workdir: Option<String>,
    pub tty: bool,
    pub accepts_input: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecCommand {
    pub command: Command,
    pub yield_time_ms: u64,
    pub start_new: bool,
    pub max_output_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOutput {
    pub task_id: TaskId,
    /// Wait for its end.
    pub block: bool,
    pub timeout_ms: u64,
    /// Left out: the newest.
    pub offset: Option<u64>,
}

/// Something to write, and whether it is the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskInput {
    pub task_id: TaskId,
    pub input: String,
    pub close: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSkill {
    pub skill: String,
    /// A file in its folder; left out, its `SKILL.md`.
    pub path: Option<WorkspacePath>,
    /// The first line; left out, the first that is for the reader.
    pub offset: Option<u64>,
    pub limit: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebFetch {
    /// A valid URL.
    pub url: String,
    pub max_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UseWorkspace {
    pub path: String,
    pub mode: WorkspaceMode,
}

impl ExecutorCall {
    #[must_use]
    pub fn side_effect(&self) -> SideEffect {
        match self {
            ExecutorCall::ExecCommand(_) | ExecutorCall::TaskInput(_) => SideEffect::Unknown,
            ExecutorCall::UseWorkspace(_) => SideEffect::WorkspaceMutation,
            ExecutorCall::File(call) if call.writes() => SideEffect::WorkspaceMutation,
            ExecutorCall::File(_)
            | ExecutorCall::TaskOutput(_)
            | ExecutorCall::ReadSkill(_)
            | ExecutorCall::WebFetch(_) => SideEffect::ReadOnly,
        }
    }
}
