//! `cargo xtask test`: the whole test command. The same for a person and for CI.
//!
//! Steps stand in the order in which they are cheap to fail. Each crate is compiled once: nextest, the doc tests, the daemon
//! of the API's check and the simulator share a profile and a set of features, and clippy and rustdoc share the metadata of
//! the dependencies. What ships is compiled with other features, and is type-checked with these. docs/testing.md says what
//! each step costs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::{aimock, api, cargo, shipped, tidy, tools};

/// At least as many as the tests of the planted bugs may use, so that what they show holds for this run.
const SEEDS: &str = "2500";

const DOCUMENTATION: &[&str] = &["doc", "--workspace", "--no-deps", "--quiet"];

const DOC_TESTS: &[&str] = &["test", "--doc", "--workspace", "--all-features"];

struct Step {
    name: &'static str,
    action: Action,
    /// The next thing to do when it fails.
    then: &'static str,
}

enum Action {
    Command(&'static [&'static str]),
    Tools,
    DocTests,
    Api,
    Simulator,
    Shipped,
    Tidy,
    Documentation,
}

const STEPS: &[Step] = &[
    Step {
        name: "tools",
        action: Action::Tools,
        then: "install what is named above, then run `cargo xtask test` again",
    },
    Step {
        name: "what ships",
        action: Action::Shipped,
        then: "bugs are planted in tests only: no default feature and no normal dependency may turn `planted` on",
    },
    Step {
        name: "tidy",
        action: Action::Tidy,
        then: "do what each finding says; `cargo xtask tidy` repeats it (docs/testing.md)",
    },
    Step { name: "format", action: Action::Command(&["fmt", "--all", "--check"]), then: "run `cargo fmt --all`" },
    Step {
        name: "clippy",
        action: Action::Command(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]),
        then: "fix what clippy names; an `allow` carries a reason",
    },
    Step {
        name: "default features",
        action: Action::Command(&["check", "--workspace"]),
        then: "code that tests use stands behind `planted` or `#[cfg(test)]`, and nothing else needs either",
    },
    Step {
        name: "documentation",
        action: Action::Documentation,
        then: "correct the links and marks that rustdoc names; `cargo doc --workspace --no-deps` repeats it",
    },
    Step {
        name: "tests",
        action: Action::Command(&["nextest", "run", "--workspace", "--all-features"]),
        then: "repeat one with `cargo nextest run --workspace --all-features NAME`",
    },
    Step {
        name: "doc tests",
        action: Action::DocTests,
        then: "repeat one with `cargo test --doc --all-features -p CRATE NAME`",
    },
    Step {
        name: "api",
        action: Action::Api,
        then: "the curl line above repeats the request; mend the server, or what `crates/api` says of it",
    },
    Step {
        name: "simulator",
        action: Action::Simulator,
        then: "repeat it with `cargo xtask sim --seed S`, S being the seed above, or with `target/debug/abide-sim` if the \
               release build does not fail; keep the seed as a test",
    },
];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut fast = false;
    for arg in args {
        match arg.as_str() {
            "--fast" => fast = true,
            unknown => bail!("`cargo xtask test` has no {unknown}; it has --fast, which leaves the simulator out"),
        }
    }

    let start = Instant::now();
    let mut summary = Vec::new();
    for (index, step) in STEPS.iter().enumerate() {
        let place = format!("[{}/{}] {}", index + 1, STEPS.len(), step.name);
        if fast && matches!(step.action, Action::Simulator) {
            println!("{place}: left out (--fast)");
            summary.push(format!("{} left out", step.name));
            continue;
        }
        println!("{place}: {}", describe(&step.action));
        let began = Instant::now();
        let done = perform(&step.action);
        let took = seconds(began.elapsed());
        if let Err(error) = done {
            bail!("{} failed after {took}: {error:#}\nnext: {}", step.name, step.then);
        }
        println!("{place}: done in {took}\n");
        summary.push(format!("{} {took}", step.name));
    }
    println!("cargo xtask test: all steps succeeded in {} ({})", seconds(start.elapsed()), summary.join(", "));
    Ok(())
}

fn perform(action: &Action) -> Result<()> {
    match action {
        Action::Command(args) => cargo::run("cargo", args),
        Action::Tools => {
            let [format, lints] = [tools::RUSTFMT, tools::CLIPPY];
            tools::ensure_all(&[format, lints, tools::NEXTEST, tools::GIT, tools::BUBBLEWRAP, tools::FAKETIME])?;
            tools::ensure_all(&[tools::SSH, tools::SSHD, tools::OPENSSL, tools::PYTHON_VENV])?;
            aimock::install()
        }
        // nextest does not run them. Their output is shown only on failure: most crates have none, and a line that says
        // "0 passed" for each would bury nextest's count.
        Action::DocTests => cargo::read("cargo", DOC_TESTS).map(drop),
        Action::Api => api::check(&cargo::test_program("abide")?),
        Action::Simulator => {
            let program = cargo::test_program("abide-sim")?;
            cargo::run(program.to_str().context("the target folder's path is not UTF-8")?, &["--seeds", SEEDS])
        }
        Action::Shipped => shipped::check(),
        Action::Tidy => tidy::check(&crate::command_tree()),
        Action::Documentation => document(),
    }
}

fn describe(action: &Action) -> String {
    match action {
        Action::Command(args) => cargo::line("cargo", args),
        Action::Tools => {
            "rustfmt, clippy, cargo-nextest, git, bubblewrap, node, npm, aimock are here, or are installed".to_owned()
        }
        Action::DocTests => cargo::line("cargo", DOC_TESTS),
        Action::Api => "schemathesis over /openapi.json of a live `abide up`".to_owned(),
        Action::Simulator => format!("abide-sim --seeds {SEEDS}, as the tests were built"),
        Action::Shipped => "no planted bug in the `abide` that ships".to_owned(),
        Action::Tidy => "cargo xtask tidy".to_owned(),
        Action::Documentation => format!("{}, without warnings", cargo::line("cargo", DOCUMENTATION)),
    }
}

/// rustdoc, with its warnings as errors. The flags are rustdoc's alone, so nothing that rustc made is made anew.
fn document() -> Result<()> {
    let status = cargo::command("cargo", DOCUMENTATION).env("RUSTDOCFLAGS", "-D warnings").status();
    let status = status.context("`cargo` does not start")?;
    ensure!(status.success(), "`{}` failed ({status})", cargo::line("cargo", DOCUMENTATION));
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
