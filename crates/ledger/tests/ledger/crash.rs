//! kill -9 of a process that commits as fast as it can: what it acknowledged is there.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};

use abide_ledger::{Ledger, Options};

use crate::child;
use crate::world::{append, commit, stream};

const THREADS: usize = 4;
const KILLS: usize = 50;
/// A home is killed this often before a fresh one is taken.
const KILLS_PER_HOME: usize = 10;

#[test]
fn a_killed_process_lost_nothing_it_acknowledged() {
    for round in 0..KILLS / KILLS_PER_HOME {
        let home = tempfile::tempdir().unwrap();
        let mut acknowledged: HashMap<String, u64> = HashMap::new();
        for kill in 0..KILLS_PER_HOME {
            let mut child = child::child("crash::child_that_commits", home.path()).spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut acks = 0;
            // At another moment each time: in the first transactions, and in the thick of it.
            let enough = 1 + (round * KILLS_PER_HOME + kill) * 5;
            for line in lines.by_ref() {
                acks += note(&line.unwrap(), &mut acknowledged);
                if acks == enough {
                    child.kill().unwrap();
                    break;
                }
            }
            // Lines that were written before the signal are acknowledgements too. The last line may be cut.
            for line in lines {
                note(&line.unwrap(), &mut acknowledged);
            }
            child.wait().unwrap();
            assert!(acks >= enough, "the child stopped by itself after {acks}");
            check(&Ledger::open(home.path(), Options::default()).unwrap(), &acknowledged);
        }
    }
}

fn note(line: &str, acknowledged: &mut HashMap<String, u64>) -> usize {
    // "ack NAME SEQ." with a full stop, so that a cut line is not taken for a smaller number.
    let Some((name, seq)) = line.strip_prefix("ack ").and_then(|rest| rest.strip_suffix('.')?.split_once(' ')) else {
        return 0;
    };
    let known = acknowledged.entry(name.to_owned()).or_default();
    *known = (*known).max(seq.parse().unwrap());
    1
}

fn check(ledger: &Ledger, acknowledged: &HashMap<String, u64>) {
    let report = ledger.verify(&|_, _| Vec::new(), &mut |_| {});
    assert!(report.is_intact(), "{:#?}", report.damage);
    let head = |name: &str| ledger.head(&stream(name)).unwrap().map_or(0, |head| head.seq);
    for (name, seq) in acknowledged {
        assert!(head(name) >= *seq, "{name} was acknowledged at {seq} and is at {}", head(name));
    }
    for thread in 0..THREADS {
        // Committed together, so never one without the other.
        assert_eq!(head(&format!("left-{thread}")), head(&format!("right-{thread}")));
    }
}

#[test]
#[ignore = "runs as a child process, until it is killed"]
fn child_that_commits() {
    let Some(home) = child::home() else { return };
    let ledger = Ledger::open(&home, Options::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let ledger = &ledger;
            scope.spawn(move || {
                let (left, right) = (format!("left-{thread}"), format!("right-{thread}"));
                let mut seq = ledger.head(&stream(&left)).unwrap().map_or(0, |head| head.seq);
                loop {
                    let appends = vec![append(&left, seq, &["left"]), append(&right, seq, &["right"])];
                    seq = commit(ledger, appends).unwrap().heads[0].seq;
                    // One write each: a line is either in the pipe or not.
                    let line = format!("ack {left} {seq}.\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}
