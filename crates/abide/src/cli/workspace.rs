//! The words of `abide workspace`.

use std::path::PathBuf;

use clap::Subcommand;

use super::OfAgent;

#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// All that are or were attached
    List(OfAgent),
    /// Bind a folder, and have the agent work there
    Attach {
        #[command(flatten)]
        of: OfAgent,
        /// The folder
        path: PathBuf,
        /// In a new git worktree of it
        #[arg(long)]
        worktree: bool,
        /// Also in a folder of the system, such as /etc
        #[arg(long)]
        force: bool,
    },
    /// End a binding; files stay, and what is not committed in a worktree is saved as a patch before it goes
    Detach {
        #[command(flatten)]
        of: OfAgent,
        /// The folder, or the root of a worktree
        path: PathBuf,
        /// Give up what is in the worktree, instead of saving it
        #[arg(long)]
        discard: bool,
    },
    /// Bring a branch of a worktree into your repository, as abide/AGENT/BRANCH
    Fetch {
        #[command(flatten)]
        of: OfAgent,
        /// The branch; without it, the one that is checked out, or all that were kept of worktrees that are gone
        #[arg(long)]
        branch: Option<String>,
        /// The folder, or the root of a worktree, where the agent has more than one
        path: Option<PathBuf>,
    },
    /// What was saved of worktrees that went
    Patches(OfAgent),
}
