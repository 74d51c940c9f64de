//! Removing a worktree. Never loses work: what is not committed is a proven patch on disk first, what is committed stays
//! on a branch, and where neither can be had nothing is removed and the refusal says why.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use abide_kernel::time::Time;
use serde::{Deserialize, Serialize};

use super::aside::Aside;
use super::git::Git;
use super::keep::{self, Branch};
use super::look::Look;
use super::worktree::{Listed, Worktree};
use crate::limits;

/// What a removal came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// What was not committed, when there was any.
    pub patch: Option<PathBuf>,
    /// The worktree's branch unless nothing was on it, and a branch made for commits that were on none.
    pub branches_kept: Vec<String>,
    /// What was found and done, in sentences.
    pub evidence: Vec<String>,
}

/// Saves what is in a worktree into the folder `patches` and removes it. A folder that is gone already is refused as
/// `missing`, after git has been told to forget it; its branch is left alone. A removal that was cut off is picked up.
pub fn remove_worktree(worktree: &Worktree, patches: &Path, now: Time) -> Result<Removed, Refusal> {
    let repo = Git::at(&worktree.repo)?;
    let aside = Aside::of(&repo, worktree);
    if let Some(removed) = aside.pick_up()? {
        return finish(&repo, worktree, &aside, removed);
    }
    let found = aside.listed()?;
    match fs::symlink_metadata(&worktree.path) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Err(not_ours(&worktree.path, "it is no folder any more")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(vanished(&repo, worktree, &aside, found)),
        Err(error) => {
            let message = format!("{} can't be looked at: {error}", worktree.path.display());
            let hint = "give the daemon's user access to it; nothing was removed";
            return Err(Refusal::new("unreadable", message, hint));
        }
    }
    let Some(found) = found else {
        return Err(not_ours(&worktree.path, "it is not among the worktrees that git lists for the repository"));
    };
    if !found.unfinished() {
        found.unlocked()?;
    }
    let mut removed = Removed { patch: None, branches_kept: Vec::new(), evidence: Vec::new() };
    let [common_dir] = repo.where_are(["--git-common-dir"])?.map(PathBuf::from);
    let saved = save(worktree, &common_dir, &found, patches, now, &mut removed)?;
    note_ignored(worktree, &mut removed)?;
    let found = aside.move_there(&saved)?;
    if let Err(refusal) = keep_commits(&repo, worktree, &found, &mut removed).and_then(|()| aside.write_note(&removed))
    {
        aside.put_back()?;
        return Err(refusal);
    }
    aside.delete()?;
    finish(&repo, worktree, &aside, removed)
}

/// What is left to do once the folder is gone.
fn finish(repo: &Git, worktree: &Worktree, aside: &Aside<'_>, mut removed: Removed) -> Result<Removed, Refusal> {
    aside.forget()?;
    removed.evidence.push(format!("removed the worktree {}", worktree.path.display()));
    settle(repo, worktree, &mut removed);
    aside.done()?;
    Ok(removed)
}

/// Saves until nothing changed between the look before and the look after, which is returned.
fn save(
    worktree: &Worktree,
    common_dir: &Path,
    found: &Listed,
    patches: &Path,
    now: Time,
    removed: &mut Removed,
) -> Result<Look, Refusal> {
    let mut look = Look::take(&worktree.path)?;
    // What links the folder to its repository lies in the folder, where anybody can write.
    if look.tree.common_dir != *common_dir {
        let theirs = look.tree.common_dir.display();
        return Err(not_ours(&worktree.path, &format!("it is linked to another repository, {theirs}")));
    }
    for _ in 0..limits::SAVE_TRIES {
        keep::nothing_under_way(worktree, &look.tree.git_dir, look.conflicts)?;
        keep::no_repository_inside(worktree, &look.tree)?;
        let half_made = found.unfinished() && look.only_lacks_files()?;
        if half_made {
            removed.evidence.push("git had not finished making it, and nothing was in it yet".into());
        } else {
            removed.patch = look.save(worktree, patches, now, &mut removed.evidence)?;
        }
        let after = Look::take(&worktree.path)?;
        if after.same_as(&look) {
            return Ok(after);
        }
        removed.evidence.push("it changed while it was saved".into());
        look = after;
    }
    let message = format!("{} kept changing while it was saved", worktree.path.display());
    let hint = format!("stop what writes there; what was saved is in {}, and nothing was removed", patches.display());
    Err(Refusal::new("still_written", message, hint))
}

