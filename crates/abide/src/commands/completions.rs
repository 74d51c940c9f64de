//! `abide completions`: a script for a shell.

use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;

use crate::cli::Cli;
use crate::output::Output;

pub fn run(shell: Shell, out: &Output) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "abide", &mut script);
    let script = String::from_utf8(script)?;
    out.result(&json!({ "shell": shell.to_string(), "script": script }), || script.clone())
}
