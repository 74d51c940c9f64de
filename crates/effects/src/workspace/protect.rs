//! What stays read-only of the repositories in a folder that an agent works in directly. The user runs git there next,
//! outside of any sandbox: a hook, a setting or an attribute that an agent planted would run a program then.
//!
//! Everything else of the records stays writable, so that committing, branching, rebasing and collecting garbage work.
//! Parts that are missing are created, empty, because only what is there can be protected. A repository with links in
//! place of these parts is read-only as a whole: a mount can't hold a link.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::limits;

/// Files that name programs or other records. The content is what a missing one is created with: a git directory that is
/// its own common directory is an ordinary one.
const FILES: &[(&str, &str)] = &[
    ("config", ""),
    ("config.worktree", ""),
    ("commondir", ".\n"),
    ("info/attributes", ""),
    ("objects/info/alternates", ""),
];
const HOOKS: &str = "hooks";

/// How the repositories in a folder are protected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protection {
    /// Git directories: mounts of their own, so that they can be neither renamed nor replaced.
    pub writable: Vec<PathBuf>,
    pub read_only: Vec<PathBuf>,
}

/// Looks for the repositories in a folder, the nearest first, and for what of them has to be protected.
pub fn protect(root: &Path) -> Result<Protection, Refusal> {
    let failed = |error: io::Error| {
        let message = format!("the repositories in {} can't be protected: {error}", root.display());
        Refusal::new("unprotected", message, "see that the daemon's user may write there, or use a worktree")
    };
    let folder = Folder::open(root).map_err(failed)?;
    let mut protection = Protection::default();
    for dot in find(root) {
        let kind = folder.kind(&dot).map_err(failed)?;
        match kind {
            Some(FileType::Directory) => folder.protect(&dot, &mut protection).map_err(failed)?,
            // The link of a worktree or module to its records.
            Some(FileType::RegularFile) => protection.read_only.push(root.join(&dot)),
            Some(_) | None => {}
        }
        if protection.writable.len() + protection.read_only.len() > limits::PROTECTED_MAX {
            let message = format!("{} holds more repositories than can be protected", root.display());
            return Err(Refusal::new("too_many_repositories", message, "use a worktree, or a folder with fewer"));
        }
    }
    Ok(protection)
}

/// The same for records that lie outside of the folder: those of the repository that a linked worktree is part of. The
/// records of the worktrees themselves stay writable, but for their settings.
pub fn protect_records(common_dir: &Path) -> Result<Protection, Refusal> {
    let (root, name) = (common_dir.parent().unwrap_or(Path::new("/")), common_dir.file_name().unwrap_or_default());
    let failed = |error: io::Error| {
        let message = format!("the records {} can't be protected: {error}", common_dir.display());
        Refusal::new("unprotected", message, "see that the daemon's user may write there, or use a worktree")
    };
    let folder = Folder::open(root).map_err(failed)?;
    let mut protection = Protection::default();
    folder.protect(Path::new(name), &mut protection).map_err(failed)?;
    let worktrees = common_dir.join("worktrees");
    protection.read_only.retain(|path| path.parent() != Some(&worktrees));
    for worktree in folder.folders_in(&Path::new(name).join("worktrees")).map_err(failed)? {
        for part in ["config.worktree", "commondir", "gitdir"] {
            let path = worktree.join(part);
            if folder.kind(&path).map_err(failed)?.is_none() {
                folder.make_file(&path, "").map_err(failed)?;
            }
            protection.read_only.push(root.join(path));
        }
    }
    protection.writable.retain(|path| path != common_dir);
    Ok(protection)
}

/// Whether there is a repository in a folder.
#[must_use]
pub fn has_repository(root: &Path) -> bool {
    !find(root).is_empty()
}

/// Entries named `.git` below a folder, from it on. Links are not followed.
fn find(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut looked_at) = (Vec::new(), 0_usize);
    let mut folders = VecDeque::from([PathBuf::new()]);
    while let Some(folder) = folders.pop_front() {
        for entry in fs::read_dir(root.join(&folder)).into_iter().flatten().flatten() {
            looked_at += 1;
            let name = entry.file_name();
            if name == ".git" {
                found.push(folder.join(name));
            } else if looked_at < limits::WALK_ENTRIES && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push_back(folder.join(name));
            }
        }
    }
    found
}

