//! Removing a worktree. Never loses work: what is not committed is a proven patch on disk first, what is committed stays
//! on a branch, and where neither can be had nothing is removed and the refusal says why.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use abide_kernel::time::Time;

use super::check::head;
use super::git::Git;
use super::keep::{self, Branch};
use super::patch::{PatchHolds, Unsaved};
use super::snapshot::Snapshot;
use super::worktree::{Listed, Worktree, listed};
use crate::limits;

/// What a removal came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// What was not committed, when there was any.
    pub patch: Option<PathBuf>,
    /// The worktree's branch unless nothing was on it, and a branch made for commits that were on none.
    pub branches_kept: Vec<String>,
    /// What was found and done, in sentences.
    pub evidence: Vec<String>,
}

/// Saves what is in a worktree into the folder `patches` and removes it. A folder that is gone already is refused as
/// `missing`, after git has been told to forget it; its branch is left alone.
pub fn remove_worktree(worktree: &Worktree, patches: &Path, now: Time) -> Result<Removed, Refusal> {
    let repo = Git::at(&worktree.repo)?;
    let found = listed(&repo)?.into_iter().find(|other| other.path == worktree.path);
    match fs::symlink_metadata(&worktree.path) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Err(not_ours(worktree, "it is no folder any more")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(vanished(&repo, worktree, found)),
        Err(error) => {
            let message = format!("{} can't be looked at: {error}", worktree.path.display());
            return Err(Refusal::new(
                "unreadable",
                message,
                "give the daemon's user access to it; nothing was removed",
            ));
        }
    }
    let Some(found) = found.filter(|found| !found.main) else {
        return Err(not_ours(worktree, "it is not among the worktrees that git lists for the repository"));
    };
    if !found.unfinished() {
        found.unlocked()?;
    }
    let mut removed = Removed { patch: None, branches_kept: Vec::new(), evidence: Vec::new() };
    save(worktree, &found, patches, now, &mut removed)?;
    note_ignored(worktree, &mut removed)?;
    if let Some(branch) = keep::keep_detached(&repo, worktree, &found)? {
        removed.evidence.push(format!("commits that were on no branch are on {branch}"));
        removed.branches_kept.push(branch);
    }
    take_away(&repo, worktree, &found, &removed)?;
    removed.evidence.push(format!("removed the worktree {}", worktree.path.display()));
    settle(&repo, worktree, &found, &mut removed);
    Ok(removed)
}

/// Saves until nothing changed between the look before and the look after.
fn save(worktree: &Worktree, found: &Listed, patches: &Path, now: Time, removed: &mut Removed) -> Result<(), Refusal> {
    let mut look = Look::take(worktree)?;
    for _ in 0..limits::SAVE_TRIES {
        keep::nothing_under_way(worktree, &look.snapshot.git_dir, look.conflicts)?;
        keep::no_repository_inside(worktree, &look.snapshot)?;
        let half_made = found.unfinished() && look.only_lacks_files()?;
        if half_made {
            removed.evidence.push("git had not finished making it, and nothing was in it yet".into());
        } else {
            removed.patch = look.save(worktree, patches, now, &mut removed.evidence)?;
        }
        let after = Look::take(worktree)?;
        if after.same_as(&look) {
            return Ok(());
        }
        removed.evidence.push("it changed while it was saved".into());
        look = after;
    }
    let message = format!("{} kept changing while it was saved", worktree.path.display());
    let hint = format!("stop what writes there; what was saved is in {}, and nothing was removed", patches.display());
    Err(Refusal::new("still_written", message, hint))
}

/// Everything uncommitted in a worktree at one moment.
struct Look {
    snapshot: Snapshot,
    head: Option<String>,
    /// The tree of the commit that is checked out.
    committed: String,
    /// Conflicts can't be written as a tree, and are refused.
    conflicts: bool,
    staged: Option<String>,
}

impl Look {
    fn take(worktree: &Worktree) -> Result<Look, Refusal> {
        let own = Git::at(&worktree.path)?;
        // A folder whose link to the repository is lost may lie in another repository's working tree.
        let top = own.line(&[&"rev-parse", &"--show-toplevel"])?;
        if Path::new(&top) != worktree.path {
            return Err(not_ours(worktree, &format!("git takes it for part of {top}")));
        }
        let head = head(&own)?;
        let snapshot = Snapshot::take(&worktree.path)?;
        let committed = match &head {
            Some(head) => own.line(&[&"rev-parse", &format!("{head}^{{tree}}")])?,
            None => snapshot.git.line(&[&"hash-object", &"-t", &"tree", &"/dev/null"])?,
        };
        let conflicts = !own.run(&[&"ls-files", &"--unmerged", &"-z"])?.is_empty();
        let staged = if conflicts { None } else { snapshot.staged()? };
        Ok(Look { snapshot, head, committed, conflicts, staged })
    }

