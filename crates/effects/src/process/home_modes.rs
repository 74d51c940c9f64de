//! Modes of the runtime's own home, for a sandbox that can't protect them: Landlock has no rule about modes, and a filter
//! can't read the path that a call names. A command that runs as the daemon's user could open the token to every user
//! of the machine. So a supervisor notes the modes before its command starts, and sets them back while it runs and when
//! it has ended. It never gives others a right that they lack when it looks.

use std::collections::HashMap;
use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::limits;

const OWNER: u32 = 0o700;
const ALL: u32 = 0o7777;

/// The modes of the home and of the files and folders in it, as they were. Folders are closed to others, so whatever
/// lies below them needs no look.
#[derive(Debug)]
pub(super) struct HomeModes {
    home: PathBuf,
    before: HashMap<PathBuf, u32>,
}

impl HomeModes {
    pub(super) fn record(home: PathBuf) -> HomeModes {
        let before = list_entries(&home)
            .filter_map(|path| read_metadata(&path).map(|found| (path, permission_bits(&found))))
            .collect();
        HomeModes { home, before }
    }

    pub(super) fn restore(&self) {
        for path in list_entries(&self.home) {
            let Some(found) = read_metadata(&path) else { continue };
            let now = permission_bits(&found);
            // A file that the daemon made since is private.
            let before = self.before.get(&path).copied().unwrap_or(now & OWNER);
            let wanted = (now | before) & OWNER | now & before & !OWNER;
            if wanted != now {
                // One that can't be changed belongs to another user, and no command could change it either.
                let _theirs = fs::set_permissions(&path, Permissions::from_mode(wanted));
            }
        }
    }
}

/// Links have no modes of their own, and lead to files that are not the home's.
fn read_metadata(path: &Path) -> Option<Metadata> {
    path.symlink_metadata().ok().filter(|found| !found.is_symlink())
}

fn permission_bits(found: &Metadata) -> u32 {
    found.mode() & ALL
}

fn list_entries(home: &Path) -> impl Iterator<Item = PathBuf> {
    // The home first: closed, it covers everything in it.
    let inside = fs::read_dir(home).into_iter().flatten().flatten().map(|entry| entry.path());
    std::iter::once(home.to_path_buf()).chain(inside).take(limits::HOME_ENTRIES)
}
