//! Whether a folder may be a workspace. What comes out is canonical, so that one folder has one name.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use rustix::fs::{Access, access};

use super::repository::Repository;
use super::view::View;
use super::{GitRoot, Repositories, WORKTREES, Workspace};
use crate::transient;
use crate::unlinked::{FileIdentity, linked, open_folder};

impl Repositories {
    /// Looks at a folder that is to be a workspace. The runtime's own home may neither hold it nor lie in it.
    pub fn check(&self, path: &Path) -> Result<Workspace, Refusal> {
        self.check_judged(path, |_| Ok(()))
    }

    /// The same, if `judge` lets the folder's real path pass. That path is resolved once: it is the one that is judged,
    /// looked at and returned, whatever a command puts in its place meanwhile.
    pub fn check_judged(
        &self,
        path: &Path,
        judge: impl FnOnce(&Path) -> Result<(), Refusal>,
    ) -> Result<Workspace, Refusal> {
        let (path, identity) = self.usable(path, judge)?;
        let git = git_root(&path, self)?;
        Ok(Workspace { path, identity, git })
    }

    /// Looks at a folder that was recorded, which it is by its real path. One that a link leads to by now is refused: an
    /// agent may have put the link there, and no operator allowed the place where it leads.
    pub fn check_recorded(&self, path: &Path) -> Result<Workspace, Refusal> {
        self.check_judged(path, |real| unturned(path, real))
    }

    /// The same for an agent that works there. A folder whose `.git` was damaged meanwhile has no repository: its agent can
    /// go on, and repair it.
    pub fn check_again(&self, path: &Path) -> Result<Workspace, Refusal> {
        let (path, identity) = self.usable(path, |real| unturned(path, real))?;
        let git = match git_root(&path, self) {
            Err(refusal) if refusal.code == ErrorCode::DamagedRepository => None,
            found => found?,
        };
        Ok(Workspace { path, identity, git })
    }

    /// The folder by its real path and identity, if it could be a workspace.
    fn usable(
        &self,
        path: &Path,
        judge: impl FnOnce(&Path) -> Result<(), Refusal>,
    ) -> Result<(PathBuf, FileIdentity), Refusal> {
        let path = real_path(path)?;
        judge(&path)?;
        // A link that took its place since is not followed.
        let folder = open_folder(&path)?;
        let identity =
            FileIdentity::of_open(&folder).map_err(|errno| unreachable_path(&path, &io::Error::from(errno)))?;
        usable(&path, &self.home)?;
        Ok((path, identity))
    }

    fn ignores(&self, repository: &Repository, folder: &Path) -> Result<bool, Refusal> {
        let view = View::reading(repository, &self.alternates_of(repository)?, &self.scratch())?;
        let git = self.untrusted(&view)?.with_files(&repository.toplevel);
        Ok(git.ask(&[&"check-ignore", &"-q", &"--", &folder])?.ok)
    }
}

/// Refuses a recorded path that leads elsewhere.
fn unturned(path: &Path, real: &Path) -> Result<(), Refusal> {
    if real == path {
        return Ok(());
    }
    Err(linked(path, &format!("is a link by now, and leads to {}", real.display())))
}

/// A path with all links resolved.
fn real_path(path: &Path) -> Result<PathBuf, Refusal> {
    if path.to_str().is_none() {
        return Err(not_utf8(path));
    }
    if !path.is_absolute() {
        let message = format!("{} is a relative path", path.display());
        return Err(Refusal::new(ErrorCode::RelativePath, message).with_hint("give the folder's whole path, from / on"));
    }
    let found = fs::canonicalize(path).map_err(|error| unreachable_path(path, &error))?;
    // A link may lead from a good name to a bad one.
    if found.to_str().is_none() {
        return Err(not_utf8(&found));
    }
    if !found.is_dir() {
        let message = format!("{} is not a folder", found.display());
        return Err(Refusal::new(ErrorCode::NotAFolder, message).with_hint("give the folder that it is in"));
    }
    Ok(found)
}

