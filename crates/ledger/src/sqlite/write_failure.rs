//! Whether the store takes commits. A refusal is remembered until a probe was written: that one small commit went
//! through says nothing about the next large one, where the disk is nearly full. Small commits need no inode either, so a
//! disk without one counts as a refusal, too.

use std::fs;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use abide_private::private_file;

use super::Sqlite;
use super::upgrade_steps::FORMAT;
use super::writer::{Writer, commit_error};
use crate::error::CommitError;

/// As much as the largest message.
const PROBE_BYTES: usize = 1 << 20;

/// The last commit that the store could not write.
#[derive(Debug, Default)]
pub(crate) struct LastWriteFailure(Mutex<Option<CommitError>>);

impl LastWriteFailure {
    pub(crate) fn note(&self, refusal: &CommitError) {
        *self.lock() = Some(refusal.clone());
    }

    fn clear(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<CommitError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sqlite {
    pub(crate) fn write_failure(&self) -> Option<CommitError> {
        let closed = self.0.writing.as_ref().is_some_and(|writing| writing.queue.is_closed());
        let last = self.0.status.write_failure.lock().clone();
        last.or_else(|| closed.then_some(CommitError::Closed)).or_else(|| self.lacks_inodes())
    }

    pub(crate) fn try_write(&self) -> Result<(), CommitError> {
        // With the writer in hand there is one probe at a time.
        let mut writer = self.borrow_writer()?;
        let probed = write_probe(&mut writer).map_err(|refusal| refusal.of_database(&self.0.store.home.database()));
        match &probed {
            Ok(()) => self.0.status.write_failure.clear(),
            Err(refusal) => self.0.status.write_failure.note(refusal),
        }
        probed.map_err(|refusal| self.lacks_inodes().unwrap_or(refusal))
    }

    /// Large payloads are files of their own. A file system that reports no inodes makes them as it needs them.
    fn lacks_inodes(&self) -> Option<CommitError> {
        let home = self.0.store.home.database();
        let found = rustix::fs::statvfs(&home).ok()?;
        let none_left = found.f_files > 0 && found.f_favail == 0;
        let detail = format!("no inode is left on the disk of {}: delete files there", home.display());
        none_left.then_some(CommitError::StoreFull { detail })
    }
}

/// A file, as large payloads are, and a page of the database.
fn write_probe(writer: &mut Writer) -> Result<(), CommitError> {
    let path = writer.store.home.probe();
    // Bytes that a file system can't keep in less room.
    let mut bytes = vec![0; PROBE_BYTES];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    let written = private_file(&path).and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()));
    // Where it was not even made there is nothing to remove; the next probe empties what is left.
    let _left = fs::remove_file(&path);
    written.map_err(|error| CommitError::of_file(&path, &error))?;
    // This writes the first page, also where the number in it stays the same.
    writer.transaction(|writer| writer.conn.pragma_update(None, "user_version", FORMAT).map_err(commit_error))
}