/// Commits that only the worktree leads to get a branch; a branch that is not the worktree's own stays and is told.
fn keep_commits(repo: &Git, worktree: &Worktree, found: &Listed, removed: &mut Removed) -> Result<(), Refusal> {
    if let Some(other) = found.branch.as_ref().filter(|other| **other != worktree.branch) {
        removed.evidence.push(format!("kept the branch {other}: it was checked out there"));
        removed.branches_kept.push(other.clone());
    }
    if let Some(branch) = keep::keep_detached(repo, worktree, found)? {
        removed.evidence.push(format!("commits that were on no branch are on {branch}"));
        removed.branches_kept.push(branch);
    }
    Ok(())
}

/// What git ignores is not work, by the user's own word; what goes with the folder is told all the same.
fn note_ignored(worktree: &Worktree, removed: &mut Removed) -> Result<(), Refusal> {
    let own = Git::at(&worktree.path)?;
    let status = own.run(&[&"status", &"--porcelain", &"-z", &"--no-renames", &"--ignored=traditional"])?;
    let ignored = status.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(b"!! "));
    let total = ignored.clone().count();
    if total > 0 {
        let names = ignored.take(limits::EVIDENCE_NAMES).map(String::from_utf8_lossy).collect::<Vec<_>>().join(", ");
        removed.evidence.push(format!("{total} entries that git ignores go with it, unsaved: {names}"));
    }
    Ok(())
}

/// The folder is gone by now: whatever happens to the branch is told, and is no failure.
pub(super) fn settle(repo: &Git, worktree: &Worktree, removed: &mut Removed) {
    let branch = &worktree.branch;
    let mut kept = |why: &str| {
        removed.evidence.push(format!("kept the branch {branch}: {why}"));
        removed.branches_kept.push(branch.clone());
    };
    match keep::settle_branch(repo, worktree) {
        Ok(Branch::Kept { why }) => kept(&why),
        Ok(Branch::Deleted) => removed.evidence.push(format!("deleted the branch {branch}: no commits of its own")),
        Ok(Branch::Gone) => removed.evidence.push(format!("the branch {branch} was gone already")),
        Err(refusal) => kept(&refusal.message),
    }
}

fn vanished(repo: &Git, worktree: &Worktree, aside: &Aside<'_>, found: Option<Listed>) -> Refusal {
    let mut done = "git does not list it any more".to_owned();
    if let Some(found) = found {
        let free = if found.unfinished() { Ok(()) } else { found.unlocked() };
        let forgotten = free.and_then(|()| {
            let kept = keep::keep_detached(repo, worktree, &found)?;
            aside.forget()?;
            Ok(kept)
        });
        done = match forgotten {
            Ok(None) => "git has been told to forget it".into(),
            Ok(Some(kept)) => format!("git has been told to forget it; commits that were on no branch are on {kept}"),
            Err(refusal) => format!("git still lists it: {}", refusal.message),
        };
    }
    let (path, branch) = (worktree.path.display(), &worktree.branch);
    let message = format!("the worktree {path} is missing: somebody else removed its folder; {done}");
    Refusal::new("missing", message, format!("what was committed there is on the branch {branch}, if it exists"))
}

pub(super) fn not_ours(folder: &Path, why: &str) -> Refusal {
    let message = format!("{} is not the worktree that was made there: {why}", folder.display());
    Refusal::new("not_a_worktree", message, "look at the folder and move what is in it; nothing was removed")
}
