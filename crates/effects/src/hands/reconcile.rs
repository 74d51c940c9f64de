//! What a life that was cut off left of worktrees. A worktree is made before it is recorded, so a crash in between
//! leaves one that nobody knows of: it is cleared away at boot. Looks only at folders that are there.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use abide_kernel::AgentState;
use abide_kernel::id::AgentId;
use abide_kernel::refusal::{ErrorCode, Refusal};

use super::{Hands, blocking};
use crate::workspace::{self, Removed, WORKTREES};

/// Worktrees that were there before any agent ran, by agent.
#[derive(Debug)]
pub struct Left {
    pub agent: AgentId,
    /// An error where they can't be looked at.
    pub folders: io::Result<Vec<PathBuf>>,
}

/// What became of one of them.
#[derive(Debug)]
pub enum Reconciled {
    /// Nobody had recorded it.
    Cleared { folder: PathBuf, removed: Removed },
    /// The same, and it could not be removed without losing something, or at all: it stays.
    Kept { folder: PathBuf, why: Refusal },
    /// It is recorded, and somebody has taken its folder away.
    Missing { folder: PathBuf },
}

/// The folders that an agent's records name, each with whether it is being removed.
#[must_use]
pub fn recorded(state: &AgentState) -> BTreeMap<PathBuf, bool> {
    state.planes.workspaces.attached().iter().map(|(root, bound)| (PathBuf::from(root), bound.removing)).collect()
}

impl Hands {
    /// To be asked before any agent runs: whatever is made later is not left over.
    pub async fn left_worktrees(&self) -> Vec<Left> {
        let all = self.0.home.join(WORKTREES);
        blocking(move || {
            // Without the folder there are none.
            let Ok(agents) = std::fs::read_dir(&all) else { return Vec::new() };
            let left = agents.flatten().filter_map(|entry| {
                let agent = AgentId::new(entry.file_name().to_str()?).ok()?;
                Some(Left { agent, folders: workspace::left_in(&entry.path()) })
            });
            left.collect()
        })
        .await
    }

    /// Clears away what is not among the agent's recorded folders.
    pub async fn reconcile(&self, left: Left, recorded: BTreeMap<PathBuf, bool>) -> Vec<Reconciled> {
        let hands = self.clone();
        blocking(move || {
            let (home, patches) = (&hands.0.home, hands.patches(&left.agent));
            let ours = home.join(WORKTREES).join(left.agent.as_str());
            let ours = ours.canonicalize().unwrap_or(ours);
            let folders = match left.folders {
                Ok(folders) => folders,
                Err(error) => {
                    let hint = "give the daemon's user access to it";
                    let why =
                        Refusal::new(ErrorCode::Unreadable, format!("it can't be looked at: {error}")).with_hint(hint);
                    return vec![Reconciled::Kept { folder: ours, why }];
                }
            };
            let gone = recorded.iter().filter(|(folder, removing)| {
                !**removing && folder.starts_with(&ours) && folder.symlink_metadata().is_err()
            });
            let missing = gone.map(|(folder, _)| Reconciled::Missing { folder: folder.clone() });
            let unknown = folders.into_iter().filter(|folder| !recorded.contains_key(folder));
            let cleared = unknown.map(|folder| {
                match hands.0.repositories.clear_worktree(&folder, &patches, (hands.0.moment)().0) {
                    Ok(removed) => Reconciled::Cleared { folder, removed },
                    Err(why) => Reconciled::Kept { folder, why },
                }
            });
            missing.chain(cleared).collect()
        })
        .await
    }
}
