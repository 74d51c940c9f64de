//! The note of a worktree that is being made or cleared away, beside its folder: what git was asked for, so that
//! whatever a crash left of it can be found. The note is locked by whoever is at it, and by git itself: one that
//! outlives the daemon is waited for, not raced.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use abide_kernel::input::Refusal;

use super::durable;
use super::worktree::Worktree;
use crate::limits;

/// What the name of a note begins with.
const MAKING: &str = ".making-";

#[derive(Debug)]
pub(super) struct Making {
    note: PathBuf,
    file: File,
}

/// Where a note of this name says that a worktree is.
pub(super) fn noted_place(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_prefix(MAKING)?;
    Some(path.with_file_name(name))
}

fn note_of(folder: &Path) -> (PathBuf, String) {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    (folder.parent().unwrap_or(Path::new("/")).to_owned(), format!("{MAKING}{name}"))
}

impl Making {
    /// From here on a crash leaves something that can be found.
    pub(super) fn begin(worktree: &Worktree) -> Result<Making, Refusal> {
        let (parent, name) = note_of(&worktree.path);
        let failed = |error: io::Error| failed(&worktree.path, &error);
        let mut partial = durable::partial(&parent).map_err(failed)?;
        serde_json::to_writer(partial.as_file_mut(), worktree).map_err(|error| failed(error.into()))?;
        // Locked before anybody can see it.
        partial.as_file().try_lock().map_err(|error| failed(error.into()))?;
        let file = partial.as_file().try_clone().map_err(failed)?;
        match durable::place(partial, &parent, &name).map_err(failed)? {
            Ok(note) => Ok(Making { note, file }),
            Err(_) => {
                let message = format!("{} is being made already", worktree.path.display());
                Err(Refusal::new("folder_exists", message, "choose another name"))
            }
        }
    }

    /// The note that was left of a folder, once nobody is at it any more.
    pub(super) fn left(folder: &Path) -> Result<Option<(Making, Worktree)>, Refusal> {
        let (parent, name) = note_of(folder);
        let note = parent.join(name);
        let file = match File::open(&note) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(folder, &error)),
        };
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if began.elapsed() < limits::MAKING_WAIT => thread::sleep(AGAIN),
                Err(TryLockError::WouldBlock) => {
                    let message = format!("git is still making {}", folder.display());
                    return Err(Refusal::new("git_busy", message, "see why it does not end; nothing was removed"));
                }
                Err(TryLockError::Error(error)) => return Err(failed(folder, &error)),
            }
        }
        let text = fs::read(&note).map_err(|error| failed(folder, &error))?;
        let worktree: Worktree = serde_json::from_slice(&text).map_err(|error| failed(folder, &error.into()))?;
        Ok(Some((Making { note, file }, worktree)))
    }

    /// What git holds while it is at work.
    pub(super) fn held(&self) -> &File {
        &self.file
    }

    /// There is nothing to find any more, or it is known otherwise.
    pub(super) fn done(self) -> Result<(), Refusal> {
        fs::remove_file(&self.note).map_err(|error| failed(&self.note, &error))
    }
}

/// How often a note that somebody holds is looked at again.
const AGAIN: Duration = Duration::from_millis(20);

fn failed(path: &Path, error: &io::Error) -> Refusal {
    let message = format!("the note of {} could not be read or written: {error}", path.display());
    Refusal::new("io", message, "see that there is room and the right to write in the home")
}
