//! Programs of several versions on one home: older homes are upgraded, newer ones refused, rows of others rebuilt.

use std::borrow::Cow;
use std::path::Path;

use abide_ledger::{
    Append, ImportError, Ledger, NewFact, OpenError, Options, Program, Recorded, Row, RowMaker, RowOp, StreamId,
    Upgraded,
};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::fixture;
use crate::world::{append, append_with_rows, at, commit, export, fork_with_rows, rows_of, said, say, stream, text};

/// The current format.
const FORMAT: i64 = 4;

/// A later version, which has facts that nobody before it can read.
fn later() -> Program {
    Program {
        version: "9.8.7",
        reader: 2,
        reader_of: |kind, _| if kind == "Sung" { 2 } else { 1 },
        ..Program::default()
    }
}

fn first_rows() -> Program {
    Program { rows: Some(RowMaker { fingerprint: "first", rows_of }), ..Program::default() }
}

/// The next version makes one row of each fact, with another name for the text.
fn second_rows_of(_: &StreamId, fact: &Recorded) -> Vec<RowOp> {
    let plane = Cow::Borrowed("said");
    vec![RowOp { plane, id: format!("{:04}", fact.seq), patch: json!({ "words": text(fact) }) }]
}

fn second_rows() -> Program {
    Program { rows: Some(RowMaker { fingerprint: "second", rows_of: second_rows_of }), ..Program::default() }
}

fn no_rows_of(_: &StreamId, _: &Recorded) -> Vec<RowOp> {
    Vec::new()
}

/// One that refuses no fact of the older homes: the kernel knows which readers there are.
fn any_reader() -> Program {
    Program { reader: u32::MAX, readers: &["0.1.0", "0.2.0"], ..Program::default() }
}

fn no_rows() -> Program {
    Program { rows: Some(RowMaker { fingerprint: "none", rows_of: no_rows_of }), ..any_reader() }
}

fn open(home: &Path, program: Program) -> Result<Ledger, OpenError> {
    Ledger::open(home, Options::default().by(program))
}

fn look(home: &Path, program: Program) -> Result<Ledger, OpenError> {
    Ledger::open(home, Options::read_only().by(program))
}

fn sql(home: &Path, sql: &str) {
    Connection::open(home.join("ledger.db")).unwrap().execute_batch(sql).unwrap();
}

