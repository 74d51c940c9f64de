//! Removes a worktree's folder in stages, so that the removal can be interrupted at any moment.
//!
//! The saved folder is first renamed, which takes it from everybody who knows it by its path, and looked at once more.
//! Only when it still is what was saved, a note of the removal is written beside it; from then on the folder is only
//! rubbish. Without the note it is put back.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};

use super::remove::RemovalReport;
use super::worktree::Worktree;
use crate::durable_file;
use crate::transient;

/// The prefix of the name of a folder that is being removed.
const GOING: &str = ".going-";

/// The path of a worktree that is not being removed, from its folder or the note of its removal.
pub(super) fn worktree_path(path: &Path) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(GOING));
    let name = name.map(|name| name.strip_suffix(".json").unwrap_or(name));
    name.map_or_else(|| path.to_owned(), |name| path.with_file_name(name))
}

/// The paths of a worktree's folder and of the note of its removal while it is removed: beside its own path.
#[derive(Debug)]
pub(super) struct StagedRemoval<'a> {
    worktree: &'a Worktree,
    folder: PathBuf,
    parent: PathBuf,
    note: String,
}

impl<'a> StagedRemoval<'a> {
    pub(super) fn new(worktree: &'a Worktree) -> StagedRemoval<'a> {
        let name = worktree.path.file_name().unwrap_or_default().to_string_lossy();
        let parent = worktree.path.parent().unwrap_or(Path::new("/")).to_owned();
        let (folder, note) = (parent.join(format!("{GOING}{name}")), format!("{GOING}{name}.json"));
        StagedRemoval { worktree, folder, parent, note }
    }

    /// The path of the folder while it is removed.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Resumes an interrupted removal, and returns its outcome. A removal that had not got that far is undone.
    pub(super) fn resume(&self) -> Result<Option<RemovalReport>, Refusal> {
        let note = match fs::read(self.parent.join(&self.note)) {
            Ok(note) => note,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if exists(&self.folder) && !exists(&self.worktree.path) {
                    self.put_back()?;
                }
                return Ok(None);
            }
            Err(error) => return Err(self.failed(&error)),
        };
        let mut removed: RemovalReport = serde_json::from_slice(&note).map_err(|error| self.failed(&error.into()))?;
        self.delete()?;
        if exists(&self.worktree.path) {
            // Its place was taken again since, by something that has nothing to do with that removal.
            self.delete_note()?;
            return Ok(None);
        }
        removed.evidence.push("a removal that was cut off was finished".into());
        Ok(Some(removed))
    }

    /// Renames the folder.
    pub(super) fn move_aside(&self) -> Result<(), Refusal> {
        if exists(&self.folder) {
            let message = format!("{} is in the way", self.folder.display());
            return Err(Refusal::new(ErrorCode::InTheWay, message));
        }
        fs::rename(&self.worktree.path, &self.folder).map_err(|error| self.failed(&error))
    }

    /// Undoes `move_there`.
    pub(super) fn put_back(&self) -> Result<(), Refusal> {
        fs::rename(&self.folder, &self.worktree.path).map_err(|error| self.failed(&error))
    }

    /// From here on the removal can only be finished.
    pub(super) fn write_note(&self, removed: &RemovalReport) -> Result<(), Refusal> {
        let failed = |error: io::Error| self.failed(&error);
        let mut partial = durable_file::create_partial(&self.parent).map_err(failed)?;
        serde_json::to_writer(partial.as_file_mut(), removed).map_err(|error| failed(error.into()))?;
        match durable_file::persist_new(partial, &self.parent, &self.note).map_err(failed)? {
            Ok(_) => Ok(()),
            Err(_) => Err(failed(io::ErrorKind::AlreadyExists.into())),
        }
    }

    pub(super) fn delete(&self) -> Result<(), Refusal> {
        let mut deleted = fs::remove_dir_all(&self.folder);
        if deleted.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            // Tools make folders that nobody may write, for what they download.
            deleted = open_folders(&self.folder).and_then(|()| fs::remove_dir_all(&self.folder));
        }
        match deleted {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(&error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The last step: the removal is complete.
    pub(super) fn delete_note(&self) -> Result<(), Refusal> {
        fs::remove_file(self.parent.join(&self.note)).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Refusal {
        let (path, folder) = (self.worktree.path.display(), self.folder.display());
        let message = format!("{path} could not be taken away by way of {folder}: {error}");
        let usual = "see that both can be written to, then remove it again; its work is saved or there";
        Refusal::new(ErrorCode::Io, message).with_hint(transient::hint(error, usual))
    }
}

/// Gives the owner of a folder and of those in it the right to change them.
fn open_folders(folder: &Path) -> io::Result<()> {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        let mode = next.symlink_metadata()?.permissions().mode();
        fs::set_permissions(&next, fs::Permissions::from_mode(mode | 0o700))?;
        for entry in fs::read_dir(&next)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
