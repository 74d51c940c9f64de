//! `cargo xtask mutants [SEED]`: how many of a random hundred mutants of the kernel its own tests catch.
//!
//! cargo-mutants lists the mutants, the seed draws among them, and they are applied and tested here, one after another.
//! cargo-mutants could do that itself, but its filters let every deleted struct field through, so that it can't be given
//! a sample; and it copies the sources to a new folder each time, where the kernel is built from nothing.
//!
//! The working tree is never changed: mutants are written to a copy of it below `target`.

mod copy;
mod list;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};

use self::list::Mutant;
use crate::{cargo, tools};

/// Mutants with a verdict that one sample has.
const SAMPLE: usize = 100;
/// How many of them the tests have to catch.
const CAUGHT_MIN: usize = 95;
/// Memory of one process, in KiB: a mutant may be a loop that collects for ever.
const MEMORY_KIB: &str = "12000000";

/// The kernel's tests by the profile that stops at the first failure.
const TEST: &str = "exec cargo nextest run -p abide-kernel --profile mutants --status-level none";

enum Verdict {
    Caught,
    Missed,
    /// It does not compile, so it says nothing about the tests, and another is drawn.
    Unviable,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let seed = match args {
        [] => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
        [seed] => seed.parse().with_context(|| format!("{seed:?} is no seed; a seed is a whole number"))?,
        _ => bail!("`cargo xtask mutants` takes a seed and nothing else"),
    };
    tools::ensure_all(&[tools::NEXTEST, tools::MUTANTS, tools::GIT])?;
    let tree = Tree { folder: cargo::target().join("mutants/tree"), build: cargo::target().join("mutants/build") };
    copy::copy(&tree.folder)?;
    let mut mutants = list::list(&tree.folder)?;
    println!("{} mutants, seed {seed}; the tests without one first", mutants.len());
    let started = Instant::now();
    ensure!(
        matches!(tree.test()?, Verdict::Missed),
        "the kernel's tests fail without a mutant: `cargo nextest run -p abide-kernel` says why"
    );
    println!("they pass ({} s)", started.elapsed().as_secs());

    list::shuffle(&mut mutants, seed);
    let (mut caught, mut missed, mut unviable) = (0, Vec::new(), 0);
    for mutant in &mutants {
        if caught + missed.len() == SAMPLE {
            break;
        }
        let verdict = tree.try_mutant(mutant)?;
        let word = match verdict {
            Verdict::Caught => "caught",
            Verdict::Missed => "MISSED",
            Verdict::Unviable => "unviable",
        };
        println!("{word:8} {}", mutant.name);
        match verdict {
            Verdict::Caught => caught += 1,
            Verdict::Missed => missed.push(mutant),
            Verdict::Unviable => unviable += 1,
        }
    }

    println!("\nseed {seed}: {caught} of {} caught; {unviable} more do not compile", caught + missed.len());
    for mutant in &missed {
        println!("\nmissed {}\n{}", mutant.name, mutant.diff);
    }
    ensure!(
        caught >= CAUGHT_MIN,
        "{CAUGHT_MIN} of {SAMPLE} are to be caught: write tests that fail with the mutants above (docs/testing.md)"
    );
    Ok(())
}

/// A copy of the sources, and where it is built.
struct Tree {
    folder: PathBuf,
    build: PathBuf,
}

impl Tree {
    fn try_mutant(&self, mutant: &Mutant) -> Result<Verdict> {
        let file = self.folder.join(&mutant.file);
        let text = std::fs::read_to_string(&file).with_context(|| format!("{} can't be read", file.display()))?;
        std::fs::write(&file, mutant.apply(&text)?)?;
        let verdict = self.test();
        std::fs::write(&file, text)?;
        verdict
    }

    fn test(&self) -> Result<Verdict> {
        let script = format!("ulimit -v {MEMORY_KIB}; {TEST}");
        let status = command(&self.folder, "sh", &["-c", &script])
            .env("CARGO_TARGET_DIR", &self.build)
            // The input that a property failed with is not read, so it need not be shrunk.
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .context("`sh` does not start")?;
        // The exit codes of nextest.
        Ok(match status.code() {
            Some(0) => Verdict::Missed,
            Some(100) => Verdict::Caught,
            Some(101) => Verdict::Unviable,
            _ => bail!("`{TEST}` ended with {status}"),
        })
    }
}

fn command(folder: &Path, program: &str, args: &[&str]) -> Command {
    let mut command = cargo::command(program, args);
    command.current_dir(folder);
    command
}
