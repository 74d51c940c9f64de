//! Power loss: the log cut, or filled with what was never written, at every frame and inside frames.

use std::path::Path;

use abide_ledger::{Ledger, Options, Wake};

use crate::world::{append_with_rows, assert_intact, at, said, say, stream};

const PAGE: usize = 1024;
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const COMMITS: u64 = 24;

/// The content of the disk behind the cut.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Behind {
    Nothing,
    Zeros,
    Garbage,
}

#[test]
fn a_cut_log_keeps_every_commit_that_was_synced_before_the_cut() {
    let original = tempfile::tempdir().unwrap();
    let options = Options { page_size: u32::try_from(PAGE).unwrap(), ..Options::default() };
    let ledger = Ledger::open(original.path(), options).unwrap();
    let log = original.path().join("ledger.db-wal");
    // After commit n was acknowledged, the log was this long.
    let mut synced = vec![std::fs::metadata(&log).unwrap().len()];
    for seq in 0..COMMITS {
        let text = format!("n{seq}");
        let appends = vec![append_with_rows("left", seq, &[&text]), append_with_rows("right", seq, &[&text])];
        let wakes = vec![(stream("left"), Some(Wake { due: Some(at(7)), why: text.clone() }))];
        ledger.commit(abide_ledger::Commit { appends, wakes, ..Default::default() }).wait().unwrap();
        synced.push(std::fs::metadata(&log).unwrap().len());
    }
    let database = std::fs::read(original.path().join("ledger.db")).unwrap();
    let log = std::fs::read(&log).unwrap();
    let frame = FRAME_HEADER + PAGE;
    let frames = (log.len() - LOG_HEADER) / frame;
    assert!(frames > 2 * usize::try_from(COMMITS).unwrap(), "{frames}");
    let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    for begin in (0..=frames).map(|i| LOG_HEADER + i * frame) {
        for (inside, behind) in [
            (0, Behind::Nothing),
            (0, Behind::Zeros),
            (0, Behind::Garbage),
            (FRAME_HEADER / 2, Behind::Nothing),
            (FRAME_HEADER, Behind::Garbage),
            (FRAME_HEADER + PAGE / 2, Behind::Zeros),
            (frame - 1, Behind::Nothing),
        ] {
            let cut = (begin + inside).min(log.len());
            let mut torn = log[..cut].to_vec();
            match behind {
                Behind::Nothing => {}
                Behind::Zeros => torn.resize(log.len(), 0),
                Behind::Garbage => torn.extend(log[cut..].iter().map(|byte| byte ^ 0x55)),
            }
            restore(home.path(), &database, &torn);
            let acknowledged = synced.iter().filter(|length| **length <= cut as u64).count().saturating_sub(1);
            check(home.path(), acknowledged as u64, &format!("cut at {cut}, then {behind:?}"));
        }
    }
}

fn restore(home: &Path, database: &[u8], log: &[u8]) {
    let _ = std::fs::remove_file(home.join("ledger.db-shm"));
    std::fs::write(home.join("ledger.db"), database).unwrap();
    std::fs::write(home.join("ledger.db-wal"), log).unwrap();
}

fn check(home: &Path, acknowledged: u64, case: &str) {
    let ledger = Ledger::open(home, Options::default()).unwrap();
    let head = |name: &str| ledger.head(&stream(name)).unwrap().map_or(0, |head| head.seq);
    let seq = head("left");
    assert_eq!(seq, head("right"), "{case}");
    assert!(seq >= acknowledged, "{case}: {acknowledged} were acknowledged, {seq} are there");
    let texts: Vec<String> = (0..seq).map(|n| format!("n{n}")).collect();
    assert_eq!(said(&ledger, "left"), texts, "{case}");
    let wake = ledger.wakes(None, 9).unwrap().first().map(|(_, wake)| wake.why.clone());
    assert_eq!(wake.as_ref(), texts.last(), "{case}");
    // The whole check is the slow part; every commit boundary gets one.
    if case.ends_with("Nothing") {
        assert_intact(&ledger);
        say(&ledger, "left", seq, &["goes on"]);
    }
}
