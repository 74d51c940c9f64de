//! `abide`: the command line. It parses, wires and prints; what it knows of agents it asks the other crates.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files as users do"))]

mod budget;
mod cli;
mod clock;
mod commands;
mod config;
mod connection;
mod credentials;
mod folder;
mod follow;
mod home;
mod model_name;
mod options;
mod output;
mod span;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use output::{Failed, Output};

fn main() -> ExitCode {
    // Before anything else: a supervisor of a command is no command line, and must stay one thread.
    if abide_effects::process::is_supervisor() {
        abide_effects::process::supervise();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error),
    };
    let out = Output::new(cli.json);
    // Another daemon than the home's has a config.toml elsewhere.
    let elsewhere = cli.place.url.is_some() || config::variable("ABIDE_URL").is_some();
    let home = home::dir(&cli.place).ok().filter(|_| !elsewhere);
    match run(cli, &out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out.error(&error);
            if let Some(home) = home.filter(|_| Failed::is_about_fields(&error))
                && connection::has_old_settings(&home)
            {
                out.note(&format!("{}: `abide daemon restart` reads it", connection::CONFIG_CHANGED));
            }
            ExitCode::from(Failed::code(&error))
        }
    }
}

fn run(cli: Cli, out: &Output) -> anyhow::Result<()> {
    if cli.detached {
        commands::daemon::leave_terminal()?;
    }
    let place = &cli.place;
    match cli.command {
        Command::Agent(command) => commands::agent::run(command, place, out),
        Command::Send(args) => commands::send::run(&args, place, out),
        Command::Why(args) => commands::why::run(&args, place, out),
        Command::Watch(args) => commands::watch::run(&args, place, out),
        Command::Transcript(args) => commands::transcript::run(&args, place, out),
        Command::Briefs(args) => commands::briefs::run(&args, place, out),
        Command::Work(command) => commands::work::run(&command, place, out),
        Command::Task(command) => commands::task::run(&command, place, out),
        Command::Workspace(command) => commands::workspace::run(&command, place, out),
        Command::Timer(command) => commands::timer::run(&command, place, out),
        Command::Wait(command) => commands::wait::run(&command, place, out),
        Command::Trigger(command) => commands::trigger::run(&command, place, out),
        Command::Approval(command) => commands::approval::run(&command, place, out),
        Command::Up(args) => commands::up::run(&args, place, out),
        Command::Daemon(command) => commands::daemon::run(&command, place, out),
        Command::Ledger(command) => commands::ledger::run(command, place, out),
        Command::Config(command) => commands::config::run(&command, place, out),
        Command::Model(command) => commands::model::run(&command, place, out),
        Command::Secret(command) => commands::secret::run(&command, place, out),
        Command::Token(command) => commands::token::run(&command, place, out),
        Command::Doctor => commands::doctor::run(place, out),
        Command::Completions { shell } => commands::completions::run(shell, out),
    }
}

/// Help that was asked for, or a usage error. With `--json`, both are JSON.
fn not_parsed(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json");
    if json && error.use_stderr() {
        let text = error.to_string();
        let first = text.split("\n\n").next().unwrap_or_default();
        Output::new(json).error(&anyhow::anyhow!("{}", first.trim_start_matches("error: ")));
    } else {
        // The reader may be gone, and there is no other place for the text.
        let _unseen = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
