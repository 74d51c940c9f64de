//! Finds processes by their marker and ends them for certain. For the boot after a life that was cut off, and for a
//! command whose supervisor was killed. Touches nothing that carries no marker and descends from nothing that does.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::time::Duration;

use super::marker::VARIABLE;
use super::orders::SUPERVISE;
use super::process_list::{self, ProcessStat};

/// The processes of one command of an earlier life, which were ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweptCommand {
    pub label: String,
    pub pids: Vec<i32>,
    /// The files that it had damaged and that were restored.
    pub evidence: Vec<String>,
}

/// Ends everything whose marker `wanted` gives a label for; comes back when nothing of it runs.
pub(crate) fn sweep_marked(wanted: impl Fn(&str) -> Option<String>) -> Vec<SweptCommand> {
    let found: RefCell<BTreeMap<String, HashSet<i32>>> = RefCell::default();
    kill_until_gone(|| {
        let marked = find_marked(&wanted);
        for (label, one) in &marked {
            found.borrow_mut().entry(label.clone()).or_default().insert(one.identity.pid);
        }
        marked.into_iter().map(|(_, one)| one).collect()
    });
    found
        .into_inner()
        .into_iter()
        .map(|(label, pids)| {
            let mut pids: Vec<i32> = pids.into_iter().collect();
            pids.sort_unstable();
            SweptCommand { label, pids, evidence: Vec::new() }
        })
        .collect()
}

/// Kills the processes that `list` returns until none of them lives.
pub(crate) fn kill_until_gone(list: impl Fn() -> Vec<ProcessStat>) {
    for _ in 0..ROUNDS {
        if process_list::kill_frozen(&list) == 0 {
            return;
        }
        std::thread::sleep(BETWEEN);
    }
}

/// A process that sleeps in the system may die late; it is dead to us once the signal is sent.
const ROUNDS: usize = 200;
const BETWEEN: Duration = Duration::from_millis(10);

/// Those that carry a wanted marker, and whatever descends from them: a child may have cleaned its environment.
fn find_marked(wanted: &impl Fn(&str) -> Option<String>) -> Vec<(String, ProcessStat)> {
    let all: Vec<ProcessStat> = process_list::list_processes().into_iter().filter(|one| !one.is_over()).collect();
    let spared = own_ancestors(&all);
    let mut marked: Vec<(String, ProcessStat)> = Vec::new();
    for one in all.iter().filter(|one| !spared.contains(&one.identity.pid)) {
        if let Some(label) = marker_of(one.identity.pid).and_then(|marker| wanted(&marker)) {
            marked.push((label, *one));
        }
    }
    let known: HashSet<i32> = marked.iter().map(|(_, one)| one.identity.pid).collect();
    let mut heirs = Vec::new();
    for (label, one) in &marked {
        let below = process_list::descendants(&all, &HashSet::from([one.identity.pid]));
        let fresh = below.into_iter().filter(|heir| !known.contains(&heir.identity.pid));
        heirs.extend(fresh.filter(|heir| !spared.contains(&heir.identity.pid)).map(|heir| (label.clone(), heir)));
    }
    marked.extend(heirs);
    marked
}

/// This process and its ancestors: a daemon that was started from within a command must not kill itself.
fn own_ancestors(all: &[ProcessStat]) -> HashSet<i32> {
    let mut line = HashSet::new();
    let mut next = Some(rustix::process::getpid().as_raw_nonzero().get());
    while let Some(pid) = next.filter(|pid| line.insert(*pid)) {
        next = all.iter().find(|one| one.identity.pid == pid).map(|one| one.parent);
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
