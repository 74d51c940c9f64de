//! `abide daemon`: the daemon in the background. It is `abide up` in a session of its own, with its output in a file.

mod logs;
mod start;
mod status;
mod stop;

use anyhow::Context;

use crate::cli::{DaemonCommand, PlaceArgs};
use crate::output::Output;
use crate::{connection, home};

pub fn run(command: &DaemonCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let home = home::dir(place)?;
    match command {
        DaemonCommand::Start(args) => start::run(args, &home, out),
        DaemonCommand::Stop => stop::run(&home, out),
        DaemonCommand::Restart(args) => {
            if connection::serving(&home)?.is_some() {
                stop::stop(&home)?;
            }
            start::run(args, &home, out)
        }
        DaemonCommand::Status => status::run(place, &home, out),
        DaemonCommand::Logs { follow, last } => logs::run(*follow, *last, &home, out),
    }
}

/// Leaves the session of the process that started this one. A process in a new session gets no signal from a terminal that
/// closes.
pub fn leave_terminal() -> anyhow::Result<()> {
    rustix::process::setsid().map(|_session| ()).context("can't begin a session")
}
