//! Folders that no model chooses as a workspace: those of the system, and the whole home folder of the daemon's user.

use std::path::Path;

use abide_kernel::refusal::{ErrorCode, Refusal};

/// Folders of the system: a mistake there breaks the machine, and a program put there runs as somebody else.
const SYSTEM: [&str; 16] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/lost+found",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
];
/// Below a folder of the system, and none.
const NOT_SYSTEM: [&str; 1] = ["/var/tmp"];

/// The folder of the system that a real path lies in. `person` is the home folder of the daemon's user, which may itself
/// lie in one.
#[must_use]
pub fn system_folder(path: &Path, person: &Path) -> Option<&'static Path> {
    let system = SYSTEM.map(Path::new).into_iter().find(|system| path.starts_with(system));
    let mut not_system = NOT_SYSTEM.map(Path::new).into_iter().chain([person]);
    system.filter(|_| !not_system.any(|other| path.starts_with(other)))
}

/// Refuses a folder that holds the whole home folder of the daemon's user.
pub fn apart_from_person(folder: &Path, person: &Path) -> Result<(), Refusal> {
    if !person.starts_with(folder) || folder.parent().is_none() {
        return Ok(());
    }
    let message =
        format!("{} holds the whole home folder of the daemon's user, with its keys and settings", folder.display());
    Err(Refusal::new(ErrorCode::WholeHome, message).fill("home", person.display()))
}

/// Refuses a folder that no model chooses, whatever is attached to its agent.
pub(crate) fn apart_from_reserved(folder: &Path, person: &Path) -> Result<(), Refusal> {
    apart_from_person(folder, person)?;
    match system_folder(folder, person) {
        None => Ok(()),
        Some(_) => {
            let message = format!("{} is a folder of the system", folder.display());
            Err(Refusal::new(ErrorCode::SystemFolder, message)
                .with_hint("choose another folder; only an operator has agents work there"))
        }
    }
}
