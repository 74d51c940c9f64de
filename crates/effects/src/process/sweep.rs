//! Finds processes by their marker and ends them for certain. For the boot after a life that was cut off, and for a
//! command whose supervisor was killed. Touches nothing that carries no marker and descends from nothing that does.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::time::Duration;

use super::family::{self, Stat};
use super::marker::VARIABLE;
use super::orders::SUPERVISE;

/// What was found of one command of an earlier life, and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    pub label: String,
    pub pids: Vec<i32>,
    /// What it had damaged and was put back.
    pub evidence: Vec<String>,
}

/// Ends everything whose marker `wanted` gives a label for; comes back when nothing of it runs.
pub(crate) fn sweep(wanted: impl Fn(&str) -> Option<String>) -> Vec<Swept> {
    let found: RefCell<BTreeMap<String, HashSet<i32>>> = RefCell::default();
    until_gone(|| {
        let marked = marked(&wanted);
        for (label, one) in &marked {
            found.borrow_mut().entry(label.clone()).or_default().insert(one.member.pid);
        }
        marked.into_iter().map(|(_, one)| one).collect()
    });
    found
        .into_inner()
        .into_iter()
        .map(|(label, pids)| {
            let mut pids: Vec<i32> = pids.into_iter().collect();
            pids.sort_unstable();
            Swept { label, pids, evidence: Vec::new() }
        })
        .collect()
}

/// Kills whomever `list` finds until it finds nobody that lives.
pub(crate) fn until_gone(list: impl Fn() -> Vec<Stat>) {
    for _ in 0..ROUNDS {
        if family::kill_frozen(&list) == 0 {
            return;
        }
        std::thread::sleep(BETWEEN);
    }
}

/// A process that sleeps in the system may die late; it is dead to us once the signal is sent.
const ROUNDS: usize = 200;
const BETWEEN: Duration = Duration::from_millis(10);

/// Those that carry a wanted marker, and whatever descends from them: a child may have cleaned its environment.
fn marked(wanted: &impl Fn(&str) -> Option<String>) -> Vec<(String, Stat)> {
    let all: Vec<Stat> = family::everyone().into_iter().filter(|one| !one.is_over()).collect();
    let spared = ancestry(&all);
    let mut marked: Vec<(String, Stat)> = Vec::new();
    for one in all.iter().filter(|one| !spared.contains(&one.member.pid)) {
        if let Some(label) = marker_of(one.member.pid).and_then(|marker| wanted(&marker)) {
            marked.push((label, *one));
        }
    }
    let known: HashSet<i32> = marked.iter().map(|(_, one)| one.member.pid).collect();
    let mut heirs = Vec::new();
    for (label, one) in &marked {
        let below = family::descendants(&all, &HashSet::from([one.member.pid]));
        let fresh = below.into_iter().filter(|heir| !known.contains(&heir.member.pid));
        heirs.extend(fresh.filter(|heir| !spared.contains(&heir.member.pid)).map(|heir| (label.clone(), heir)));
    }
    marked.extend(heirs);
    marked
}

/// This process and those it descends from: whoever starts a daemon from within a command must not be its first victim.
fn ancestry(all: &[Stat]) -> HashSet<i32> {
    let mut line = HashSet::new();
    let mut next = Some(rustix::process::getpid().as_raw_nonzero().get());
    while let Some(pid) = next.filter(|pid| line.insert(*pid)) {
        next = all.iter().find(|one| one.member.pid == pid).map(|one| one.parent);
    }
    line
}

/// From the environment; of a supervisor, whose environment nobody may read, from its arguments.
fn marker_of(pid: i32) -> Option<String> {
    let from_environment = || {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|byte| *byte == 0).find_map(|entry| {
            let value = entry.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"=")?;
            String::from_utf8(value.to_vec()).ok()
        })
    };
    let from_arguments = || {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let mut arguments = arguments.split(|byte| *byte == 0);
        arguments.find(|argument| *argument == SUPERVISE.as_bytes())?;
        String::from_utf8(arguments.next()?.to_vec()).ok()
    };
    from_environment().or_else(from_arguments)
}
