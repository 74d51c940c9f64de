//! Folders that agents work in, and git worktrees made for them. Everything here blocks; whoever calls from a task hands
//! it to a thread that may. Nothing here knows agents beyond their names, and nothing here remembers: what was made is
//! recorded by the caller, and held against git's own list when it was cut off.
//!
//! Work is never lost here: a worktree's changes are a proven patch on disk before its folder goes, commits stay on
//! their branch, and what can't be saved is refused and left as it is. A folder that is missing is an error.

mod aside;
mod check;
mod clear;
mod durable;
mod git;
mod keep;
mod link;
mod look;
mod making;
mod occupancy;
mod patch;
mod reconcile;
mod remove;
mod scan;
mod tree;
mod worktree;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use check::check;
pub use clear::{clear_worktree, left_in};
pub(crate) use link::borrows_from;
pub use occupancy::{Occupancy, occupy};
pub use patch::{PatchHolds, PatchRecord, PatchStory, list_patches};
pub use reconcile::{Finding, reconcile};
pub use remove::{Removed, remove_worktree};
pub use tree::{sweep_scratch, tree};
pub use worktree::{Worktree, create_worktree};

/// Where in a home worktrees are made. The only place below a home that may be a workspace.
pub const WORKTREES: &str = "worktrees";
/// Every branch that we make begins so, and no other branch is ever made or deleted.
pub const BRANCHES: &str = "abide/";

/// A folder that was there, was a folder and could be written to when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Absolute, with no symbolic link in it.
    pub path: PathBuf,
    pub git: Option<GitRoot>,
}

/// The repository that a workspace is part of, and that knows it to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitRoot {
    /// The top of the working tree; the workspace itself or a folder above it.
    pub toplevel: PathBuf,
    /// What all worktrees of the repository share.
    pub common_dir: PathBuf,
    /// Of a linked worktree: its own records, which are part of those.
    pub records: Option<PathBuf>,
    /// The commit that is checked out; none in a repository without commits.
    pub head: Option<String>,
}
