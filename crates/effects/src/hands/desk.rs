//! The folder that an agent works in: the one that it chose, or that its operator set, or one of its own; held while it
//! writes, and only looked at while it reads.

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
use super::{Hands, blocking, worktree_of};
use crate::programs;
use crate::transient;
use crate::unlinked::{FileIdentity, replaced};
use crate::workspace::{self, Repositories, Workspace};

/// The parts of git that the commands of an agent see besides the folder.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    /// Object stores, or the records of a repository around the folder.
    pub(super) read: Vec<PathBuf>,
    /// The records of the user's own linked worktree, where an agent works in one directly.
    pub(super) write: Vec<PathBuf>,
    /// The folder is the user's own, not a worktree: its repositories are protected.
    pub(super) direct: bool,
    /// git's global configuration for the private home of commands.
    pub(super) git_config: String,
}

/// A folder that an agent holds, for one call.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) root: PathBuf,
    /// Of the folder that is meant: another one in its place is not worked in.
    identity: FileIdentity,
    pub(super) surroundings: Surroundings,
    pub(super) claim: Claim,
    bound: Option<WorkspaceAttached>,
}

impl Desk {
    /// Opens the folder, if it is still the same one.
    pub(super) fn open(&self) -> Result<OwnedFd, Refusal> {
        self.identity.open_folder(&self.root)
    }

    /// The inputs that record the folder with the outcome of the call.
    pub(super) fn record(&self) -> Vec<Input> {
        self.bound.iter().cloned().map(Input::UseWorkspace).chain([self.claim.record()]).collect()
    }
}

impl Hands {
    /// The folder that the agent works in, held. Waits for whoever else holds it, for so long at most.
    pub(super) async fn desk(&self, agent: &AgentId, place: &ToolPlacement, wait: Duration) -> Result<Desk, Refusal> {
        let claim = self.claim(agent, &self.workspace_of(agent, place), wait).await?;
        let (hands, agent, place) = (self.clone(), agent.clone(), place.clone());
        blocking(move || hands.sit_down(&agent, &place, claim)).await
    }

    /// Looks at the folder that is held. What was found when it was taken counts until it is let go of.
    fn sit_down(&self, agent: &AgentId, place: &ToolPlacement, claim: Claim) -> Result<Desk, Refusal> {
        let repositories = &self.0.repositories;
        let known = self.find_known(agent, &claim.root)?;
        let (identity, surroundings) = match known.and_then(|known| Some((known, claim.surroundings(known)?))) {
            Some(found) => found,
            None => {
                let folder = self.folder_of(agent, place)?;
                if known.is_some_and(|known| known != folder.identity) {
                    return Err(replaced(&folder.path));
                }
                let surroundings = Surroundings::of(agent, &folder, repositories)?;
                for given in surroundings.write.iter().chain([&folder.path]) {
                    give(given, repositories)?;
                }
                self.0.known_folders.remember(agent, &folder.path, folder.identity)?;
                claim.keep_surroundings(folder.identity, &surroundings);
                (folder.identity, surroundings)
            }
        };
        let root = claim.root.display().to_string();
        let bound = place.workspace.is_none().then(|| {
            let (workspace, mode) = (root.clone(), WorkspaceMode::Direct);
            WorkspaceAttached { workspace, root, mode, worktree: None, note: None }
        });
        Ok(Desk { root: claim.root.clone(), identity, surroundings, claim, bound })
    }

