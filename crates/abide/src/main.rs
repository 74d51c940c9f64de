//! `abide`: the command line. It parses, wires and prints; what it knows of agents it asks the other crates.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

mod cli;
mod clock;
mod folder;
mod home;
mod ledger;
mod output;
mod why;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use output::{Failed, Output};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let out = Output::new(cli.json);
    let outcome = match cli.command {
        Command::Ledger(command) => ledger::run(command, &cli.home, &out),
        Command::Why(args) => why::run(&args, &out),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out.error(&error);
            ExitCode::from(Failed::code(&error))
        }
    }
}
