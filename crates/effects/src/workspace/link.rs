//! Whether a folder and the repository that git finds from it belong together. What leads from a folder to its
//! repository lies in the folder, where an agent can write: it could name any repository of this machine, and have it
//! opened. So the way there counts only where there is a way back, which lies in the repository.

use std::fs;
use std::path::{Path, PathBuf};

use super::git::Git;

/// How a folder and its repository hold together.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// The repository's records are the folder's own `.git`, or those of a module of the repository around it.
    Whole,
    /// A linked worktree; these are its own records, in the repository.
    Worktree(PathBuf),
}

/// Nothing where the repository does not know the folder.
pub(super) fn link(git: &Git, toplevel: &Path, common_dir: &Path) -> Option<Link> {
    let dot = toplevel.join(".git");
    let found = dot.symlink_metadata().ok()?;
    if found.is_dir() {
        return (dot == common_dir).then_some(Link::Whole);
    }
    if !found.is_file() {
        return None;
    }
    let records = named_in(&dot, toplevel)?;
    if records == common_dir {
        return is_module(git, toplevel, common_dir).then_some(Link::Whole);
    }
    let known = records.parent() == Some(&common_dir.join("worktrees"));
    let back = named_in(&records.join("gitdir"), &records)?;
    (known && back == dot).then_some(Link::Worktree(records))
}

/// The path that a file of git's holds, by its real name. It may be relative to the folder that the file is in.
fn named_in(file: &Path, folder: &Path) -> Option<PathBuf> {
    if !file.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    let name = text.trim_end_matches('\n');
    folder.join(name.strip_prefix("gitdir: ").unwrap_or(name)).canonicalize().ok()
}

/// A module's records lie with the repository around it, and say where its files are.
fn is_module(git: &Git, toplevel: &Path, common_dir: &Path) -> bool {
    let said = git.line(&[&"config", &"--file", &common_dir.join("config"), &"core.worktree"]);
    said.is_ok_and(|path| common_dir.join(path).canonicalize().is_ok_and(|files| files == toplevel))
}

/// Where a repository takes objects from that are not its own: who may write to its records could have it take those
/// of any other.
pub(crate) fn borrows_from(common_dir: &Path) -> Option<PathBuf> {
    let objects = common_dir.join("objects");
    let others = objects.join("info").join("alternates");
    let is_link = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let entries = fs::read_dir(&objects).into_iter().flatten().flatten().map(|entry| entry.path());
    [objects.clone()]
        .into_iter()
        .chain(entries)
        .find(is_link)
        .or_else(|| others.symlink_metadata().is_ok().then_some(others))
}
