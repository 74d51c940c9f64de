//! What stays read-only of the repositories in a folder that an agent works in directly. The user runs git there next,
//! outside of any sandbox: a hook, a setting or an attribute that an agent planted would run a program then.
//!
//! Everything else of the records stays writable, so that committing, branching, rebasing and collecting garbage work.
//! Parts that are missing are created, empty, because only what is there can be protected. A repository with links in
//! place of these parts is read-only as a whole: a mount can't hold a link. So is a folder that looks like a git directory
//! without a `.git` that leads to it, unless it is tracked: nothing is created in folders of the working tree. A folder that cannot be searched in full is
//! refused: the agent chooses what lies in it, and would choose to hide a repository.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::ops::Not;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::Repositories;
use super::repository::{read_record, shadowed};
use crate::git_dir::{GitDirParts, RecordedGitDir};
use crate::limits;
use crate::process::{Protection, settle};
use crate::transient;
use crate::unlinked::open_unlinked;

/// Files that name programs or other records. The content is what a missing one is created with: a git directory that is
/// its own common directory is an ordinary one.
const FILES: &[(&str, &str)] = &[
    ("config", ""),
    ("config.worktree", ""),
    ("commondir", ".\n"),
    ("info/attributes", ""),
    ("objects/info/alternates", ""),
];
/// Folders that are read-only as a whole. The last two are old ways to say where a remote is.
const FOLDERS: &[&str] = &["hooks", "remotes", "branches"];

impl Repositories {
    /// Looks for the repositories in a folder, and for what of them has to be protected.
    pub fn protect(&self, root: &Path) -> Result<Protection, Refusal> {
        let failed = |error: io::Error| unprotected(root, &error);
        if let Some(problem) = settle(&self.home, root).into_iter().next() {
            let hint =
                "the operator has to look at it, and at what a command left there; no command starts there before";
            return Err(Refusal::new(ErrorCode::Unprotected, problem).with_hint(hint));
        }
        let found = Found::in_folder(root)?;
        found.check(root)?;
        let folder = Folder::open(root).map_err(failed)?;
        let mut read_only: BTreeSet<PathBuf> = found.closed.into_iter().collect();
        for git_dir in &found.git_dirs {
            folder.protect(git_dir, &mut read_only).map_err(failed)?;
        }
        let tracked = self.tracked_in(root);
        read_only.extend(found.bare.into_iter().filter(|folder| !tracked.contains(&root.join(folder))));
        // The link of a worktree or module to its records.
        read_only.extend(found.git_files);
        protection(root, &read_only, &found.git_dirs).map_err(failed)
    }
}

/// The same for records that lie outside of the folder: those of the repository that a linked worktree is part of. The
/// records of the worktrees themselves stay writable, but for their settings.
pub fn protect_records(common_dir: &Path) -> Result<Protection, Refusal> {
    let failed = |error: io::Error| unprotected(common_dir, &error);
    let folder = Folder::open(common_dir).map_err(failed)?;
    let mut read_only = BTreeSet::new();
    // Itself, and its modules.
    let Found { mut git_dirs, bare, .. } = Found::in_folder(common_dir)?;
    // These lie in records that a `.git` leads to.
    git_dirs.extend(bare);
    let git_dirs: Vec<PathBuf> = git_dirs.into_iter().filter(|folder| !is_in_worktrees(folder)).collect();
    for git_dir in &git_dirs {
        folder.protect(git_dir, &mut read_only).map_err(failed)?;
    }
    read_only.retain(|path| path.parent() != Some(Path::new("worktrees")));
    for worktree in folder.folders_in(Path::new("worktrees")).map_err(failed)? {
        for part in ["config.worktree", "commondir", "gitdir"] {
            let path = worktree.join(part);
            if folder.kind(&path).map_err(failed)?.is_none() {
                folder.make_file(&path, "").map_err(failed)?;
            }
            read_only.insert(path);
        }
    }
    protection(common_dir, &read_only, &git_dirs).map_err(failed)
}

fn unprotected(folder: &Path, error: &io::Error) -> Refusal {
    let message = format!("the repositories in {} can't be protected: {error}", folder.display());
    let usual = "see that the daemon's user may write there, or use a worktree";
    Refusal::new(ErrorCode::Unprotected, message).with_hint(transient::hint(error, usual))
}

