//! Clears away worktrees that a crash left. Work in them is saved first.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::time::Time;

use super::remove::{RemovalReport, UnsavedWork, not_ours};
use super::staged_removal::worktree_path;
use super::worktree::Worktree;
use super::worktree_record::{CreationNote, WorktreeRecord, noted_worktree};
use super::{BRANCHES, Repositories};
use crate::durable_file;

/// The worktrees that `folder` has anything of, each by its own path: the folder, or what creating or removing it left.
/// Incomplete notes are deleted, so this must be called while no worktree is created.
pub fn find_left(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::canonicalize(folder).and_then(fs::read_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut left = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if durable_file::is_partial(&path) {
            fs::remove_file(&path)?;
        } else {
            left.push(noted_worktree(&path).unwrap_or_else(|| worktree_path(&path)));
        }
    }
    left.sort();
    left.dedup();
    Ok(left)
}

impl Repositories {
    /// Saves and removes a worktree that was not recorded. It can be repeated after a crash.
    pub fn clear_worktree(&self, folder: &Path, patches: &Path, now: Time) -> Result<RemovalReport, Refusal> {
        if let Some((note, record)) = CreationNote::take_over(folder)? {
            return self.clear_unfinished(note, &record, patches, now);
        }
        let worktree = match WorktreeRecord::read(folder)? {
            Some(record) => record.worktree,
            None => self.find_unrecorded(folder)?,
        };
        match self.remove_worktree(&worktree, UnsavedWork::Keep, patches, now) {
            Err(refusal) if refusal.code == ErrorCode::Missing => {
                let evidence = vec!["its folder was gone already".to_owned()];
                Ok(RemovalReport { patch: None, branches_kept: Vec::new(), evidence })
            }
            removed => removed,
        }
    }

    /// Clears a worktree whose creation was cut off: it has no work unless it is complete.
    fn clear_unfinished(
        &self,
        note: CreationNote,
        record: &WorktreeRecord,
        patches: &Path,
        now: Time,
    ) -> Result<RemovalReport, Refusal> {
        let worktree = &record.worktree;
        let complete = WorktreeRecord::read(&worktree.path)?.is_some();
        let unsaved = if complete || record.mirror.is_none() { UnsavedWork::Keep } else { UnsavedWork::Discard };
        if !complete && record.mirror.is_some() {
            record.write()?;
        }
        let removed = match self.remove_worktree(worktree, unsaved, patches, now) {
            Err(refusal) if refusal.code == ErrorCode::Missing => {
                let evidence = vec!["it had no folder yet".to_owned()];
                RemovalReport { patch: None, branches_kept: Vec::new(), evidence }
            }
            removed => removed?,
        };
        note.delete()?;
        Ok(removed)
    }

    /// A folder without a record: an older version made it, as a worktree of the user's repository.
    fn find_unrecorded(&self, folder: &Path) -> Result<Worktree, Refusal> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let linked = self.find_linked(folder)?.ok_or_else(|| not_ours(folder, "it is linked to no repository"))?;
        let (base_commit, notes) = (linked.base, Vec::new());
        let branch = linked.branch.unwrap_or_else(|| format!("{BRANCHES}{name}"));
        Ok(Worktree { path: folder.to_path_buf(), branch, base_commit, repo: linked.user, notes })
    }
}
