//! Where an agent works: the folder that it chose, or that its operator set, or one of its own. Whoever needs one takes
//! it, and keeps it until the agent stops or goes elsewhere; two agents never write in the same folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abide_kernel::effect::Place;
use abide_kernel::fact::WorkspaceAttached;
use abide_kernel::id::AgentId;
use abide_kernel::input::{Input, Refusal};
use abide_kernel::vocabulary::WorkspaceMode;

use super::Hands;
use crate::workspace::{self, Occupancy, Workspace};

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
    extra_read: Vec<PathBuf>,
    extra_write: Vec<PathBuf>,
}

/// A folder that was taken for an agent.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) root: PathBuf,
    /// Of git's own files, what may be read and what may be written. Hooks and settings are never among the latter:
    /// whoever runs git there next would run what they say.
    pub(super) extra_read: Vec<PathBuf>,
    pub(super) extra_write: Vec<PathBuf>,
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
        home: &Path,
    ) -> Result<(), Refusal> {
        let mut all = self.all();
        let name = top.unwrap_or(agent).as_str();
        if let Some(held) = all.get_mut(agent).filter(|held| held.occupancy.path == folder.path) {
            held.stay += 1;
            return Ok(());
        }
        let before = all.remove(agent);
        let mut others = all.values().chain(&before).map(|held| &held.occupancy);
        let shared = others.find(|held| held.path == folder.path && held.agent == name).cloned();
        let taken = shared.map_or_else(|| workspace::occupy(folder, home, name).map(Arc::new), Ok);
        match taken {
            Ok(occupancy) => {
                let (extra_read, extra_write) = git_folders(folder);
                let stay = before.as_ref().map_or(0, |held| held.stay) + 1;
                all.insert(agent.clone(), Held { occupancy, stay, extra_read, extra_write });
                before.map_or(Ok(()), Held::release)
            }
            Err(refusal) => {
                all.extend(before.map(|held| (agent.clone(), held)));
                Err(refusal)
            }
        }
    }

    /// Takes the folder that the agent has again, if it is this one and still there.
    fn retake(&self, agent: &AgentId, root: &Path) -> Option<Desk> {
        let mut all = self.all();
        let held = all.get_mut(agent).filter(|held| held.occupancy.path == root && is_there(root))?;
        held.stay += 1;
        let (extra_read, extra_write) = (held.extra_read.clone(), held.extra_write.clone());
        Some(Desk { root: root.to_path_buf(), extra_read, extra_write, first: Vec::new() })
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
        let home = &self.0.home;
        let known = place.workspace.as_ref().and_then(|bound| self.0.desks.retake(agent, Path::new(&bound.root)));
        if let Some(desk) = known {
            let workspace = desk.root.display().to_string();
            return Ok(Desk { first: vec![Input::OccupyWorkspace { workspace }], ..desk });
        }
        let folder = match (&place.workspace, &place.configured) {
            (Some(bound), _) if Path::new(&bound.root) == self.own_folder(agent) => self.own(agent)?,
            (Some(bound), _) => unturned(Path::new(&bound.root), home)?,
            (None, Some(configured)) => unturned(Path::new(configured), home)?,
            (None, None) => self.own(agent)?,
        };
        self.0.desks.take(agent, place.top.as_ref(), &folder, home)?;
        let root = folder.path.display().to_string();
        let mut first = Vec::new();
        if place.workspace.is_none() {
            let (workspace, mode) = (root.clone(), WorkspaceMode::Direct);
            let bound = WorkspaceAttached { workspace, root: root.clone(), mode, worktree: None, note: None };
            first.push(Input::UseWorkspace(bound));
        }
        first.push(Input::OccupyWorkspace { workspace: root });
        match self.0.desks.retake(agent, &folder.path) {
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
        made.map(|path| Workspace { path, git: None }).map_err(|error| {
            let hint = "see to the disk, or give the agent a workspace";
            Refusal::new("no_workspace", format!("{} can't be made: {error}", path.display()), hint)
        })
    }
}

fn is_there(root: &Path) -> bool {
    root.canonicalize().is_ok_and(|real| real == root && real.is_dir())
}

/// A folder that was recorded, which it is by its real path. Where that leads elsewhere now, somebody put a link in its
/// place, and nobody allowed where it leads.
fn unturned(path: &Path, home: &Path) -> Result<Workspace, Refusal> {
    let folder = workspace::check(path, home)?;
    if folder.path == path {
        return Ok(folder);
    }
    let message = format!("{} is a link by now, and leads to {}", path.display(), folder.path.display());
    Err(Refusal::new("moved", message, "put the folder back, or have the operator attach the one that is meant"))
}

/// What of a repository lies outside the folder that commands run in.
fn git_folders(folder: &Workspace) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let Some(git) = folder.git.as_ref().filter(|git| !git.common_dir.starts_with(&folder.path)) else {
        return (Vec::new(), Vec::new());
    };
    let write = match &git.records {
        // A worktree: it can commit to its own branch.
        Some(records) => {
            let shared = ["objects", "refs", "logs"].map(|part| git.common_dir.join(part));
            shared.into_iter().chain([records.clone()]).filter(|path| path.is_dir()).collect()
        }
        None => Vec::new(),
    };
    (vec![git.common_dir.clone()], write)
}
