//! The records of worktrees, beside their folders and out of every agent's reach: a note while a worktree is made, so that
//! a crash leaves something that can be found, and a record as long as it exists.
//!
//! The note is locked by its maker, and by git itself: one that outlives the daemon is waited for, not raced.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use abide_kernel::refusal::{ErrorCode, Refusal};
use serde::{Deserialize, Serialize};

use super::durable;
use super::view::Carried;
use super::worktree::Worktree;
use crate::limits;
use crate::transient;

/// What the names of notes and records begin with.
const MAKING: &str = ".making-";
const RECORD: &str = ".record-";

/// What the runtime knows of a worktree that it made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    #[serde(flatten)]
    pub(super) worktree: Worktree,
    /// The mirror that its objects come from. None of a worktree that an older version made: it is part of the user's
    /// repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mirror: Option<String>,
    /// The user's settings that say how its files are to be read. Its agent may change those in its own repository.
    #[serde(default, skip_serializing_if = "Carried::is_empty")]
    pub(super) settings: Carried,
    /// It is being converted from one that is part of the user's repository, and may be either.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) converting: bool,
}

#[derive(Debug)]
pub(super) struct Making {
    note: PathBuf,
    file: File,
}

/// Where a note or record of this name says that a worktree is.
pub(super) fn noted_place(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_prefix(MAKING).or_else(|| name.strip_prefix(RECORD))?;
    Some(path.with_file_name(name))
}

fn beside(folder: &Path, prefix: &str) -> (PathBuf, String) {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    (folder.parent().unwrap_or(Path::new("/")).to_owned(), format!("{prefix}{name}"))
}

impl Record {
    /// Of a worktree that is part of the user's repository.
    pub(super) fn linked(worktree: &Worktree) -> Record {
        Record { worktree: worktree.clone(), mirror: None, settings: Carried::new(), converting: false }
    }

    /// The record of the worktree in a folder.
    pub(super) fn of(folder: &Path) -> Result<Option<Record>, Refusal> {
        let (parent, name) = beside(folder, RECORD);
        match fs::read(parent.join(name)) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| failed(folder, &error.into())),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(failed(folder, &error)),
        }
    }

    pub(super) fn write(&self) -> Result<(), Refusal> {
        let (parent, name) = beside(&self.worktree.path, RECORD);
        let failed = |error: io::Error| failed(&self.worktree.path, &error);
        let text = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        durable::replace(&parent, &name, &text).map_err(failed)
    }

    pub(super) fn delete(folder: &Path) -> Result<(), Refusal> {
        let (parent, name) = beside(folder, RECORD);
        match fs::remove_file(parent.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(folder, &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Making {
    /// From here on a crash leaves something that can be found.
    pub(super) fn begin(record: &Record) -> Result<Making, Refusal> {
        let folder = &record.worktree.path;
        let (parent, name) = beside(folder, MAKING);
        let failed = |error: io::Error| failed(folder, &error);
        let mut partial = durable::partial(&parent).map_err(failed)?;
        serde_json::to_writer(partial.as_file_mut(), record).map_err(|error| failed(error.into()))?;
        // Locked before anybody can see it.
        partial.as_file().try_lock().map_err(|error| failed(error.into()))?;
        let file = partial.as_file().try_clone().map_err(failed)?;
        match durable::place(partial, &parent, &name).map_err(failed)? {
            Ok(note) => Ok(Making { note, file }),
            Err(_) => {
                let message = format!("{} is being made already", folder.display());
                Err(Refusal::new(ErrorCode::FolderExists, message).with_hint("choose another name"))
            }
        }
    }

    /// The note that was left of a folder, once nobody is at it any more.
    pub(super) fn left(folder: &Path) -> Result<Option<(Making, Record)>, Refusal> {
        let (parent, name) = beside(folder, MAKING);
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
                    return Err(Refusal::new(ErrorCode::GitBusy, message)
                        .with_hint("see why it does not end; nothing was removed"));
                }
                Err(TryLockError::Error(error)) => return Err(failed(folder, &error)),
            }
        }
        let text = fs::read(&note).map_err(|error| failed(folder, &error))?;
        let record: Record = serde_json::from_slice(&text).map_err(|error| failed(folder, &error.into()))?;
        Ok(Some((Making { note, file }, record)))
    }

    /// The locked file, for git to hold while it is at work.
    pub(super) fn held(&self) -> &File {
        &self.file
    }

    /// There is nothing to find any more, or the record says it.
    pub(super) fn done(self) -> Result<(), Refusal> {
        fs::remove_file(&self.note).map_err(|error| failed(&self.note, &error))
    }
}

/// How often a note that is locked is looked at again.
const AGAIN: Duration = Duration::from_millis(20);

fn failed(path: &Path, error: &io::Error) -> Refusal {
    let message = format!("the record of {} could not be read or written: {error}", path.display());
    Refusal::new(ErrorCode::Io, message)
        .with_hint(transient::hint(error, "see that there is room and the right to write in the home"))
}
