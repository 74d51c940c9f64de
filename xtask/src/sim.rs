//! `cargo xtask sim`: the simulator in release, its flags passed on. It prints its own summary, and on a failure the seed
//! to repeat and a shortened history.

use anyhow::{Result, ensure};

use crate::cargo;

/// Release, because what counts is how many seeds fit into the time.
const COMMAND: [&str; 7] = ["run", "--release", "-p", "abide-sim", "--bin", "abide-sim", "--"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let says = |flag: &str| args.iter().any(|arg| arg == flag || arg.starts_with(&format!("{flag}=")));
    ensure!(
        says("--seeds") || says("--seed") || says("--help"),
        "say which seeds: `cargo xtask sim --seeds 2500`, or `--seed S` to repeat one"
    );
    let mut command = COMMAND.to_vec();
    command.extend(args.iter().map(String::as_str));
    cargo::run("cargo", &command)
}
