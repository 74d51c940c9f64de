//! Large payloads, one file each, named by their content.
//!
//! Files, not rows: a large value in the database would be written twice (log and page), push small facts out of the
//! cache, and stay in the file as free pages once removed. The file and its folder are synced before the transaction
//! that refers to it; what a refused commit leaves behind is an unused file, never a fact without its payload.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::home::{sync_folder, write_durably};
use crate::error::{CommitError, Damage, ReadError};
use crate::hash::{BlobId, Hash};

#[derive(Debug)]
pub(crate) struct Blobs {
    folder: PathBuf,
    /// Shelves that this process knows to be durable. One that is merely there may not be, yet.
    shelves: Mutex<HashSet<PathBuf>>,
}

impl Blobs {
    pub(crate) fn new(folder: PathBuf) -> Blobs {
        Blobs { folder, shelves: Mutex::default() }
    }

    /// Two levels, so that no folder grows past what a listing can bear.
    fn path(&self, id: &BlobId) -> PathBuf {
        let name = id.to_string();
        self.folder.join(&name[..2]).join(&name[2..])
    }

    pub(crate) fn put(&self, digest: Hash, bytes: &[u8]) -> Result<BlobId, CommitError> {
        let id = BlobId(digest);
        let path = self.path(&id);
        // A file of that name is trusted only if it is whole: otherwise putting it again mends it.
        if fs::metadata(&path).is_ok_and(|found| found.len() == bytes.len() as u64)
            && fs::read(&path).is_ok_and(|found| Hash::of(&found) == digest)
        {
            return Ok(id);
        }
        let shelf = self.make_shelf(self.folder.join(&digest.to_string()[..2]));
        let written = shelf.and_then(|()| write_durably(&path, bytes));
        written.map_err(|error| CommitError::of_file(&path, &error))?;
        Ok(id)
    }

    fn make_shelf(&self, shelf: PathBuf) -> io::Result<()> {
        let mut shelves = self.shelves.lock().expect("the shelves are never held across a panic");
        if !shelves.contains(&shelf) {
            abide_private::private_folder(&shelf)?;
            sync_folder(&self.folder)?;
            shelves.insert(shelf);
        }
        Ok(())
    }

    /// The bytes, if they are what the name says.
    pub(crate) fn get(&self, id: &BlobId) -> Result<Arc<[u8]>, ReadError> {
        match fs::read(self.path(id)) {
            Ok(bytes) if Hash::of(&bytes) == id.0 => Ok(Arc::from(bytes)),
            Ok(_) => Err(ReadError::damaged(Damage::Blob { id: *id, what: "its bytes are not what was put".into() })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ReadError::NoBlob(*id)),
            Err(error) => Err(ReadError::Store { detail: format!("blob {id}: {error}") }),
        }
    }

    pub(crate) fn exists(&self, id: &BlobId) -> bool {
        self.path(id).exists()
    }

    pub(crate) fn remove(&self, id: &BlobId) -> io::Result<()> {
        match fs::remove_file(self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Every blob by name, and its size. Files of other names are not ours to judge.
    pub(crate) fn list(&self) -> io::Result<Vec<(BlobId, u64)>> {
        let mut found = Vec::new();
        for shelf in fs::read_dir(&self.folder)? {
            let shelf = shelf?;
            if !shelf.file_type()?.is_dir() {
                continue;
            }
            let prefix = shelf.file_name().to_string_lossy().into_owned();
            for file in fs::read_dir(shelf.path())? {
                let file = file?;
                let name = format!("{prefix}{}", file.file_name().to_string_lossy());
                if let Ok(id) = name.parse() {
                    found.push((id, file.metadata()?.len()));
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}
