//! What has to outlive a worktree's folder besides its files: commits. And what stands in the way of removing one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use abide_kernel::time::Time;

use super::look::Look;
use super::making::Record;
use super::mirror::{KEPT, Mirror, USER};
use super::patch::{PatchHolds, PatchStory, io_refusal, list_patches, plain_name, publish};
use super::tree::{Tree, path_of};
use super::worktree::Worktree;
use super::{BRANCHES, durable};
use crate::limits;

/// What git leaves in a repository's records while something is under way, and what that is.
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
pub(super) fn nothing_under_way(worktree: &Worktree, conflicts: bool) -> Result<(), Refusal> {
    let (path, git_dir) = (worktree.path.display(), worktree.path.join(".git"));
    if let Some((_, what)) = UNDER_WAY.iter().find(|(name, _)| git_dir.join(name).symlink_metadata().is_ok()) {
        let hint = format!("finish or abort it first, in {path}; nothing was removed");
        return Err(Refusal::new("under_way", format!("{what} is under way in {path}"), hint));
    }
    if git_dir.join("index.lock").symlink_metadata().is_ok() {
        let hint = "try again when it is done, or delete its index.lock if there is none; nothing was removed";
        return Err(Refusal::new("git_busy", format!("another git is at work in {path}"), hint));
    }
    if conflicts {
        let hint = format!("resolve them first, in {path}; nothing was removed");
        return Err(Refusal::new("under_way", format!("there are conflicts in {path}"), hint));
    }
    Ok(())
}

/// Refuses when there is a repository inside: its files are not saved with those around it.
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
    // git lists a repository that is not recorded as a folder, and nothing that is in it.
    let others = tree.git.run(&[&"ls-files", &"-z", &"-o", &"--exclude-standard"])?;
    if let Some(name) = others.split(|byte| *byte == 0).find(|name| name.ends_with(b"/")) {
        return refused(&path_of(name));
    }
    // A submodule that was put away keeps its commits in the records.
    let modules = worktree.path.join(".git/modules");
    if has_entries(&modules) { refused(&modules) } else { Ok(()) }
}

/// A folder that can't be looked into has something in it.
fn has_entries(folder: &Path) -> bool {
    folder.is_dir() && fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_some())
}

/// What was kept of one branch.
#[derive(Debug)]
pub(super) struct Kept {
    /// The name that the branch has once it is fetched.
    pub(super) branch: String,
    pub(super) commits: String,
    pub(super) patch: Option<PathBuf>,
}

/// The place of a worktree's commits in its mirror.
pub(super) fn kept_prefix(agent: &str) -> String {
    format!("{KEPT}{agent}/")
}

/// The last part of a branch's name in the user's repository: without the prefix that tells worktrees apart.
pub(super) fn short_name(agent: &str, branch: &str) -> String {
    branch.strip_prefix(&format!("{BRANCHES}{agent}-")).unwrap_or(branch).to_owned()
}

/// The agent that a worktree is of, by its folder.
pub(super) fn agent_of(worktree: &Worktree) -> String {
    worktree.path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
}

/// Takes every commit of the worktree that the user does not have over into the mirror, where it stays until it is
/// fetched, and writes the commits of each branch as a series of patches.
pub(super) fn keep_commits(
    record: &Record,
    mirror: &Mirror,
    look: &Look,
    patches: &Path,
    now: Time,
) -> Result<Vec<Kept>, Refusal> {
    let worktree = &record.worktree;
    let agent = agent_of(worktree);
    let user: BTreeSet<String> = mirror.refs(USER)?.into_values().collect();
    let own = look.refs.iter().filter(|(_, id)| **id != worktree.base_commit && !user.contains(*id));
    let own: Vec<(&String, &String)> = own.filter(|(name, _)| !name.starts_with("refs/remotes/")).collect();
    let wanted: BTreeSet<String> = own.iter().map(|(_, id)| (*id).clone()).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    mirror.take(&look.tree.view, &look.tree.git, &wanted)?;
    let mut kept = Vec::new();
    for (name, id) in own {
        let name = match name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/")) {
            Some(name) => short_name(&agent, name),
            None => format!("{}-detached", short_name(&agent, &worktree.branch)),
        };
        let commits = count(mirror, worktree, id)?;
        if commits == "0" {
            continue;
        }
        let reference = keep_ref(mirror, &agent, &name, id)?;
        let branch = format!("{BRANCHES}{agent}/{reference}");
        let patch = save_series(mirror, worktree, &name, id, patches, now)?;
        kept.push(Kept { branch, commits, patch });
    }
    Ok(kept)
}

