//! Writes files that are complete and durable once a function has returned: written under a temporary name, synced,
//! renamed, and the folder synced.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use abide_private::private_folder;
use tempfile::NamedTempFile;

use crate::limits;

/// The prefix of the name of an incomplete file. Such files are never read.
const PARTIAL: &str = ".partial-";

pub(crate) fn is_partial(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PARTIAL))
}

/// A new file in `folder`, under no name that anybody looks for.
pub(crate) fn create_partial(folder: &Path) -> io::Result<NamedTempFile> {
    let existed = folder.is_dir();
    private_folder(folder)?;
    if !existed && let Some(parent) = folder.parent() {
        sync_folder(parent)?;
    }
    tempfile::Builder::new().prefix(PARTIAL).tempfile_in(folder)
}

/// Puts it in place as `name` and never over another: `Ok(None)` when the name is taken.
pub(crate) fn persist_new(
    file: NamedTempFile,
    folder: &Path,
    name: &str,
) -> io::Result<Result<PathBuf, NamedTempFile>> {
    file.as_file().sync_all()?;
    let path = folder.join(name);
    match file.persist_noclobber(&path) {
        Ok(_) => sync_folder(folder).map(|()| Ok(path)),
        Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => Ok(Err(refused.file)),
        Err(refused) => Err(refused.error),
    }
}

/// Writes a private file that need not outlive a crash.
pub(crate) fn write_private(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    io::Write::write_all(&mut abide_private::private_file(path)?, content.as_ref())
}

/// Puts content in place as `name`, over whatever is there.
pub(crate) fn replace_file(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let mut file = create_partial(folder)?;
    io::Write::write_all(&mut file, content)?;
    file.as_file().sync_all()?;
    file.persist(folder.join(name)).map_err(|refused| refused.error)?;
    sync_folder(folder)
}

/// The first of `name`, `name-2`, `name-3`, … for which `taken` says no.
pub(crate) fn free_name(name: &str, mut taken: impl FnMut(&str) -> bool) -> Option<String> {
    let numbered = (2..limits::NAME_TRIES).map(|number| format!("{name}-{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken(name))
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
