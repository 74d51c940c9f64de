//! The identity of each folder that an agent works in. It outlives the lock on the folder and a stop of the agent, and
//! counts for readers as well: a folder that takes the place of another one is not worked in unasked.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use abide_kernel::id::AgentId;
use abide_kernel::input::Refusal;

use crate::file_identity::{FileIdentity, open_folder, replaced};
use crate::workspace::Workspace;

/// The folders that each agent worked in, read or was given, until it is deleted or the daemon ends.
#[derive(Debug, Default)]
pub(super) struct KnownFolders(Mutex<HashMap<AgentId, HashMap<PathBuf, FileIdentity>>>);

impl KnownFolders {
    fn lock(&self) -> MutexGuard<'_, HashMap<AgentId, HashMap<PathBuf, FileIdentity>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, agent: &AgentId, path: &Path) -> Option<FileIdentity> {
        self.lock().get(agent)?.get(path).copied()
    }

    /// Records the folder that the agent chose, or a person for it, in place of the one known at this path.
    pub(super) fn choose(&self, agent: &AgentId, path: &Path, identity: FileIdentity) {
        self.lock().entry(agent.clone()).or_default().insert(path.to_path_buf(), identity);
    }

    /// Records the folder that the agent works in. Refused if it knows another one at this path.
    pub(super) fn remember(&self, agent: &AgentId, path: &Path, identity: FileIdentity) -> Result<(), Refusal> {
        let mut all = self.lock();
        let known = *all.entry(agent.clone()).or_default().entry(path.to_path_buf()).or_insert(identity);
        if known == identity { Ok(()) } else { Err(replaced(path)) }
    }

    pub(super) fn forget_agent(&self, agent: &AgentId) {
        self.lock().remove(agent);
    }

    /// Drops a folder that the daemon itself removes or makes anew.
    pub(super) fn forget_folder(&self, agent: &AgentId, path: &Path) {
        if let Some(folders) = self.lock().get_mut(agent) {
            folders.remove(path);
        }
    }

    /// Opens a folder that is recorded for an agent. Where the agent knows it, only that very folder.
    pub(super) fn open_folder(&self, agent: &AgentId, path: &Path) -> Result<OwnedFd, Refusal> {
        self.get(agent, path).map_or_else(|| open_folder(path), |identity| identity.open_folder(path))
    }

    /// Refuses a folder that agents know at this path, and that is another one by now.
    pub(super) fn require_known(&self, folder: &Workspace) -> Result<(), Refusal> {
        let all = self.lock();
        let mut known = all.values().filter_map(|folders| folders.get(&folder.path)).peekable();
        if known.peek().is_none() || known.any(|known| *known == folder.identity) {
            return Ok(());
        }
        Err(replaced(&folder.path))
    }
}