    fn same_as(&self, other: &Look) -> bool {
        self.snapshot.tree == other.snapshot.tree && self.head == other.head && self.staged == other.staged
    }

    fn save(
        &self,
        worktree: &Worktree,
        patches: &Path,
        now: Time,
        evidence: &mut Vec<String>,
    ) -> Result<Option<PathBuf>, Refusal> {
        let files = self.unsaved(worktree, PatchHolds::Files, &self.snapshot.tree);
        let staged = self.staged.as_deref().filter(|staged| *staged != self.snapshot.tree);
        let staged = staged.and_then(|staged| self.unsaved(worktree, PatchHolds::Staged, staged));
        if let Some(staged) = &staged {
            let patch = staged.save(patches, now)?;
            evidence.push(format!("what was staged, and not in the files, is in {}", patch.display()));
        }
        let Some(files) = files else {
            evidence.push("there was nothing uncommitted in its files".into());
            return Ok(None);
        };
        let patch = files.save(patches, now)?;
        evidence.push(format!("what was not committed is in {}, which was applied to prove it", patch.display()));
        Ok(Some(patch))
    }

    fn unsaved<'a>(&'a self, worktree: &'a Worktree, holds: PatchHolds, tree: &'a str) -> Option<Unsaved<'a>> {
        let (snapshot, from) = (&self.snapshot, self.committed.as_str());
        let head = self.head.as_deref();
        (tree != from).then_some(Unsaved { worktree, snapshot, head, holds, from, tree })
    }

    /// Whether the files are some of those that are committed, unchanged: a checkout that was cut off.
    fn only_lacks_files(&self) -> Result<bool, Refusal> {
        let args: [&dyn AsRef<std::ffi::OsStr>; 6] =
            [&"diff-tree", &"-r", &"--no-renames", &"--diff-filter=d", &self.committed, &self.snapshot.tree];
        Ok(self.snapshot.git.run(&args)?.is_empty())
    }
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

fn take_away(repo: &Git, worktree: &Worktree, found: &Listed, removed: &Removed) -> Result<(), Refusal> {
    let path = &worktree.path;
    if found.unfinished() {
        repo.run(&[&"worktree", &"unlock", path])?;
    }
    // git itself takes away only what is clean. Past that it is asked to only for what is saved and was compared since,
    // and for submodules that were found to be empty.
    let plain = repo.ask(&[&"worktree", &"remove", path])?;
    if plain.ok {
        return Ok(());
    }
    let known = ["contains modified or untracked files", "containing submodules cannot be moved or removed"];
    if !known.iter().any(|words| plain.err.contains(words)) {
        return Err(repo.failed(&[&"worktree", &"remove"], &plain.err));
    }
    repo.run(&[&"worktree", &"remove", &"--force", path]).map(drop).map_err(|refusal| {
        let saved =
            removed.patch.as_ref().map_or(String::new(), |patch| format!("; its work is in {}", patch.display()));
        Refusal::new(refusal.code, format!("{}{saved}", refusal.message), refusal.hint)
    })
}

/// The folder is gone by now: whatever happens to the branch is told, and is no failure.
fn settle(repo: &Git, worktree: &Worktree, found: &Listed, removed: &mut Removed) {
    let branch = &worktree.branch;
    let mut kept = |branch: &str, why: &str| {
        removed.evidence.push(format!("kept the branch {branch}: {why}"));
        removed.branches_kept.push(branch.to_owned());
    };
    if let Some(other) = found.branch.as_ref().filter(|other| *other != branch) {
        kept(other, "it was checked out there");
    }
    match keep::settle_branch(repo, worktree) {
        Ok(Branch::Kept { why }) => kept(branch, &why),
        Ok(Branch::Deleted) => removed.evidence.push(format!("deleted the branch {branch}: no commits of its own")),
        Ok(Branch::Gone) => removed.evidence.push(format!("the branch {branch} was gone already")),
        Err(refusal) => kept(branch, &refusal.message),
    }
}

fn vanished(repo: &Git, worktree: &Worktree, found: Option<Listed>) -> Refusal {
    let mut done = "git does not list it any more".to_owned();
    if let Some(found) = found {
        let forgotten = found.unlocked().and_then(|()| {
            let kept = keep::keep_detached(repo, worktree, &found)?;
            // For this folder alone; pruning would take away every record whose folder is missing, of the user's too.
            repo.run(&[&"worktree", &"remove", &"--", &worktree.path])?;
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

fn not_ours(worktree: &Worktree, why: &str) -> Refusal {
    let message = format!("{} is not the worktree that was made there: {why}", worktree.path.display());
    Refusal::new("not_a_worktree", message, "look at the folder and move what is in it; nothing was removed")
}