/// Whether no command can replace an entry, because it is one of the read-only parts of these records, lies in one, or is
/// a folder around one.
pub(super) fn is_protected(git_dir: &Path, entry: &Path) -> bool {
    let mut parts = FILES.iter().map(|(file, _)| *file).chain(FOLDERS.iter().copied());
    parts.any(|part| {
        let part = git_dir.join(part);
        entry.starts_with(&part) || part.starts_with(entry)
    })
}

/// With every folder between the root and a protected path: a mount point can't be renamed, but a folder around it can.
/// So is `refs`, without which git would not know the git directory; `objects` has a protected part in it.
fn protection(root: &Path, read_only: &BTreeSet<PathBuf>, git_dirs: &[PathBuf]) -> io::Result<Protection> {
    let above = |path: &PathBuf| {
        let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        folders.map(Path::to_path_buf).collect::<Vec<_>>()
    };
    let is_folder = |path: &PathBuf| root.join(path).symlink_metadata().is_ok_and(|found| found.is_dir());
    let is_open = |path: &PathBuf| !path.ancestors().any(|folder| read_only.contains(folder));
    let refs = git_dirs.iter().map(|git_dir| git_dir.join("refs")).filter(is_folder);
    let pinned: BTreeSet<PathBuf> = read_only.iter().flat_map(above).chain(refs).filter(is_open).collect();
    let among: BTreeSet<&Path> = git_dirs.iter().map(PathBuf::as_path).collect();
    let is_outermost = |git_dir: &PathBuf| !git_dir.ancestors().skip(1).any(|around| among.contains(around));
    let record = |git_dir: &PathBuf| match RecordedGitDir::of(root, git_dir, is_outermost(git_dir)) {
        Ok(recorded) => Some(Ok(recorded)),
        // It went meanwhile.
        Err(Errno::NOENT | Errno::NOTDIR) => None,
        Err(errno) => Some(Err(io::Error::from(errno))),
    };
    Ok(Protection {
        pinned: pinned.iter().map(|path| root.join(path)).collect(),
        read_only: read_only.iter().map(|path| root.join(path)).collect(),
        git_dirs: git_dirs.iter().filter_map(record).collect::<io::Result<_>>()?,
    })
}

/// Whether there is a repository in a folder, or one could be hidden there.
#[must_use]
pub fn has_repository(root: &Path) -> bool {
    Found::in_folder(root)
        .is_ok_and(|found| found.git_dirs.is_empty() && found.bare.is_empty() && found.git_files.is_empty())
        .not()
}

/// What a search for repositories found, relative to the folder that was searched. Links are not followed.
#[derive(Debug, Default)]
struct Found {
    /// Folders with the records of a repository that a `.git` leads to: it itself, one that a `.git` file names, modules.
    git_dirs: Vec<PathBuf>,
    /// Other folders that git would take for a git directory: bare repositories, and fixtures that look like them.
    bare: Vec<PathBuf>,
    git_files: Vec<PathBuf>,
    /// Folders that are called `.git`, whatever is in them.
    dot_git: BTreeSet<PathBuf>,
    /// Those of them that were git directories when a command started, and are none that git would use.
    invalid: Vec<PathBuf>,
    /// Folders of our own user that can't be searched. A command could open them, and close them again afterwards.
    closed: Vec<PathBuf>,
}

impl Found {
    fn in_folder(root: &Path) -> Result<Found, Refusal> {
        Found::among(root, limits::PROTECT_ENTRIES)
    }

