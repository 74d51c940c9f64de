//! A folder or file that one command may use, known by its path and by its inode.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::file_identity::{FileIdentity, open_unlinked};

/// A folder or file by its path and its identity. A command that still runs may replace names by symbolic links while the
/// next command is started. So no link on the path is followed, and the identity is compared again inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AllowedPath {
    pub path: PathBuf,
    pub owner: u32,
    identity: FileIdentity,
}

impl AllowedPath {
    pub(crate) fn new(path: PathBuf) -> io::Result<AllowedPath> {
        let opened = open_unlinked(&path)?;
        let (owner, identity) = (rustix::fs::fstat(&opened)?.st_uid, FileIdentity::of_open(&opened)?);
        Ok(AllowedPath { path, owner, identity })
    }

    /// Opens the same folder or file by its path. Inside a sandbox this shows whether the right one was mounted.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        let opened = open_unlinked(&self.path)?;
        if FileIdentity::of_open(&opened)? == self.identity {
            return Ok(opened);
        }
        Err(io::Error::other(format!("{} was replaced by something else meanwhile", self.path.display())))
    }

    pub(crate) fn verify(&self) -> io::Result<()> {
        self.open().map(drop)
    }
}
