//! What a crash left in a folder of worktrees, and clearing it away. Work in it is saved first, as always.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use abide_kernel::time::Time;

use super::aside::own_place;
use super::git::Git;
use super::making::{Making, noted_place};
use super::remove::{Removed, not_ours, remove_worktree, settle};
use super::worktree::{Worktree, listed};
use super::{Finding, check, durable, reconcile};

/// The worktrees that there is anything of in `folder`, each by its own place: the folder, or what is left of making or
/// removing one. Notes that were never whole are deleted: to be called while nobody makes any.
pub fn left_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::canonicalize(folder).and_then(fs::read_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut left = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if durable::is_partial(&path) {
            fs::remove_file(&path)?;
        } else {
            left.push(noted_place(&path).unwrap_or_else(|| own_place(&path)));
        }
    }
    left.sort();
    left.dedup();
    Ok(left)
}

/// Saves and removes a worktree that nobody recorded. `home` is the runtime's own folder. Cut off, it can be repeated.
pub fn clear_worktree(folder: &Path, home: &Path, patches: &Path, now: Time) -> Result<Removed, Refusal> {
    let (making, worktree) = match Making::left(folder)? {
        Some(left) => left,
        None => {
            let worktree = unrecorded(folder, home)?;
            (Making::begin(&worktree)?, worktree)
        }
    };
    // git makes the folder before there is anything in it. One with something in it stays.
    let _not_empty = fs::remove_dir(folder);
    let removed = match remove_worktree(&worktree, patches, now) {
        Err(refusal) if refusal.code == "missing" => {
            let mut removed =
                Removed { patch: None, branches_kept: Vec::new(), evidence: vec!["it had no folder yet".into()] };
            settle(&Git::at(&worktree.repo)?, &worktree, &mut removed);
            removed
        }
        removed => removed?,
    };
    making.done()?;
    Ok(removed)
}

/// What git knows of a folder that has no note.
fn unrecorded(folder: &Path, home: &Path) -> Result<Worktree, Refusal> {
    // The link to its repository is in it; without one, git would find the repository around the home.
    if !folder.join(".git").is_file() {
        return Err(not_ours(folder, "it is linked to no repository"));
    }
    let main = listed(&Git::at(folder)?)?.into_iter().find(|found| found.main);
    let main = main.ok_or_else(|| not_ours(folder, "its repository has no working tree"))?;
    let found = reconcile(&check(&main.path, home)?, &[], folder)?.into_iter().find_map(|finding| match finding {
        Finding::Unrecorded { worktree, .. } if worktree.path == folder => Some(worktree),
        Finding::Unrecorded { .. } | Finding::Present(_) | Finding::Gone { .. } | Finding::Unlinked(_) => None,
    });
    found.ok_or_else(|| not_ours(folder, "git does not list it"))
}
