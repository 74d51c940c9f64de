//! Keeping git directories valid. A command can delete or damage `.git/HEAD`, which git replaces by renaming, so that no
//! mount can hold it, and it can make links. git then passes over that `.git` and takes the folder around it, or writes
//! where the links lead. So the state of each git directory is recorded before a command starts, and put back when it has
//! ended.
//!
//! Commands may overlap. The state that counts is that before the first of them: what one has damaged or linked must not
//! pass for the user's own when the next one starts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::fs::{self, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::allow_owner;
use super::head::{self, Head};
use super::links::Links;
use super::shadow::{disable_shadows, shadow_warning, shadows};
use crate::file_identity::open_unlinked;

/// A git directory as it was before a command started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedGitDir {
    /// The folder that commands write to, by its real path.
    pub(crate) root: PathBuf,
    /// The git directory, from there on.
    git_dir: PathBuf,
    /// None where `HEAD` was none that git would take for one.
    head: Option<Vec<u8>>,
    #[serde(default)]
    head_is_link: bool,
    /// None where it lies in another git directory, whose links include its own.
    #[serde(default)]
    links: Option<Links>,
    /// Of one that was recorded in an earlier life, none.
    #[serde(skip)]
    in_use: Option<Arc<GitDirUse>>,
}

/// A git directory, by its device and inode.
type Identity = (u64, u64);

/// The state of a git directory before the first of the commands that use it now.
#[derive(Debug)]
struct Baseline {
    uses: usize,
    head: Option<Head>,
    links: Links,
}

static BASELINES: LazyLock<Mutex<HashMap<Identity, Baseline>>> = LazyLock::new(Mutex::default);

fn baselines() -> MutexGuard<'static, HashMap<Identity, Baseline>> {
    BASELINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command uses a git directory, until this is dropped.
#[derive(Debug)]
struct GitDirUse(Identity);

impl PartialEq for GitDirUse {
    fn eq(&self, other: &GitDirUse) -> bool {
        self.0 == other.0
    }
}

impl Eq for GitDirUse {}

impl GitDirUse {
    /// The state that counts for this use. It is recorded under the lock, so that no command begins or ends meanwhile.
    fn begin(folder: &OwnedFd) -> Result<(GitDirUse, Option<Head>, Links), Errno> {
        let found = fs::fstat(folder)?;
        let (identity, mut all) = ((found.st_dev, found.st_ino), baselines());
        let baseline = match all.entry(identity) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => {
                let head = Head::read(folder).filter(Head::is_as_git_reads);
                free.insert(Baseline { uses: 0, head, links: Links::record(folder)? })
            }
        };
        baseline.uses += 1;
        Ok((GitDirUse(identity), baseline.head.clone(), baseline.links.clone()))
    }
}

impl Drop for GitDirUse {
    fn drop(&mut self) {
        if let Entry::Occupied(mut known) = baselines().entry(self.0) {
            known.get_mut().uses -= 1;
            if known.get().uses == 0 {
                known.remove();
            }
        }
    }
}

/// The outcome of putting a git directory back after a command.
#[derive(Debug, Default)]
pub(crate) struct RestoreReport {
    /// For the evidence of the command.
    pub(crate) said: Vec<String>,
    /// The parts that could not be put back, for a person.
    pub(crate) problems: Vec<String>,
}

impl RecordedGitDir {
    pub(crate) fn record(root: &Path, git_dir: &Path, is_outermost: bool) -> Result<RecordedGitDir, Errno> {
        let (in_use, head, links) = GitDirUse::begin(&open_git_dir(root, git_dir)?)?;
        Ok(RecordedGitDir {
            root: root.to_path_buf(),
            git_dir: git_dir.to_path_buf(),
            head_is_link: head.as_ref().is_some_and(|head| head.is_link),
            head: head.map(|head| head.content),
            links: is_outermost.then_some(links),
            in_use: Some(Arc::new(in_use)),
        })
    }

    /// Whether git would take the `HEAD` of a git directory for one.
    pub(crate) fn has_valid_head(root: &Path, git_dir: &Path) -> bool {
        open_git_dir(root, git_dir).is_ok_and(|folder| Head::read(&folder).is_some_and(|head| head.is_as_git_reads()))
    }

    /// Whether git, of whatever version, could take a folder's `HEAD` for one.
    pub(crate) fn may_have_head(root: &Path, git_dir: &Path) -> bool {
        open_git_dir(root, git_dir).is_ok_and(|folder| Head::read(&folder).is_some_and(|head| head.may_be_one()))
    }

    /// Makes it as valid as it was, and says what was done and what an agent left beside it.
    pub(crate) fn restore(&self) -> RestoreReport {
        let path = self.root.join(&self.git_dir);
        let mut restored = RestoreReport::default();
        match self.open_or_remake(&mut restored.said) {
            Ok(folder) => self.restore_in(&folder, &mut restored),
            // The user deleted it.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => restored.problems.push(not_restored(errno)),
        }
        for said in restored.said.iter_mut().chain(&mut restored.problems) {
            *said = format!("git_dir_restored {}: {said}", path.display());
        }
        if !restored.problems.is_empty() {
            restored.said.extend(restored.problems.iter().cloned());
            restored.said.extend(disable_shadows(&self.root, &self.git_dir));
        }
        let around = path.parent().filter(|_| path.file_name().is_some_and(|name| name == ".git"));
        let shadowing = around.filter(|folder| shadows(folder));
        restored.said.extend(shadowing.map(|folder| format!("git_dir_shadowed {}", shadow_warning(folder))));
        restored
    }