    /// Refuses a folder in which git would not use the repository that was protected: it passes over a `.git` that is no
    /// git directory, and takes the folder around it, if that looks like one.
    fn check(&self, root: &Path) -> Result<(), Refusal> {
        let has_git = |folder: &PathBuf| self.dot_git.contains(&folder.join(".git"));
        let is_top = |folder: &PathBuf| folder.as_os_str().is_empty();
        if let Some(folder) = self.bare.iter().find(|folder| is_top(folder) || has_git(folder)) {
            return Err(shadowed(&root.join(folder)));
        }
        let count = self.git_dirs.len() + self.bare.len();
        if count > limits::REPOSITORIES_MAX {
            return Err(too_many(root, count, self.git_dirs.iter().chain(&self.bare)));
        }
        if let Some(git_dir) = self.invalid.first() {
            let path = root.join(git_dir);
            let message = format!(
                "{} is no git directory any more: HEAD, objects or refs is missing in it, or can't be read as git does; \
                 a command may have deleted it while the daemon was killed",
                path.display()
            );
            let hint =
                format!("the operator has to repair it: echo 'ref: refs/heads/BRANCH' > {}/HEAD", path.display());
            return Err(Refusal::new(ErrorCode::Unprotected, message).with_hint(hint));
        }
        Ok(())
    }

    /// The same with at most so many entries.
    fn among(root: &Path, most: usize) -> Result<Found, Refusal> {
        let (mut found, mut looked_at) = (Found::default(), 0_usize);
        let mut folders = VecDeque::from([PathBuf::new()]);
        while let Some(folder) = folders.pop_front() {
            let path = root.join(&folder);
            let entries = match read_unlinked(&path) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    let own = rustix::process::geteuid().as_raw();
                    found.closed.extend(path.symlink_metadata().is_ok_and(|it| it.uid() == own).then_some(folder));
                    continue;
                }
                // It went meanwhile, or another file took its place.
                Err(error) if !folder.as_os_str().is_empty() && is_gone(&error) => {
                    continue;
                }
                Err(error) => return Err(unprotected(&path, &error)),
            };
            let mut inside = GitDirParts::default();
            for entry in entries {
                let entry = entry.map_err(|error| unprotected(&path, &error))?;
                let kind = entry.file_type().map_err(|error| unprotected(&path, &error))?;
                looked_at += 1;
                if looked_at > most {
                    let message = format!(
                        "{} holds more than {most} files: it can't be searched for repositories",
                        root.display()
                    );
                    return Err(Refusal::new(ErrorCode::Unprotected, message)
                        .with_hint("use a worktree, or a folder with fewer files"));
                }
                inside.note(&entry.file_name());
                match (entry.file_name() == ".git", kind) {
                    (true, kind) if kind.is_symlink() => return Err(linked(&path.join(".git"))),
                    (true, kind) if kind.is_file() => found.git_files.push(folder.join(".git")),
                    (_, kind) if kind.is_dir() => folders.push_back(folder.join(entry.file_name())),
                    (_, _) => {}
                }
            }
            // The search goes on in there: modules lie in it, and an agent can make any folder look like this.
            let is_dot_git = folder.file_name().is_some_and(|name| name == ".git");
            found.dot_git.extend(is_dot_git.then(|| folder.clone()));
            if inside.is_whole() || inside.was_protected() {
                let is_valid = inside.is_whole() && RecordedGitDir::has_valid_head(root, &folder);
                found.invalid.extend((is_dot_git && inside.was_protected() && !is_valid).then(|| folder.clone()));
                found.git_dirs.push(folder);
            } else if inside.is_linked() {
                found.bare.push(folder);
            }
        }
        found.set_bare_apart(root);
        Ok(found)
    }

    /// Takes the git directories that no `.git` leads to for bare ones, where their `HEAD` is one. git looks into them only
    /// if it is started there.
    fn set_bare_apart(&mut self, root: &Path) {
        let named: BTreeSet<PathBuf> = self.git_files.iter().filter_map(|file| named_by(root, file)).collect();
        let is_led_to = |folder: &PathBuf| {
            folder.components().any(|part| part.as_os_str() == ".git")
                || folder.ancestors().any(|at| named.contains(at))
        };
        let (led_to, bare): (Vec<_>, Vec<_>) = std::mem::take(&mut self.git_dirs).into_iter().partition(is_led_to);
        self.git_dirs = led_to;
        // The records of linked worktrees are protected with those of the repository that they are part of.
        self.bare.retain(|folder| !(is_in_worktrees(folder) && is_led_to(folder)));
        self.bare.extend(bare.into_iter().filter(|folder| RecordedGitDir::may_have_head(root, folder)));
    }
}

