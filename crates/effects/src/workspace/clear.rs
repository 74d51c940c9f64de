//! What a crash left in a folder of worktrees, and clearing it away. Work in it is saved first, as always.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::time::Time;

use super::aside::own_place;
use super::making::{Making, Record, noted_place};
use super::remove::{Removed, Unsaved, not_ours};
use super::worktree::Worktree;
use super::{BRANCHES, Repositories, durable};

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

impl Repositories {
    /// Saves and removes a worktree that nobody recorded. Cut off, it can be repeated.
    pub fn clear_worktree(&self, folder: &Path, patches: &Path, now: Time) -> Result<Removed, Refusal> {
        if let Some((making, record)) = Making::left(folder)? {
            return self.clear_unfinished(making, &record, patches, now);
        }
        let worktree = match Record::of(folder)? {
            Some(record) => record.worktree,
            None => self.unrecorded(folder)?,
        };
        match self.remove_worktree(&worktree, Unsaved::Keep, patches, now) {
            Err(refusal) if refusal.code == ErrorCode::Missing => {
                let evidence = vec!["its folder was gone already".to_owned()];
                Ok(Removed { patch: None, branches_kept: Vec::new(), evidence })
            }
            removed => removed,
        }
    }

    /// A worktree whose making was cut off: nobody has worked in it unless it is complete.
    fn clear_unfinished(&self, making: Making, record: &Record, patches: &Path, now: Time) -> Result<Removed, Refusal> {
        let worktree = &record.worktree;
        let complete = Record::of(&worktree.path)?.is_some();
        let unsaved = if complete || record.mirror.is_none() { Unsaved::Keep } else { Unsaved::Discard };
        if !complete && record.mirror.is_some() {
            record.write()?;
        }
        let removed = match self.remove_worktree(worktree, unsaved, patches, now) {
            Err(refusal) if refusal.code == ErrorCode::Missing => {
                let evidence = vec!["it had no folder yet".to_owned()];
                Removed { patch: None, branches_kept: Vec::new(), evidence }
            }
            removed => removed?,
        };
        making.done()?;
        Ok(removed)
    }

    /// A folder without a record: an older version made it, as a worktree of the user's repository.
    fn unrecorded(&self, folder: &Path) -> Result<Worktree, Refusal> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let linked = self.linked_to(folder)?.ok_or_else(|| not_ours(folder, "it is linked to no repository"))?;
        let (base_commit, notes) = (linked.base, Vec::new());
        let branch = linked.branch.unwrap_or_else(|| format!("{BRANCHES}{name}"));
        Ok(Worktree { path: folder.to_path_buf(), branch, base_commit, repo: linked.user, notes })
    }
}
