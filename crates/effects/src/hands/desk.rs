//! Where an agent works: the folder that it chose, or that its operator set, or one of its own. Whoever needs one takes
//! it, and keeps it until the agent stops or goes elsewhere; two agents never write in the same folder.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abide_kernel::effect::Place;
use abide_kernel::fact::WorkspaceAttached;
use abide_kernel::id::{AgentId, ExecId};
use abide_kernel::input::{Input, Refusal};
use abide_kernel::vocabulary::WorkspaceMode;

use super::{Hands, worktree_of};
use crate::programs;
use crate::transient;
use crate::unlinked::{FileIdentity, open_folder, replaced};
use crate::workspace::{self, Occupancy, Repositories, Workspace};

/// Who is where.
#[derive(Debug, Default)]
pub(super) struct Desks(Mutex<HashMap<AgentId, Held>>);

/// A folder that is taken, with what was found out about it then: git is asked once, not for every call.
#[derive(Debug)]
struct Held {
    /// Shared by agents of one tree that work in the same folder.
    occupancy: Arc<Occupancy>,
    /// How often it was taken, or taken again.
    stay: u64,
    /// Of the folder that was taken: another one in its place is not worked in.
    identity: FileIdentity,
    surroundings: Surroundings,
    /// The turn whose first command brought the worktree up to date with the user's branches.
    refreshed: Option<ExecId>,
}

/// What the commands of an agent see of git besides the folder.
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

/// A folder that was taken for an agent.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) root: PathBuf,
    /// That folder, open.
    pub(super) folder: OwnedFd,
    pub(super) surroundings: Surroundings,
    /// What has to be recorded about it, with the outcome.
    pub(super) first: Vec<Input>,
}

impl Held {
    /// Lets go. The folder is free when nobody else of the tree is in it.
    fn release(self) -> Result<(), Refusal> {
        Arc::into_inner(self.occupancy).map_or(Ok(()), Occupancy::release)
    }
}

impl Desks {
    fn all(&self) -> MutexGuard<'_, HashMap<AgentId, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the folder for the agent; what it had before is let go of. Taking it twice changes nothing. A child takes
    /// it in the name of the agent at the top, and shares what others of its tree have taken.
    pub(super) fn take(
        &self,
        agent: &AgentId,
        top: Option<&AgentId>,
        folder: &Workspace,
        repositories: &Repositories,
    ) -> Result<(), Refusal> {
        let mut all = self.all();
        let name = top.unwrap_or(agent).as_str();
        let is_held = |held: &&mut Held| held.occupancy.path == folder.path && held.identity == folder.identity;
        if let Some(held) = all.get_mut(agent).filter(is_held) {
            held.stay += 1;
            return Ok(());
        }
        let before = all.remove(agent);
        let mut others = all.values().chain(&before).map(|held| &held.occupancy);
        let shared = others.find(|held| held.path == folder.path && held.agent == name).cloned();
        let taken = shared.map_or_else(|| workspace::occupy(folder, repositories.home(), name).map(Arc::new), Ok);
        match taken {
            Ok(occupancy) => {
                let surroundings = Surroundings::of(agent, folder, repositories)?;
                for given in surroundings.write.iter().chain([&folder.path]) {
                    give(given, repositories)?;
                }
                let stay = before.as_ref().map_or(0, |held| held.stay) + 1;
                let identity = folder.identity;
                all.insert(agent.clone(), Held { occupancy, stay, identity, surroundings, refreshed: None });
                before.map_or(Ok(()), Held::release)
            }
            Err(refusal) => {
                all.extend(before.map(|held| (agent.clone(), held)));
                Err(refusal)
            }
        }
    }

    /// Takes the folder that the agent has again, if it is this one. Refused where another one is in its place.
    fn retake(&self, agent: &AgentId, root: &Path) -> Result<Option<Desk>, Refusal> {
        let mut all = self.all();
        let Some(held) = all.get_mut(agent).filter(|held| held.occupancy.path == root) else { return Ok(None) };
        let folder = held.identity.open_folder(root)?;
        held.stay += 1;
        let (root, surroundings) = (root.to_path_buf(), held.surroundings.clone());
        Ok(Some(Desk { root, folder, surroundings, first: Vec::new() }))
    }

    /// Opens a folder that is recorded for an agent. Where the agent has taken it, only that very folder.
    pub(super) fn open(&self, agent: &AgentId, root: &Path) -> Result<OwnedFd, Refusal> {
        let held = self.all().get(agent).filter(|held| held.occupancy.path == root).map(|held| held.identity);
        held.map_or_else(|| open_folder(root), |identity| identity.open_folder(root))
    }

