//! The folder: where things are, and who may write to it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::error::OpenError;

#[derive(Debug, Clone)]
pub(crate) struct Home {
    root: PathBuf,
}

impl Home {
    pub(crate) fn new(root: &Path) -> Home {
        Home { root: root.to_owned() }
    }

    pub(crate) fn create(&self) -> Result<(), OpenError> {
        for folder in [self.root.clone(), self.archive(), self.blobs()] {
            fs::create_dir_all(&folder).map_err(|source| OpenError::Io { path: folder, source })?;
        }
        if !self.database().exists() {
            // A new home must outlive a power cut as surely as what is committed to it.
            for folder in [Some(self.root.as_path()), self.root.parent()].into_iter().flatten() {
                let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                sync_folder(folder).map_err(|source| OpenError::Io { path: folder.to_owned(), source })?;
            }
        }
        Ok(())
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

    /// Held for as long as the file is open; the system lets go of it however this process ends.
    pub(crate) fn lock(&self) -> Result<File, OpenError> {
        let path = self.root.join("ledger.lock");
        let fail = |source| OpenError::Io { path: path.clone(), source };
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let mut file = options.open(&path).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(source)) => return Err(fail(source)),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(fail)?;
                let home = self.root.clone();
                return Err(match text.trim().parse() {
                    Ok(pid) => OpenError::Held { home, pid },
                    Err(_) => OpenError::HeldByUnknown { home },
                });
            }
        }
        let write_pid = |file: &mut File| -> io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        write_pid(&mut file).map_err(fail)?;
        Ok(file)
    }
}

/// Writes a whole file so that it is either there, complete and durable, or not there.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // The process id keeps two processes apart, the thread two callers that write the same content at once.
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    let temporary = path.with_extension(format!("{}-{thread}.tmp", std::process::id()));
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        sync_folder(folder)
    })();
    if written.is_err() {
        // Leaves no half file behind; that it could not even be removed adds nothing to the first error.
        let _ = fs::remove_file(&temporary);
    }
    written
}

pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
