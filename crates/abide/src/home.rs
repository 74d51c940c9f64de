//! The home: one folder that holds everything.

use std::path::{Path, PathBuf};

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
    open(&home, options)
}

pub fn open_or_create(args: &PlaceArgs) -> anyhow::Result<Ledger> {
    open(&dir(args)?, Options::default())
}

#[allow(clippy::wildcard_enum_match_arm, reason = "every other failure is an error like any")]
fn open(home: &Path, options: Options) -> anyhow::Result<Ledger> {
    Ledger::open(home, options).map_err(|error| match error {
        held @ (OpenError::Held { .. } | OpenError::HeldByUnknown { .. }) => Failed::Refused(held.to_string()).into(),
        ruined @ (OpenError::NotALedger { .. } | OpenError::Short { .. } | OpenError::Empty { .. }) => anyhow::anyhow!(
            "{ruined}; where there is an export of it, `abide --home NEW ledger import FILE` makes a new home of that"
        ),
        other => anyhow::Error::from(other).context(format!("can't open the ledger in {}", home.display())),
    })
}
