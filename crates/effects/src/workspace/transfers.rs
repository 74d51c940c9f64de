//! Transfers of objects into mirrors that are under way. The first worktree of a large repository copies its history,
//! which may take minutes; waiting callers can ask here for the progress.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The progress of one transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The top of the working tree that the objects come from.
    pub repository: PathBuf,
    pub phase: Phase,
    /// Objects of this phase that are done, of how many. Both are 0 where the phase does not count.
    pub done: u64,
    pub total: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The source lists the objects to send.
    Counting,
    Receiving,
    /// Objects that were sent as differences are computed.
    Resolving,
    /// The history is checked to be complete.
    Checking,
}

impl Phase {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Counting => "counting",
            Phase::Receiving => "receiving",
            Phase::Resolving => "resolving",
            Phase::Checking => "checking",
        }
    }
}

/// The transfers of a home. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Transfers(Arc<Mutex<BTreeMap<u64, Transfer>>>);

impl Transfers {
    pub(super) fn list(&self) -> Vec<Transfer> {
        self.lock().values().cloned().collect()
    }

    /// Listed until the last clone of the result is dropped.
    pub(super) fn begin_transfer(&self, repository: &Path) -> Progress {
        let mut all = self.lock();
        let number = all.last_key_value().map_or(0, |(number, _)| number + 1);
        let repository = repository.to_path_buf();
        all.insert(number, Transfer { repository, phase: Phase::Counting, done: 0, total: 0 });
        Progress(Arc::new(Entry { transfers: self.clone(), number }))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Transfer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle of one transfer, for the code that performs it.
#[derive(Debug, Clone)]
pub(super) struct Progress(Arc<Entry>);

#[derive(Debug)]
struct Entry {
    transfers: Transfers,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.transfers.lock().remove(&self.number);
    }
}

impl Progress {
    pub(super) fn begin_phase(&self, phase: Phase) {
        self.set_progress(phase, 0, 0);
    }

    /// Takes a line of the receiving git. False where it is not about progress.
    pub(super) fn read_line(&self, line: &str) -> bool {
        let Some((phase, done, total)) = parse_progress(line) else { return false };
        self.set_progress(phase, done, total);
        true
    }

    fn set_progress(&self, phase: Phase, done: u64, total: u64) {
        if let Some(transfer) = self.0.transfers.lock().get_mut(&self.0.number) {
            *transfer = Transfer { repository: std::mem::take(&mut transfer.repository), phase, done, total };
        }
    }
}

/// `Receiving objects:  45% (9/20), 1.20 MiB | 3 MiB/s`
fn parse_progress(line: &str) -> Option<(Phase, u64, u64)> {
    let (title, rest) = line.split_once(':')?;
    let phase = match title.trim() {
        "Receiving objects" => Phase::Receiving,
        "Resolving deltas" => Phase::Resolving,
        _ => return None,
    };
    let (done, total) = rest.split_once('(')?.1.split_once(')')?.0.split_once('/')?;
    Some((phase, done.parse().ok()?, total.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_from_gits_own_lines() {
        assert_eq!(
            parse_progress("Receiving objects:  45% (9/20), 1.20 MiB | 3.00 MiB/s"),
            Some((Phase::Receiving, 9, 20))
        );
        assert_eq!(parse_progress("Resolving deltas: 100% (7/7), done."), Some((Phase::Resolving, 7, 7)));
        for other in ["fatal: pack has bad object: (1/2)", "Receiving objects: soon", "Receiving objects: (x/y)", ""] {
            assert_eq!(parse_progress(other), None, "{other}");
        }
    }

    #[test]
    fn a_transfer_is_listed_while_somebody_carries_it_out() {
        let transfers = Transfers::default();
        let (one, two) = (transfers.begin_transfer(Path::new("/a")), transfers.begin_transfer(Path::new("/b")));
        assert!(one.read_line("Receiving objects: 50% (1/2)"));
        let phases = || transfers.list().into_iter().map(|it| (it.phase, it.done)).collect::<Vec<_>>();
        assert_eq!(phases(), [(Phase::Receiving, 1), (Phase::Counting, 0)]);
        one.begin_phase(Phase::Checking);
        drop(two);
        assert_eq!(phases(), [(Phase::Checking, 0)]);
        let same = one.clone();
        drop(one);
        assert_eq!(phases().len(), 1);
        drop(same);
        assert_eq!(phases(), []);
    }
}
