//! `abide daemon stop`: asks the daemon to end, asks again when it takes long, and returns after it has ended.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::connection::{self, ServedHome};
use crate::output::{Failed, Output};

/// Longer than turns get to come to a safe point, by default.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(12);
/// The second request means at once.
const GONE_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(30);

#[derive(Serialize)]
struct StopResult {
    pid: i32,
    stopped: bool,
}

pub fn run(home: &Path, out: &Output) -> anyhow::Result<()> {
    let served = stop(home)?;
    out.result(&StopResult { pid: served.pid, stopped: true }, || {
        format!("the daemon of {} has stopped\n", home.display())
    })
}

pub fn stop(home: &Path) -> anyhow::Result<ServedHome> {
    let served = connection::serving(home)?.ok_or_else(|| connection::no_daemon_error(home))?;
    let pid = served.pid;
    if !connection::holds_ledger(home, pid) {
        // The process id may have been reused.
        let message = format!("process {pid} does not hold the ledger of {}; it is left alone", home.display());
        return Err(Failed::NoDaemon(message).into());
    }
    signal_process(pid)?;
    let begun = Instant::now();
    let mut asked_again = false;
    while connection::process_exists(pid) && connection::holds_ledger(home, pid) {
        if !asked_again && begun.elapsed() >= ASK_AGAIN_AFTER {
            signal_process(pid)?;
            asked_again = true;
        }
        if begun.elapsed() >= GONE_WITHIN {
            return Err(anyhow!("process {pid} was asked to end twice and goes on; `abide daemon logs` may say why"));
        }
        sleep(LOOK_EVERY);
    }
    Ok(served)
}

fn signal_process(pid: i32) -> anyhow::Result<()> {
    let process = Pid::from_raw(pid).context("no process has this id")?;
    match kill_process(process, Signal::TERM) {
        // It went by itself.
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("can't ask process {pid} to end")),
    }
}
