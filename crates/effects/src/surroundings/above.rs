//! The folders of a repository that lie above the one that an agent works in. Found by looking for `.git`, not by asking
//! git: this is done for every call of a model.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::limits;

/// From the folder above the workspace up to the top of its repository; none where no repository is above.
///
/// A user who may write in a folder above could otherwise put text before the model, so every one of them has to belong
/// to the owner of the workspace. And nothing of the runtime's own folder is shown, whatever lies above that.
pub(super) fn folders(workspace: &Path, home: &Path) -> Vec<PathBuf> {
    let Ok(owner) = fs::symlink_metadata(workspace).map(|seen| seen.uid()) else { return Vec::new() };
    let belongs = |path: &Path| fs::symlink_metadata(path).is_ok_and(|seen| seen.uid() == owner);
    if workspace.join(".git").symlink_metadata().is_ok() {
        return Vec::new();
    }
    let mut above = Vec::new();
    for folder in workspace.ancestors().skip(1).take(limits::GUIDES_ABOVE) {
        if folder == home || !belongs(folder) {
            break;
        }
        above.push(folder.to_path_buf());
        let git = folder.join(".git");
        if git.symlink_metadata().is_ok() {
            return if belongs(&git) { above } else { Vec::new() };
        }
    }
    Vec::new()
}
