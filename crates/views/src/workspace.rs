//! A folder that an agent works in, and who holds it.

use serde::{Deserialize, Serialize};

use crate::time::Time;
use crate::vocabulary::{WorkspaceMode, WorkspaceStatus};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Workspace))]
pub struct WorkspaceView {
    /// The folder that a person knows.
    pub workspace: String,
    /// Where commands run: the same, or a worktree of it.
    pub root: String,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub mode: WorkspaceMode,
    pub branch: Option<String>,
    pub base_commit: Option<String>,
    /// attached, removing, detached or removed
    pub status: WorkspaceStatus,
    /// The agent works here.
    #[serde(default)]
    pub active: bool,
    #[serde(default)]
    pub occupied: bool,
    /// Why it could not be removed.
    pub kept: Option<String>,
    /// Where what was not committed was saved.
    pub patch: Option<String>,
    pub attached_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who keeps the agent from writing there, in the answer to an attachment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<FolderHolderView>,
}

/// Who holds a folder: its turn, or a command of it, runs there, and nobody else writes in it, inside it or around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = FolderHolder))]
pub struct FolderHolderView {
    /// None where it is an agent of another daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The process of that daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon_pid: Option<u32>,
    pub folder: String,
    /// Not known of an agent of another daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// The same in a sentence, and what it means.
    pub note: String,
}