fn sung(name: &str, expected: u64) -> Append {
    let facts = vec![NewFact::new("Sung", br#"{"text":"la"}"#.to_vec())];
    Append { facts, ..append(name, expected, &[]) }
}

/// The rows of a stream, as (id, value).
fn rows(ledger: &Ledger, name: &str) -> Vec<(String, Value)> {
    let rows = ledger.rows(&stream(name), "said", None, 99).unwrap();
    rows.into_iter().map(|Row { id, value, .. }| (id, value)).collect()
}

fn words(texts: &[&str]) -> Vec<(String, Value)> {
    texts.iter().zip(1..).map(|(text, seq)| (format!("{seq:04}"), json!({ "words": text }))).collect()
}

fn outdated(ledger: &Ledger) -> u64 {
    ledger.stats().unwrap().outdated_rows
}

#[test]
fn a_home_of_every_older_version_is_upgraded_and_intact() {
    for version in fixture::OLDER_FORMATS {
        let home = tempfile::tempdir().unwrap();
        fixture::unpack_home(version, home.path());
        let format = fixture::format(home.path());
        let refused = look(home.path(), any_reader()).unwrap_err();
        assert!(matches!(refused, OpenError::Outdated { known: FORMAT, .. }), "{refused}");
        let ledger = open(home.path(), no_rows()).unwrap();
        assert_eq!(ledger.upgraded(), Some(Upgraded { from: format, to: FORMAT }));
        let report = ledger.verify(&no_rows_of, &mut |_| {});
        assert!(report.is_intact(), "{version}: {:#?}", report.damage);
        assert_eq!(report.outdated_rows, report.streams, "nobody knows which version made them");
        assert!(report.segments > 0 && report.blobs > 0 && report.snapshots > 0 && report.wakes > 0, "{report:?}");
        assert_eq!(export(&ledger).as_bytes(), fixture::export(version), "{version}");
        drop(ledger);
        assert_eq!(open(home.path(), no_rows()).unwrap().upgraded(), None);
        look(home.path(), no_rows()).unwrap();
    }
}

#[test]
fn an_export_of_every_older_version_gives_the_same_ledger() {
    for version in fixture::VERSIONS {
        let home = tempfile::tempdir().unwrap();
        let (bytes, ledger) = (fixture::export(version), open(home.path(), any_reader()).unwrap());
        ledger.import_full(&mut &bytes[..], &|_, _| Vec::new(), &mut |_| {}).unwrap();
        assert_eq!(export(&ledger).as_bytes(), bytes, "{version}");
    }
}

#[test]
fn a_newer_format_is_refused_with_the_version_to_use() {
    let home = tempfile::tempdir().unwrap();
    say(&open(home.path(), later()).unwrap(), "a", 0, &["x"]);
    sql(home.path(), "PRAGMA user_version = 99; CREATE TABLE of_the_future (id INTEGER PRIMARY KEY)");
    for refused in [open(home.path(), Program::default()), look(home.path(), Program::default())] {
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("has format 99;") && said.ends_with(": use abide 9.8.7 or later"), "{said}");
    }
    sql(home.path(), "DROP TABLE versions");
    let said = open(home.path(), Program::default()).unwrap_err().to_string();
    assert!(said.ends_with("use the version that wrote it, or a later one"), "{said}");
    sql(home.path(), "PRAGMA user_version = 1");
    assert!(matches!(open(home.path(), Program::default()), Err(OpenError::TooOld { found: 1, .. })));
}

#[test]
fn the_first_fact_that_an_older_program_cannot_read_shuts_it_out() {
    let home = tempfile::tempdir().unwrap();
    let ledger = open(home.path(), later()).unwrap();
    say(&ledger, "a", 0, &["x"]);
    // A commit that is refused has not written it.
    commit(&ledger, vec![sung("a", 7)]).unwrap_err();
    drop(ledger);
    let ledger = open(home.path(), Program::default()).unwrap();
    assert_eq!(ledger.oldest_reader().unwrap().reader, 1);
    say(&ledger, "a", 1, &["y"]);
    drop(ledger);
    let ledger = open(home.path(), later()).unwrap();
    commit(&ledger, vec![sung("a", 2)]).unwrap();
    drop(ledger);
    for refused in [open(home.path(), Program::default()), look(home.path(), Program::default())] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, OpenError::NewerFacts { needs: 2, knows: 1, .. }), "{refused}");
        assert!(refused.to_string().ends_with("use abide 9.8.7 or later"), "{refused}");
    }
    assert_eq!(said(&open(home.path(), later()).unwrap(), "a"), ["x", "y", "la"]);
}

#[test]
fn an_export_names_the_oldest_reader_of_its_facts() {
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ledger = open(home.path(), later()).unwrap();
    say(&ledger, "a", 0, &["x"]);
    assert!(export(&ledger).starts_with("{\"abide_ledger\":1}\n"), "every version can read it so far");
    commit(&ledger, vec![sung("a", 1)]).unwrap();
    let exported = export(&ledger);
    // Programs from before there were readers know the first format only.
    assert!(exported.starts_with("{\"abide_ledger\":2,\"oldest_reader\":2,\"program\":\"9.8.7\"}\n"), "{exported}");
    let into = open(other.path(), Program::default()).unwrap();
    let refused = into.import_full(&mut exported.as_bytes(), &rows_of, &mut |_| {}).unwrap_err();
    assert!(matches!(refused, ImportError::NewerFacts { needs: 2, knows: 1, .. }), "{refused}");
    assert!(refused.to_string().ends_with("nothing was imported: use abide 9.8.7 or later"), "{refused}");
    assert!(into.streams(None, 9).unwrap().is_empty());
    drop(into);
    let into = open(other.path(), later()).unwrap();
    into.import_full(&mut exported.as_bytes(), &rows_of, &mut |_| {}).unwrap();
    assert_eq!(export(&into), exported);
    drop(into);
    assert!(matches!(open(other.path(), Program::default()), Err(OpenError::NewerFacts { .. })));
}

