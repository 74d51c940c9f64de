//! Detects a stalled git: it waits for something that does not come, such as a writer for a pipe that lies where git
//! expects `.gitignore`.
//!
//! Only processes without children are looked at: those above them, a shell or the supervisor, wait by design. They are
//! at work if one runs, waits for a disk, or used the processor since the last look.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::process::process_list::{self, ProcessIdentity};

/// The number of looks in the time after which git counts as stalled.
const LOOKS: u32 = 6;

/// Watches a process until it is dropped.
pub(super) struct StallWatch {
    seen: Arc<AtomicBool>,
    /// Dropped, it ends the thread.
    _over: mpsc::Sender<()>,
}

impl StallWatch {
    /// Calls `end` when no process below this one was at work for so long.
    pub(super) fn start(
        root: i32,
        most: Duration,
        end: impl FnOnce() + Send + 'static,
    ) -> (StallWatch, JoinHandle<()>) {
        let (over, is_over) = mpsc::channel::<()>();
        let seen = Arc::new(AtomicBool::new(false));
        let stalled = Arc::clone(&seen);
        let thread = thread::spawn(move || {
            let (mut before, mut since) = (None, Instant::now());
            while is_over.recv_timeout(most / LOOKS) == Err(RecvTimeoutError::Timeout) {
                let now = work_below(root);
                if now.is_none() || now != before {
                    (before, since) = (now, Instant::now());
                } else if since.elapsed() >= most {
                    stalled.store(true, Ordering::SeqCst);
                    return end();
                }
            }
        });
        (StallWatch { seen, _over: over }, thread)
    }

    pub(super) fn has_stalled(&self) -> bool {
        self.seen.load(Ordering::SeqCst)
    }
}

/// The processes without children below this one, and the time that each has had the processor. None while one is at work.
fn work_below(root: i32) -> Option<Vec<(ProcessIdentity, u64)>> {
    let all: Vec<_> = process_list::list_processes().into_iter().filter(|one| !one.is_over()).collect();
    let parents: HashSet<i32> = all.iter().map(|one| one.parent).collect();
    let mut below = process_list::descendants(&all, &HashSet::from([root]));
    below.retain(|one| !parents.contains(&one.identity.pid));
    if below.iter().any(|one| matches!(one.state, b'R' | b'D')) {
        return None;
    }
    let mut work: Vec<(ProcessIdentity, u64)> = below.into_iter().map(|one| (one.identity, one.ticks)).collect();
    work.sort_unstable_by_key(|(member, _)| member.pid);
    Some(work)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn shell(script: &str) -> Child {
        Command::new("/bin/sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// The shell has a child; the child waits for a pipe that nobody opens.
    #[test]
    fn a_process_that_waits_for_good_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut child = shell(&format!("cat < '{}'; true", pipe.display()));
        let (stall, thread) = StallWatch::start(std::process::id().try_into().unwrap(), Duration::from_millis(600), {
            move || drop(std::fs::OpenOptions::new().write(true).open(pipe))
        });
        assert!(child.wait().unwrap().success(), "the pipe was opened, so it went on");
        thread.join().unwrap();
        assert!(stall.has_stalled());
    }

    #[test]
    fn one_that_runs_is_at_work_and_one_that_waits_is_not() {
        let mut child = shell("while :; do :; done & echo; read line; kill $!; wait; cat; true");
        let root = child.id().try_into().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        assert_eq!(work_below(root), None);
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"\n").unwrap();
        // Its echo says that it has begun to read, and waits for more.
        input.write_all(b"more\n").unwrap();
        output.read_line(&mut String::new()).unwrap();
        while work_below(root).is_none_or(|work| work.is_empty()) {}
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}
