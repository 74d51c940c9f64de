//! A model server that is not ours: `@copilotkit/aimock`, which the daemon's tests ask in place of the providers. It is
//! kept in the target folder, in the version and with the digest that the lock beside this crate names.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::{cargo, tools};

/// The files that npm reads.
const FILES: [&str; 2] = ["package.json", "package-lock.json"];
/// The program that the tests start with node.
const PROGRAM: &str = "node_modules/@copilotkit/aimock/dist/cli.js";

pub(crate) fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "`cargo xtask aimock` takes nothing");
    install()
}

/// Installs it where it is not there, or is another than the lock names.
pub(crate) fn install() -> Result<()> {
    tools::ensure_all(&[tools::NODE, tools::NPM])?;
    let ours = cargo::root().join("xtask/aimock");
    let folder = folder();
    let same =
        |name: &str| matches!((fs::read(ours.join(name)), fs::read(folder.join(name))), (Ok(a), Ok(b)) if a == b);
    if FILES.iter().all(|name| same(name)) && folder.join(PROGRAM).is_file() {
        return Ok(());
    }
    fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    let lock = FILES[1];
    // The lock goes last: without it nothing counts as installed.
    let _absent = fs::remove_file(folder.join(lock));
    fs::copy(ours.join(FILES[0]), folder.join(FILES[0]))?;
    fs::copy(ours.join(lock), folder.join(lock))?;
    let place = folder.to_str().context("the target folder's path is not UTF-8")?;
    let installed = cargo::run("npm", &["ci", "--prefix", place, "--ignore-scripts", "--no-audit", "--no-fund"]);
    if installed.is_err() {
        fs::remove_file(folder.join(lock))?;
    }
    installed
}

fn folder() -> PathBuf {
    cargo::target().join("aimock")
}
