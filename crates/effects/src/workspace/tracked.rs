//! Folders that look like git directories and are part of the work: fixtures of a test, which a repository tracks.
//!
//! Such a folder is not protected: git itself has to write it, and could not over a mount. Everything else that looks like
//! a bare repository is read-only. An agent could add the user's bare repository to the index in order to write it, so a
//! folder that was found untracked once stays protected as long as the daemon runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;

use super::Repositories;
use super::repository::Repository;
use super::tree::path_of;
use super::view::View;

impl Repositories {
    /// Those of the folders, by their real paths, in which the repository around them tracks files. A repository that
    /// can't be asked tracks none.
    pub(super) fn tracked_among(&self, folders: &[PathBuf]) -> BTreeSet<PathBuf> {
        let mut by_repository: BTreeMap<PathBuf, (Repository, Vec<&PathBuf>)> = BTreeMap::new();
        for folder in folders {
            let Some(Ok(Some(repository))) = folder.parent().map(Repository::find) else { continue };
            let entry = by_repository.entry(repository.toplevel.clone());
            entry.or_insert_with(|| (repository, Vec::new())).1.push(folder);
        }
        let mut tracked = BTreeSet::new();
        for (repository, inside) in by_repository.values() {
            let files = self.tracked_files(repository, inside).unwrap_or_default();
            let holds_file = |folder: &&&PathBuf| files.iter().any(|file| file.starts_with(folder));
            tracked.extend(inside.iter().filter(holds_file).map(|folder| (*folder).clone()));
        }
        let mut untracked = self.untracked();
        untracked.extend(folders.iter().filter(|folder| !tracked.contains(*folder)).cloned());
        tracked.retain(|folder| !untracked.contains(folder));
        tracked
    }

    fn tracked_files(&self, repository: &Repository, folders: &[&PathBuf]) -> Result<Vec<PathBuf>, Refusal> {
        let view = View::reading(repository, &self.alternates_of(repository)?, &self.scratch())?;
        let git = self.untrusted(&view)?.with_files(&repository.toplevel);
        let inside = |folder: &&PathBuf| folder.strip_prefix(&repository.toplevel).ok().map(Path::to_path_buf);
        let specs: Vec<_> = folders.iter().filter_map(inside).map(|folder| literal(&folder)).collect();
        let mut args: Vec<&dyn AsRef<OsStr>> = vec![&"ls-files", &"-z", &"--full-name", &"--"];
        args.extend(specs.iter().map(|spec| spec as &dyn AsRef<OsStr>));
        let listed = git.run(&args)?;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| repository.toplevel.join(path_of(name))).collect())
    }
}

/// A path from the top of the working tree as git takes it, with no pattern in it.
fn literal(path: &Path) -> std::ffi::OsString {
    let mut spec = std::ffi::OsString::from(":(top,literal)");
    spec.push(path);
    spec
}
