//! The simulator's disk: what is not synced is not there.

use abide_ledger::{Commit, CommitError, Ledger, Memory, ReadError};

use crate::world::{append, said, stream};

fn staged(ledger: &Ledger, name: &str, expected: u64, text: &str) -> abide_ledger::Receipt {
    ledger.commit(Commit { appends: vec![append(name, expected, &[text])], ..Commit::default() })
}

#[test]
fn a_commit_counts_once_it_is_synced() {
    let memory = Memory::with_manual_sync();
    let ledger = Ledger::Memory(memory.clone());
    let mut first = staged(&ledger, "a", 0, "1");
    let mut second = staged(&ledger, "a", 1, "2");
    let mut loser = staged(&ledger, "a", 0, "x");
    assert!(first.try_take().is_none());
    assert_eq!(ledger.head(&stream("a")).unwrap(), None);
    assert_eq!(memory.staged(), 3);
    assert_eq!(memory.sync(), 3);
    assert_eq!(first.try_take().unwrap().unwrap().heads[0].seq, 1);
    assert_eq!(second.try_take().unwrap().unwrap().heads[0].seq, 2);
    assert!(matches!(loser.try_take(), Some(Err(CommitError::Conflict { expected: 0, actual: 2, .. }))));
    assert_eq!(said(&ledger, "a"), ["1", "2"]);
}

#[test]
fn a_crash_forgets_what_was_not_synced() {
    let memory = Memory::with_manual_sync();
    let before = Ledger::Memory(memory.clone());
    drop(staged(&before, "a", 0, "1"));
    memory.sync();
    let lost = staged(&before, "a", 1, "2");
    let survivor = memory.crash();
    assert!(matches!(lost.wait(), Err(CommitError::Closed)));
    assert!(matches!(before.read(&stream("a"), 0, 9), Err(ReadError::Closed)));
    assert!(matches!(staged(&before, "a", 1, "x").wait(), Err(CommitError::Closed)));
    let after = Ledger::Memory(survivor.clone());
    assert_eq!(said(&after, "a"), ["1"]);
    // Cut in the middle of a sync: a prefix of what was staged is there, though nobody was told.
    let told = [staged(&after, "a", 1, "2"), staged(&after, "a", 2, "3")];
    let last = Ledger::Memory(survivor.crash_keeping(1));
    assert!(told.into_iter().all(|receipt| matches!(receipt.wait(), Err(CommitError::Closed))));
    assert_eq!(said(&last, "a"), ["1", "2"]);
}

#[cfg(feature = "planted")]
mod planted {
    use abide_ledger::planted::Bug;

    use super::*;

    fn with(bug: Bug) -> (Memory, Ledger) {
        let memory = Memory::with_manual_sync();
        memory.plant(bug);
        (memory.clone(), Ledger::Memory(memory))
    }

    #[test]
    fn early_ack_answers_before_the_sync() {
        let (memory, ledger) = with(Bug::EarlyAck);
        assert_eq!(staged(&ledger, "a", 0, "1").wait().unwrap().heads[0].seq, 1);
        assert!(staged(&ledger, "a", 0, "x").wait().is_err());
        assert_eq!(said(&ledger, "a"), Vec::<String>::new());
        assert_eq!(said(&Ledger::Memory(memory.crash()), "a"), Vec::<String>::new());
    }

    #[test]
    fn lost_tail_acknowledges_what_it_drops() {
        let (memory, ledger) = with(Bug::LostTail);
        let receipts = [staged(&ledger, "a", 0, "1"), staged(&ledger, "a", 1, "2")];
        memory.sync();
        assert!(receipts.into_iter().all(|receipt| receipt.wait().is_ok()));
        assert_eq!(said(&ledger, "a"), ["1"]);
    }

    #[test]
    fn partial_commit_tears_on_a_crash() {
        let (memory, ledger) = with(Bug::PartialCommit);
        let appends = vec![append("a", 0, &["1"]), append("b", 0, &["1"])];
        drop(ledger.commit(Commit { appends, ..Commit::default() }));
        let after = Ledger::Memory(memory.crash());
        assert_eq!((said(&after, "a").len(), said(&after, "b").len()), (1, 0));
    }
}