    fn restore_in(&self, folder: &OwnedFd, restored: &mut RestoreReport) {
        if let Some(links) = &self.links {
            let removed = links.remove_new(folder);
            restored.said.extend(removed.said);
            restored.problems.extend(removed.problems);
        }
        if let Some(head) = &self.head
            && let Err(errno) = self.restore_parts(folder, head, &mut restored.said)
        {
            restored.problems.push(not_restored(errno));
        }
    }

    fn restore_parts(&self, folder: &OwnedFd, head: &[u8], said: &mut Vec<String>) -> Result<(), Errno> {
        if allow_owner(folder, 0o100)? {
            said.push("its permissions kept git out".to_owned());
        }
        for part in ["objects", "refs"] {
            match open_in(folder, Path::new(part)) {
                Ok(opened) => {
                    said.extend(allow_owner(&opened, 0o100)?.then(|| format!("permissions of {part} kept git out")));
                }
                Err(Errno::NOENT) => {
                    allow_owner(folder, 0o700)?;
                    fs::mkdirat(folder, part, Mode::from_raw_mode(0o777))?;
                    said.push(format!("{part} was missing"));
                }
                // A link that was there before: those that are new were removed.
                Err(Errno::LOOP) => {}
                Err(errno) => return Err(errno),
            }
        }
        if Head::read(folder).is_some_and(|found| self.accepts(&found)) {
            return Ok(());
        }
        allow_owner(folder, 0o700)?;
        let left = head::replace_head(folder, head)?;
        said.push("HEAD was missing or no HEAD, and is as it was before the command".to_owned());
        said.extend(left.map(|name| format!("the folder in place of HEAD is now called {name}")));
        Ok(())
    }

    /// The user's own `HEAD` may be one that git reads and would not write so.
    fn accepts(&self, head: &Head) -> bool {
        let is_the_same = Some(&head.content) == self.head.as_ref() && head.is_link == self.head_is_link;
        is_the_same || (head.is_as_git_writes() && (self.head_is_link || !head.is_link))
    }

    /// Opens it. Folders on the way to it that their owner may not enter are opened to the owner, who would do that next.
    fn open_or_remake(&self, said: &mut Vec<String>) -> Result<OwnedFd, Errno> {
        match open_git_dir(&self.root, &self.git_dir) {
            Err(Errno::ACCESS) => {}
            other => return other,
        }
        let mut at = open_git_dir(&self.root, Path::new(""))?;
        for part in &self.git_dir {
            if allow_owner(&at, 0o100)? {
                said.push("permissions of a folder around it kept git out".to_owned());
            }
            at = open_in(&at, Path::new(part))?;
        }
        Ok(at)
    }
}

fn not_restored(errno: Errno) -> String {
    format!("it is damaged, and could not be restored: {errno}")
}

/// Without following a link, and whatever its permissions are.
fn open_git_dir(root: &Path, git_dir: &Path) -> Result<OwnedFd, Errno> {
    let root = open_unlinked(root)?;
    open_in(&root, if git_dir.as_os_str().is_empty() { Path::new(".") } else { git_dir })
}

fn open_in(folder: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    fs::openat2(folder, path, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Here and not at the front door: no command can make a git directory so that the daemon can't restore it.
    #[test]
    fn a_git_directory_that_can_not_be_restored_leaves_no_other_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let (root, head) = (folder.path(), "ref: refs/heads/main\n");
        fs::create_dir_all(root.join("a/.git/objects")).unwrap();
        fs::create_dir(root.join("a/.git/refs")).unwrap();
        fs::write(root.join("a/.git/HEAD"), head).unwrap();
        let recorded = RecordedGitDir::record(root, Path::new("a/.git"), true).unwrap();
        fs::remove_file(root.join("a/.git/HEAD")).unwrap();
        fs::remove_dir(root.join("a/.git/refs")).unwrap();
        fs::write(root.join("a/.git/refs"), "").unwrap();
        for around in [root.to_path_buf(), root.join("a")] {
            for name in ["HEAD", "objects", "refs"] {
                fs::write(around.join(name), head).unwrap();
            }
        }
        let restored = recorded.restore();
        assert_eq!(restored.problems.len(), 1, "{restored:?}");
        assert!(!root.join("HEAD").exists() && !root.join("a/HEAD").exists(), "{restored:?}");
        assert_eq!(restored.said.iter().filter(|said| said.contains("is now called HEAD.abide-")).count(), 2);
        fs::remove_file(root.join("a/.git/refs")).unwrap();
        let restored = recorded.restore();
        assert!(restored.problems.is_empty(), "{restored:?}");
        assert_eq!(fs::read_to_string(root.join("a/.git/HEAD")).unwrap(), head);
    }
}
