//! The bound on uncommitted files that are saved or compared. git reads each of them and writes it into the view, so they
//! are counted before it does: a file with a hole has any size for nothing.

use std::path::Path;

use abide_kernel::refusal::{ErrorCode, Refusal};

use super::tree::path_of;
use crate::limits;

/// Refuses where the files, by their names from the top of the folder, are more than can be saved.
pub(super) fn check<'a>(folder: &Path, names: impl Iterator<Item = &'a [u8]>) -> Result<(), Refusal> {
    let (mut files, mut bytes, mut largest) = (0_usize, 0_u64, (0, &b""[..]));
    for name in names.filter(|name| !name.is_empty()) {
        files += 1;
        // One that is gone by now takes no room; a folder is not read.
        let found = folder.join(path_of(name)).symlink_metadata();
        let size = found.map_or(0, |found| if found.is_dir() { 0 } else { found.len() });
        bytes = bytes.saturating_add(size);
        largest = largest.max((size, name));
    }
    if files <= limits::UNCOMMITTED_FILES && bytes <= limits::UNCOMMITTED_BYTES {
        return Ok(());
    }
    let name = String::from_utf8_lossy(largest.1).into_owned();
    Err(too_much(
        folder,
        &format!(
            "{files} files of {bytes} bytes in {} are not committed, the largest is {name}; at most {} files of {} bytes \
             can be saved",
            folder.display(),
            limits::UNCOMMITTED_FILES,
            limits::UNCOMMITTED_BYTES
        ),
    ))
}

pub(super) fn too_much(folder: &Path, message: &str) -> Refusal {
    let hint = format!(
        "commit them in {} (commits have no such bound), or delete files that can be made again; or give up all that is in \
         the worktree: abide workspace detach --discard; nothing was removed",
        folder.display()
    );
    Refusal::new(ErrorCode::TooMuchUncommitted, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_small_files_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let names = |count| std::iter::repeat_n(&b"small"[..], count);
        check(folder.path(), names(limits::UNCOMMITTED_FILES)).unwrap();
        let refusal = check(folder.path(), names(1_000_000)).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::TooMuchUncommitted);
        assert!(refusal.message.contains("1000000 files"), "{}", refusal.message);
    }
}
