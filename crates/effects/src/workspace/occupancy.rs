//! Who writes in a folder. One agent at a time, and nobody inside or around a folder that another is in. The kernel's
//! file locks are the truth: a daemon that dies lets go of everything, and what a file says counts only while it is held.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use abide_private::{Existing, open_private, private_folder};
use serde::{Deserialize, Serialize};

use super::Workspace;
use crate::transient;

/// Where in a home the locks are.
const OCCUPANCY: &str = "occupancy";
/// Held for the moment in which folders are compared and taken, so that two can't take one inside the other at once.
const DOOR: &str = ".door";

/// The right to write in a folder. Dropping it lets go; releasing it says whether that went well.
#[derive(Debug)]
pub struct Occupancy {
    pub path: PathBuf,
    pub agent: String,
    file: File,
    lock: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct Occupant {
    path: PathBuf,
    agent: String,
}

/// Takes the workspace for `agent`. Refused with the name of who is in it, inside it or around it.
pub fn occupy(workspace: &Workspace, home: &Path, agent: &str) -> Result<Occupancy, Refusal> {
    let folder = home.join(OCCUPANCY);
    let failed = |error: io::Error| io_refusal(&folder, &error);
    private_folder(&folder).map_err(failed)?;
    let _door = door(&folder).map_err(failed)?;
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let lock = entry.map_err(failed)?.path();
        if lock.file_name().is_some_and(|name| name == DOOR) {
            continue;
        }
        if let Some(occupant) = occupant(&lock).map_err(failed)? {
            apart(workspace, agent, &occupant)?;
        }
    }
    let lock = folder.join(digest(&workspace.path));
    let mut file = open(&lock).map_err(failed)?;
    // Nobody can have come in between: we hold the door.
    file.try_lock().map_err(|error| failed(error.into()))?;
    let occupant = Occupant { path: workspace.path.clone(), agent: agent.into() };
    file.set_len(0).map_err(failed)?;
    serde_json::to_writer(&mut file, &occupant).map_err(|error| failed(error.into()))?;
    file.flush().map_err(failed)?;
    Ok(Occupancy { path: occupant.path, agent: occupant.agent, file, lock })
}

impl Occupancy {
    /// Lets go. On an error the folder may count as occupied until the daemon ends.
    pub fn release(self) -> Result<(), Refusal> {
        let failed = |error: io::Error| io_refusal(&self.lock, &error);
        let folder = self.lock.parent().unwrap_or(Path::new("/"));
        let _door = door(folder).map_err(failed)?;
        // In this order, and with the door shut: whoever comes next makes a file of their own.
        match fs::remove_file(&self.lock) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        self.file.unlock().map_err(failed)
    }
}

impl Drop for Occupancy {
    fn drop(&mut self) {
        // Said aloud, because a process that is just being started has the file open for a moment as well. Whoever wants
        // to know about a failure releases; closing the file is all that is left to do here.
        let _ = self.file.unlock();
    }
}

fn apart(workspace: &Workspace, agent: &str, occupant: &Occupant) -> Result<(), Refusal> {
    let (ours, theirs) = (&workspace.path, &occupant.path);
    let who = &occupant.agent;
    let shown = ours.display();
    if who == agent {
        // It may work in a folder and inside of it; but one right is one record.
        if ours != theirs {
            return Ok(());
        }
        let message = format!("{who} itself is writing in {shown} already");
        return Err(Refusal::new("occupied", message, "use the workspace that it has, or release that first"));
    }
    let place = if ours == theirs {
        format!("{shown}")
    } else if ours.starts_with(theirs) {
        format!("{}, around {shown}", theirs.display())
    } else if theirs.starts_with(ours) {
        format!("{}, inside {shown}", theirs.display())
    } else {
        return Ok(());
    };
    Err(Refusal::new("occupied", format!("{who} is writing in {place}"), format!("use mode worktree, or stop {who}")))
}

/// Who holds a lock. A file that nobody holds was left by a daemon that died, and is cleared away.
fn occupant(lock: &Path) -> io::Result<Option<Occupant>> {
    let mut file = match File::open(lock) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => fs::remove_file(lock).map(|()| None),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            file.rewind()?;
            file.read_to_string(&mut text)?;
            // Whoever holds it wrote it before they opened the door.
            serde_json::from_str(&text).map(Some).map_err(io::Error::from)
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn door(folder: &Path) -> io::Result<File> {
    let door = open(&folder.join(DOOR))?;
    door.lock()?;
    Ok(door)
}

fn open(path: &Path) -> io::Result<File> {
    open_private(path, Existing::Keep)
}

fn digest(path: &Path) -> String {
    blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex().to_string()
}

fn io_refusal(path: &Path, error: &io::Error) -> Refusal {
    let message = format!("{} could not be read or written: {error}", path.display());
    Refusal::new("io", message, transient::hint(error, "see that there is room and the right to write in the home"))
}
