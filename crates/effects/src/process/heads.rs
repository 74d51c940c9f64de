//! Git directories that a command may damage while it runs, recorded in the home until it has ended. A daemon that was
//! killed with the command puts them back when it starts again.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::git_dir::RecordedHead;
use crate::limits;

/// Where in a home they are recorded, one file for each command.
const FOLDER: &str = "heads";

/// Of one command.
#[derive(Debug, Default)]
pub(super) struct Heads {
    heads: Vec<RecordedHead>,
    file: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    label: String,
    heads: Vec<RecordedHead>,
}

impl Heads {
    /// Records them for the next life of the home, if there are any.
    pub(super) fn record(home: &Path, life: &str, label: &str, heads: &[RecordedHead]) -> io::Result<Heads> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if heads.is_empty() {
            return Ok(Heads::default());
        }
        let heads = heads.to_vec();
        // A path that is no UTF-8 can't be written as JSON. It is restored while the daemon lives.
        let Ok(text) = serde_json::to_vec(&Record { label: label.to_owned(), heads: heads.clone() }) else {
            return Ok(Heads { heads, file: None });
        };
        let folder = home.join(FOLDER);
        abide_private::private_folder(&folder)?;
        let file = folder.join(format!("{life}-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        abide_private::private_file(&file)?.write_all(&text)?;
        Ok(Heads { heads, file: Some(file) })
    }

    /// Makes them valid again, and says what was done.
    pub(super) fn restore(&self) -> Vec<String> {
        restore(&self.heads)
    }
}

/// A command can damage as many as it finds: all are restored, and some are named.
fn restore(heads: &[RecordedHead]) -> Vec<String> {
    let mut said: Vec<String> = heads.iter().flat_map(RecordedHead::restore).collect();
    let more = said.len().saturating_sub(limits::EVIDENCE_NAMES);
    said.truncate(limits::EVIDENCE_NAMES);
    said.extend((more > 0).then(|| format!("git_dir_restored: {more} more")));
    said
}

impl Drop for Heads {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _gone = fs::remove_file(file);
        }
    }
}

/// Restores those of commands that ran in earlier lives of a home, and says what was done, by the label of each command.
pub(super) fn restore_left(home: &Path, life: &str) -> Vec<(String, Vec<String>)> {
    let mut done = Vec::new();
    for entry in fs::read_dir(home.join(FOLDER)).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(life) {
            continue;
        }
        let record = fs::read(entry.path()).ok().and_then(|text| serde_json::from_slice::<Record>(&text).ok());
        if let Some(Record { label, heads }) = record {
            done.push((label, restore(&heads)));
        }
        let _gone = fs::remove_file(entry.path());
    }
    done
}
