//! Every byte of a checkpointed ledger, flipped: the content is the same, or the damage has a name.

use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use abide_ledger::{
    Append, Commit, Cursor, Damage, Head, Ledger, Loaded, NewFact, Options, Program, ReadError, Recorded, Row,
    RowMaker, RowOp, Snapshot, StreamId, Wake,
};
use serde_json::{Value, json};

use crate::world::{append_with_rows, archive_before, at, commit, fork_with_rows, said, say, stream, verify};

/// Small pages: as much structure in fewer bytes.
const PAGE: u32 = 512;

/// Without rows: sixty of them would only make the file longer.
fn append_bare(name: &str, expected: u64, texts: &[&str]) -> Append {
    let mut append = crate::world::append(name, expected, texts);
    append.facts = texts.iter().map(|text| NewFact::new("Bare", (*text).to_owned())).collect();
    append
}

fn rows_of(stream: &StreamId, fact: &Recorded) -> Vec<RowOp> {
    if &*fact.kind == "Bare" { Vec::new() } else { crate::world::rows_of(stream, fact) }
}

/// Everything a reader can see.
#[derive(Debug, PartialEq)]
struct Seen {
    streams: Vec<(StreamId, Head)>,
    origins: Vec<Option<(StreamId, u64)>>,
    loaded: Vec<Option<Loaded>>,
    rows: Vec<Vec<Row>>,
    followed: Vec<(Cursor, StreamId, Recorded)>,
    wakes: Vec<(StreamId, Wake)>,
}

