//! Worktrees that an earlier life of the daemon left. A worktree is made before it is recorded, so a crash in between
//! leaves an unrecorded one: it is cleared away at boot. Only existing folders are looked at.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use abide_kernel::AgentState;
use abide_kernel::id::AgentId;
use abide_kernel::refusal::{ErrorCode, Refusal};

use super::{Executor, run_blocking};
use crate::workspace::{self, RemovalReport, WORKTREES};

/// Worktrees that were there before any agent ran, by agent.
#[derive(Debug)]
pub struct LeftWorktrees {
    pub agent: AgentId,
    /// An error where they can't be looked at.
    pub folders: io::Result<Vec<PathBuf>>,
}

/// The treatment of one worktree.
#[derive(Debug)]
pub enum ReconciledWorktree {
    /// It was not recorded, and was removed.
    Cleared { folder: PathBuf, removed: RemovalReport },
    /// The same, and it could not be removed without losing something, or at all: it stays.
    Kept { folder: PathBuf, why: Refusal },
    /// It is recorded, and somebody has taken its folder away.
    Missing { folder: PathBuf },
}

/// The folders that an agent's records name, each with whether it is being removed.
#[must_use]
pub fn recorded_folders(state: &AgentState) -> BTreeMap<PathBuf, bool> {
    state.planes.workspaces.attached().iter().map(|(root, bound)| (PathBuf::from(root), bound.removing)).collect()
}

impl Executor {
    /// Must be called before any agent runs: worktrees that are made later are not left over.
    pub async fn find_left_worktrees(&self) -> Vec<LeftWorktrees> {
        let all = self.0.home.join(WORKTREES);
        run_blocking(move || {
            // Without the folder there are none.
            let Ok(agents) = std::fs::read_dir(&all) else { return Vec::new() };
            let left = agents.flatten().filter_map(|entry| {
                let agent = AgentId::new(entry.file_name().to_str()?).ok()?;
                Some(LeftWorktrees { agent, folders: workspace::find_left(&entry.path()) })
            });
            left.collect()
        })
        .await
    }

    /// Clears away worktrees that are not among the agent's recorded folders.
    pub async fn reconcile_worktrees(
        &self,
        left: LeftWorktrees,
        recorded: BTreeMap<PathBuf, bool>,
    ) -> Vec<ReconciledWorktree> {
        let executor = self.clone();
        run_blocking(move || {
            let (home, patches) = (&executor.0.home, executor.patches_folder(&left.agent));
            let ours = home.join(WORKTREES).join(left.agent.as_str());
            let ours = ours.canonicalize().unwrap_or(ours);
            let folders = match left.folders {
                Ok(folders) => folders,
                Err(error) => {
                    let hint = "give the daemon's user access to it";
                    let why =
                        Refusal::new(ErrorCode::Unreadable, format!("it can't be looked at: {error}")).with_hint(hint);
                    return vec![ReconciledWorktree::Kept { folder: ours, why }];
                }
            };
            let gone = recorded.iter().filter(|(folder, removing)| {
                !**removing && folder.starts_with(&ours) && folder.symlink_metadata().is_err()
            });
            let missing = gone.map(|(folder, _)| ReconciledWorktree::Missing { folder: folder.clone() });
            let unknown = folders.into_iter().filter(|folder| !recorded.contains_key(folder));
            let cleared = unknown.map(|folder| {
                match executor.0.repositories.clear_worktree(&folder, &patches, (executor.0.moment)().0) {
                    Ok(removed) => ReconciledWorktree::Cleared { folder, removed },
                    Err(why) => ReconciledWorktree::Kept { folder, why },
                }
            });
            missing.chain(cleared).collect()
        })
        .await
    }
}
