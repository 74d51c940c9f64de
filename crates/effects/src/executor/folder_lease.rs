//! Leases of the folder that an agent works in: the one that it chose, that its operator set, or its own. A writer
//! holds it; a reader only opens it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_kernel::fact::WorkspaceAttached;
use abide_kernel::id::AgentId;
use abide_kernel::input::{Input, Refusal};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::vocabulary::WorkspaceMode;

use super::folder_lock::Claim;
use super::{Executor, run_blocking, to_worktree};
use crate::file_identity::{FileIdentity, replaced};
use crate::programs;
use crate::transient;
use crate::workspace::{self, Repositories, Workspace};

/// The parts of git that the commands of an agent see besides the folder.
#[derive(Debug, Clone, Default)]
pub(super) struct GitAccess {
    /// Object stores, or the records of a repository around the folder.
    pub(super) read: Vec<PathBuf>,
    /// The records of the user's own linked worktree, where an agent works in one directly.
    pub(super) write: Vec<PathBuf>,
    /// The folder is the user's own, not a worktree: its repositories are protected.
    pub(super) direct: bool,
    /// git's global configuration for the private home of commands.
    pub(super) git_config: String,
}

/// A folder that an agent holds for one call.
#[derive(Debug)]
pub(super) struct FolderLease {
    pub(super) root: PathBuf,
    /// The identity of the folder that is meant: another folder in its place is not worked in.
    identity: FileIdentity,
    pub(super) git_access: GitAccess,
    pub(super) claim: Claim,
    bound: Option<WorkspaceAttached>,
}

impl FolderLease {
    /// Opens the folder, if it is still the same one.
    pub(super) fn open(&self) -> Result<OwnedFd, Refusal> {
        self.identity.open_folder(&self.root)
    }

    /// The inputs that record the folder with the outcome of the call.
    pub(super) fn record_inputs(&self) -> Vec<Input> {
        self.bound.iter().cloned().map(Input::UseWorkspace).chain([self.claim.record_input()]).collect()
    }
}

impl Executor {
    /// Leases the folder that the agent works in. Waits for another holder for at most this long.
    pub(super) async fn lease_folder(
        &self,
        agent: &AgentId,
        place: &ToolPlacement,
        wait: Duration,
    ) -> Result<FolderLease, Refusal> {
        let claim = self.claim_folder(agent, &self.workspace_of(agent, place), wait).await?;
        let (executor, agent, place) = (self.clone(), agent.clone(), place.clone());
        run_blocking(move || executor.open_lease(&agent, &place, claim)).await
    }

    /// Opens the folder that is held. The values that were found when it was taken are used until it is released.
    fn open_lease(&self, agent: &AgentId, place: &ToolPlacement, claim: Claim) -> Result<FolderLease, Refusal> {
        let repositories = &self.0.repositories;
        let known = self.find_known(agent, &claim.root)?;
        let (identity, git_access) = match known.and_then(|known| Some((known, claim.git_access(known)?))) {
            Some(found) => found,
            None => {
                let folder = self.resolve_folder(agent, place)?;
                if known.is_some_and(|known| known != folder.identity) {
                    return Err(replaced(&folder.path));
                }
                let git_access = GitAccess::find(agent, &folder, repositories)?;
                for given in git_access.write.iter().chain([&folder.path]) {
                    record_agent_folder(given, repositories)?;
                }
                self.0.known_folders.remember(agent, &folder.path, folder.identity)?;
                claim.store_git_access(folder.identity, &git_access);
                (folder.identity, git_access)
            }
        };
        let root = claim.root.display().to_string();
        let bound = place.workspace.is_none().then(|| {
            let (workspace, mode) = (root.clone(), WorkspaceMode::Direct);
            WorkspaceAttached { workspace, root, mode, worktree: None, note: None }
        });
        Ok(FolderLease { root: claim.root.clone(), identity, git_access, claim, bound })
    }