    /// The identity of a folder that the agent has worked in or read already. Refused where a link or another folder is in
    /// its place. Its own folder, which only the daemon can put there, is made anew if it is gone.
    fn find_known(&self, agent: &AgentId, root: &Path) -> Result<Option<FileIdentity>, Refusal> {
        let Some(known) = self.0.known_folders.get(agent, root) else { return Ok(None) };
        match known.open_folder(root) {
            Ok(_) => Ok(Some(known)),
            Err(refusal) if refusal.code == ErrorCode::Missing && root == self.own_folder(agent) => {
                self.0.known_folders.forget_one(agent, root);
                Ok(None)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// The folder that the agent works in, checked.
    fn folder_of(&self, agent: &AgentId, place: &ToolPlacement) -> Result<Workspace, Refusal> {
        let (repositories, folder) = (&self.0.repositories, self.workspace_of(agent, place));
        // A child may have inherited the folder of an agent that was given none.
        let owner = std::iter::once(agent).chain(&place.makers).find(|owner| self.own_folder(owner) == folder);
        if let Some(owner) = owner {
            return self.own(owner);
        }
        if let Some(bound) = &place.workspace
            && let Some(worktree) = &bound.worktree
        {
            let (patches, now) = (self.patches(agent), (self.0.moment)().0);
            repositories.convert_worktree(&worktree_of(&bound.root, worktree), &patches, now)?;
        }
        repositories.check_again(&folder)
    }

    /// The folder that the agent works in, open, for a call that only reads: it is held by nobody for that. Blocks.
    pub(super) fn readable_folder(
        &self,
        agent: &AgentId,
        place: &ToolPlacement,
    ) -> Result<(PathBuf, OwnedFd), Refusal> {
        let root = self.workspace_of(agent, place);
        if let Some(known) = self.find_known(agent, &root)? {
            let opened = known.open_folder(&root)?;
            return Ok((root, opened));
        }
        let folder = self.folder_of(agent, place)?;
        self.0.known_folders.remember(agent, &folder.path, folder.identity)?;
        let opened = folder.identity.open_folder(&folder.path)?;
        Ok((folder.path, opened))
    }

    pub(super) fn own_folder(&self, agent: &AgentId) -> PathBuf {
        self.0.home.join("agents").join(agent.as_str()).join("workspace")
    }

    /// The folder of an agent that was given none.
    fn own(&self, agent: &AgentId) -> Result<Workspace, Refusal> {
        let path = self.own_folder(agent);
        let made = abide_private::private_folder(&path).and_then(|()| path.canonicalize());
        let found = made.and_then(|path| Ok(Workspace { identity: FileIdentity::of(&path)?, path, git: None }));
        found.map_err(|error| {
            let hint = transient::hint(&error, "see to the disk, or give the agent a workspace");
            Refusal::new(ErrorCode::NoWorkspace, format!("{} can't be made: {error}", path.display())).with_hint(hint)
        })
    }
}

impl Surroundings {
    fn of(agent: &AgentId, folder: &Workspace, repositories: &Repositories) -> Result<Surroundings, Refusal> {
        let mirror = repositories.mirror_of(folder)?;
        let git_config = workspace::global_config(agent.as_str(), mirror.as_deref());
        if repositories.is_worktree(&folder.path) {
            let read = mirror.into_iter().chain(repositories.large_files_for(&folder.path)?).collect();
            return Ok(Surroundings { read, write: Vec::new(), direct: false, git_config });
        }
        let around = folder.git.as_ref().filter(|git| !git.common_dir.starts_with(&folder.path));
        let (read, write) = match around {
            // The user's own linked worktree: committing in it writes to the repository that it is part of.
            Some(git) if git.records.is_some() => (Vec::new(), vec![git.common_dir.clone()]),
            Some(git) => (vec![git.common_dir.clone()], Vec::new()),
            None => (Vec::new(), Vec::new()),
        };
        let read = read.into_iter().chain(mirror).collect();
        Ok(Surroundings { read, write, direct: true, git_config })
    }
}

/// Records that the agent can write in a folder from now on: no program of it is run outside of a sandbox any more.
fn give(folder: &Path, repositories: &Repositories) -> Result<(), Refusal> {
    programs::give_folder(repositories.home(), folder).map_err(|error| {
        let message = format!("{} could not be recorded as a folder of an agent: {error}", folder.display());
        Refusal::new(ErrorCode::Io, message)
            .with_hint(transient::hint(&error, "see that the home can be read and written"))
    })
}
