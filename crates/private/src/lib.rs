//! Private files and folders: mode 0600 and 0700, whatever the umask is and the folder around them allows. Every crate that
//! writes into a home makes its files here, and clippy (`disallowed-methods`) refuses the functions of std that would take
//! their mode from the umask.
//!
//! It must never make a file that belongs to a user or to an agent: those get the mode that the user's umask gives them.
//! Reading such files is here, too, because every crate that reads one must refuse the same pipes and devices.

#![expect(clippy::disallowed_methods, reason = "this is the module that makes private files with them")]

mod read;

pub use read::{read_open_regular, read_regular, read_regular_text};

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const OTHERS: u32 = 0o077;

/// How a file that already exists is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Emptied.
    Truncate,
    /// Kept; writes go to its end.
    Append,
    /// Kept; writes go to its start. For lock files.
    Keep,
    /// An error of kind `AlreadyExists`.
    Refuse,
}

/// Makes `folder`, and the missing folders above it, with mode 0700. A folder that is there already is closed to other
/// users; that fails where it belongs to one of them. Folders above it that are there already stay as they are.
pub fn private_folder(folder: &Path) -> io::Result<()> {
    match make_folder(folder) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty() && !above.exists()) {
                private_folder(above)?;
            }
            match make_folder(folder) {
                // Another thread made it meanwhile.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
                made => return made,
            }
        }
        Err(error) => return Err(error),
    }
    close_to_others(folder)
}

/// Makes `folder` private if it is new: missing, or there and empty. One that holds something may be shared with others
/// for a reason, and stays as it is.
pub fn private_if_new(folder: &Path) -> io::Result<()> {
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => match close_to_others(folder) {
                // It is somebody else's, and only they can close it.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
                closed => closed,
            },
            Some(_) => Ok(()),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => private_folder(folder),
        Err(error) => Err(error),
    }
}

/// Makes a file with mode 0600, open for reading and writing. One that is there already is emptied and closed to other
/// users.
pub fn private_file(path: &Path) -> io::Result<File> {
    open_private(path, Existing::Truncate)
}

/// Opens a file with mode 0600 for reading and writing, and makes it where it is missing. One that is there already is
/// closed to other users.
pub fn open_private(path: &Path, existing: Existing) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(FILE_MODE);
    match existing {
        Existing::Truncate => options.create(true).truncate(true),
        Existing::Append => options.create(true).append(true),
        Existing::Keep => options.create(true).truncate(false),
        Existing::Refuse => options.create_new(true),
    };
    let file = options.open(path)?;
    // The mode given to open counts only for a new file, and only as far as the umask lets it.
    let found = file.metadata()?;
    if found.is_file() && found.permissions().mode() & 0o777 != FILE_MODE {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(file)
}

/// Writes a whole private file: readers see the old content or the new one, and the new one is durable when this
/// returns. The folder must be there.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The process id keeps two processes apart, the thread two callers that write the same file at once.
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{thread}.partial", std::process::id()));
    let partial = path.with_file_name(name);
    let written = (|| {
        let mut file = private_file(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        // Leaves no half file behind; that it could not even be removed adds nothing to the first error.
        let _left = fs::remove_file(&partial);
    }
    written
}

/// Takes from everybody but the owner what an earlier version, a copy or another umask gave them. A path that does not
/// exist needs nothing.
pub fn close_to_others(path: &Path) -> io::Result<()> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mode = found.permissions().mode();
    if mode & OTHERS == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS & 0o777))
}

/// Whether others than the owner can read, write or enter it.
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.permissions().mode() & OTHERS != 0)
}

fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(folder)?;
    // A umask can take rights from the owner, too.
    if fs::metadata(folder)?.permissions().mode() & 0o777 != FOLDER_MODE {
        fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