/// Two agents and a fork, with rows of the first version.
fn with_first_rows(home: &Path) {
    let ledger = open(home, first_rows()).unwrap();
    commit(&ledger, vec![append_with_rows("a", 0, &["one", "two"]), append_with_rows("b", 0, &["three"])]).unwrap();
    commit(&ledger, vec![fork_with_rows(&ledger, "c", "a", 1, &["four"])]).unwrap();
    assert_eq!(outdated(&ledger), 0);
}

#[test]
fn rows_of_another_version_are_rebuilt_and_right_meanwhile() {
    let home = tempfile::tempdir().unwrap();
    with_first_rows(home.path());
    let ledger = open(home.path(), second_rows()).unwrap();
    assert_eq!((outdated(&ledger), ledger.upgraded()), (3, None));
    let report = ledger.verify(&second_rows_of, &mut |_| {});
    assert!(report.is_intact(), "rows of another version are no damage: {:#?}", report.damage);
    assert_eq!(report.outdated_rows, 3);
    // Asked for before anything was rebuilt, also of a stream that went on.
    assert_eq!(rows(&ledger, "a"), words(&["one", "two"]));
    let mut more = append("b", 1, &["five"]);
    more.facts[0].rows = vec![RowOp { plane: "said".into(), id: "0002".into(), patch: json!({ "words": "five" }) }];
    commit(&ledger, vec![more]).unwrap();
    assert_eq!(rows(&ledger, "b"), words(&["three", "five"]));
    assert_eq!(outdated(&ledger), 1, "what was asked for was stored");
    let rebuilt = ledger.rebuild_outdated_rows(&|| false).unwrap();
    assert_eq!((rebuilt.streams, rebuilt.unreadable.len()), (1, 0));
    assert_eq!(rows(&ledger, "c"), words(&["one", "four"]));
    let report = ledger.verify(&second_rows_of, &mut |_| {});
    assert!(report.is_intact() && report.outdated_rows == 0, "{report:?}");
}

#[test]
fn a_rebuild_that_was_cut_off_goes_on_at_the_next_open() {
    let home = tempfile::tempdir().unwrap();
    with_first_rows(home.path());
    let ledger = open(home.path(), second_rows()).unwrap();
    let asked = std::cell::Cell::new(0);
    // Told to stop in the middle of the second stream.
    let stop = || asked.replace(asked.get() + 1) > 3;
    assert_eq!(ledger.rebuild_outdated_rows(&stop).unwrap().streams, 1);
    drop(ledger);
    let ledger = open(home.path(), second_rows()).unwrap();
    assert_eq!(outdated(&ledger), 2);
    assert_eq!(ledger.rebuild_outdated_rows(&|| false).unwrap().streams, 2);
    assert_eq!(outdated(&ledger), 0);
    drop(ledger);
    let ledger = open(home.path(), second_rows()).unwrap();
    assert_eq!((outdated(&ledger), rows(&ledger, "c")), (0, words(&["one", "four"])));
}

#[test]
fn a_reader_sees_its_own_rows_and_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    with_first_rows(home.path());
    let reader = look(home.path(), second_rows()).unwrap();
    assert_eq!(rows(&reader, "a"), words(&["one", "two"]));
    assert_eq!((outdated(&reader), reader.verify(&second_rows_of, &mut |_| {}).outdated_rows), (3, 3));
    drop(reader);
    let ledger = open(home.path(), first_rows()).unwrap();
    assert_eq!(outdated(&ledger), 0);
    assert_eq!(rows(&ledger, "b")[0].1, json!({ "text": "three" }));
}

