//! The target of a write: the folder a file is in, held open, and its name there. Writing puts a whole new file in the
//! place of the old one, or leaves the old one as it was; nobody ever sees half of either.
//!
//! The new file is written beside the old one under a name of ours. Its writer holds a lock on it, so that one that was
//! left behind by a crash can be told from one that is being written: the next write in that folder removes the former.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use abide_kernel::refusal::{ErrorCode, Refusal};
use rustix::fs::{self, AtFlags, FlockOperation, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::root::{failed, opened_file, regular, shown};
use crate::limits;

#[derive(Debug)]
pub(super) struct Target {
    pub folder: OwnedFd,
    /// Of the file itself, links followed, from the workspace on.
    pub path: PathBuf,
    pub name: OsString,
    /// Folders that were made on the way.
    pub made: Vec<PathBuf>,
}

/// A file's whole content, and what is kept when it is replaced.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub bytes: Vec<u8>,
    pub mode: u32,
}

pub(super) const PLAIN: u32 = 0o644;

impl Target {
    /// What is there now, whole. More than can be worked on is a refusal.
    pub(super) fn content(&self) -> Result<Option<Content>, Refusal> {
        let Some(stat) = self.stat()? else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened =
            fs::openat(&self.folder, &self.name, flags, Mode::empty()).map_err(|errno| failed(&self.path, errno))?;
        let opened = opened_file(&self.path, opened)?;
        let mut bytes = Vec::new();
        let read = opened.file.take(limits::FILE_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| failed(&self.path, errno(&error)))?;
        if bytes.len() as u64 > limits::FILE_BYTES {
            return Err(too_large(&self.path.display().to_string(), opened.bytes));
        }
        Ok(Some(Content { bytes, mode: stat.st_mode & 0o777 }))
    }

    /// The file's own entry; anything but a regular file is refused.
    pub(super) fn stat(&self) -> Result<Option<Stat>, Refusal> {
        match fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => regular(&self.path, &stat).map(|()| Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(&self.path, errno)),
        }
    }

    /// Puts a file with this content here, whatever is here now. Durable when it returns.
    pub(super) fn write(&self, bytes: &[u8], mode: u32) -> Result<(), Refusal> {
        remove_leftovers(&self.folder);
        let owner = self.stat()?.map(|stat| (stat.st_uid, stat.st_gid));
        let mut written = Err(Errno::NOENT);
        for _ in 0..limits::OPEN_TRIES {
            written = self.write_once(bytes, mode, owner);
            // Another writer took ours for a leftover, in the moment before it was locked.
            if written != Err(Errno::NOENT) {
                break;
            }
        }
        written.and_then(|()| self.sync_folder()).map_err(|errno| failed(&self.path, errno))
    }

    fn write_once(&self, bytes: &[u8], mode: u32, owner: Option<(u32, u32)>) -> Result<(), Errno> {
        let (temporary, mut file) = self.temporary()?;
        let written = file.write_all(bytes).map_err(|error| errno(&error)).and_then(|()| {
            if let Some((uid, gid)) = owner {
                // Only where we may: for most users it is their own file already.
                let _ = fs::fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
            }
            fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777))?;
            fs::fsync(&file)?;
            fs::renameat(&self.folder, &temporary, &self.folder, &self.name)
        });
        if written.is_err() {
            let _ = fs::unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        written
    }

    pub(super) fn remove(&self) -> Result<(), Refusal> {
        let removed = fs::unlinkat(&self.folder, &self.name, AtFlags::empty()).and_then(|()| self.sync_folder());
        removed.map_err(|errno| failed(&self.path, errno))
    }

    fn sync_folder(&self) -> Result<(), Errno> {
        match fs::fsync(&self.folder) {
            // A file system that can't sync a folder has nothing to lose by it.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn temporary(&self) -> Result<(String, File), Errno> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..limits::OPEN_TRIES {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{PREFIX}{}-{count}{SUFFIX}", std::process::id());
            match fs::openat(&self.folder, &name, flags, Mode::from_raw_mode(0o600)) {
                Ok(opened) => {
                    // Nobody waits for this lock; it only says that the writer lives.
                    let _ = fs::flock(&opened, FlockOperation::NonBlockingLockExclusive);
                    return Ok((name, File::from(opened)));
                }
                Err(Errno::EXIST | Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

pub(super) fn too_large(path: &str, bytes: u64) -> Refusal {
    let (path, most) = (shown(std::path::Path::new(path)), limits::FILE_BYTES);
    let message = format!("{path} has {bytes} bytes; at most {most} are worked on at once");
    Refusal::new(ErrorCode::FileTooLarge, message).with_hint("change it with ExecCommand, or split it")
}

const PREFIX: &str = ".abide-write-";
const SUFFIX: &str = ".tmp";

/// Whether a name is that of a file being written, or left behind: no walk shows one.
pub(super) fn is_temporary(name: &OsStr) -> bool {
    let middle = name.as_bytes().strip_prefix(PREFIX.as_bytes()).and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    middle.is_some_and(|middle| !middle.is_empty() && middle.iter().all(|b| b.is_ascii_digit() || *b == b'-'))
}

/// Removes what a crash left in this folder. A file whose writer lives is locked, and stays. Failing here harms nobody.
fn remove_leftovers(folder: &OwnedFd) {
    let Ok(entries) = fs::Dir::read_from(folder) else { return };
    for entry in entries.take(limits::LEFTOVERS_LOOKED_AT).flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if !is_temporary(name) {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(opened) = fs::openat(folder, name, flags, Mode::empty()) else { continue };
        if fs::flock(&opened, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::unlinkat(folder, name, AtFlags::empty());
        }
    }
}
