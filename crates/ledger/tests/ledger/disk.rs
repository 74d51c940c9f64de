//! A disk that is full, and a home that somebody else holds.

use std::path::Path;
use std::process::Command;

use abide_ledger::{CommitError, Ledger, OpenError, Options};

use crate::child;
use crate::world::{append, assert_intact, commit, said, say, sqlite, stream};

#[test]
fn failure_09_a_second_process_is_refused_with_the_holders_pid() {
    let store = sqlite();
    let home = store.home.as_ref().unwrap().path();
    let output = child::child("disk::child_that_opens", home).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let pid = std::process::id();
    assert!(said.contains(&format!("refused: {} is in use by process {pid}: ", home.display())), "{said}");
    // Beside the writer, reading is fine, and sees what was committed.
    say(&store.ledger, "a", 0, &["x"]);
    let reader = Ledger::open(home, Options::read_only()).unwrap();
    assert_eq!(crate::world::said(&reader, "a"), ["x"]);
    assert!(matches!(commit(&reader, vec![append("a", 1, &["y"])]), Err(CommitError::ReadOnly)));
    assert!(matches!(Ledger::open(home, Options::default()), Err(OpenError::Held { pid: held, .. }) if held == pid));
    drop(store.ledger);
    Ledger::open(home, Options::default()).unwrap();
}

/// A daemon that was killed in the moment in which it started a command: its lock goes when that command begins.
#[test]
fn a_lock_that_outlives_its_holder_is_waited_for() {
    let store = sqlite();
    let home = store.home.as_ref().unwrap().path();
    drop(store.ledger);
    let mut holder = Command::new("true").spawn().unwrap();
    holder.wait().unwrap();
    let lock = std::fs::File::options().read(true).write(true).open(home.join("ledger.lock")).unwrap();
    lock.try_lock().unwrap();
    std::fs::write(home.join("ledger.lock"), holder.id().to_string()).unwrap();
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| Ledger::open(home, Options::default()));
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(lock);
        opened.join().unwrap().unwrap();
    });
}

#[test]
#[ignore = "runs as a child process"]
fn child_that_opens() {
    let Some(home) = child::home() else { return };
    match Ledger::open(&home, Options::default()) {
        Ok(_) => print("opened"),
        Err(refusal) => print(&format!("refused: {refusal}")),
    }
}

#[test]
fn what_is_no_ledger_is_refused() {
    let home = tempfile::tempdir().unwrap();
    assert!(matches!(Ledger::open(home.path(), Options::read_only()), Err(OpenError::Missing { .. })));
    std::fs::write(home.path().join("ledger.db"), "not a database, but long enough to look at ".repeat(40)).unwrap();
    let refused = Ledger::open(home.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::NotALedger { .. }), "{refused}");
}

/// A real disk of four MiB, in a namespace of its own; where the system does not allow that, a limit on the size of
/// files stands in. One of the two always runs.
#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let home = tempfile::tempdir().unwrap();
    let test = "disk::child_on_a_small_disk";
    let namespace = Command::new("unshare").args(["-Urm", "true"]).output().is_ok_and(|done| done.status.success());
    let mut child = if namespace {
        child::child_under("unshare", &["-Urm"], test, home.path())
    } else {
        // Counted in blocks; the signal that comes with it is ignored, so that the write fails instead.
        child::child_under("sh", &["-c", "trap '' XFSZ; ulimit -S -f 1500; exec \"$@\"", "sh"], test, home.path())
    };
    let output = child.env("LEDGER_TEST_MOUNT", if namespace { "yes" } else { "no" }).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("the disk was full and has room again"), "{said}");
}

#[test]
#[ignore = "runs as a child process"]
fn child_on_a_small_disk() {
    let Some(home) = child::home() else { return };
    let mounted = std::env::var("LEDGER_TEST_MOUNT").is_ok_and(|value| value == "yes");
    if mounted {
        run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(&home));
    }
    let ballast = home.join("ballast");
    std::fs::write(&ballast, vec![1; if mounted { 2_000_000 } else { 600_000 }]).unwrap();
    let ledger = Ledger::open(&home, Options::default()).unwrap();
    assert!(ledger.write_failure().is_none());
    let text = "w".repeat(3000);
    let (mut seq, refusal) = fill(&ledger, &text);
    check_full(&refusal, mounted);
    // Refused again, and a large payload too; what was there is there.
    check_full(&commit(&ledger, vec![append("a", seq, &[text.as_str(); 300])]).unwrap_err(), mounted);
    if mounted {
        check_full(&commit(&ledger, vec![append("a", seq, &[&"v".repeat(1_000_000)])]).unwrap_err(), mounted);
    }
    assert_eq!(said(&ledger, "a").len() as u64, seq);
    assert_eq!(ledger.head(&stream("a")).unwrap().unwrap().seq, seq);
    // It says so for as long as a probe can't be written.
    check_full(&ledger.write_failure().unwrap(), mounted);
    check_full(&ledger.try_write().unwrap_err(), mounted);
    assert!(refusal.to_string().contains(home.to_str().unwrap()), "{refusal}");
    make_room(&ballast, mounted);
    assert!(ledger.write_failure().is_some());
    ledger.try_write().unwrap();
    assert!(ledger.write_failure().is_none());
    assert!(!home.join("ledger.probe").exists());
    for _ in 0..20 {
        say(&ledger, "a", seq, &[&text]);
        seq += 1;
    }
    let report = ledger.verify(&|_, _| Vec::new(), &mut |_| {});
    assert!(report.is_intact(), "{:#?}", report.damage);
    drop(ledger);
    let ledger = Ledger::open(&home, Options::default()).unwrap();
    assert_eq!(said(&ledger, "a").len() as u64, seq);
    print("the disk was full and has room again");
}

