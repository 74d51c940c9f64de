//! Fixture folders on disk.

use std::path::Path;

use abide_kernel::fixture::{self, Files, Fixture, LEDGER_FILES};
use anyhow::Context;

use crate::output::Failed;

/// Reads the records of a folder.
pub fn load(dir: &Path) -> anyhow::Result<Fixture> {
    if !dir.is_dir() {
        return Err(Failed::NotFound(format!("{} is not a folder", dir.display())).into());
    }
    let mut files = Files::new();
    let names = LEDGER_FILES.iter().map(|name| format!("ledger/{name}.jsonl")).chain(["agent.json".to_owned()]);
    for name in names {
        if let Some(bytes) = read_if_there(&dir.join(&name))? {
            files.insert(name, bytes);
        }
    }
    if files.is_empty() {
        let message = format!("{} holds no records: no agent.json and no ledger/*.jsonl", dir.display());
        return Err(Failed::NotFound(message).into());
    }
    fixture::load(&files).with_context(|| format!("{} is not a fixture that can be read", dir.display()))
}

pub fn read_if_there(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
    }
}

/// Writes a folder that does not exist yet, or is empty: nothing is ever overwritten.
pub fn save(dir: &Path, files: &Files) -> anyhow::Result<()> {
    let taken = dir.exists() && std::fs::read_dir(dir).map(|mut entries| entries.next().is_some()).unwrap_or(true);
    if taken {
        let message = format!("{} exists and is not an empty folder; choose another", dir.display());
        return Err(Failed::Refused(message).into());
    }
    std::fs::create_dir_all(dir.join("ledger")).with_context(|| format!("can't create {}", dir.display()))?;
    for (name, bytes) in files {
        let path = dir.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}
