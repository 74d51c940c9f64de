//! A git that runs, directly or in a sandbox: waiting for its end, and ending it.

use std::io;
use std::process::{Child, ExitStatus};
use std::thread::JoinHandle;
use std::time::Instant;

use abide_kernel::input::Refusal;
use rustix::process::{Pid, PidfdFlags};

use super::Git;
use super::pipes::wait_readable;
use crate::process::Process;
use crate::workspace::stall::StallWatch;

/// A git that runs.
pub(in crate::workspace) struct GitProcess {
    pub(super) kind: ProcessKind,
    pub(super) errors: JoinHandle<String>,
}

pub(super) enum ProcessKind {
    Direct(Child),
    Sandboxed(Process, StallWatch),
}

impl GitProcess {
    pub(in crate::workspace) fn kill(&self) {
        match &self.kind {
            ProcessKind::Direct(child) => kill_group(child),
            ProcessKind::Sandboxed(process, _) => process.stop(true),
        }
    }

    /// Waits for its end. Returns whether it succeeded, and its messages. A git that takes too long is ended.
    pub(in crate::workspace) fn finish(self, git: &Git, verb: &str, until: Instant) -> Result<(bool, String), Refusal> {
        let ended = match self.kind {
            ProcessKind::Direct(mut child) => {
                let ended = wait_for_exit(&child, until).and_then(|in_time| {
                    if !in_time {
                        kill_group(&child);
                    }
                    Ok((child.wait()?, in_time))
                });
                let (status, in_time) = ended.map_err(|error| git.run_refusal(&error))?;
                in_time.then_some(ExitStatus::success(&status))
            }
            ProcessKind::Sandboxed(process, stall) => {
                let ended = process.wait_until(until);
                if ended.is_none() {
                    process.stop(true);
                }
                ended.filter(|_| !stall.has_stalled()).map(|ended| ended.exit_code == Some(0))
            }
        };
        let errors = self.errors.join().unwrap_or_default();
        ended.map(|succeeded| (succeeded, errors)).ok_or_else(|| git.stuck_refusal(verb))
    }
}

/// Kills a child that was not waited for yet, so that its id is still its own, and the gits that its script started.
fn kill_group(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _gone = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

/// Waits until the child ends, and returns whether it did in time. A descriptor of the process is used, because its id
/// may be reused by then.
fn wait_for_exit(child: &Child, until: Instant) -> io::Result<bool> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    wait_readable(rustix::process::pidfd_open(pid, PidfdFlags::empty())?, until)
}
