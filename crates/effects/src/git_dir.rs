//! Telling a git directory from other folders. Commands and file tools are kept from the same folders, so there is one
//! rule for both.

mod head;

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

pub use head::RecordedHead;
pub use head::shadow;
pub(crate) use head::shadows;

/// The parts of a git directory that a folder has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GitDirParts {
    head: bool,
    objects: bool,
    refs: bool,
    config: bool,
    common_dir: bool,
    hooks: bool,
}

const NAMES: [&str; 6] = ["HEAD", "objects", "refs", "config", "commondir", "hooks"];

impl GitDirParts {
    /// Looks for them in an open folder. A part that can't be looked at counts as present.
    pub(crate) fn in_folder(folder: &OwnedFd) -> GitDirParts {
        let mut parts = GitDirParts::default();
        for name in NAMES {
            match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => parts.note(OsStr::new(name), FileType::from_raw_mode(stat.st_mode)),
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(_) => parts.note(OsStr::new(name), FileType::Unknown),
            }
        }
        parts
    }

    /// Takes note of one entry of the folder.
    pub(crate) fn note(&mut self, name: &OsStr, kind: FileType) {
        match name.to_str() {
            Some("HEAD") => self.head = true,
            // A link there is a git directory too.
            Some("objects") => self.objects = kind != FileType::RegularFile,
            Some("refs") => self.refs = kind != FileType::RegularFile,
            Some("config") => self.config = true,
            Some("commondir") => self.common_dir = true,
            Some("hooks") => self.hooks = true,
            Some(_) | None => {}
        }
    }

    /// Whether git would take the folder for a git directory that holds its own objects and refs.
    pub(crate) fn is_whole(self) -> bool {
        self.head && self.objects && self.refs
    }

    /// The records of a linked worktree: objects and refs lie where `commondir` leads.
    pub(crate) fn is_linked(self) -> bool {
        self.head && self.common_dir && !self.objects
    }

    /// Whether the folder was protected as a git directory before. The parts by which git knows one can be deleted by a
    /// command, and made again later; these can't.
    pub(crate) fn was_protected(self) -> bool {
        self.config && self.common_dir && self.hooks && self.objects
    }

    pub(crate) fn is_git_dir(self) -> bool {
        self.is_whole() || self.was_protected() || self.is_linked()
    }
}