/// A folder that a command of its agent may be writing to at the same time: nothing is opened through a link.
struct Folder {
    root: PathBuf,
    open: OwnedFd,
}

impl Folder {
    fn open(root: &Path) -> io::Result<Folder> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = rustix::fs::open(root, flags, Mode::empty())?;
        Ok(Folder { root: root.to_path_buf(), open })
    }

    fn protect(&self, git_dir: &Path, protection: &mut Protection) -> io::Result<()> {
        let is_dir = |name: &str| Ok::<_, io::Error>(self.kind(&git_dir.join(name))? == Some(FileType::Directory));
        if !(is_dir("objects")? && is_dir("refs")?) {
            return Ok(());
        }
        let Some(parts) = self.parts(git_dir)? else {
            protection.read_only.push(self.root.join(git_dir));
            return Ok(());
        };
        protection.writable.push(self.root.join(git_dir));
        protection.read_only.extend(parts.into_iter().map(|part| self.root.join(part)));
        for worktree in self.folders_in(&git_dir.join("worktrees"))? {
            protection.read_only.push(self.root.join(worktree));
        }
        self.protect_modules(&git_dir.join("modules"), 0, protection)
    }

    /// Modules may have names with slashes, and modules of their own.
    fn protect_modules(&self, folder: &Path, depth: usize, protection: &mut Protection) -> io::Result<()> {
        for inside in self.folders_in(folder)? {
            if self.kind(&inside.join("HEAD"))?.is_some() {
                self.protect(&inside, protection)?;
            } else if depth < limits::MODULES_DEEP {
                self.protect_modules(&inside, depth + 1, protection)?;
            }
        }
        Ok(())
    }

    /// The parts of a git directory that are protected, made where they are missing. None where one is a link.
    fn parts(&self, git_dir: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        let mut parts = Vec::new();
        for folder in ["info", "objects/info", HOOKS] {
            let path = git_dir.join(folder);
            match self.kind(&path)? {
                Some(FileType::Directory) => {}
                Some(_) => return Ok(None),
                None => self.make_folder(&path)?,
            }
        }
        parts.push(git_dir.join(HOOKS));
        for (name, content) in FILES {
            let path = git_dir.join(name);
            match self.kind(&path)? {
                Some(FileType::RegularFile) => {}
                Some(_) => return Ok(None),
                None => self.make_file(&path, content)?,
            }
            parts.push(path);
        }
        Ok(Some(parts))
    }

    fn kind(&self, path: &Path) -> io::Result<Option<FileType>> {
        match self.beneath(path, OFlags::PATH | OFlags::NOFOLLOW) {
            Ok(found) => Ok(Some(FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            // A link on the way.
            Err(Errno::LOOP) => Ok(Some(FileType::Symlink)),
            Err(error) => Err(error.into()),
        }
    }

    fn folders_in(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        if self.kind(path)? != Some(FileType::Directory) {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(self.root.join(path))?.flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        Ok(folders.map(|entry| path.join(entry.file_name())).collect())
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => self.take_owner(&parent, name),
            Err(error) => Err(error.into()),
        }
    }

    fn make_file(&self, path: &Path, content: &str) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&parent, name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => {
                io::Write::write_all(&mut fs::File::from(file), content.as_bytes())?;
                self.take_owner(&parent, name)
            }
            Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The folder's owner owns what is made in it, where the daemon may give it away.
    fn take_owner(&self, parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
        let owner = rustix::fs::fstat(parent)?;
        let (user, group) = (rustix::fs::Uid::from_raw(owner.st_uid), rustix::fs::Gid::from_raw(owner.st_gid));
        let _ours = rustix::fs::chownat(parent, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW);
        Ok(())
    }

    fn parent<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let parent = path.parent().unwrap_or(Path::new("."));
        let opened = self.beneath(parent, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok((opened, path.file_name().unwrap_or_default()))
    }

    fn beneath(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        rustix::fs::openat2(&self.open, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
    }
}
