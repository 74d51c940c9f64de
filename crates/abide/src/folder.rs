//! Folders on disk: their names, and those that hold a fixture.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use abide_kernel::fixture::{self, Files, Fixture, is_ledger_file};
use abide_private::read_regular;
use anyhow::{Context, anyhow};

use crate::output::Failed;

/// A path as the daemon can use it, which has another folder than its caller. One folder has one name where it exists.
pub fn absolute(path: &Path) -> anyhow::Result<String> {
    let found = path.canonicalize().or_else(|_| std::path::absolute(path));
    let found = found.with_context(|| format!("can't find {}", path.display()))?;
    found.to_str().map(str::to_owned).with_context(|| format!("{} is not UTF-8", found.display()))
}

/// Reads the records of a folder.
pub fn load(dir: &Path) -> anyhow::Result<Fixture> {
    match fs::metadata(dir) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            return Err(anyhow!(
                "{} is not a folder; name the folder that holds agent.json and ledger/",
                dir.display()
            ));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Failed::NotFound(format!("{} does not exist", dir.display())).into());
        }
        Err(error) => return Err(error).with_context(|| format!("can't look at {}", dir.display())),
    }
    // Every file is optional, but a folder with none of them was hardly meant.
    if !["agent.json", "expected.json", "ledger"].iter().any(|name| dir.join(name).exists()) {
        let message = format!("{} holds no records: no agent.json and no ledger/*.jsonl", dir.display());
        return Err(Failed::NotFound(message).into());
    }
    let mut files = Files::new();
    for name in ledger_files(&dir.join("ledger"))? {
        // Foreign files are refused by their names, whatever their content.
        let bytes = if is_ledger_file(&name) { read_if_there(&dir.join(&name))? } else { Some(Vec::new()) };
        files.extend(bytes.map(|bytes| (name, bytes)));
    }
    if let Some(bytes) = read_if_there(&dir.join("agent.json"))? {
        files.insert("agent.json".to_owned(), bytes);
    }
    // An error begins with the name of its file.
    fixture::load(&files).map_err(|wrong| anyhow!("{}", dir.join(wrong.to_string()).display()))
}

/// The names in the folder of ledger files. Only hidden files are ignored.
fn ledger_files(dir: &Path) -> anyhow::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("can't look at {}", dir.display())),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("can't look at {}", dir.display()))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| !name.starts_with('.'));
    Ok(names.into_iter().map(|name| format!("ledger/{name}")).collect())
}

/// Only a regular file is read: a pipe could keep its reader for ever.
pub fn read_if_there(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match read_regular(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
    }
}

/// Writes a folder that does not exist yet, or is empty: nothing is ever overwritten, and what can't be written whole
/// is taken away again, because half of an agent's records would read as another agent.
#[expect(clippy::disallowed_methods, reason = "the folder is the user's, who named it")]
pub fn save(dir: &Path, files: &Files) -> anyhow::Result<()> {
    let existed = dir.exists();
    let taken = existed && fs::read_dir(dir).map(|mut entries| entries.next().is_some()).unwrap_or(true);
    if taken {
        let message = format!("{} exists and is not an empty folder; choose another", dir.display());
        return Err(Failed::Refused(message).into());
    }
    let ledger = dir.join("ledger");
    fs::create_dir_all(&ledger).with_context(|| format!("can't create {}", dir.display()))?;
    let mut written: Vec<PathBuf> = Vec::new();
    for (name, bytes) in files {
        let path = dir.join(name);
        written.push(path.clone());
        if let Err(error) = fs::write(&path, bytes) {
            // Files that can't be removed either are left; the error names the folder.
            written.iter().for_each(|path| drop(fs::remove_file(path)));
            drop(fs::remove_dir(&ledger));
            if !existed {
                drop(fs::remove_dir(dir));
            }
            return Err(error).with_context(|| format!("can't write {}", path.display()));
        }
    }
    Ok(())
}
