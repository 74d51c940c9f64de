//! Git directories that a command may damage while it runs, recorded in the home until it has ended. A daemon that was
//! killed with the command puts them back when it starts again. The record of one that could not be put back stays: no
//! command starts in its folder before it is.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::git_dir::RecordedGitDir;
use crate::limits;

/// Where in a home they are recorded, one file for each command.
const FOLDER: &str = "heads";
/// How the name of a record begins whose git directories could not be put back.
const UNSETTLED: &str = "unsettled-";

/// Of one command.
#[derive(Debug, Default)]
pub(super) struct GitDirRecords {
    label: String,
    git_dirs: Vec<RecordedGitDir>,
    file: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    label: String,
    #[serde(rename = "heads")]
    git_dirs: Vec<RecordedGitDir>,
    /// Why they could not be put back, for a person.
    #[serde(default)]
    problems: Vec<String>,
}

impl GitDirRecords {
    /// Records them for the next life of the home, if there are any.
    pub(super) fn record(
        home: &Path,
        life: &str,
        label: &str,
        git_dirs: &[RecordedGitDir],
    ) -> io::Result<GitDirRecords> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if git_dirs.is_empty() {
            return Ok(GitDirRecords::default());
        }
        let record = Record { label: label.to_owned(), git_dirs: git_dirs.to_vec(), problems: Vec::new() };
        // A path that is no UTF-8 can't be written as JSON. It is restored while the daemon lives.
        let text = serde_json::to_vec(&record).ok();
        let Record { label, git_dirs, .. } = record;
        let Some(text) = text else { return Ok(GitDirRecords { label, git_dirs, file: None }) };
        let folder = home.join(FOLDER);
        abide_private::private_folder(&folder)?;
        let file = folder.join(format!("{life}-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        abide_private::private_file(&file)?.write_all(&text)?;
        Ok(GitDirRecords { label, git_dirs, file: Some(file) })
    }

    /// Puts them back, and says what was done.
    pub(super) fn restore(&self) -> Vec<String> {
        let (said, left) = restore(&self.label, &self.git_dirs);
        if let (Some(left), Some(file)) = (left, &self.file) {
            left.keep_unsettled(file);
        }
        said
    }
}

impl Record {
    /// Keeps it in the place of the record of a command that has ended, for [`restore_unsettled`].
    fn keep_unsettled(&self, file: &Path) {
        let Some((name, text)) = file.file_name().zip(serde_json::to_vec(self).ok()) else { return };
        let name = name.to_string_lossy();
        let kept = file.with_file_name(format!("{UNSETTLED}{}", name.strip_prefix(UNSETTLED).unwrap_or(&name)));
        // Where the home is full there is the evidence of the command.
        let _full = abide_private::private_file(&kept).and_then(|mut kept| kept.write_all(&text));
    }
}

/// A command can damage as many as it finds: all are restored, and some are named. Also returns those that could not be.
fn restore(label: &str, git_dirs: &[RecordedGitDir]) -> (Vec<String>, Option<Record>) {
    let (mut said, mut left, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for git_dir in git_dirs {
        let restored = git_dir.restore();
        said.extend(restored.said);
        left.extend((!restored.problems.is_empty()).then(|| git_dir.clone()));
        problems.extend(restored.problems);
    }
    let bounded = |lines: &mut Vec<String>| {
        let more = lines.len().saturating_sub(limits::EVIDENCE_NAMES);
        lines.truncate(limits::EVIDENCE_NAMES);
        lines.extend((more > 0).then(|| format!("git_dir_restored: {more} more")));
    };
    bounded(&mut said);
    bounded(&mut problems);
    let left = (!left.is_empty()).then(|| Record { label: label.to_owned(), git_dirs: left, problems });
    (said, left)
}

impl Drop for GitDirRecords {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _gone = fs::remove_file(file);
        }
    }
}

/// Restores those of commands that ran in earlier lives of a home, and says what was done, by the label of each command.
pub(super) fn restore_left(home: &Path, life: &str) -> Vec<(String, Vec<String>)> {
    let mut done = Vec::new();
    for (file, record) in records(home) {
        if !file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(life)) {
            done.push((record.label.clone(), put_back(&file, &record)));
        }
    }
    // A record that was cut off while it was written: its command never began.
    for entry in fs::read_dir(home.join(FOLDER)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(life) && !name.starts_with(UNSETTLED) {
            let _gone = fs::remove_file(entry.path());
        }
    }
    done
}

fn put_back(file: &Path, record: &Record) -> Vec<String> {
    let (said, left) = restore(&record.label, &record.git_dirs);
    let _gone = fs::remove_file(file);
    if let Some(left) = left {
        left.keep_unsettled(file);
    }
    said
}

/// Tries once more to put back what could not be put back in a folder. Returns the problems that are left.
pub(crate) fn restore_unsettled(home: &Path, folder: &Path) -> Vec<String> {
    let concerns = |git_dir: &RecordedGitDir| git_dir.root.starts_with(folder) || folder.starts_with(&git_dir.root);
    for (file, record) in unsettled(home) {
        if record.git_dirs.iter().any(concerns) {
            put_back(&file, &record);
        }
    }
    let left = unsettled(home).filter(|(_, record)| record.git_dirs.iter().any(concerns));
    left.flat_map(|(_, record)| record.problems).collect()
}

/// The git directories of the user's that commands changed, and that could not be put back: a sentence for each.
#[must_use]
pub fn unsettled_git_dirs(home: &Path) -> Vec<String> {
    unsettled(home).flat_map(|(_, record)| record.problems).collect()
}

fn unsettled(home: &Path) -> impl Iterator<Item = (PathBuf, Record)> {
    let is_unsettled = |file: &Path| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(UNSETTLED));
    records(home).filter(move |(file, _)| is_unsettled(file))
}

fn records(home: &Path) -> impl Iterator<Item = (PathBuf, Record)> {
    let entries = fs::read_dir(home.join(FOLDER)).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let text = fs::read(entry.path()).ok()?;
        Some((entry.path(), serde_json::from_slice(&text).ok()?))
    })
}