    /// The identity of a folder that the agent has worked in or read already. Refused where a link or another folder is in
    /// its place. Its own folder, which only the daemon can put there, is made anew if it is gone.
    fn find_known(&self, agent: &AgentId, root: &Path) -> Result<Option<FileIdentity>, Refusal> {
        let Some(known) = self.0.known_folders.get(agent, root) else { return Ok(None) };
        match known.open_folder(root) {
            Ok(_) => Ok(Some(known)),
            Err(refusal) if refusal.code == ErrorCode::Missing && root == self.own_folder(agent) => {
                self.0.known_folders.forget_folder(agent, root);
                Ok(None)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// The folder that the agent works in, checked.
    fn resolve_folder(&self, agent: &AgentId, place: &ToolPlacement) -> Result<Workspace, Refusal> {
        let (repositories, folder) = (&self.0.repositories, self.workspace_of(agent, place));
        // A child may have inherited the folder of an agent that was given none.
        let owner = std::iter::once(agent).chain(&place.makers).find(|owner| self.own_folder(owner) == folder);
        if let Some(owner) = owner {
            return self.create_own_folder(owner);
        }
        if let Some(bound) = &place.workspace
            && let Some(worktree) = &bound.worktree
        {
            let (patches, now) = (self.patches_folder(agent), (self.0.moment)().0);
            repositories.convert_worktree(&to_worktree(&bound.root, worktree), &patches, now)?;
        }
        repositories.revalidate(&folder)
    }

    /// The folder that the agent works in, open, for a call that only reads: it is held by nobody for that. Blocks.
    pub(super) fn open_for_reading(
        &self,
        agent: &AgentId,
        place: &ToolPlacement,
    ) -> Result<(PathBuf, OwnedFd), Refusal> {
        let root = self.workspace_of(agent, place);
        if let Some(known) = self.find_known(agent, &root)? {
            let opened = known.open_folder(&root)?;
            return Ok((root, opened));
        }
        let folder = self.resolve_folder(agent, place)?;
        self.0.known_folders.remember(agent, &folder.path, folder.identity)?;
        let opened = folder.identity.open_folder(&folder.path)?;
        Ok((folder.path, opened))
    }

    pub(super) fn own_folder(&self, agent: &AgentId) -> PathBuf {
        self.0.home.join("agents").join(agent.as_str()).join("workspace")
    }

    /// The folder of an agent that was given none.
    fn create_own_folder(&self, agent: &AgentId) -> Result<Workspace, Refusal> {
        let path = self.own_folder(agent);
        let made = abide_private::private_folder(&path).and_then(|()| path.canonicalize());
        let found = made.and_then(|path| Ok(Workspace { identity: FileIdentity::of(&path)?, path, git: None }));
        found.map_err(|error| {
            let hint = transient::hint(&error, "see to the disk, or give the agent a workspace");
            Refusal::new(ErrorCode::NoWorkspace, format!("{} can't be made: {error}", path.display())).with_hint(hint)
        })
    }
}

impl GitAccess {
    fn find(agent: &AgentId, folder: &Workspace, repositories: &Repositories) -> Result<GitAccess, Refusal> {
        let mirror = repositories.mirror_path(folder)?;
        let git_config = workspace::global_config(agent.as_str(), mirror.as_deref());
        if repositories.is_worktree(&folder.path) {
            let read = mirror.into_iter().chain(repositories.large_files_for(&folder.path)?).collect();
            return Ok(GitAccess { read, write: Vec::new(), direct: false, git_config });
        }
        let around = folder.git.as_ref().filter(|git| !git.common_dir.starts_with(&folder.path));
        let (read, write) = match around {
            // The user's own linked worktree: committing in it writes to the repository that it is part of.
            Some(git) if git.records.is_some() => (Vec::new(), vec![git.common_dir.clone()]),
            Some(git) => (vec![git.common_dir.clone()], Vec::new()),
            None => (Vec::new(), Vec::new()),
        };
        let read = read.into_iter().chain(mirror).collect();
        Ok(GitAccess { read, write, direct: true, git_config })
    }
}

/// Records that the agent can write in a folder from now on: no program of it is run outside of a sandbox any more.
fn record_agent_folder(folder: &Path, repositories: &Repositories) -> Result<(), Refusal> {
    programs::give_folder(repositories.home(), folder).map_err(|error| {
        let message = format!("{} could not be recorded as a folder of an agent: {error}", folder.display());
        Refusal::new(ErrorCode::Io, message)
            .with_hint(transient::hint(&error, "see that the home can be read and written"))
    })
}
