//! The folders that agents work in, and worktrees made for them. All functions here block; async callers use a thread
//! for blocking work. No code here knows agents beyond their names.
//!
//! There are three kinds of repository, each with one writer. The *user's* is read, and written only by a fetch that a
//! person asks for. The *mirror* of it, in the home, is written by the runtime alone. A worktree's *own*, in its folder,
//! is its agent's. Objects pass from one to another only as packs whose hashes are computed anew.
//!
//! Work is never lost here: a worktree's changes are a proven patch on disk before its folder goes, its commits are in
//! the mirror, and what can't be saved is refused and left as it is. A folder that is missing is an error.

mod baseline;
mod clear;
mod convert;
mod fetch;
mod folder_digest;
mod folder_mark;
mod git;
mod identity;
mod ignore;
mod includes;
mod kept_refs;
mod mirror;
mod objects;
mod patch;
mod programs;
mod protect;
mod refresh;
mod remove;
mod repository;
mod reserved;
mod staged_removal;
mod stall;
mod tracked;
mod transfers;
mod tree;
mod tree_size;
mod uncommitted;
mod untracked;
mod upkeep;
mod validate;
mod view;
mod worktree;
mod worktree_record;
mod worktree_state;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use abide_kernel::input::Refusal;
use abide_kernel::time::Time;
use serde::{Deserialize, Serialize};

use self::git::Git;
use self::mirror::Mirror;
use self::repository::Repository;
use self::transfers::Transfers;
use self::view::View;
use self::worktree_record::WorktreeRecord;
use crate::file_identity::FileIdentity;
use crate::process::Processes;

pub use clear::find_left;
pub use fetch::FetchedBranch;
pub use folder_mark::{FolderMarks, ForeignHolder, MarkOwner};
pub use identity::{FILE as GIT_CONFIG, global_config};
pub use includes::{WritableSettings, nested_git_warning};
pub use mirror::MIRRORS;
pub use patch::{PatchHolds, PatchRecord, PatchStory, list_patches};
pub use programs::SettingProgram;
pub use protect::{has_repository, protect_records};
pub use remove::{RemovalReport, UnsavedWork};
pub(crate) use reserved::apart_from_reserved;
pub use reserved::{apart_from_person, system_folder};
pub use transfers::{Phase as TransferPhase, Transfer};
pub use upkeep::UpkeepReport;
pub use worktree::Worktree;

pub use crate::git_dir::shadow_warning;

/// Where in a home worktrees are made. The only place below a home that may be a workspace.
pub const WORKTREES: &str = "worktrees";
/// Every branch that we make begins so, and no other branch is ever made or moved.
pub const BRANCHES: &str = "abide/";
/// Where in a home views of repositories are made. What a daemon that died left there is swept at the next start.
const SCRATCH: &str = "scratch";

/// A folder that was there, was a folder and could be written to when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Absolute, with no symbolic link in it.
    pub path: PathBuf,
    /// Of the folder that was looked at. Another one may lie at the path later.
    pub identity: FileIdentity,
    pub git: Option<GitRoot>,
}

/// The repository that a workspace is part of, and that knows it to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitRoot {
    /// The top of the working tree; the workspace itself or a folder above it.
    pub toplevel: PathBuf,
    /// The records that all worktrees of the repository share.
    pub common_dir: PathBuf,
    /// Of a linked worktree: its own records, which are part of those.
    pub records: Option<PathBuf>,
}

impl GitRoot {
    fn repository(&self) -> Repository {
        let git_dir = self.records.clone().unwrap_or_else(|| self.common_dir.clone());
        Repository { toplevel: self.toplevel.clone(), git_dir, common_dir: self.common_dir.clone() }
    }
}

/// The repositories that a home uses, and the runner of git on them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Repositories {
    home: PathBuf,
    processes: Processes,
    /// The state of the user's refs when a worktree was last brought up to date with them.
    stamps: Arc<Mutex<HashMap<PathBuf, String>>>,
    transfers: Transfers,
    /// Held for reading by everybody who works with mirrors, and for writing while one is removed.
    mirrors: Arc<RwLock<()>>,
}

impl Repositories {
    /// `home` is the runtime's own folder, by its real name.
    #[must_use]
    pub fn new(home: &Path, processes: Processes) -> Repositories {
        let (stamps, transfers) = (Arc::default(), Transfers::default());
        Repositories { home: home.to_path_buf(), processes, stamps, transfers, mirrors: Arc::default() }
    }

