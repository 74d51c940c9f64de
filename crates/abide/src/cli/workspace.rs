//! The arguments of `abide workspace`.

use std::path::PathBuf;

use clap::Subcommand;

use super::OfAgent;

#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// List attached and detached folders
    List(OfAgent),
    /// Attach a folder, and make it the workspace
    Attach {
        #[command(flatten)]
        of: OfAgent,
        /// The folder
        path: PathBuf,
        /// Create a git worktree of it, and work there
        #[arg(long)]
        worktree: bool,
        /// Allow a system folder, such as /etc
        #[arg(long)]
        force: bool,
    },
    /// Detach a folder; the folder stays, a worktree is removed after its work was saved
    Detach {
        #[command(flatten)]
        of: OfAgent,
        /// The folder, or the root of a worktree
        path: PathBuf,
        /// Delete the worktree without saving its work
        #[arg(long)]
        discard: bool,
    },
    /// Fetch a branch of a worktree into your repository, as abide/AGENT/BRANCH
    Fetch {
        #[command(flatten)]
        of: OfAgent,
        /// The branch [default: the one that is checked out, or all saved branches of removed worktrees]
        #[arg(long)]
        branch: Option<String>,
        /// The folder, or the root of a worktree, if the agent has several
        path: Option<PathBuf>,
    },
    /// List the saved work of removed worktrees
    Patches(OfAgent),
}
