//! Facts about an agent's workspaces: the folders it works in, and the worktrees made for it.

use serde::{Deserialize, Serialize};

use crate::id::{ExecId, TaskId};
use crate::vocabulary::{Boundary, ControlAction, Status, WorkspaceMode};

/// A folder is bound to the agent. Nothing is in it yet because of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceAttached {
    /// The folder that a person knows.
    pub workspace: String,
    /// Where commands run: the same folder, or a worktree of it. Two bindings never share one.
    pub root: String,
    pub mode: WorkspaceMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// Notes for the agent that works there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A worktree as git knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worktree {
    pub branch: String,
    pub base_commit: String,
    /// The top of the working tree that it was made from.
    pub repo: String,
}

/// The agent works here from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceUsed {
    pub root: String,
}

/// The binding is gone; the files are not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceDetached {
    pub root: String,
    pub evidence: Vec<String>,
}

/// Somebody writes here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceOccupied {
    pub workspace: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceReleased {
    pub workspace: String,
    /// The error, where releasing failed: a control error, shown, never ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The action of control that it follows from, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ControlAction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<Boundary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_status: Option<Status>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_status: Option<Status>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_id: Option<ExecId>,
    #[serde(default)]
    pub task_ids: Vec<TaskId>,
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// The intent to remove a worktree; durable before anything is touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorktreeRemoving {
    pub root: String,
    pub evidence: Vec<String>,
    /// A person gave up what is in it: nothing is saved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discard: bool,
}

/// It is gone, and what was not committed in it is in the patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorktreeRemoved {
    pub root: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Branches that hold commits of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// It could not be removed without losing something, or at all: it stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorktreeKept {
    pub root: String,
    pub error: String,
}
