//! Keeping git directories valid. A command can delete or damage `.git/HEAD`, which git replaces by renaming, so that no
//! mount can hold it. git then passes over that `.git` and takes the folder around it, if that looks like a git directory:
//! with settings that an agent wrote, and that name programs. So the state of each git directory is recorded before a
//! command starts, and put back when it has ended.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::GitDirParts;
use crate::unlinked::open_unlinked;

/// As much of a `HEAD` as git reads to tell whether it is one.
const HEAD_BYTES: u64 = 256;
/// The new file, before it is renamed to `HEAD`.
const TEMPORARY: &str = "HEAD.abide";
const DAMAGED: &str = "HEAD.damaged";

/// A git directory that was valid before a command started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedHead {
    /// The folder that commands write to, by its real path.
    root: PathBuf,
    /// The git directory, from there on.
    git_dir: PathBuf,
    head: Vec<u8>,
}

impl RecordedHead {
    /// None where git would not take it for a git directory.
    pub(crate) fn of(root: &Path, git_dir: &Path) -> Option<RecordedHead> {
        let folder = open(root, git_dir).ok()?;
        let head = valid_head(&folder)?;
        Some(RecordedHead { root: root.to_path_buf(), git_dir: git_dir.to_path_buf(), head })
    }

    /// Makes it valid again, where it is no more, and says what was done and what an agent left beside it.
    pub(crate) fn restore(&self) -> Vec<String> {
        let path = self.root.join(&self.git_dir);
        let restored = open(&self.root, &self.git_dir).and_then(|folder| self.restore_in(&folder));
        let mut said = match restored {
            Ok(said) => said,
            // The user deleted it.
            Err(Errno::NOENT | Errno::NOTDIR) => Vec::new(),
            Err(errno) => vec![format!("it is damaged, and could not be restored: {errno}")],
        };
        for said in &mut said {
            *said = format!("git_dir_restored {}: {said}", path.display());
        }
        let around = path.parent().filter(|_| path.file_name().is_some_and(|name| name == ".git"));
        said.extend(
            around.filter(|folder| shadows(folder)).map(|folder| format!("git_dir_shadowed {}", shadow(folder))),
        );
        said
    }

    fn restore_in(&self, folder: &OwnedFd) -> Result<Vec<String>, Errno> {
        let mut said = Vec::new();
        if allow_owner(folder, 0o700)? {
            said.push("its permissions kept git out".to_owned());
        }
        for part in ["objects", "refs"] {
            match fs::openat(folder, part, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
                Ok(opened) => {
                    said.extend(allow_owner(&opened, 0o700)?.then(|| format!("permissions of {part} kept git out")))
                }
                Err(Errno::NOENT) => {
                    fs::mkdirat(folder, part, Mode::from_raw_mode(0o777))?;
                    said.push(format!("{part} was missing"));
                }
                Err(errno) => return Err(errno),
            }
        }
        if valid_head(folder).is_none() {
            self.put_head(folder)?;
            said.push("HEAD was missing or no HEAD, and is as it was before the command".to_owned());
        }
        Ok(said)
    }

    fn put_head(&self, folder: &OwnedFd) -> Result<(), Errno> {
        let is_folder = fs::statat(folder, "HEAD", AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir());
        if is_folder {
            fs::renameat(folder, "HEAD", folder, DAMAGED)?;
        }
        let _left = fs::unlinkat(folder, TEMPORARY, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(fs::openat(folder, TEMPORARY, flags, Mode::from_raw_mode(0o666))?);
        file.write_all(&self.head).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let owner = fs::fstat(folder)?;
        // Only where the daemon may: for most users it is their own already.
        let _ours = fs::fchown(&file, Some(fs::Uid::from_raw(owner.st_uid)), Some(fs::Gid::from_raw(owner.st_gid)));
        fs::renameat(folder, TEMPORARY, folder, "HEAD")
    }
}

/// Whether a folder is itself one that git would take for a git directory.
pub(crate) fn shadows(folder: &Path) -> bool {
    open_unlinked(folder).is_ok_and(|folder| GitDirParts::in_folder(&folder).is_whole())
}

/// What is wrong with such a folder, and what to do, for a person.
#[must_use]
pub fn shadow(folder: &Path) -> String {
    // Without the slash that joining an empty path leaves.
    let folder: PathBuf = folder.components().collect();
    format!(
        "{} has HEAD, objects and refs, so your git can take it for a repository and run programs that its config names; \
         look at them and move them away, and have git ignore such folders: git config --global safe.bareRepository \
         explicit",
        folder.display()
    )
}

/// The content of the `HEAD` in a git directory, if git would take it for one.
fn valid_head(folder: &OwnedFd) -> Option<Vec<u8>> {
    if let Ok(link) = fs::readlinkat(folder, "HEAD", Vec::new()) {
        let is_ref = link.as_bytes().starts_with(b"refs/");
        return is_ref.then(|| [b"ref: ", link.as_bytes(), b"\n"].concat());
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(fs::openat(folder, "HEAD", flags, Mode::empty()).ok()?);
    let found = fs::fstat(&file).ok()?;
    let is_open_to_owner = found.st_mode & 0o400 != 0;
    if !FileType::from_raw_mode(found.st_mode).is_file() || !is_open_to_owner {
        return None;
    }
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    is_valid(&head).then_some(head)
}

fn is_valid(head: &[u8]) -> bool {
    if let Some(name) = head.strip_prefix(b"ref:") {
        return name.trim_ascii_start().starts_with(b"refs/");
    }
    head.iter().take_while(|byte| byte.is_ascii_hexdigit()).count() >= 40
}

/// Without following a link, and whatever its permissions are.
fn open(root: &Path, git_dir: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open_unlinked(root)?;
    let git_dir = if git_dir.as_os_str().is_empty() { Path::new(".") } else { git_dir };
    fs::openat2(root, git_dir, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}

/// Gives a folder's owner these permissions, if it may not even enter it. Says whether that was so.
fn allow_owner(folder: &OwnedFd, permissions: u32) -> Result<bool, Errno> {
    let mode = fs::fstat(folder)?.st_mode & 0o7777;
    if mode & 0o100 != 0 {
        return Ok(false);
    }
    // By way of the descriptor, which is not open for anything else.
    fs::chmod(format!("/proc/self/fd/{}", folder.as_raw_fd()), Mode::from_raw_mode(mode | permissions))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_valid_as_git_has_it() {
        for valid in ["ref: refs/heads/main\n", "ref:refs/x", "ref: \t refs/heads/a", &"a1".repeat(20), &"b".repeat(64)]
        {
            assert!(is_valid(valid.as_bytes()), "{valid}");
        }
        for invalid in ["", "nonsense", "ref: heads/main", "refs/heads/main", "a1b2"] {
            assert!(!is_valid(invalid.as_bytes()), "{invalid}");
        }
    }
}