    /// Refuses a folder that agents have taken at this path, and that is another one by now.
    pub(super) fn check_taken(&self, folder: &Workspace) -> Result<(), Refusal> {
        let all = self.all();
        let mut taken = all.values().filter(|held| held.occupancy.path == folder.path).peekable();
        if taken.peek().is_none() || taken.any(|held| held.identity == folder.identity) {
            return Ok(());
        }
        Err(replaced(&folder.path))
    }

    /// Whether this is the first command of a turn. Commands that a person starts belong to none, and always are.
    pub(super) fn begins_turn(&self, agent: &AgentId, exec_id: Option<&ExecId>) -> bool {
        let mut all = self.all();
        let Some(held) = all.get_mut(agent) else { return false };
        let first = exec_id.is_none() || held.refreshed.as_ref() != exec_id;
        held.refreshed = exec_id.cloned();
        first
    }

    pub(super) fn leave(&self, agent: &AgentId) -> Result<(), Refusal> {
        self.all().remove(agent).map_or(Ok(()), Held::release)
    }

    /// Changes whenever the agent takes a folder, the same again included.
    pub(super) fn stay(&self, agent: &AgentId) -> Option<u64> {
        self.all().get(agent).map(|held| held.stay)
    }

    /// Lets go, unless the agent took a folder since. Says whether there is none now.
    pub(super) fn leave_since(&self, agent: &AgentId, stay: Option<u64>) -> Result<bool, Refusal> {
        let mut all = self.all();
        if all.get(agent).is_some_and(|held| Some(held.stay) != stay) {
            return Ok(false);
        }
        all.remove(agent).map_or(Ok(()), Held::release).map(|()| true)
    }

    /// Lets go of this folder, if that is the one.
    pub(super) fn leave_root(&self, agent: &AgentId, root: &Path) -> Result<(), Refusal> {
        let here = self.all().get(agent).is_some_and(|held| held.occupancy.path == root);
        if here { self.leave(agent) } else { Ok(()) }
    }

    pub(super) fn occupied_by(&self, agent: &AgentId) -> Option<String> {
        self.all().get(agent).map(|held| held.occupancy.path.display().to_string())
    }
}

impl Hands {
    /// The folder that the agent works in, taken. Blocks.
    pub(super) fn desk(&self, agent: &AgentId, place: &Place) -> Result<Desk, Refusal> {
        let repositories = &self.0.repositories;
        let bound = place.workspace.as_ref().map(|bound| self.0.desks.retake(agent, Path::new(&bound.root)));
        if let Some(desk) = bound.transpose()?.flatten() {
            let workspace = desk.root.display().to_string();
            return Ok(Desk { first: vec![Input::OccupyWorkspace { workspace }], ..desk });
        }
        let folder = match (&place.workspace, &place.configured) {
            (Some(bound), _) if Path::new(&bound.root) == self.own_folder(agent) => self.own(agent)?,
            (Some(bound), _) => {
                if let Some(worktree) = &bound.worktree {
                    let (patches, now) = (self.patches(agent), (self.0.moment)().0);
                    repositories.convert_worktree(&worktree_of(&bound.root, worktree), &patches, now)?;
                }
                repositories.check_again(Path::new(&bound.root))?
            }
            (None, Some(configured)) => repositories.check_again(Path::new(configured))?,
            (None, None) => self.own(agent)?,
        };
        self.0.desks.take(agent, place.top.as_ref(), &folder, repositories)?;
        let root = folder.path.display().to_string();
        let mut first = Vec::new();
        if place.workspace.is_none() {
            let (workspace, mode) = (root.clone(), WorkspaceMode::Direct);
            let bound = WorkspaceAttached { workspace, root: root.clone(), mode, worktree: None, note: None };
            first.push(Input::UseWorkspace(bound));
        }
        first.push(Input::OccupyWorkspace { workspace: root });
        match self.0.desks.retake(agent, &folder.path)? {
            Some(desk) => Ok(Desk { first, ..desk }),
            None => {
                let message = format!("{} went while it was taken", folder.path.display());
                Err(Refusal::new("missing", message, "see that it is there, then try again"))
            }
        }
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
            Refusal::new("no_workspace", format!("{} can't be made: {error}", path.display()), hint)
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
        Refusal::new("io", message, transient::hint(&error, "see that the home can be read and written"))
    })
}
