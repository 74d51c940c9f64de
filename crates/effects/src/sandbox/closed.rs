//! Files and folders of the system that other users can't read. A command of a daemon that runs as root is root as well,
//! and could read all of them; so they are hidden like secrets. An ordinary user's command can't read them anyway.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::limits;

/// Neither read nor run by others. A program that others may run but not read holds no secret.
const FOR_OTHERS: u32 = 0o005;

/// Where settings and keys of services lie. Looked at before each command: it is small, and changes.
pub(super) const SETTINGS: &[&str] = &["/etc"];
/// Programs and libraries, looked at once when the daemon starts.
pub(super) const PROGRAMS: &[&str] = &["/opt", "/usr"];

/// The closed files and folders below these folders, and whether that is all of them: there is a limit to how long
/// the search takes and how many are hidden.
#[derive(Debug, Clone, Default)]
pub(super) struct ClosedPaths {
    pub paths: Vec<PathBuf>,
    pub is_partial: bool,
}

impl ClosedPaths {
    pub(super) fn find(below: &[&str], within_ms: u64) -> ClosedPaths {
        let until = Instant::now() + Duration::from_millis(within_ms);
        let mut closed = ClosedPaths::default();
        let mut folders: Vec<PathBuf> = below.iter().map(PathBuf::from).collect();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                if closed.paths.len() >= limits::CLOSED_PATHS || Instant::now() >= until {
                    closed.is_partial = true;
                    return closed;
                }
                // Links lead to what is looked at elsewhere, or to what no command is shown.
                let Ok(found) = entry.metadata() else { continue };
                match (is_closed(&found), found.is_dir()) {
                    (true, _) => closed.paths.push(entry.path()),
                    (false, true) => folders.push(entry.path()),
                    (false, false) => {}
                }
            }
        }
        closed
    }
}

fn is_closed(found: &fs::Metadata) -> bool {
    (found.is_file() || found.is_dir()) && found.mode() & FOR_OTHERS == 0
}
