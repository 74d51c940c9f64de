//! Which folder each agent works in, by its identity. It outlives the lock on the folder, and counts for readers as well:
//! a folder that takes the place of another one while the agent rests is not worked in unasked.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use abide_kernel::id::AgentId;
use abide_kernel::input::Refusal;

use crate::unlinked::{FileIdentity, open_folder, replaced};
use crate::workspace::Workspace;

/// The folder that each agent worked in or read last, until it is stopped.
#[derive(Debug, Default)]
pub(super) struct KnownFolders(Mutex<HashMap<AgentId, KnownFolder>>);

#[derive(Debug)]
struct KnownFolder {
    path: PathBuf,
    identity: FileIdentity,
}

impl KnownFolders {
    fn all(&self) -> MutexGuard<'_, HashMap<AgentId, KnownFolder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, agent: &AgentId, path: &Path) -> Option<FileIdentity> {
        self.all().get(agent).filter(|known| known.path == path).map(|known| known.identity)
    }

    /// The agent chose the folder, whichever was at this path before.
    pub(super) fn choose(&self, agent: &AgentId, path: &Path, identity: FileIdentity) {
        self.all().insert(agent.clone(), KnownFolder { path: path.to_path_buf(), identity });
    }

    /// The agent is in the folder. Refused where it knows another one at this path.
    pub(super) fn remember(&self, agent: &AgentId, path: &Path, identity: FileIdentity) -> Result<(), Refusal> {
        let mut all = self.all();
        match all.get(agent).filter(|known| known.path == path) {
            Some(known) if known.identity == identity => Ok(()),
            Some(_) => Err(replaced(path)),
            None => {
                all.insert(agent.clone(), KnownFolder { path: path.to_path_buf(), identity });
                Ok(())
            }
        }
    }

    pub(super) fn forget(&self, agent: &AgentId) {
        self.all().remove(agent);
    }

    /// Opens a folder that is recorded for an agent. Where the agent knows it, only that very folder.
    pub(super) fn open(&self, agent: &AgentId, path: &Path) -> Result<OwnedFd, Refusal> {
        self.get(agent, path).map_or_else(|| open_folder(path), |identity| identity.open_folder(path))
    }

    /// Refuses a folder that agents know at this path, and that is another one by now.
    pub(super) fn check_known(&self, folder: &Workspace) -> Result<(), Refusal> {
        let all = self.all();
        let mut known = all.values().filter(|known| known.path == folder.path).peekable();
        if known.peek().is_none() || known.any(|known| known.identity == folder.identity) {
            return Ok(());
        }
        Err(replaced(&folder.path))
    }
}
