//! Whether a folder outside git changed, told from names, sizes and times; contents are not read.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::limits;

/// None when there is too much to look at, or something can't be looked at: then nobody knows.
pub(super) fn digest(folder: &Path) -> Option<String> {
    let mut entries = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).ok()? {
            let path = entry.ok()?.path();
            let meta = fs::symlink_metadata(&path).ok()?;
            if meta.is_dir() {
                folders.push(path.clone());
            }
            entries.push((path, meta));
            if entries.len() > limits::SCAN_ENTRIES {
                return None;
            }
        }
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut hasher = blake3::Hasher::new();
    for (path, meta) in &entries {
        let name = path.strip_prefix(folder).ok()?;
        // With its length first, so that two entries can't read as one.
        hasher.update(&(name.as_os_str().len() as u64).to_le_bytes()).update(name.as_os_str().as_bytes());
        hasher.update(&meta.mode().to_le_bytes());
        // A folder's time and size change with what comes and goes in it, and that is listed itself.
        if !meta.is_dir() {
            hasher.update(&meta.size().to_le_bytes()).update(&meta.mtime().to_le_bytes());
            hasher.update(&meta.mtime_nsec().to_le_bytes()).update(&meta.ino().to_le_bytes());
        }
        if meta.is_symlink() {
            let target: PathBuf = fs::read_link(path).ok()?;
            hasher.update(target.as_os_str().as_bytes());
        }
    }
    Some(hasher.finalize().to_hex().to_string())
}
