//! Opening a folder by its real path, and knowing it again.
//!
//! A command that runs can replace a folder below its workspace by a symbolic link at any moment. So no path is resolved
//! twice: a folder is opened once, through no link, it is compared with the folder that was meant, and everything below
//! is opened from the descriptor.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use abide_kernel::refusal::{ErrorCode, Refusal};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::transient;

/// The device and inode of a folder or file, by which it is known whatever its path leads to later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// Of whatever lies at a path without links.
    pub fn of(path: &Path) -> io::Result<FileIdentity> {
        Ok(FileIdentity::of_open(open_unlinked(path)?)?)
    }

    pub(crate) fn of_open(opened: impl AsFd) -> Result<FileIdentity, Errno> {
        let found = rustix::fs::fstat(opened)?;
        Ok(FileIdentity { device: found.st_dev, inode: found.st_ino })
    }

    /// Opens the folder again by its path. Refused as `moved` where another folder or a link has taken its place.
    pub(crate) fn open_folder(self, path: &Path) -> Result<OwnedFd, Refusal> {
        let opened = open_folder(path)?;
        match FileIdentity::of_open(&opened) {
            Ok(identity) if identity == self => Ok(opened),
            Ok(_) => Err(replaced(path)),
            Err(errno) => Err(unopened(path, errno)),
        }
    }
}

/// Opens a folder by its real path, as a place to resolve other paths from. A path with a link in it is refused as `moved`.
pub(crate) fn open_folder(path: &Path) -> Result<OwnedFd, Refusal> {
    let opened = open_unlinked(path).map_err(|errno| unopened(path, errno))?;
    match rustix::fs::fstat(&opened) {
        Ok(found) if FileType::from_raw_mode(found.st_mode).is_dir() => Ok(opened),
        Ok(_) => Err(unopened(path, Errno::NOTDIR)),
        Err(errno) => Err(unopened(path, errno)),
    }
}

/// Opens a path with no symbolic link on the way to it, to be looked at, mounted, or resolved from.
pub(crate) fn open_unlinked(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), resolve) {
        // A filter of system calls around us may not know this one.
        Err(Errno::NOSYS | Errno::PERM) => walk_unlinked(path),
        done => done,
    }
}

/// The same, name by name.
fn walk_unlinked(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(if path.is_absolute() { "/" } else { "." }, flags, Mode::empty())?;
    for part in path.components() {
        at = rustix::fs::openat(&at, part.as_os_str(), flags, Mode::empty())?;
        if FileType::from_raw_mode(rustix::fs::fstat(&at)?.st_mode).is_symlink() {
            return Err(Errno::LOOP);
        }
    }
    Ok(at)
}

/// The refusal of a link in place of a folder that an agent was given.
pub(crate) fn linked(path: &Path, what: &str) -> Refusal {
    let hint = "put the folder back, or have the operator attach the one that is meant";
    Refusal::new(ErrorCode::Moved, format!("{} {what}", path.display())).with_hint(hint)
}

/// The refusal of another folder in its place.
pub(crate) fn replaced(path: &Path) -> Refusal {
    let hint = "put the folder back; if this one is meant, choose it with UseWorkspace, or have the operator attach it: \
                abide workspace attach";
    Refusal::new(ErrorCode::Moved, format!("{} is another folder by now", path.display())).with_hint(hint)
}

fn unopened(path: &Path, errno: Errno) -> Refusal {
    let shown = path.display();
    match errno {
        Errno::LOOP => linked(path, "is a link by now, or leads through one"),
        Errno::NOENT => {
            let hint = "create the folder first, or correct the path; nothing else is used in its place";
            Refusal::new(ErrorCode::Missing, format!("{shown} does not exist")).with_hint(hint)
        }
        Errno::NOTDIR => {
            Refusal::new(ErrorCode::NotAFolder, format!("{shown} is not a folder")).with_hint("give a folder")
        }
        errno => {
            let error = io::Error::from(errno);
            let hint = transient::hint(&error, "give the daemon's user access to every folder on the way");
            Refusal::new(ErrorCode::Unreadable, format!("{shown} can't be opened: {error}")).with_hint(hint)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Here and not at the front door, where every system that tests run on knows the call that replaces the walk.
    #[test]
    fn a_walk_follows_no_link_either() {
        let ground = tempfile::tempdir().unwrap();
        let ground = ground.path().canonicalize().unwrap();
        std::fs::create_dir_all(ground.join("a/b")).unwrap();
        std::os::unix::fs::symlink("a", ground.join("link")).unwrap();
        for open in [open_unlinked, walk_unlinked] {
            let same = FileIdentity::of_open(open(&ground.join("a/b")).unwrap()).unwrap();
            assert_eq!(same, FileIdentity::of(&ground.join("a/b")).unwrap());
            for linked in ["link", "link/b"] {
                assert_eq!(open(&ground.join(linked)).unwrap_err(), Errno::LOOP, "{linked}");
            }
            assert_eq!(open(&ground.join("none")).unwrap_err(), Errno::NOENT);
        }
    }
}
