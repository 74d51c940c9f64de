//! The home: one folder that holds everything.

use std::path::PathBuf;

use abide_ledger::{Ledger, OpenError, Options};
use anyhow::Context;

use crate::cli::HomeArgs;
use crate::output::Failed;

pub fn dir(args: &HomeArgs) -> anyhow::Result<PathBuf> {
    if let Some(home) = &args.home {
        return Ok(home.clone());
    }
    let data = std::env::var_os("XDG_DATA_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let data = data.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share")));
    let data = data.context("neither --home, $ABIDE_HOME, $XDG_DATA_HOME nor $HOME says where things are")?;
    Ok(data.join("abide"))
}

/// The ledger of a home that exists. Looking at a home must not create one.
pub fn open_existing(args: &HomeArgs, options: Options) -> anyhow::Result<Ledger> {
    let home = dir(args)?;
    if !home.join("ledger.db").exists() {
        let message = format!("{} holds no ledger; --home says where to look", home.display());
        return Err(Failed::NotFound(message).into());
    }
    open(&home, options)
}

pub fn open_or_create(args: &HomeArgs) -> anyhow::Result<Ledger> {
    let home = dir(args)?;
    std::fs::create_dir_all(&home).with_context(|| format!("can't create {}", home.display()))?;
    open(&home, Options::default())
}

#[allow(clippy::wildcard_enum_match_arm, reason = "every other failure is an error like any")]
fn open(home: &std::path::Path, options: Options) -> anyhow::Result<Ledger> {
    Ledger::open(home, options).map_err(|error| match error {
        held @ OpenError::Held { .. } => Failed::Refused(held.to_string()).into(),
        other => anyhow::Error::from(other).context(format!("can't open the ledger in {}", home.display())),
    })
}
