//! The project's own commands: `cargo xtask help` lists them.
//!
//! Each is a short list of ordinary commands that a person could type. Nothing here knows what a crate does inside, and
//! nothing is skipped without saying so.

#![allow(clippy::disallowed_methods, reason = "the files are the developer's")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to the person who called it")]

mod aimock;
mod api;
mod bench;
mod cargo;
mod mutants;
mod shipped;
mod sim;
mod soak;
mod test;
mod tidy;
mod tools;

use std::process::ExitCode;

/// One of our commands.
struct Command {
    name: &'static str,
    /// Its arguments; every option that it knows is here.
    takes: &'static str,
    purpose: &'static str,
    run: fn(&[String]) -> anyhow::Result<()>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        takes: "[--fast]",
        purpose: "all checks: format, tidy, clippy, all tests, the API, simulator seeds, what ships (--fast: no simulator)",
        run: test::run,
    },
    Command {
        name: "tidy",
        takes: "[--update|--all]",
        purpose: "import cycles, sizes, untyped JSON, words, links, commands in documents (--update: lower the records)",
        run: |args| tidy::run(args, &command_tree()),
    },
    Command { name: "api", takes: "", purpose: "the API of a live daemon against its own document", run: api::run },
    Command {
        name: "aimock",
        takes: "",
        purpose: "install the model server that the daemon's tests ask",
        run: aimock::run,
    },
    Command {
        name: "sim",
        takes: "--seeds N|--seed S [FLAG…]",
        purpose: "simulate N seeds, or repeat one; the release build",
        run: sim::run,
    },
    Command {
        name: "soak",
        takes: "[MINUTES]",
        purpose: "everything at once, with faults, for an hour; the release build",
        run: soak::run,
    },
    Command {
        name: "hostile",
        takes: "",
        purpose: "every setting of git that names a program, with every call and every sandbox",
        run: |_| cargo::run("cargo", &HOSTILE),
    },
    Command {
        name: "mutants",
        takes: "[SEED]",
        purpose: "how many of a random hundred mutants of the kernel its tests catch",
        run: mutants::run,
    },
    Command {
        name: "bench",
        takes: "[NAME…]",
        purpose: "measure; NAME is a benchmark (ledger) or one of its rows (ledger.append)",
        run: bench::run,
    },
];

/// The test that is left out of the test command because it takes minutes.
const HOSTILE: [&str; 7] =
    ["nextest", "run", "-p", "abide-effects", "--run-ignored=only", "-E", "test(every_way_to_name_a_program)"];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (name, rest) = match args.split_first() {
        Some((name, rest)) => (name.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    let done = match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(rest),
        None if matches!(name, "help" | "--help" | "-h") => {
            println!("{}", usage());
            Ok(())
        }
        None => Err(anyhow::anyhow!("there is no `cargo xtask {name}`; there is:\n\n{}", usage())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let lines = COMMANDS.iter().map(|command| {
        let call = format!("cargo xtask {} {}", command.name, command.takes);
        format!("{call:<45} {}", command.purpose)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The same, for the check of the commands that documents show.
fn command_tree() -> tidy::Command {
    let mut tree = tidy::Command::default();
    tree.below.insert("help".to_owned(), tidy::Command::default());
    for command in COMMANDS {
        let takes = command.takes.split(['[', ']', '|', ' ']).collect::<Vec<_>>();
        let options = takes.iter().enumerate().filter(|(_, word)| word.starts_with("--"));
        let valued = |at: usize| takes.get(at + 1).is_some_and(|next| !next.is_empty() && !next.starts_with('-'));
        let options = options.map(|(at, word)| ((*word).to_owned(), valued(at))).collect();
        let any_option = command.takes.contains("FLAG…");
        tree.below.insert(command.name.to_owned(), tidy::Command { options, any_option, ..tidy::Command::default() });
    }
    tree
}
