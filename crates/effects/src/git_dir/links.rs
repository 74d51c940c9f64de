//! Symbolic links in a git directory. git writes its reflogs, its index and the messages of commits through a link that
//! lies in their place, so a link that an agent made has the user's next git write any file of the user's. git makes no
//! links there itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::allow_owner;
use crate::limits;

/// The links in a git directory at one moment, by their paths from there on, and where they lead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Links {
    links: BTreeMap<PathBuf, PathBuf>,
    /// Folders that could not be searched. Their permissions are left as they are.
    closed: BTreeSet<PathBuf>,
}

/// The outcome of removing links that are new.
#[derive(Debug, Default)]
pub(super) struct LinkRemoval {
    pub(super) said: Vec<String>,
    pub(super) problems: Vec<String>,
}

impl Links {
    pub(super) fn record(git_dir: &OwnedFd) -> Result<Links, Errno> {
        let mut noted = Links::default();
        walk_git_dir(git_dir, |path, found| {
            match found {
                Entry::Link(to) => drop(noted.links.insert(path.to_path_buf(), to)),
                Entry::Closed => drop(noted.closed.insert(path.to_path_buf())),
            }
            false
        })?;
        Ok(noted)
    }

    /// Removes each link that was not there, and has those that lead elsewhere lead where they did.
    pub(super) fn remove_new(&self, git_dir: &OwnedFd) -> LinkRemoval {
        let mut removed = LinkRemoval::default();
        let walked = walk_git_dir(git_dir, |path, found| match found {
            Entry::Link(to) => {
                if self.links.get(path) != Some(&to) {
                    let leads = format!("{} is a new link to {}", path.display(), to.display());
                    match self.restore_link(git_dir, path) {
                        Ok(()) => removed.said.push(format!("{leads}, and was removed")),
                        Err(errno) => removed.problems.push(format!("{leads}, and could not be removed: {errno}")),
                    }
                }
                false
            }
            Entry::Closed if self.closed.contains(path) => false,
            Entry::Closed => {
                match open_beneath(git_dir, path, OFlags::PATH).and_then(|folder| allow_owner(&folder, 0o700)) {
                    Ok(changed) => {
                        removed.said.extend(changed.then(|| format!("permissions of {} kept git out", path.display())));
                        changed
                    }
                    Err(errno) => {
                        removed.problems.push(format!("{} could not be searched for links: {errno}", path.display()));
                        false
                    }
                }
            }
        });
        if let Err(errno) = walked {
            removed.problems.push(format!("it could not be searched for links: {errno}"));
        }
        removed
    }

    fn restore_link(&self, git_dir: &OwnedFd, path: &Path) -> Result<(), Errno> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = open_beneath(git_dir, parent, OFlags::PATH)?;
        let name = path.file_name().unwrap_or_default();
        match fs::unlinkat(&folder, name, AtFlags::empty()) {
            Err(Errno::ACCESS) => {
                allow_owner(&folder, 0o700)?;
                fs::unlinkat(&folder, name, AtFlags::empty())?;
            }
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
        self.links.get(path).map_or(Ok(()), |to| fs::symlinkat(to, &folder, name))
    }
}

enum Entry {
    Link(PathBuf),
    /// A folder that may not be read.
    Closed,
}

/// Goes through a git directory without following a link. Loose objects are left out: there are many, and git replaces
/// such a file and never writes through it. `visit` says of a closed folder whether to try it again.
fn walk_git_dir(git_dir: &OwnedFd, mut visit: impl FnMut(&Path, Entry) -> bool) -> Result<(), Errno> {
    let (mut folders, mut looked_at) = (VecDeque::from([PathBuf::new()]), 0_usize);
    while let Some(path) = folders.pop_front() {
        let reading = |path: &Path| {
            let at = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            open_beneath(git_dir, at, OFlags::RDONLY)
        };
        let folder = match reading(&path) {
            Err(Errno::ACCESS) if visit(&path, Entry::Closed) => reading(&path),
            other => other,
        };
        let folder = match folder {
            Ok(folder) => folder,
            // It went, or another file took its place; a path that is too long is so for git as well.
            Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => continue,
            Err(errno) => return Err(errno),
        };
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            looked_at += 1;
            if looked_at > limits::GIT_DIR_ENTRIES {
                return Err(Errno::TOOBIG);
            }
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                let found = fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW);
                kind = found.map_or(kind, |found| FileType::from_raw_mode(found.st_mode));
            }
            let inside = path.join(name);
            if kind.is_symlink() {
                let to = fs::readlinkat(&folder, name, Vec::new()).unwrap_or_default();
                visit(&inside, Entry::Link(PathBuf::from(OsStr::from_bytes(to.as_bytes()))));
            } else if kind.is_dir() && !holds_loose_objects(&inside) {
                folders.push_back(inside);
            }
        }
    }
    Ok(())
}

/// Only those of the git directory itself: a branch may be called `objects/ab`.
fn holds_loose_objects(path: &Path) -> bool {
    let name = path.strip_prefix("objects").ok().and_then(Path::to_str);
    name.is_some_and(|name| name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn open_beneath(git_dir: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat2(git_dir, path, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}
