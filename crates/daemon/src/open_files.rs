//! The limit of open files (`RLIMIT_NOFILE`). The daemon raises its own soft limit to the hard one, because every
//! connection, command and database takes file descriptors. Programs that it starts get the soft limit that it was started
//! with: those that use select() break with descriptors past 1,023, and others close every number up to the limit.

use std::fs;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit before it was raised.
static SOFT_BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit of this process to its hard limit, and says how many files it may have open from now on.
pub fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Only a number is a limit.
    let Some(soft) = current else { return u64::MAX };
    if maximum == current {
        return soft;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => {
            // Set once: nothing else raises it.
            let _first = SOFT_BEFORE.set(soft);
            maximum.unwrap_or(u64::MAX)
        }
        Err(error) => {
            tracing::warn!(%error, soft, "the soft limit of open files could not be raised to the hard one");
            soft
        }
    }
}

/// The soft limit that programs are started with; none where it was not changed.
pub fn soft_for_programs() -> Option<u64> {
    SOFT_BEFORE.get().copied()
}

/// The hard limit of a process, or of this one where that is not known.
pub fn hard_limit(pid: Option<i32>) -> u64 {
    let of = |pid: i32| {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    pid.and_then(of).or_else(|| getrlimit(Resource::Nofile).maximum).unwrap_or(u64::MAX)
}
