//! `cargo xtask soak [MINUTES]`: the soak of the test command, for an hour and with the release build.

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, tools};

const MINUTES: u64 = 60;

const TEST: [&str; 8] = ["test", "-p", "abide", "--test", "daemon", "--", "soak::", "--nocapture"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let minutes = match args {
        [] => MINUTES,
        [minutes] => minutes.parse().with_context(|| format!("{minutes:?} is no number of minutes"))?,
        _ => bail!("`cargo xtask soak` takes the number of minutes and nothing else"),
    };
    tools::ensure_all(&[tools::FAKETIME, tools::BUBBLEWRAP])?;
    cargo::run("cargo", &["build", "--release", "-p", "abide"])?;
    let mut test = cargo::command("cargo", &TEST);
    test.env("ABIDE_SOAK_SECONDS", (minutes * 60).to_string());
    test.env("ABIDE_TEST_BINARY", cargo::target().join("release/abide"));
    let status = test.status().context("`cargo` does not start")?;
    ensure!(status.success(), "the soak failed ({status})");
    Ok(())
}
