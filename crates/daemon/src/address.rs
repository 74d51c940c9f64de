//! `daemon.json`: the address at which this home is served. The file exists while the daemon runs.

use std::fs;
use std::path::{Path, PathBuf};

use abide_private::write_private;
use serde::Serialize;

use crate::error::{Action, StartError};

pub(crate) struct AddressFile(PathBuf);

/// The content of the file.
#[derive(Serialize)]
struct ServedAddress<'a> {
    url: &'a str,
    pid: u32,
    config_digest: &'a str,
}

impl AddressFile {
    pub(crate) fn write(home: &Path, url: &str, config_digest: &str) -> Result<AddressFile, StartError> {
        // Commands send the home's token to the URL in this file: nobody else may write it.
        let address = ServedAddress { url, pid: std::process::id(), config_digest };
        let path = home.join("daemon.json");
        let written = serde_json::to_vec(&address).map_err(std::io::Error::from);
        let written = written.and_then(|content| write_private(&path, &content));
        written.action(|| format!("can't write {}", path.display()))?;
        Ok(AddressFile(path))
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // A file that stays names a process that is gone; readers check.
        let _left = fs::remove_file(&self.0);
    }
}