/// Keeps a commit under a name that is not in use for another one.
fn keep_ref(mirror: &Mirror, agent: &str, name: &str, id: &str) -> Result<String, Refusal> {
    let prefix = kept_prefix(agent);
    let there = mirror.refs(&prefix)?;
    let clashes = |wanted: &str| {
        there.iter().any(|(other, holds)| {
            let inside = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
            (other == wanted && holds != id) || inside(other, wanted) || inside(wanted, other)
        })
    };
    let Some(free) = durable::free_name(name, clashes) else {
        let message = format!("there are too many kept branches named {name}");
        return Err(Refusal::new("too_many_branches", message, "fetch or discard some of them; nothing was removed"));
    };
    mirror.set_ref(&format!("{prefix}{free}"), id)?;
    Ok(free)
}

fn count(mirror: &Mirror, worktree: &Worktree, id: &str) -> Result<String, Refusal> {
    let (base, user) = (&worktree.base_commit, format!("--glob={USER}*"));
    mirror.git()?.line(&[&"rev-list", &"--count", &id, &"--not", base, &user])
}

fn save_series(
    mirror: &Mirror,
    worktree: &Worktree,
    branch: &str,
    id: &str,
    patches: &Path,
    now: Time,
) -> Result<Option<PathBuf>, Refusal> {
    let same = |story: &PatchStory| story.holds == PatchHolds::Commits && story.applies_to.as_deref() == Some(id);
    let before = list_patches(patches)?.into_iter().find(|record| record.story.as_ref().is_some_and(same));
    if let Some(saved) = before {
        return Ok(Some(saved.patch));
    }
    let git = mirror.git()?;
    let (base, user) = (&worktree.base_commit, format!("--glob={USER}*"));
    let failed = |error: std::io::Error| io_refusal(patches, &error);
    let mut partial = durable::partial(patches).map_err(failed)?;
    let form: [&dyn AsRef<std::ffi::OsStr>; 11] = [
        &"format-patch",
        &"--stdout",
        &"--binary",
        &"--full-index",
        &"--no-signature",
        &"--no-ext-diff",
        &"--no-textconv",
        &id,
        &"--not",
        base,
        &user,
    ];
    git.run_into(&form, partial.as_file_mut())?;
    let bytes = partial.as_file().metadata().map_err(failed)?.len();
    if bytes == 0 {
        // Merges alone: they have no patch of their own.
        return Ok(None);
    }
    let changed = git.run(&[&"diff-tree", &"-r", &"-z", &"--name-only", &"--no-renames", base, &id])?;
    let names = changed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let files_total = names.clone().count();
    let files = names.take(limits::PATCH_FILES).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let story = PatchStory {
        holds: PatchHolds::Commits,
        worktree: worktree.path.clone(),
        branch: branch.to_owned(),
        base_commit: base.clone(),
        applies_to: Some(id.to_owned()),
        tree: git.line(&[&"rev-parse", &format!("{id}^{{tree}}")])?,
        saved_at: now,
        files,
        files_total,
        bytes,
    };
    let name = format!("{}.commits", plain_name(&format!("{}-{branch}", agent_of(worktree))));
    publish(partial, patches, &name, &story).map(Some)
}
