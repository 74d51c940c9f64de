//! `abide.toml` of a workspace, and which contents of it the operator trusts.
//!
//! An agent can write in its workspace, so nothing of the file is used before the operator has trusted this very content:
//! the home records the path and the hash. The file is read once, and the bytes that were hashed are the bytes that are
//! parsed. A link, a pipe or a large file in its place is refused without being read.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use abide_ledger::Hash;
use abide_private::{private_folder, read_open_regular, write_private};
use anyhow::Context;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::settings_file::{Scope, SettingsFile};
use crate::folder;

const NAME: &str = "abide.toml";
/// Far more than a few settings take.
const MOST_BYTES: u64 = 64 << 10;

/// The state of a workspace's `abide.toml`.
#[derive(Debug)]
pub enum WorkspaceFile {
    Absent,
    /// Of a content that the operator trusts.
    Trusted(SettingsFile),
    UnusedFile(UnusedFile),
}

/// An `abide.toml` of which nothing is used. Shown as a sentence that says why, and what to do.
#[derive(Debug)]
pub struct UnusedFile {
    pub workspace: PathBuf,
    pub why: UnusedReason,
}

#[derive(Debug)]
pub enum UnusedReason {
    NotTrusted,
    /// Since it was trusted.
    Changed,
    /// It was trusted, and does not exist any more.
    Gone,
    /// It is no regular file, or too large, or not to be read.
    Refused(io::Error),
}

/// The content that the operator trusts in one workspace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrustRecord {
    pub workspace: PathBuf,
    pub hash: String,
}

impl fmt::Display for UnusedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.found(), self.fix())
    }
}

impl UnusedFile {
    pub fn found(&self) -> String {
        let path = self.workspace.join(NAME);
        let path = path.display();
        match &self.why {
            UnusedReason::NotTrusted => format!("{path} is not trusted, so nothing of it is used"),
            UnusedReason::Changed => format!("{path} changed since it was trusted, so nothing of it is used"),
            UnusedReason::Gone => format!("{path} was trusted and does not exist any more"),
            UnusedReason::Refused(error) => format!("{path} is not read: {error}"),
        }
    }

    pub fn fix(&self) -> String {
        let workspace = shell_word(&self.workspace);
        match &self.why {
            UnusedReason::NotTrusted | UnusedReason::Changed => {
                format!("look at it, then `abide config trust {workspace}`")
            }
            UnusedReason::Gone => format!("`abide config untrust {workspace}` forgets it"),
            UnusedReason::Refused(_) => "put a regular file of at most 64 KiB in its place, or remove it".to_owned(),
        }
    }
}

impl WorkspaceFile {
    /// The file of a workspace: in the folder itself, and in none above it.
    pub fn find(home: &Path, workspace: &Path) -> anyhow::Result<WorkspaceFile> {
        // Of a folder that is gone there may still be a record.
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let record = record(home, &workspace)?;
        let path = workspace.join(NAME);
        let unused = |why| Ok(WorkspaceFile::UnusedFile(UnusedFile { workspace, why }));
        match (read(&path), record) {
            (Err(error), None) if error.kind() == ErrorKind::NotFound => Ok(WorkspaceFile::Absent),
            (Err(error), Some(_)) if error.kind() == ErrorKind::NotFound => unused(UnusedReason::Gone),
            (Err(error), _) => unused(UnusedReason::Refused(error)),
            (Ok(_), None) => unused(UnusedReason::NotTrusted),
            (Ok(bytes), Some(record)) if Hash::of(&bytes).to_string() != record.hash => unused(UnusedReason::Changed),
            (Ok(bytes), Some(_)) => Ok(WorkspaceFile::Trusted(parse(path, bytes)?)),
        }
    }

    /// An explanation for a person who may wonder why the file has no effect.
    pub fn warning(&self) -> Option<String> {
        match self {
            WorkspaceFile::UnusedFile(unused) => Some(unused.to_string()),
            WorkspaceFile::Absent | WorkspaceFile::Trusted(_) => None,
        }
    }
}

/// Trusts the content that the file of a workspace has now, once `check` has nothing against it.
pub fn trust(
    home: &Path,
    workspace: &Path,
    check: impl FnOnce(&SettingsFile) -> anyhow::Result<()>,
) -> anyhow::Result<(TrustRecord, SettingsFile)> {
    let workspace = workspace.canonicalize().with_context(|| format!("can't find {}", workspace.display()))?;
    let path = workspace.join(NAME);
    let bytes = read(&path).with_context(|| format!("can't read {}", path.display()))?;
    let record = TrustRecord { workspace, hash: Hash::of(&bytes).to_string() };
    let file = parse(path, bytes)?;
    check(&file)?;
    let place = record_path(home, &record.workspace);
    let written = crate::home::create(home)
        .and_then(|()| private_folder(&folder_of_records(home)))
        .and_then(|()| write_private(&place, &serde_json::to_vec(&record)?));
    written.with_context(|| format!("can't write {}", place.display()))?;
    Ok((record, file))
}

/// Takes the trust back. Whether there was any.
pub fn untrust(home: &Path, workspace: &Path) -> anyhow::Result<(PathBuf, bool)> {
    // The folder may be gone by now.
    let workspace = PathBuf::from(folder::absolute(workspace)?);
    let place = record_path(home, &workspace);
    match fs::remove_file(&place) {
        Ok(()) => Ok((workspace, true)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok((workspace, false)),
        Err(error) => Err(error).with_context(|| format!("can't remove {}", place.display())),
    }
}

/// Every workspace whose file was trusted, with that file as it is now.
pub fn trusted_files(home: &Path) -> anyhow::Result<Vec<anyhow::Result<WorkspaceFile>>> {
    let folder = folder_of_records(home);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("can't look at {}", folder.display())),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("can't look at {}", folder.display()))?.path();
        // Others are halves of records that a crash left.
        if path.extension().is_some_and(|extension| extension == "json")
            && let Some(TrustRecord { workspace, .. }) = read_record(&path)?
        {
            found.push(workspace);
        }
    }
    found.sort_unstable();
    Ok(found.iter().map(|workspace| WorkspaceFile::find(home, workspace)).collect())
}

fn parse(path: PathBuf, bytes: Vec<u8>) -> anyhow::Result<SettingsFile> {
    let file = SettingsFile::parse(path, Scope::Workspace, bytes)?;
    file.check()?;
    Ok(file)
}

/// The file is opened without following a link and without waiting for a pipe, whatever takes its place meanwhile.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is a link, and only a regular file is read"));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    read_open_regular(&file, MOST_BYTES)
}

fn folder_of_records(home: &Path) -> PathBuf {
    home.join("trusted")
}

/// A file for each workspace, so that two commands at once do not lose each other's change.
fn record_path(home: &Path, workspace: &Path) -> PathBuf {
    let name = Hash::of(workspace.as_os_str().as_encoded_bytes());
    folder_of_records(home).join(format!("{name}.json"))
}

fn record(home: &Path, workspace: &Path) -> anyhow::Result<Option<TrustRecord>> {
    let record = read_record(&record_path(home, workspace))?;
    Ok(record.filter(|record| record.workspace == workspace))
}

fn read_record(path: &Path) -> anyhow::Result<Option<TrustRecord>> {
    let Some(bytes) = folder::read_if_there(path)? else { return Ok(None) };
    let record = serde_json::from_slice(&bytes);
    record.map(Some).with_context(|| format!("{} is not a record of trust; remove it", path.display()))
}

/// A path as a shell takes it.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
