//! Folders that git would take for a git directory although they are part of a working tree. git passes over a `.git`
//! that is none, and takes the folder around it, with the settings that an agent wrote there.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use super::{GitDirParts, allow_owner, random_name};
use crate::file_identity::open_unlinked;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Whether a folder is itself one that git would take for a git directory.
pub(crate) fn shadows(folder: &Path) -> bool {
    open_unlinked(folder).is_ok_and(|folder| is_shadow(&folder))
}

fn is_shadow(folder: &OwnedFd) -> bool {
    let parts = GitDirParts::in_folder(folder);
    parts.is_whole() || parts.is_linked()
}

/// The warning about such a folder, with what to do.
#[must_use]
pub fn shadow_warning(folder: &Path) -> String {
    // Without the slash that joining an empty path leaves.
    let folder: PathBuf = folder.components().collect();
    format!(
        "{} has HEAD, objects and refs, so your git can take it for a repository and run programs that its config names; \
         look at them and move them away, and have git ignore such folders: git config --global safe.bareRepository \
         explicit",
        folder.display()
    )
}

/// Renames the `HEAD` of every such folder around a git directory that could not be made valid again, so that git takes
/// none of them in its place. Says what was done.
pub(super) fn disable_shadows(root: &Path, git_dir: &Path) -> Vec<String> {
    let mut said = Vec::new();
    for folder in git_dir.ancestors().skip(1) {
        let path = root.join(folder).join("HEAD");
        match rename_head(root, folder) {
            Ok(None) => {}
            Ok(Some(name)) => said.push(format!("git_dir_shadowed {} is now called {name}", path.display())),
            Err(errno) => said.push(format!("git_dir_shadowed {} could not be renamed: {errno}", path.display())),
        }
    }
    said
}

fn rename_head(root: &Path, folder: &Path) -> Result<Option<String>, Errno> {
    let root = open_unlinked(root)?;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = fs::openat2(root, folder, FOLDER, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)?;
    if !is_shadow(&folder) {
        return Ok(None);
    }
    allow_owner(&folder, 0o700)?;
    let name = random_name("HEAD");
    fs::renameat_with(&folder, "HEAD", &folder, &name, RenameFlags::NOREPLACE)?;
    Ok(Some(name))
}
