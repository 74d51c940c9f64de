//! Worktrees: a folder and a branch of their own for one piece of work, from the commit that is checked out.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use serde::{Deserialize, Serialize};

use super::aside::own_place;
use super::check::{canonical_as_far_as_it_exists, head};
use super::git::Git;
use super::making::Making;
use super::tree::path_of;
use super::{BRANCHES, GitRoot, Workspace};

/// A worktree that we made, as the caller records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    pub path: PathBuf,
    pub branch: String,
    /// The commit that it started from.
    pub base_commit: String,
    /// The top of the working tree that it was made from.
    pub repo: PathBuf,
    /// That working tree had changes which were not committed, and which are therefore not in this one.
    pub left_out: bool,
}

/// Makes `branch`, which must begin with [`BRANCHES`], at the commit that is checked out in `repo`, and `folder` with
/// that branch checked out.
pub fn create_worktree(repo: &Workspace, folder: &Path, branch: &str) -> Result<Worktree, Refusal> {
    let (git, root) = repository(repo)?;
    let Some(base) = head(&git)? else {
        let message = format!("the repository {} has no commit yet", root.toplevel.display());
        return Err(Refusal::new("unborn_head", message, "commit something first: a worktree starts from a commit"));
    };
    ours(&git, branch)?;
    let reference = format!("refs/heads/{branch}");
    if git.ask(&[&"rev-parse", &"--verify", &"-q", &reference])?.ok {
        let hint = "choose another name";
        return Err(Refusal::new("branch_exists", format!("the branch {branch} exists already"), hint));
    }
    let folder = free(folder)?;
    let left_out = is_dirty(&git)?;
    let repo = root.toplevel.clone();
    let worktree = Worktree { path: folder, branch: branch.into(), base_commit: base, repo, left_out };
    let making = Making::begin(&worktree)?;
    let (folder, base) = (&worktree.path, &worktree.base_commit);
    let add: [&dyn AsRef<OsStr>; 8] = [&"worktree", &"add", &"--no-track", &"-b", &branch, &"--", folder, base];
    if let Err(refusal) = git.run_holding(&add, making.held()) {
        // git makes the branch first and leaves it behind when the folder fails. It was not there before, so it is ours
        // to take away, unless something has been put on it or is using it.
        if !listed(&git)?.iter().any(|other| other.branch.as_deref() == Some(branch)) {
            git.ask(&[&"update-ref", &"-d", &reference, base])?;
        }
        making.done()?;
        return Err(refusal);
    }
    // Its folder tells whose it is from here on.
    making.done()?;
    Ok(worktree)
}

/// Whether anything in the repository is changed and not committed.
fn is_dirty(git: &Git) -> Result<bool, Refusal> {
    let status = git.run(&[&"status", &"--porcelain", &"-z", &"--no-renames", &"--ignore-submodules=none"])?;
    Ok(!status.is_empty())
}

pub(super) fn repository(workspace: &Workspace) -> Result<(Git, &GitRoot), Refusal> {
    let Some(root) = &workspace.git else {
        let message = format!("{} is not in a git repository that knows it", workspace.path.display());
        return Err(Refusal::new("no_git", message, "use mode direct, or make it one: git init, then commit"));
    };
    Ok((Git::at(&root.toplevel)?, root))
}

fn ours(git: &Git, branch: &str) -> Result<(), Refusal> {
    let well_formed = branch.starts_with(BRANCHES) && git.ask(&[&"check-ref-format", &"--branch", &branch])?.ok;
    if well_formed {
        return Ok(());
    }
    let message = format!("{branch:?} can't be the name of a branch of ours");
    Err(Refusal::new("branch_name", message, format!("begin with {BRANCHES} and use letters, digits, - and /")))
}

/// A folder that nothing is in yet, by its canonical name.
fn free(folder: &Path) -> Result<PathBuf, Refusal> {
    let folder = canonical_as_far_as_it_exists(folder)?;
    let shown = folder.display();
    let occupied = || {
        Refusal::new("folder_exists", format!("{shown} is there already, and not empty"), "choose a folder that is not")
    };
    if folder.to_str().is_none() {
        return Err(Refusal::new("not_utf8", format!("{shown} is not UTF-8"), "choose a plain name"));
    }
    if own_place(&folder) != folder {
        let message = format!("{shown} has a name that folders have while they are removed");
        return Err(Refusal::new("folder_name", message, "choose another name"));
    }
    match fs::read_dir(&folder) {
        Ok(mut entries) => entries.next().map_or(Ok(()), |_| Err(occupied()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Err(occupied()),
        Err(error) => {
            let message = format!("{shown} can't be looked at: {error}");
            return Err(Refusal::new("unreadable", message, "choose another folder"));
        }
    }
    Ok(folder)
}

/// One entry of git's own list of worktrees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) path: PathBuf,
    pub(super) head: Option<String>,
    /// Without `refs/heads/`; none when no branch is checked out.
    pub(super) branch: Option<String>,
    pub(super) locked: Option<String>,
    /// The first in the list: the repository's own working tree, never ours.
    pub(super) main: bool,
}

/// What git writes into the lock of a worktree that it has not finished making.
const UNFINISHED: &str = "initializing";

impl Listed {
    pub(super) fn unfinished(&self) -> bool {
        self.locked.as_deref() == Some(UNFINISHED)
    }

    pub(super) fn unlocked(&self) -> Result<(), Refusal> {
        let Some(reason) = &self.locked else { return Ok(()) };
        let path = self.path.display();
        let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let hint = format!("if it may go, unlock it first: git worktree unlock '{path}'");
        Err(Refusal::new("locked", format!("the worktree {path} is locked{because}"), hint))
    }
}

pub(super) fn listed(git: &Git) -> Result<Vec<Listed>, Refusal> {
    let out = git.run(&[&"worktree", &"list", &"--porcelain", &"-z"])?;
    let mut all: Vec<Listed> = Vec::new();
    for line in out.split(|byte| *byte == 0) {
        let space = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (word, rest) = (&line[..space], line.get(space + 1..).unwrap_or_default());
        let text = || String::from_utf8_lossy(rest).into_owned();
        if word == b"worktree" {
            all.push(Listed { path: path_of(rest), main: all.is_empty(), ..Listed::default() });
        }
        let Some(last) = all.last_mut() else { continue };
        match word {
            b"HEAD" => last.head = Some(text()).filter(|head| head.bytes().any(|byte| byte != b'0')),
            b"branch" => last.branch = text().strip_prefix("refs/heads/").map(str::to_owned),
            b"locked" => last.locked = Some(text()),
            // `bare`, `detached` and `prunable` follow from the others, and from looking.
            _ => {}
        }
    }
    Ok(all)
}
