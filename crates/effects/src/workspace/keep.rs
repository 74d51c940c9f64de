//! What has to outlive a worktree's folder, besides what is in it: commits. And what stands in the way of removing one.

use std::fs;
use std::path::Path;

use abide_kernel::input::Refusal;

use super::git::Git;
use super::tree::{Tree, path_of};
use super::worktree::{Listed, Worktree, listed};
use super::{BRANCHES, durable};

/// What git leaves in a worktree's records while something is under way, and what that is.
const UNDER_WAY: &[(&str, &str)] = &[
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase, or git am,"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a cherry-pick or a revert"),
    ("BISECT_LOG", "a bisect"),
];

/// Refuses when the worktree is in the middle of something that a patch can't hold.
pub(super) fn nothing_under_way(worktree: &Worktree, git_dir: &Path, conflicts: bool) -> Result<(), Refusal> {
    let path = worktree.path.display();
    if let Some((_, what)) = UNDER_WAY.iter().find(|(name, _)| git_dir.join(name).exists()) {
        let hint = format!("finish or abort it first, in {path}; nothing was removed");
        return Err(Refusal::new("under_way", format!("{what} is under way in {path}"), hint));
    }
    if git_dir.join("index.lock").exists() {
        let hint = "try again when it is done, or delete its index.lock if there is none; nothing was removed";
        return Err(Refusal::new("git_busy", format!("another git is at work in {path}"), hint));
    }
    if conflicts {
        let hint = format!("resolve them first, in {path}; nothing was removed");
        return Err(Refusal::new("under_way", format!("there are conflicts in {path}"), hint));
    }
    Ok(())
}

/// Refuses when there is a repository inside: git sees a commit there, and none of its files.
pub(super) fn no_repository_inside(worktree: &Worktree, tree: &Tree) -> Result<(), Refusal> {
    let refused = |what: &Path| {
        let message = format!("{} has a repository of its own inside: {}", worktree.path.display(), what.display());
        let hint = "push or move what is in it, and delete it or run git submodule deinit; nothing was removed";
        Err(Refusal::new("nested_repository", message, hint))
    };
    let staged = tree.git.run(&[&"ls-files", &"--stage", &"-z"])?;
    for entry in staged.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 ")) {
        let tab = entry.iter().position(|byte| *byte == b'\t').unwrap_or(0);
        let name = path_of(&entry[tab + 1..]);
        if has_entries(&worktree.path.join(&name)) {
            return refused(&name);
        }
    }
    // A submodule that was put away keeps its commits in the worktree's records.
    let modules = tree.git_dir.join("modules");
    if has_entries(&modules) { refused(&modules) } else { Ok(()) }
}

/// A folder that can't be looked into has something in it.
fn has_entries(folder: &Path) -> bool {
    folder.is_dir() && fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_some())
}

/// Gives commits that only the worktree's own HEAD leads to a branch, and says which.
pub(super) fn keep_detached(git: &Git, worktree: &Worktree, found: &Listed) -> Result<Option<String>, Refusal> {
    let (Some(head), None) = (&found.head, &found.branch) else { return Ok(None) };
    if !held_by(git, head)?.is_empty() {
        return Ok(None);
    }
    let mut failure = None;
    let name = durable::free_name(&format!("{}-detached", worktree.branch), |name| {
        let reference = format!("refs/heads/{name}");
        // The empty old value: only if there is none of that name.
        match git.ask(&[&"update-ref", &reference, head, &""]) {
            Ok(said) if !said.ok && said.err.contains("reference already exists") => true,
            Ok(said) if said.ok => false,
            Ok(said) => {
                failure = Some(git.failed(&[&"update-ref"], &said.err));
                false
            }
            Err(refusal) => {
                failure = Some(refusal);
                false
            }
        }
    });
    match (failure, name) {
        (Some(refusal), _) => Err(refusal),
        (None, Some(name)) => Ok(Some(name)),
        (None, None) => {
            let message = format!("there are too many branches named {}-detached", worktree.branch);
            Err(Refusal::new("too_many_branches", message, "delete those that are not needed; nothing was removed"))
        }
    }
}

/// What became of the branch once its folder was gone.
#[derive(Debug)]
pub(super) enum Branch {
    Kept { why: String },
    Deleted,
    Gone,
}

/// Deletes the branch if nothing is lost by it: no commits of its own, and its commit is held by another name.
pub(super) fn settle_branch(git: &Git, worktree: &Worktree) -> Result<Branch, Refusal> {
    let branch = &worktree.branch;
    let reference = format!("refs/heads/{branch}");
    let said = git.ask(&[&"rev-parse", &"--verify", &"-q", &format!("{reference}^{{commit}}")])?;
    if !said.ok {
        return Ok(Branch::Gone);
    }
    let tip = String::from_utf8_lossy(&said.out).trim().to_owned();
    if !branch.starts_with(BRANCHES) {
        return Ok(Branch::Kept { why: "it is not one of ours".into() });
    }
    if let Some(other) = listed(git)?.iter().find(|other| other.branch.as_ref() == Some(branch)) {
        return Ok(Branch::Kept { why: format!("it is checked out in {}", other.path.display()) });
    }
    let range = format!("{}..{tip}", worktree.base_commit);
    let own = git.line(&[&"rev-list", &"--count", &range])?;
    if own != "0" {
        return Ok(Branch::Kept { why: format!("it has {own} commits of its own") });
    }
    if held_by(git, &tip)?.iter().all(|holder| *holder == reference) {
        return Ok(Branch::Kept { why: format!("nothing else leads to the commit {tip}") });
    }
    // Only if it still is where we looked.
    git.run(&[&"update-ref", &"-d", &reference, &tip])?;
    Ok(Branch::Deleted)
}

/// The first two branches, tags and the like that lead to a commit.
fn held_by(git: &Git, commit: &str) -> Result<Vec<String>, Refusal> {
    let contains = format!("--contains={commit}");
    let args: [&dyn AsRef<std::ffi::OsStr>; 7] = [
        &"for-each-ref",
        &"--count=2",
        &"--format=%(refname)",
        &contains,
        &"refs/heads",
        &"refs/tags",
        &"refs/remotes",
    ];
    Ok(git.line(&args)?.lines().map(str::to_owned).collect())
}