#[test]
fn where_facts_are_damaged_the_rows_stay_and_it_is_said() {
    let home = tempfile::tempdir().unwrap();
    with_first_rows(home.path());
    sql(home.path(), "UPDATE facts SET payload = x'00' WHERE stream = 1 AND seq = 2");
    let ledger = open(home.path(), second_rows()).unwrap();
    assert_eq!(rows(&ledger, "a")[1].1, json!({ "text": "two" }), "as the other version left them");
    let rebuilt = ledger.rebuild_outdated_rows(&|| false).unwrap();
    assert_eq!(rebuilt.streams, 2, "the others are not held up");
    let stats = ledger.stats().unwrap();
    assert_eq!((stats.outdated_rows, stats.unreadable_rows), (1, 1));
    assert_eq!(rows(&ledger, "b"), words(&["three"]));
    drop(ledger);
    let ledger = open(home.path(), second_rows()).unwrap();
    assert_eq!(ledger.stats().unwrap().unreadable_rows, 0, "it is tried again");
    assert_eq!(ledger.rebuild_outdated_rows(&|| false).unwrap().unreadable[0].0, stream("a"));
}

#[test]
fn rebuilding_all_rows_leaves_none_outdated() {
    let home = tempfile::tempdir().unwrap();
    with_first_rows(home.path());
    let ledger = open(home.path(), second_rows()).unwrap();
    ledger.rebuild_rows(&second_rows_of, &mut |_| {}).unwrap();
    assert_eq!((outdated(&ledger), rows(&ledger, "a")), (0, words(&["one", "two"])));
}

/// A replication tool may keep a table of its own beside ours. A trigger could change our facts.
#[test]
fn a_table_of_somebody_else_is_left_alone_and_a_trigger_on_ours_refused() {
    let home = tempfile::tempdir().unwrap();
    say(&open(home.path(), Program::default()).unwrap(), "a", 0, &["x"]);
    sql(
        home.path(),
        "CREATE TABLE _replica (id INTEGER PRIMARY KEY, seq INTEGER); CREATE INDEX _by_seq ON _replica (seq)",
    );
    let ledger = open(home.path(), Program::default()).unwrap();
    assert!(ledger.verify(&|_, _| Vec::new(), &mut |_| {}).is_intact());
    drop(ledger);
    sql(home.path(), "CREATE TRIGGER meddler AFTER INSERT ON Facts BEGIN DELETE FROM wakes; END");
    let said = open(home.path(), Program::default()).unwrap_err().to_string();
    assert!(said.contains("the schema has the trigger meddler on"), "{said}");
    sql(home.path(), "DROP TRIGGER meddler; CREATE UNIQUE INDEX one_wake ON wakes (why)");
    assert!(matches!(open(home.path(), Program::default()), Err(OpenError::NotALedger { .. })));
}

#[test]
fn a_damaged_version_is_named() {
    let home = tempfile::tempdir().unwrap();
    let ledger = open(home.path(), Program::default()).unwrap();
    ledger
        .commit(abide_ledger::Commit::append(stream("a"), 0, at(1), vec![NewFact::new("Said", b"{}".to_vec())]))
        .wait()
        .unwrap();
    drop(ledger);
    sql(home.path(), "UPDATE versions SET number = 7 WHERE name = 'oldest_reader'");
    let ledger = open(home.path(), Program::default()).unwrap();
    let report = ledger.verify(&|_, _| Vec::new(), &mut |_| {});
    let named: Vec<String> = report.damage.iter().map(ToString::to_string).collect();
    let what = "it is not what was written: `abide ledger verify --rebuild-rows` writes it again";
    assert_eq!(named, [format!("versions/oldest_reader: {what}")]);
    assert!(export(&ledger).starts_with("{\"abide_ledger\":1}"), "it can still be exported");
    ledger.rebuild_rows(&no_rows_of, &mut |_| {}).unwrap();
    assert!(ledger.verify(&no_rows_of, &mut |_| {}).is_intact());
}
