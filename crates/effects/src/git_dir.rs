//! Telling a git directory from other folders. Commands and file tools are kept from the same folders, so there is one
//! rule for both.

mod head;
mod links;
mod recorded;
mod shadow;

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::hash::BuildHasher;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

pub use recorded::RecordedGitDir;
pub use shadow::shadow_warning;
pub(crate) use shadow::shadows;

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
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Ok(_) | Err(_) => parts.record_name(OsStr::new(name)),
            }
        }
        parts
    }

    /// Records one entry of the folder. It may be of any kind: git asks only whether it may enter `objects` and `refs`,
    /// and an executable file passes for that.
    pub(crate) fn record_name(&mut self, name: &OsStr) {
        match name.to_str() {
            Some("HEAD") => self.head = true,
            Some("objects") => self.objects = true,
            Some("refs") => self.refs = true,
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

    /// The records of a linked worktree: objects and refs lie where `commondir` leads, whatever lies here.
    pub(crate) fn is_linked(self) -> bool {
        self.head && self.common_dir
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

/// A random name in a git directory, which cannot be in use.
fn random_name(purpose: &str) -> String {
    format!("{purpose}.abide-{:016x}", RandomState::new().hash_one(purpose))
}

/// Gives a folder's owner all permissions, if one of the `needed` ones is missing. Says whether that was so.
fn allow_owner(folder: &OwnedFd, needed: u32) -> Result<bool, Errno> {
    let mode = rustix::fs::fstat(folder)?.st_mode & 0o7777;
    if mode & needed == needed {
        return Ok(false);
    }
    // By way of the descriptor, which is not open for anything else.
    rustix::fs::chmod(format!("/proc/self/fd/{}", folder.as_raw_fd()), Mode::from_raw_mode(mode | 0o700))?;
    Ok(true)
}