/// The folder that a `.git` file names, from the root on, if it lies there.
fn named_by(root: &Path, git_file: &Path) -> Option<PathBuf> {
    let text = read_record(root, git_file.to_str()?, limits::GIT_WORDS_BYTES).ok()?;
    let text = String::from_utf8(text).ok()?;
    let folder = root.join(git_file.parent()?).join(text.strip_prefix("gitdir:")?.trim());
    Some(folder.canonicalize().ok()?.strip_prefix(root).ok()?.to_path_buf())
}

/// How many of them are named.
const NAMED: usize = 10;

fn too_many<'a>(root: &Path, count: usize, folders: impl Iterator<Item = &'a PathBuf>) -> Refusal {
    let names: Vec<String> = folders.take(NAMED).map(|folder| root.join(folder).display().to_string()).collect();
    let message = format!(
        "{} holds {count} repositories, and at most {} can be protected; among them {}",
        root.display(),
        limits::REPOSITORIES_MAX,
        names.join(", ")
    );
    Refusal::new(ErrorCode::TooManyRepositories, message)
}

fn is_in_worktrees(folder: &Path) -> bool {
    folder.parent().and_then(Path::file_name).is_some_and(|name| name == "worktrees")
}

fn linked(path: &Path) -> Refusal {
    let message = format!("{} is a symbolic link, which an agent could replace", path.display());
    Refusal::new(ErrorCode::Unprotected, message).with_hint("put the repository itself there, or use a worktree")
}

/// The entries of a folder that no link leads to.
fn read_unlinked(folder: &Path) -> io::Result<fs::ReadDir> {
    let opened = open_unlinked(folder)?;
    fs::read_dir(format!("/proc/self/fd/{}", opened.as_raw_fd()))
}

/// Whether a folder went, or a file or a link took its place.
fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// A folder that a command of its agent may be writing to at the same time: nothing is opened through a link.
struct Folder {
    root: PathBuf,
    open: OwnedFd,
}

impl Folder {
    fn open(root: &Path) -> io::Result<Folder> {
        Ok(Folder { root: root.to_path_buf(), open: open_unlinked(root)? })
    }

    fn protect(&self, git_dir: &Path, read_only: &mut BTreeSet<PathBuf>) -> io::Result<()> {
        let Some(parts) = self.parts(git_dir)? else {
            if git_dir.as_os_str().is_empty() {
                return Err(io::Error::other("a part of its records is a symbolic link"));
            }
            read_only.insert(git_dir.to_path_buf());
            return Ok(());
        };
        read_only.extend(parts);
        read_only.extend(self.folders_in(&git_dir.join("worktrees"))?);
        Ok(())
    }

    /// The parts of a git directory that are protected, made where they are missing. None where one is a link.
    fn parts(&self, git_dir: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        let mut parts = Vec::new();
        for folder in ["objects", "info", "objects/info"].iter().chain(FOLDERS) {
            let path = git_dir.join(folder);
            match self.kind(&path)? {
                Some(FileType::Directory) => {}
                Some(_) => return Ok(None),
                None => self.make_folder(&path)?,
            }
        }
        // Only a folder can be kept from being replaced.
        if self.kind(&git_dir.join("refs"))?.is_some_and(|kind| kind != FileType::Directory) {
            return Ok(None);
        }
        parts.extend(FOLDERS.iter().map(|folder| git_dir.join(folder)));
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
        let entries = read_unlinked(&self.root.join(path))?.flatten();
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
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let opened = self.beneath(parent, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok((opened, path.file_name().unwrap_or_default()))
    }

    fn beneath(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        rustix::fs::openat2(&self.open, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Here and not at the front door, where it would take millions of files.
    #[test]
    fn a_folder_with_too_many_files_is_refused_and_not_searched_in_part() {
        let folder = tempfile::tempdir().unwrap();
        let git_dir = folder.path().join("a/.git");
        for name in ["objects", "refs"] {
            fs::create_dir_all(git_dir.join(name)).unwrap();
        }
        fs::write(git_dir.join("HEAD"), "").unwrap();
        fs::write(git_dir.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        let found = Found::among(folder.path(), 5).unwrap();
        assert_eq!(found.git_dirs, [PathBuf::from("a/.git")]);
        assert_eq!(Found::among(folder.path(), 4).unwrap_err().code, ErrorCode::Unprotected);
    }
}