    /// The transfers of objects into mirrors that are under way.
    #[must_use]
    pub fn transfers(&self) -> Vec<Transfer> {
        self.transfers.list()
    }

    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Whether a folder is a worktree of ours, with a repository that belongs to its agent.
    #[must_use]
    pub fn is_worktree(&self, folder: &Path) -> bool {
        folder.starts_with(self.home.join(WORKTREES))
    }

    /// The mirror of a workspace's repository, made or not.
    pub fn mirror_path(&self, workspace: &Workspace) -> Result<Option<PathBuf>, Refusal> {
        let own = WorktreeRecord::read(&workspace.path)?.and_then(|record| record.mirror);
        let own = own.map(|id| Mirror::by_id(&self.home, &id));
        let mirror = own.or_else(|| Some(Mirror::of_repository(&self.home, &workspace.git.as_ref()?.common_dir)));
        Ok(mirror.map(|mirror| mirror.dir().to_path_buf()))
    }

    /// The user's large files, which a worktree's git may read.
    pub fn large_files_for(&self, folder: &Path) -> Result<Option<PathBuf>, Refusal> {
        let Some(mirror) = WorktreeRecord::read(folder)?.and_then(|record| record.mirror) else { return Ok(None) };
        let user = Mirror::by_id(&self.home, &mirror).origin();
        Ok(user.map(|user| user.join("lfs/objects")).filter(|large| large.is_dir()))
    }

    /// Gives a worktree that an older version made a repository of its own, at its next use.
    pub fn convert_worktree(&self, worktree: &Worktree, patches: &Path, now: Time) -> Result<Vec<String>, Refusal> {
        let _used = self.lock_mirrors();
        let mut evidence = Vec::new();
        self.convert_if_linked(worktree, patches, now, &mut evidence)?;
        Ok(evidence)
    }

    /// Records that a person has agents work in a folder. `allow` judges the folder, its repository and the object
    /// stores that the repository takes objects from; if it lets them pass, these very stores are recorded, and
    /// worktrees can be made. The tracked git directories that are committed now are listed: they are open to commands.
    pub fn record_agreement(
        &self,
        workspace: &Workspace,
        allow: impl FnOnce(&Workspace, &[PathBuf]) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let _used = self.lock_mirrors();
        let stores = self.stores_of(workspace)?;
        allow(workspace, &stores)?;
        if !self.is_worktree(&workspace.path) {
            self.list_tracked(&workspace.path, workspace.git.as_ref().map(GitRoot::repository).as_ref());
        }
        match &workspace.git {
            Some(git) if WorktreeRecord::read(&git.toplevel)?.is_none() => self.record_stores(&git.common_dir, stores),
            Some(_) | None => Ok(()),
        }
    }

    /// The sentence for a person about the object stores that a workspace's repository takes objects from, if there are any.
    pub fn borrows_note(&self, workspace: &Workspace) -> Result<Option<String>, Refusal> {
        let Some(git) = &workspace.git else { return Ok(None) };
        Ok(worktree::borrows_note(&git.toplevel, &self.stores_of(workspace)?))
    }

    /// The object stores outside of its repository that a workspace takes objects from. A worktree of ours has the mirror,
    /// and its own list is never followed.
    fn stores_of(&self, workspace: &Workspace) -> Result<Vec<PathBuf>, Refusal> {
        match &workspace.git {
            Some(git) if WorktreeRecord::read(&git.toplevel)?.is_none() => repository::borrows_from(&git.common_dir),
            Some(_) | None => Ok(Vec::new()),
        }
    }

    fn record_stores(&self, common_dir: &Path, stores: Vec<PathBuf>) -> Result<(), Refusal> {
        let mirror = Mirror::of_repository(&self.home, common_dir);
        if stores == mirror.alternates() { Ok(()) } else { mirror.record_origin(common_dir, stores) }
    }

    fn alternates_of(&self, repository: &Repository) -> Result<Vec<PathBuf>, Refusal> {
        let own = WorktreeRecord::read(&repository.toplevel)?.and_then(|record| record.mirror);
        Ok(match own {
            Some(mirror) => vec![Mirror::by_id(&self.home, &mirror).objects()],
            None => Mirror::of_repository(&self.home, &repository.common_dir).alternates(),
        })
    }

    fn untrusted_git(&self, view: &View) -> Result<Git, Refusal> {
        Git::untrusted(view, &self.processes)
    }

    /// No mirror is removed as long as this is held. Upkeep never waits for it, so it may be taken twice.
    fn lock_mirrors(&self) -> RwLockReadGuard<'_, ()> {
        self.mirrors.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn scratch_folder(&self) -> PathBuf {
        self.home.join(SCRATCH)
    }

    fn lock_stamps(&self) -> MutexGuard<'_, HashMap<PathBuf, String>> {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
