//! The processes that descend from one, as the system lists them, and signals to them. A process is known by its id
//! and the moment it began: before a signal is sent, the id is pinned by a descriptor and the moment compared, so a
//! recycled id is never touched.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, PidfdFlags, Signal};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ProcessIdentity {
    pub pid: i32,
    /// In ticks since the machine started.
    pub began: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessStat {
    pub identity: ProcessIdentity,
    pub parent: i32,
    pub state: u8,
    pub threads: u64,
    /// For how long it had the processor, in ticks.
    pub ticks: u64,
}

impl ProcessStat {
    /// Over, and waiting only for its parent to notice.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    fn is_frozen(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }
}

/// Reads `/proc/PID/stat`. The name in it may hold anything, parentheses and spaces too: it ends at the last
/// parenthesis.
pub(crate) fn read_stat(pid: i32) -> Option<ProcessStat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after = text.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(&text[after..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.bytes().next()?;
    let parent = fields.next()?.parse().ok()?;
    let in_user_mode: u64 = fields.nth(9)?.parse().ok()?;
    let in_kernel: u64 = fields.next()?.parse().ok()?;
    let threads = fields.nth(4)?.parse().ok()?;
    let began = fields.nth(1)?.parse().ok()?;
    let ticks = in_user_mode.saturating_add(in_kernel);
    Some(ProcessStat { identity: ProcessIdentity { pid, began }, parent, state, threads, ticks })
}

/// All visible processes.
pub(crate) fn list_processes() -> Vec<ProcessStat> {
    list_pids().filter_map(read_stat).collect()
}

/// How many processes and threads this user has.
pub(crate) fn count_of_this_user() -> u64 {
    let own = rustix::process::getuid().as_raw();
    let mine = |pid: &i32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|found| found.uid() == own);
    list_pids().filter(mine).filter_map(read_stat).map(|one| one.threads).sum()
}

pub(crate) fn list_pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Of `all`, those that descend from one of `roots`; the roots themselves are not among them.
pub(crate) fn descendants(all: &[ProcessStat], roots: &HashSet<i32>) -> Vec<ProcessStat> {
    let mut children: HashMap<i32, Vec<&ProcessStat>> = HashMap::new();
    for one in all {
        children.entry(one.parent).or_default().push(one);
    }
    let (mut found, mut seen) = (Vec::new(), roots.clone());
    let mut next: Vec<i32> = roots.iter().copied().collect();
    while let Some(parent) = next.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if seen.insert(child.identity.pid) {
                found.push(**child);
                next.push(child.identity.pid);
            }
        }
    }
    found
}

/// Pins the process, if it is still the one that was meant.
pub(crate) fn open_pidfd(identity: ProcessIdentity) -> Option<OwnedFd> {
    let pinned = rustix::process::pidfd_open(Pid::from_raw(identity.pid)?, PidfdFlags::empty()).ok()?;
    (read_stat(identity.pid)?.identity == identity).then_some(pinned)
}

/// Whether the signal was sent: not if the process is gone.
pub(crate) fn send_signal(identity: ProcessIdentity, signal: Signal) -> bool {
    open_pidfd(identity).is_some_and(|pinned| rustix::process::pidfd_send_signal(pinned, signal).is_ok())
}

/// Kills every process that `list` returns, in one round: they are stopped until no new process turns up, so that none
/// is left which could start another, and then killed. Returns how many there were.
pub(crate) fn kill_frozen(list: impl Fn() -> Vec<ProcessStat>) -> usize {
    let mut frozen: HashSet<ProcessIdentity> = HashSet::new();
    // A process that can't be stopped (it sleeps in the system) must not keep the others alive, hence the bound.
    for _ in 0..FREEZE_ROUNDS {
        let moving: Vec<ProcessStat> = list().into_iter().filter(|one| !one.is_over()).collect();
        let fresh = moving.iter().filter(|one| !one.is_frozen() && !frozen.contains(&one.identity)).count();
        for one in &moving {
            if frozen.insert(one.identity) && !one.is_frozen() {
                send_signal(one.identity, Signal::STOP);
            }
        }
        if fresh == 0 {
            break;
        }
    }
    for identity in &frozen {
        send_signal(*identity, Signal::KILL);
    }
    frozen.len()
}

const FREEZE_ROUNDS: usize = 50;
