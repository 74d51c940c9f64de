//! `abide completions`: a script for a shell.

use clap::CommandFactory;
use clap_complete::Shell;
use serde::Serialize;

use crate::cli::Cli;
use crate::output::Output;

#[derive(Serialize)]
struct Completions {
    shell: String,
    script: String,
}

pub fn run(shell: Shell, out: &Output) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "abide", &mut script);
    let script = String::from_utf8(script)?;
    let completions = Completions { shell: shell.to_string(), script };
    out.result(&completions, || completions.script.clone())
}