fn seen(ledger: &Ledger) -> Result<Seen, ReadError> {
    let streams = ledger.streams(None, 99)?;
    let (mut origins, mut loaded, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for (stream, _) in &streams {
        origins.push(ledger.origin(stream)?);
        loaded.push(ledger.load(stream, "f")?);
        rows.push(ledger.rows(stream, "said", None, 999)?);
    }
    let followed = ledger.follow(Cursor::START).next_batch(usize::MAX)?;
    Ok(Seen { streams, origins, loaded, rows, followed, wakes: ledger.wakes(None, 99)? })
}

fn fresh() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

#[test]
fn every_flipped_byte_is_harmless_or_named() {
    let (even, odd) = (fresh(), fresh());
    std::thread::scope(|scope| {
        scope.spawn(|| flip_every_other_byte(even.path(), 0));
        scope.spawn(|| flip_every_other_byte(odd.path(), 1));
    });
}

fn flip_every_other_byte(home: &Path, first: usize) {
    fill(home);
    let database = home.join("ledger.db");
    let bytes = std::fs::read(&database).unwrap();
    let open = || Ledger::open(home, Options::read_only().by(making_rows()));
    let original = seen(&open().unwrap()).unwrap();
    let rows: HashSet<String> = original.rows.iter().flatten().map(|row| format!("{row:?}")).collect();
    let file = std::fs::OpenOptions::new().write(true).open(&database).unwrap();
    for offset in (first..bytes.len()).step_by(2) {
        let flipped = bytes[offset] ^ (1 << (offset / 2 % 8));
        file.write_all_at(&[flipped], offset as u64).unwrap();
        // Refused at the door is named too.
        if let Ok(ledger) = open() {
            let report = ledger.verify(&rows_of, &mut |_| {});
            let page = offset / PAGE as usize + 1;
            // A row may be missing, which `verify` names; none is ever another than it was.
            for (stream, _) in &original.streams {
                let served = ledger.rows(stream, "said", None, 999).unwrap_or_default();
                let changed: Vec<&Row> = served.iter().filter(|row| !rows.contains(&format!("{row:?}"))).collect();
                assert!(changed.is_empty(), "byte {offset}, page {page}, changed {changed:?}");
            }
            if report.is_intact() {
                assert_eq!(
                    seen(&ledger).ok().as_ref(),
                    Some(&original),
                    "byte {offset}, page {page}, changed unnoticed"
                );
            }
        }
        file.write_all_at(&[bytes[offset]], offset as u64).unwrap();
    }
    assert!(open().unwrap().verify(&rows_of, &mut |_| {}).is_intact());
}

/// A little of everything: an archive, marks, a fork, a blob, a redaction, rows, wakes, snapshots.
fn fill(home: &Path) {
    let ledger = Ledger::open(home, Options { page_size: PAGE, ..Options::default().by(making_rows()) }).unwrap();
    commit(&ledger, vec![append_bare("a", 0, &["t"; 66])]).unwrap();
    archive_before(&ledger, 2000);
    let large = "z".repeat(5000);
    commit(&ledger, vec![append_bare("a", 66, &["u", "v"]), append_with_rows("b", 0, &["one", "two"])]).unwrap();
    commit(&ledger, vec![append_with_rows("b", 2, &[&large]), append_bare("a", 68, &["w"])]).unwrap();
    commit(&ledger, vec![fork_with_rows(&ledger, "c", "b", 2, &["c3"])]).unwrap();
    ledger.redact(&stream("a"), 68).unwrap();
    let wakes = vec![
        (stream("a"), Some(Wake { due: None, why: "now".into() })),
        (stream("b"), Some(Wake { due: Some(at(99)), why: "later".into() })),
    ];
    let snapshots = vec![Snapshot { stream: stream("b"), seq: 2, fingerprint: "f".into(), state: b"state".to_vec() }];
    ledger.commit(Commit { wakes, snapshots, ..Commit::default() }).wait().unwrap();
    let report = ledger.verify(&rows_of, &mut |_| {});
    assert!(report.is_intact(), "{:#?}", report.damage);
}

#[test]
fn damage_to_one_agents_fact_is_named_and_others_are_readable() {
    let home = fresh();
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    for i in 0..50 {
        say(&ledger, "a", i, &[&format!("mine-{i}")]);
        say(&ledger, "b", i, &[&format!("theirs-{i}")]);
    }
    drop(ledger);
    let database = home.path().join("ledger.db");
    let mut bytes = std::fs::read(&database).unwrap();
    let place = bytes.windows(7).position(|window| window == b"mine-30").unwrap();
    bytes[place] ^= 1;
    std::fs::write(&database, &bytes).unwrap();
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    let Err(ReadError::Damaged(damage)) = ledger.read(&stream("a"), 0, 99) else { panic!("read as if whole") };
    assert!(matches!(&*damage, Damage::Fact { stream: s, seq: 31, .. } if *s == stream("a")), "{damage}");
    assert_eq!(said(&ledger, "b").len(), 50);
    assert_eq!(ledger.read(&stream("a"), 0, 30).unwrap().len(), 30);
    assert_eq!(ledger.read(&stream("a"), 31, 99).unwrap().len(), 19);
    // A follower hears of it once, in its place, and goes on.
    let mut follow = ledger.follow(Cursor::START);
    assert_eq!(follow.next_batch(999).unwrap().len(), 60);
    assert!(follow.is_behind());
    assert!(matches!(follow.next_batch(999), Err(ReadError::Damaged(_))));
    assert!(follow.is_behind());
    assert_eq!(follow.next_batch(999).unwrap().len(), 39);
    assert!(!follow.is_behind());
    let report = verify(&ledger);
    assert!(report.damage.contains(&damage), "{:#?}", report.damage);
    // Both agents go on.
    say(&ledger, "a", 50, &["more"]);
    say(&ledger, "b", 50, &["more"]);
}

#[test]
fn a_lost_tail_shows() {
    let home = fresh();
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    say(&ledger, "a", 0, &["1", "2", "3"]);
    drop(ledger);
    let conn = rusqlite::Connection::open(home.path().join("ledger.db")).unwrap();
    conn.execute("DELETE FROM facts WHERE seq = 3", []).unwrap();
    drop(conn);
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    assert!(matches!(ledger.read(&stream("a"), 0, 9), Err(ReadError::Damaged(_))));
    let report = ledger.verify(&|_, _| Vec::new(), &mut |_| {});
    let named: Vec<String> = report.damage.iter().map(ToString::to_string).collect();
    assert_eq!(named, ["agent/a: its head is at fact 3, the last one found is 2"]);
}

#[test]
fn a_damaged_snapshot_is_passed_over() {
    let home = fresh();
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    let snapshot = |seq, state: &str| Snapshot {
        stream: stream("a"),
        seq,
        fingerprint: "f".into(),
        state: state.as_bytes().to_vec(),
    };
    say(&ledger, "a", 0, &["1", "2", "3"]);
    let snapshots = vec![snapshot(1, "old"), snapshot(2, "new")];
    ledger.commit(Commit { snapshots, ..Commit::default() }).wait().unwrap();
    drop(ledger);
    let conn = rusqlite::Connection::open(home.path().join("ledger.db")).unwrap();
    conn.execute("UPDATE snapshots SET state = x'00' WHERE seq = 2", []).unwrap();
    drop(conn);
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    let loaded = ledger.load(&stream("a"), "f").unwrap().unwrap();
    assert_eq!((loaded.snapshot, loaded.tail.len()), (Some(snapshot(1, "old")), 2));
    let report = ledger.verify(&|_, _| Vec::new(), &mut |_| {});
    assert!(matches!(&report.damage[..], [Damage::Snapshot { seq: 2, .. }]), "{:#?}", report.damage);
}

#[test]
fn a_missing_blob_is_damage_to_one_fact() {
    let home = fresh();
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    say(&ledger, "a", 0, &["1", &"x".repeat(9000), "3"]);
    std::fs::remove_dir_all(home.path().join("blobs")).unwrap();
    std::fs::create_dir(home.path().join("blobs")).unwrap();
    let Err(ReadError::Damaged(damage)) = ledger.read(&stream("a"), 0, 9) else { panic!("read as if whole") };
    assert!(matches!(&*damage, Damage::Fact { seq: 2, .. }), "{damage}");
    assert_eq!(ledger.read(&stream("a"), 2, 9).unwrap().len(), 1);
    let report = ledger.verify(&|_, _| Vec::new(), &mut |_| {});
    assert!(matches!(&report.damage[..], [Damage::Fact { seq: 2, .. }]), "{:#?}", report.damage);
}

/// Damage that was found in passing, in this process.
static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A program that makes rows, so that damaged ones can be made again.
fn making_rows() -> Program {
    let report = |damage: &Damage| REPORTED.lock().unwrap().push(damage.to_string());
    Program { rows: Some(RowMaker { fingerprint: "rows", rows_of }), on_damage: report, ..Program::default() }
}

fn reported() -> Vec<String> {
    std::mem::take(&mut REPORTED.lock().unwrap())
}

fn open_with_rows(home: &Path) -> Ledger {
    Ledger::open(home, Options::default().by(making_rows())).unwrap()
}

fn texts(ledger: &Ledger, name: &str) -> Vec<Value> {
    ledger.rows(&stream(name), "said", None, 99).unwrap().into_iter().map(|row| row.value).collect()
}

fn sql(home: &Path, sql: &str) {
    rusqlite::Connection::open(home.join("ledger.db")).unwrap().execute_batch(sql).unwrap();
}

/// A row after a flipped bit: another text under the same checksum.
const CHANGED: &str = r#"UPDATE rows SET value = CAST('{"text":"tvo"}' AS BLOB) WHERE stream = 1 AND id = '0002'"#;
const NAMED: &str = "agent/a row said/0002: its checksum does not match";

fn with_rows(home: &Path) -> Vec<Value> {
    let ledger = open_with_rows(home);
    commit(&ledger, vec![append_with_rows("a", 0, &["one", "two"]), append_with_rows("b", 0, &["three"])]).unwrap();
    texts(&ledger, "a")
}

#[test]
fn a_damaged_row_is_folded_anew_when_it_is_read_and_reported() {
    let home = fresh();
    let written = with_rows(home.path());
    sql(home.path(), CHANGED);
    // A reader changes nothing, and is not shown what was changed.
    let reader = Ledger::open(home.path(), Options::read_only().by(making_rows())).unwrap();
    assert_eq!(texts(&reader, "a"), written);
    assert_eq!((reported(), reader.damaged_rows()), (vec![NAMED.to_owned()], 1));
    let report = verify(&reader);
    assert_eq!(report.damage.iter().map(ToString::to_string).collect::<Vec<_>>(), [NAMED]);
    drop(reader);
    let ledger = open_with_rows(home.path());
    assert_eq!(texts(&ledger, "a"), written);
    assert_eq!((reported(), ledger.stats().unwrap().damaged_rows), (vec![NAMED.to_owned()], 1));
    // It is repaired, once.
    assert_eq!(texts(&ledger, "a"), written);
    assert!(reported().is_empty());
    assert!(verify(&ledger).is_intact());
    assert_eq!(ledger.stats().unwrap().outdated_rows, 0);
    // Damage that comes later is new damage.
    sql(home.path(), CHANGED);
    assert_eq!(texts(&ledger, "a"), written);
    assert_eq!((reported(), ledger.damaged_rows()), (vec![NAMED.to_owned()], 2));
}

/// A patch on top of nothing would be half a row with a checksum of its own.
#[test]
fn a_damaged_row_that_a_commit_changes_is_folded_anew() {
    let home = fresh();
    with_rows(home.path());
    sql(home.path(), CHANGED);
    let ledger = open_with_rows(home.path());
    for (seq, text) in [(2, "two again"), (3, "and again")] {
        let mut more = append_with_rows("a", seq, &[text]);
        let patch = RowOp { plane: "said".into(), id: "0002".into(), patch: json!({ "more": true }) };
        more.facts[0].rows.push(patch);
        commit(&ledger, vec![more]).unwrap();
    }
    // Each commit finds it.
    assert_eq!((reported(), ledger.damaged_rows()), (vec![NAMED.to_owned()], 1));
    let rows = texts(&ledger, "a");
    let said: Vec<&Value> = rows.iter().filter_map(|row| row.get("text")).collect();
    assert_eq!(said, ["one", "two", "two again", "and again"]);
    assert!(verify(&ledger).is_intact());
}

#[test]
fn a_damaged_row_whose_facts_are_damaged_too_is_an_error() {
    let home = fresh();
    with_rows(home.path());
    sql(home.path(), CHANGED);
    sql(home.path(), "UPDATE facts SET payload = x'00' WHERE stream = 1 AND seq = 1");
    let ledger = open_with_rows(home.path());
    let refused = ledger.rows(&stream("a"), "said", None, 99).unwrap_err();
    assert!(refused.to_string().starts_with(NAMED), "{refused}");
    // Every reader is refused; the log has it once.
    ledger.rows(&stream("a"), "said", None, 99).unwrap_err();
    assert_eq!(reported(), [NAMED]);
    // The rows around it are as they were.
    assert_eq!(ledger.rows(&stream("a"), "said", None, 1).unwrap()[0].value, json!({ "text": "one" }));
    assert_eq!(texts(&ledger, "b").len(), 2);
}

/// Rows can't be rebuilt without the function that made them.
#[test]
fn a_damaged_row_without_its_maker_is_an_error() {
    let home = fresh();
    with_rows(home.path());
    sql(home.path(), CHANGED);
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    assert!(matches!(ledger.rows(&stream("a"), "said", None, 99), Err(ReadError::Damaged(_))));
    commit(&ledger, vec![append_with_rows("a", 2, &["three"])]).unwrap();
    assert!(matches!(ledger.rows(&stream("a"), "said", None, 99), Err(ReadError::Damaged(_))));
}
