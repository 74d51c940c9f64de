//! `abide`: the command line. It parses, wires and prints; what it knows of agents it asks the other crates.

mod cli;
mod clock;
mod folder;
mod home;
mod ledger;
mod logs;
mod output;
mod perform;
mod up;
mod why;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use output::{Failed, Output};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error),
    };
    let out = Output::new(cli.json);
    let outcome = match cli.command {
        Command::Ledger(command) => ledger::run(command, &cli.home, &out),
        Command::Up(args) => home::open_or_create(&cli.home).and_then(|ledger| {
            logs::begin(tracing::level_filters::LevelFilter::INFO);
            let grace = std::time::Duration::from_secs(5);
            let daemon = up::Daemon { listen: args.listen, model: args.model, grace };
            up::run(&home::dir(&cli.home)?, ledger, &daemon, &out)
        }),
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

/// Help that was asked for, or words that make no command. A script that asked for JSON gets JSON about these too.
fn not_parsed(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json");
    if json && error.use_stderr() {
        let text = error.to_string();
        let first = text.split("\n\n").next().unwrap_or_default();
        Output::new(json).error(&anyhow::anyhow!("{}", first.trim_start_matches("error: ")));
    } else {
        // Whoever reads it has gone, or there is nobody to tell.
        let _unseen = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