fn fill(ledger: &Ledger, text: &str) -> (u64, CommitError) {
    let mut seq = 0;
    loop {
        match commit(ledger, vec![append("a", seq, &[text])]) {
            Ok(_) => seq += 1,
            Err(refusal) => return (seq, refusal),
        }
    }
}

fn check_full(refusal: &CommitError, mounted: bool) {
    // A limit on files is no full disk to SQLite, but a write that failed.
    let clear =
        matches!(refusal, CommitError::StoreFull { .. }) || (!mounted && matches!(refusal, CommitError::Store { .. }));
    assert!(clear, "{refusal:?}");
    assert!(refusal.to_string().contains("nothing of this commit was kept"), "{refusal}");
}

fn make_room(ballast: &Path, mounted: bool) {
    std::fs::remove_file(ballast).unwrap();
    if !mounted {
        let pid = std::process::id().to_string();
        run(Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited:unlimited"]));
    }
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

#[expect(clippy::print_stdout, reason = "how a child speaks to its test")]
fn print(line: &str) {
    println!("{line}");
}

#[test]
fn what_was_queued_is_committed_before_the_ledger_closes() {
    let store = sqlite();
    let receipts: Vec<_> = (0..50)
        .map(|i| {
            let append = append(&format!("a{i}"), 0, &["x"]);
            store.ledger.commit(abide_ledger::Commit { appends: vec![append], ..Default::default() })
        })
        .collect();
    let home = store.home.unwrap();
    drop(store.ledger);
    assert!(receipts.into_iter().all(|receipt| receipt.wait().is_ok()));
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    assert_eq!(ledger.streams(None, 99).unwrap().len(), 50);
    assert_intact_without_rows(&ledger);
}

fn assert_intact_without_rows(ledger: &Ledger) {
    let report = ledger.verify(&|_, _| Vec::new(), &mut |_| {});
    assert!(report.is_intact(), "{:#?}", report.damage);
}

#[test]
fn a_home_is_its_own_proof_after_reopening() {
    let store = sqlite();
    commit(&store.ledger, vec![crate::world::append_with_rows("a", 0, &["x"])]).unwrap();
    let home = store.home.unwrap();
    drop(store.ledger);
    assert_intact(&Ledger::open(home.path(), Options::read_only()).unwrap());
}

/// A ledger comes to be whole: what was left of one in the making is passed over, and so is a log without a database.
#[test]
fn an_interrupted_beginning_begins_again() {
    let home = tempfile::tempdir().unwrap();
    for leftover in ["ledger.db-new", "ledger.db-new-wal", "ledger.db-wal", "ledger.db-shm"] {
        std::fs::write(home.path().join(leftover), "half of something").unwrap();
    }
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    say(&ledger, "a", 0, &["x"]);
    drop(ledger);
    let ledger = Ledger::open(home.path(), Options::read_only()).unwrap();
    assert_eq!(said(&ledger, "a"), ["x"]);
    assert_intact_without_rows(&ledger);
    drop(ledger);
    let mut left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["archive", "blobs", "ledger.db", "ledger.lock"]);
}

/// A log that a killed writer left is read, and stays where it is.
#[test]
fn reading_beside_a_log_leaves_the_log() {
    let store = sqlite();
    say(&store.ledger, "a", 0, &["x"]);
    let copy = tempfile::tempdir().unwrap();
    for file in ["ledger.db", "ledger.db-wal"] {
        std::fs::copy(store.home.as_ref().unwrap().path().join(file), copy.path().join(file)).unwrap();
    }
    let log = || std::fs::read(copy.path().join("ledger.db-wal")).unwrap();
    let before = log();
    assert_eq!(said(&Ledger::open(copy.path(), Options::read_only()).unwrap(), "a"), ["x"]);
    assert_eq!(log(), before);
}

#[test]
fn only_a_new_ledger_without_facts_is_discarded() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().join("deep/home");
    Ledger::open(&home, Options::default()).unwrap().discard_if_new();
    assert!(!place.path().join("deep").exists());
    let ledger = Ledger::open(&home, Options::default()).unwrap();
    say(&ledger, "a", 0, &["x"]);
    ledger.discard_if_new();
    Ledger::open(&home, Options::default()).unwrap().discard_if_new();
    assert_eq!(said(&Ledger::open(&home, Options::read_only()).unwrap(), "a"), ["x"]);
}
