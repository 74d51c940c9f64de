//! The copy of the sources that mutants are written to. It stays between runs, and files that did not change are not
//! written again, so that the next run builds only what differs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cargo;

/// Makes the folder hold what the working tree holds, except what git ignores.
pub(crate) fn copy(folder: &Path) -> Result<()> {
    let listed = cargo::read("git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    let root = cargo::root();
    let files: BTreeSet<PathBuf> =
        listed.split_terminator('\0').map(PathBuf::from).filter(|file| root.join(file).is_file()).collect();
    fs::create_dir_all(folder)?;
    remove_others(folder, folder, &files)?;
    for file in &files {
        let (from, to) = (root.join(file), folder.join(file));
        let bytes = fs::read(&from).with_context(|| format!("{} can't be read", from.display()))?;
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&to, bytes).with_context(|| format!("{} can't be written", to.display()))?;
    }
    Ok(())
}

fn remove_others(top: &Path, folder: &Path, files: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(top, &path, files)?;
        } else if !files.contains(path.strip_prefix(top)?) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
