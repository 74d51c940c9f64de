//! Taking a worktree's folder away, so that it can be cut off at any moment.
//!
//! The saved folder is first renamed, which takes it from everybody who knows it by its path, and looked at once more.
//! Only when it still is what was saved, a note of the removal is written beside it; from then on the folder is only
//! rubbish. Without the note it is put back.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};

use super::durable;
use super::remove::Removed;
use super::worktree::Worktree;
use crate::transient;

/// What the name of a folder begins with while it is taken away.
const GOING: &str = ".going-";

/// Where a worktree is when it is not being taken away, by its folder or by the note of its removal.
pub(super) fn own_place(path: &Path) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(GOING));
    let name = name.map(|name| name.strip_suffix(".json").unwrap_or(name));
    name.map_or_else(|| path.to_owned(), |name| path.with_file_name(name))
}

/// Where a worktree's folder and the note of its removal are while it is taken away: beside its own place.
#[derive(Debug)]
pub(super) struct Aside<'a> {
    worktree: &'a Worktree,
    folder: PathBuf,
    parent: PathBuf,
    note: String,
}

impl<'a> Aside<'a> {
    pub(super) fn of(worktree: &'a Worktree) -> Aside<'a> {
        let name = worktree.path.file_name().unwrap_or_default().to_string_lossy();
        let parent = worktree.path.parent().unwrap_or(Path::new("/")).to_owned();
        let (folder, note) = (parent.join(format!("{GOING}{name}")), format!("{GOING}{name}.json"));
        Aside { worktree, folder, parent, note }
    }

    /// Where the folder is while it is taken away.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What a removal that was cut off had come to, once it is finished. One that had not got that far is undone.
    pub(super) fn pick_up(&self) -> Result<Option<Removed>, Refusal> {
        let note = match fs::read(self.parent.join(&self.note)) {
            Ok(note) => note,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if is_there(&self.folder) && !is_there(&self.worktree.path) {
                    self.put_back()?;
                }
                return Ok(None);
            }
            Err(error) => return Err(self.failed(&error)),
        };
        let mut removed: Removed = serde_json::from_slice(&note).map_err(|error| self.failed(&error.into()))?;
        self.delete()?;
        if is_there(&self.worktree.path) {
            // Its place was taken again since, by something that has nothing to do with that removal.
            self.done()?;
            return Ok(None);
        }
        removed.evidence.push("a removal that was cut off was finished".into());
        Ok(Some(removed))
    }

    /// Renames the folder.
    pub(super) fn move_there(&self) -> Result<(), Refusal> {
        if is_there(&self.folder) {
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
    pub(super) fn write_note(&self, removed: &Removed) -> Result<(), Refusal> {
        let failed = |error: io::Error| self.failed(&error);
        let mut partial = durable::partial(&self.parent).map_err(failed)?;
        serde_json::to_writer(partial.as_file_mut(), removed).map_err(|error| failed(error.into()))?;
        match durable::place(partial, &self.parent, &self.note).map_err(failed)? {
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
    pub(super) fn done(&self) -> Result<(), Refusal> {
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

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
