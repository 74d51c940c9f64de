//! The folder: where things are, and who may write to it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_private::{Existing, close_to_others, open_private, private_folder, private_if_new};

use crate::error::OpenError;

#[derive(Debug, Clone)]
pub(crate) struct Home {
    root: PathBuf,
}

impl Home {
    pub(crate) fn new(root: &Path) -> Home {
        Home { root: root.to_owned() }
    }

    /// Makes what is not there yet of the folders, and says what that was: the innermost first.
    pub(crate) fn create(&self) -> Result<Vec<PathBuf>, OpenError> {
        let (archive, blobs) = (self.archive(), self.blobs());
        let above = self.root.ancestors().filter(|folder| !folder.as_os_str().is_empty());
        let all = [archive.as_path(), blobs.as_path()].into_iter().chain(above);
        let made: Vec<PathBuf> = all.filter(|folder| !folder.exists()).map(Path::to_owned).collect();
        let failed = |path: &Path, source| OpenError::Io { path: path.to_owned(), source };
        private_if_new(&self.root).map_err(|error| failed(&self.root, error))?;
        for folder in [&archive, &blobs] {
            private_folder(folder).map_err(|error| failed(folder, error))?;
        }
        // The log takes the mode of its database, but one that a crash left keeps what it had.
        let database = self.database();
        for file in [database.with_extension("db-wal"), database.with_extension("db-shm"), database, self.lock_file()] {
            // Only its owner may; where that is somebody else, who reads it is theirs to say.
            let _open = close_to_others(&file);
        }
        if !self.database().exists() {
            // A new home must outlive a power cut as surely as what is committed to it.
            for folder in [Some(self.root.as_path()), self.root.parent()].into_iter().flatten() {
                let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                sync_folder(folder).map_err(|source| OpenError::Io { path: folder.to_owned(), source })?;
            }
        }
        Ok(made)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root.join("ledger.db")
    }

    pub(crate) fn archive(&self) -> PathBuf {
        self.root.join("archive")
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    /// Written and removed again to find out whether the disk takes anything.
    pub(crate) fn probe(&self) -> PathBuf {
        self.root.join("ledger.probe")
    }

    pub(crate) fn lock_file(&self) -> PathBuf {
        self.root.join("ledger.lock")
    }

    /// Held for as long as the file is open; the system lets go of it however this process ends.
    pub(crate) fn lock(&self) -> Result<File, OpenError> {
        let path = self.lock_file();
        let fail = |source| OpenError::Io { path: path.clone(), source };
        let mut patience = GONE_HOLDER_TRIES;
        loop {
            let mut file = open_private(&path, Existing::Keep).map_err(fail)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::Error(source)) => return Err(fail(source)),
                Err(TryLockError::WouldBlock) => {
                    let mut text = String::new();
                    file.read_to_string(&mut text).map_err(fail)?;
                    if patience > 0 && text.trim().parse().is_ok_and(is_gone) {
                        patience -= 1;
                        std::thread::sleep(GONE_HOLDER_PAUSE);
                        continue;
                    }
                    let home = self.root.clone();
                    return Err(match text.trim().parse() {
                        Ok(pid) => OpenError::Held { home, pid },
                        Err(_) => OpenError::HeldByUnknown { home },
                    });
                }
            }
            // The previous holder may have removed the file between our opening and our locking it.
            if !is_file_at(&file, &path).map_err(fail)? {
                continue;
            }
            let write_pid = |file: &mut File| -> io::Result<()> {
                file.set_len(0)?;
                file.rewind()?;
                writeln!(file, "{}", std::process::id())
            };
            write_pid(&mut file).map_err(fail)?;
            return Ok(file);
        }
    }

    /// Takes a new home away again, as long as its lock is held. Folders that hold something else stay.
    pub(crate) fn remove(&self, made: &[PathBuf]) {
        // A file that can't be removed is empty, and harmless.
        let _ = super::connection::remove_database(&self.database());
        let _ = fs::remove_file(self.lock_file());
        for folder in made {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A process that was killed while it started another leaves its lock with that one for a moment, until it has become
/// the other program: in all, five seconds are waited for it.
const GONE_HOLDER_TRIES: u32 = 250;
const GONE_HOLDER_PAUSE: Duration = Duration::from_millis(20);

/// Whether a process has ended for certain. Where that can't be seen, it has not.
fn is_gone(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        // Behind the name, which may hold anything: dead, and at most not yet buried.
        Ok(stat) => stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| matches!(rest.trim_start().as_bytes().first(), Some(b'Z' | b'X'))),
        Err(error) => error.kind() == io::ErrorKind::NotFound && Path::new("/proc/self/stat").exists(),
    }
}

#[cfg(unix)]
fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (ours, there) = (file.metadata()?, fs::metadata(path));
    match there {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Elsewhere an open file can't be taken away.
#[cfg(not(unix))]
fn is_file_at(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Writes a whole file so that it is either there, complete and durable, or not there.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    abide_private::write_private(path, bytes)
}

pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
