//! The home: one folder that holds everything.

use std::path::{Path, PathBuf};

use abide_engine::PROGRAM;
use abide_ledger::{Ledger, OpenError, Options};
use abide_private::private_if_new;
use anyhow::Context;

use crate::cli::PlaceArgs;
use crate::output::Failed;

pub fn dir(args: &PlaceArgs) -> anyhow::Result<PathBuf> {
    // A variable that is set to nothing counts as not set.
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(home) = args.home.clone().or_else(|| variable("ABIDE_HOME")) {
        return Ok(home);
    }
    // The XDG specification has a relative path ignored.
    let data = variable("XDG_DATA_HOME").filter(|dir| dir.is_absolute());
    let data = data.or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    let data = data.context("neither --home, $ABIDE_HOME, $XDG_DATA_HOME nor $HOME says where things are")?;
    Ok(data.join("abide"))
}

/// Makes the folder if it is not there. What is in it is for nobody else on the machine.
pub fn create(home: &Path) -> std::io::Result<()> {
    private_if_new(home)
}

/// The ledger of a home that exists. Looking at a home must not create one.
pub fn open_existing(args: &PlaceArgs, options: Options) -> anyhow::Result<Ledger> {
    let home = dir(args)?;
    let database = home.join("ledger.db");
    let there = database.try_exists();
    if home.is_file() || !there.with_context(|| format!("can't look at {}", database.display()))? {
        let what = match (home.is_dir(), home.exists()) {
            (true, _) => "holds no ledger",
            (false, true) => "is not a folder",
            (false, false) => "does not exist",
        };
        let message = format!("{} {what}; --home DIR or $ABIDE_HOME says where the ledger is", home.display());
        return Err(Failed::NotFound(message).into());
    }
    match open(&home, options.clone()) {
        // A read-only ledger can't upgrade the home, so it is opened for writing once. No other process holds it then.
        Err(error) if is_outdated(&error) => {
            drop(open(&home, Options::default())?);
            open(&home, options)
        }
        opened => opened,
    }
}

/// Whether the home could not be opened because it has yet to be upgraded.
pub fn is_outdated(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(OpenError::Outdated { .. }))
}

pub fn open_or_create(args: &PlaceArgs) -> anyhow::Result<Ledger> {
    open(&dir(args)?, Options::default())
}

/// The ledger of a home, by this program. Only a home that is opened to be written is upgraded.
#[allow(clippy::wildcard_enum_match_arm, reason = "every other failure is an error like any")]
pub fn open(home: &Path, options: Options) -> anyhow::Result<Ledger> {
    Ledger::open(home, options.by(PROGRAM)).map_err(|error| match error {
        refused @ (OpenError::Held { .. }
        | OpenError::HeldByUnknown { .. }
        | OpenError::Newer { .. }
        | OpenError::NewerFacts { .. }
        | OpenError::TooOld { .. }) => Failed::Refused(refused.to_string()).into(),
        ruined @ (OpenError::NotALedger { .. } | OpenError::Short { .. } | OpenError::Empty { .. }) => anyhow::anyhow!(
            "{ruined}; where there is an export of it, `abide --home NEW ledger import FILE` makes a new home of that"
        ),
        other => {
            let room = if has_room(home) { "" } else { ": no room is left on its disk" };
            anyhow::Error::from(other).context(format!("can't open the ledger in {}{room}", home.display()))
        }
    })
}

/// Less free than this, and a ledger may not open: its first files take about as much.
const ROOM_LEAST_BYTES: u64 = 256 << 10;

/// Whether the disk of a home takes anything more, as far as that can be seen.
pub fn has_room(home: &Path) -> bool {
    let home = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
    let folder = home.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let free = rustix::fs::statvfs(folder).map(|found| found.f_bavail.saturating_mul(found.f_frsize));
    !free.is_ok_and(|free| free < ROOM_LEAST_BYTES)
}
