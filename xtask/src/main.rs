//! The project's own commands: `cargo xtask test`, `api`, `aimock`, `sim`, `soak`, `hostile`, `mutants`, `bench`.
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
mod tools;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [--fast]           format, clippy, all tests, the API, simulator seeds, what ships (--fast: no simulator)
cargo xtask api                     the API of a live daemon against its own document
cargo xtask aimock                  install the model server that the daemon's tests ask
cargo xtask sim --seeds N [FLAG…]   simulate N seeds
cargo xtask sim --seed S [FLAG…]    repeat one seed
cargo xtask soak [MINUTES]          everything at once, with faults, for an hour; the release build
cargo xtask hostile                 every setting of git that names a program, with every call and every sandbox
cargo xtask mutants [SEED]          how many of a random hundred mutants of the kernel its tests catch
cargo xtask bench [NAME…]           measure; NAME is a benchmark (ledger) or one of its rows (ledger.append)";

/// The test that is left out of the test command because it takes minutes.
const HOSTILE: [&str; 7] =
    ["nextest", "run", "-p", "abide-effects", "--run-ignored=only", "-E", "test(every_way_to_name_a_program)"];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    let done = match command {
        "test" => test::run(rest),
        "api" => api::run(rest),
        "aimock" => aimock::run(rest),
        "sim" => sim::run(rest),
        "soak" => soak::run(rest),
        "hostile" => cargo::run("cargo", &HOSTILE),
        "mutants" => mutants::run(rest),
        "bench" => bench::run(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        unknown => Err(anyhow::anyhow!("there is no `cargo xtask {unknown}`; there is:\n\n{USAGE}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
