//! Folders that look like git directories and are part of the work: fixtures of a test, which a repository tracks.
//!
//! Such a folder is not protected: git itself has to write it, and could not over a mount. Everything else that looks like
//! a bare repository is read-only. An agent could add the user's bare repository to an index, to a commit, or to a
//! repository of its own, in order to write it. So only the commit counts that was checked out when a person attached the
//! folder, or before the first command in it, and its folders of this kind are listed in the home.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use serde::{Deserialize, Serialize};

use super::Repositories;
use super::repository::Repository;
use super::tree::path_of;
use super::view::View;
use crate::durable_file;

/// Where in a home they are listed, a file for each folder.
const FOLDER: &str = "tracked";

/// The folders with a tracked `HEAD` in the repository that a folder is part of.
#[derive(Debug, Serialize, Deserialize)]
struct Tracked {
    root: PathBuf,
    folders: BTreeSet<PathBuf>,
}

impl Repositories {
    /// The tracked git directories in a folder, by their real paths. Those of the nearest folder around it that they were listed of: an
    /// agent that goes to a folder in its workspace may have made a repository there.
    pub(super) fn tracked_in(&self, root: &Path) -> BTreeSet<PathBuf> {
        let listed = root.ancestors().find_map(|folder| self.listed_git_dirs(folder));
        listed.unwrap_or_else(|| self.list_tracked(root, outermost(root).as_ref()))
    }

    fn listed_git_dirs(&self, root: &Path) -> Option<BTreeSet<PathBuf>> {
        let text = std::fs::read(self.home.join(FOLDER).join(list_file_name(root))).ok()?;
        let tracked: Tracked = serde_json::from_slice(&text).ok()?;
        (tracked.root == root).then_some(tracked.folders)
    }

    /// Lists them anew. A repository that can't be asked has none.
    pub(super) fn list_tracked(&self, root: &Path, repository: Option<&Repository>) -> BTreeSet<PathBuf> {
        let folders = repository.and_then(|repository| self.committed_git_dirs(repository).ok()).unwrap_or_default();
        let tracked = Tracked { root: root.to_path_buf(), folders };
        if let Ok(text) = serde_json::to_vec(&tracked) {
            // A home that is full at this moment lists them before the next command.
            let _full = durable_file::replace_file(&self.home.join(FOLDER), &list_file_name(root), &text);
        }
        tracked.folders
    }

    fn committed_git_dirs(&self, repository: &Repository) -> Result<BTreeSet<PathBuf>, Refusal> {
        let listed = self.committed_files(repository)?;
        let files = listed.split(|byte| *byte == 0).map(path_of).filter(|file| file.ends_with("HEAD"));
        let folders = files.filter_map(|file| Some(repository.toplevel.join(file.parent()?)));
        // A path that is no UTF-8 can't be listed as JSON, and stays protected.
        Ok(folders.filter(|folder| folder.to_str().is_some()).collect())
    }

    /// The files of the commit that is checked out, from the top of the working tree on, each with a zero byte after it.
    fn committed_files(&self, repository: &Repository) -> Result<Vec<u8>, Refusal> {
        let view = View::for_reading(repository, &self.alternates_of(repository)?, &self.scratch_folder())?;
        let git = self.untrusted_git(&view)?;
        git.run(&[&"ls-tree", &"-r", &"-z", &"--name-only", &"--full-tree", &"HEAD"])
    }

    /// The folders in a workspace, or the workspace itself, that have a `.git` although the outermost repository around
    /// them tracks files in them. A submodule is none: its files are tracked by itself.
    pub(super) fn nested_in(&self, root: &Path) -> Vec<PathBuf> {
        let Some(outer) = outermost(root) else { return Vec::new() };
        let Ok(listed) = self.committed_files(&outer) else { return Vec::new() };
        let mut folders = BTreeSet::new();
        for file in listed.split(|byte| *byte == 0).filter(|file| !file.is_empty()) {
            let file = outer.toplevel.join(path_of(file));
            let around = file.ancestors().skip(1).take_while(|folder| **folder != outer.toplevel);
            for folder in around.filter(|folder| folder.starts_with(root)) {
                if !folders.insert(folder.to_path_buf()) {
                    break;
                }
            }
        }
        folders.into_iter().filter(|folder| folder.join(".git").symlink_metadata().is_ok()).collect()
    }
}

/// The outermost repository that a folder is part of. One that lies in it may be an agent's.
fn outermost(root: &Path) -> Option<Repository> {
    let mut outermost = None;
    let mut folder = Some(root.to_path_buf());
    while let Some(repository) = folder.and_then(|folder| Repository::find(&folder).ok().flatten()) {
        folder = repository.toplevel.parent().map(Path::to_path_buf);
        outermost = Some(repository);
    }
    outermost
}

fn list_file_name(root: &Path) -> String {
    format!("{}.json", &blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex()[..32])
}
