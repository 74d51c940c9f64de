//! `daemon.json`: the address at which this home is served. The file exists while the daemon runs.

use std::fs;
use std::path::{Path, PathBuf};

use abide_private::write_private;
use serde_json::json;

use crate::error::{Action, StartError};

pub(crate) struct AddressFile(PathBuf);

impl AddressFile {
    pub(crate) fn write(home: &Path, url: &str, config_digest: &str) -> Result<AddressFile, StartError> {
        // Commands send the home's token to the URL in this file: nobody else may write it.
        let content = json!({ "url": url, "pid": std::process::id(), "config_digest": config_digest });
        let path = home.join("daemon.json");
        write_private(&path, content.to_string().as_bytes()).action(|| format!("can't write {}", path.display()))?;
        Ok(AddressFile(path))
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // A file that stays names a process that is gone; readers check.
        let _left = fs::remove_file(&self.0);
    }
}