/// Refuses a folder that can't be a workspace, by its real path.
fn usable(found: &Path, home: &Path) -> Result<(), Refusal> {
    if found.parent().is_none() {
        let message = "the root of the file system can't be a workspace";
        return Err(Refusal::new(ErrorCode::RootFolder, message));
    }
    apart_from_home(found, home)?;
    access(found, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        let message = format!("{} can't be written to: {error}", found.display());
        Refusal::new(ErrorCode::NotWritable, message)
    })
}

fn not_utf8(path: &Path) -> Refusal {
    let message = format!("{} is not UTF-8", path.display());
    Refusal::new(ErrorCode::NameNotUtf8, message)
}

fn unreachable_path(path: &Path, error: &io::Error) -> Refusal {
    let shown = path.display();
    if error.kind() == io::ErrorKind::NotFound {
        let hint = "create the folder first, or correct the path; nothing else is used in its place";
        return Refusal::new(ErrorCode::Missing, format!("{shown} does not exist")).with_hint(hint);
    }
    if error.kind() == io::ErrorKind::NotADirectory {
        let message = format!("{shown} leads through a file");
        return Refusal::new(ErrorCode::NotAFolder, message).with_hint("correct the path");
    }
    let hint = transient::hint(error, "give the daemon's user access to every folder on the way");
    Refusal::new(ErrorCode::Unreadable, format!("{shown} can't be reached: {error}")).with_hint(hint)
}

fn apart_from_home(found: &Path, home: &Path) -> Result<(), Refusal> {
    let home = canonical_as_far_as_it_exists(home)?;
    let shown = found.display();
    if home.starts_with(found) && home != found {
        let message = format!("{shown} contains the runtime's own folder {}", home.display());
        return Err(Refusal::new(ErrorCode::ContainsHome, message));
    }
    let worktrees = home.join(WORKTREES);
    if found.starts_with(&home) && (found == worktrees || !found.starts_with(&worktrees)) {
        let message = format!("{shown} is part of the runtime's own folder {}", home.display());
        return Err(Refusal::new(ErrorCode::InsideHome, message));
    }
    Ok(())
}

/// A home that does not exist yet still has a place.
pub(super) fn canonical_as_far_as_it_exists(path: &Path) -> Result<PathBuf, Refusal> {
    if path.components().any(|part| part == Component::ParentDir) || !path.is_absolute() {
        let message = format!("{} is not a plain absolute path", path.display());
        return Err(
            Refusal::new(ErrorCode::RelativePath, message).with_hint("give the whole path, from / on, without ..")
        );
    }
    let mut rest = PathBuf::new();
    for existing in path.ancestors() {
        match fs::canonicalize(existing) {
            // Joining nothing would leave a slash at the end.
            Ok(canonical) if rest.as_os_str().is_empty() => return Ok(canonical),
            Ok(canonical) => return Ok(canonical.join(rest)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let name = existing.file_name().map(Path::new).unwrap_or(Path::new(""));
                rest = if rest.as_os_str().is_empty() { name.into() } else { name.join(&rest) };
            }
            Err(error) => return Err(unreachable_path(existing, &error)),
        }
    }
    Err(Refusal::new(ErrorCode::Missing, format!("{} does not exist", path.display())).with_hint("create it first"))
}

fn git_root(folder: &Path, repositories: &Repositories) -> Result<Option<GitRoot>, Refusal> {
    let found = match Repository::find(folder) {
        Ok(found) => found,
        // Without git no folder has a repository, unless it says that it has one.
        Err(refusal)
            if refusal.code == ErrorCode::NoGitProgram && !folder.ancestors().any(|up| up.join(".git").exists()) =>
        {
            None
        }
        Err(refusal) => return Err(refusal),
    };
    let Some(repository) = found else { return Ok(None) };
    // A folder that the repository around it ignores has no history there, and its changes would not be seen.
    if folder != repository.toplevel && repositories.ignores(&repository, folder)? {
        return Ok(None);
    }
    let records = repository.is_linked().then(|| repository.git_dir.clone());
    Ok(Some(GitRoot { toplevel: repository.toplevel, common_dir: repository.common_dir, records }))
}
