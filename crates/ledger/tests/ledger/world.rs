//! Shared code of the tests: short names for streams, facts and times, and one of each store.

use std::borrow::Cow;

use abide_kernel::id::{AgentId, Seq};
use abide_kernel::time::Time;
use abide_ledger::{
    Append, ArchiveBounds, ArchiveReport, Commit, CommitError, Committed, ForkPoint, Hash, ImportError, Ledger,
    NewFact, Options, Payload, Recorded, RowOp, StreamId, Transferred, VerifyReport,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A ledger, and the folder that goes when it goes.
pub struct Store {
    pub ledger: Ledger,
    pub home: Option<TempDir>,
}

pub fn sqlite() -> Store {
    let home = tempfile::tempdir().unwrap();
    Store { ledger: Ledger::open(home.path(), Options::default()).unwrap(), home: Some(home) }
}

/// Runs a check on every store. The check's name comes with the failure.
pub fn on_every_store(check: impl Fn(&Store)) {
    check(&Store { ledger: Ledger::memory(), home: None });
    check(&sqlite());
}

pub fn stream(name: &str) -> StreamId {
    StreamId::agent(&AgentId::new(name).unwrap())
}

pub fn at(ms: i64) -> Time {
    Time::from_ms(ms)
}

pub fn fact(text: &str) -> NewFact {
    NewFact::new("Said", json!({ "text": text }).to_string())
}

pub fn append(name: &str, expected: Seq, texts: &[&str]) -> Append {
    let facts = texts.iter().map(|text| fact(text)).collect();
    Append { stream: stream(name), expected, at: at(1000), facts, fork_of: None }
}

pub fn commit(ledger: &Ledger, appends: Vec<Append>) -> Result<Committed, CommitError> {
    ledger.commit(Commit { appends, ..Commit::default() }).wait()
}

pub fn say(ledger: &Ledger, name: &str, expected: Seq, texts: &[&str]) {
    commit(ledger, vec![append(name, expected, texts)]).unwrap();
}

/// The texts that `fact` wrote, of the whole stream.
pub fn said(ledger: &Ledger, name: &str) -> Vec<String> {
    ledger.read(&stream(name), 0, usize::MAX).unwrap().iter().map(text).collect()
}

pub fn text(fact: &Recorded) -> String {
    match fact.payload.bytes() {
        Some(bytes) => {
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            value["text"].as_str().unwrap().to_owned()
        }
        None => "(redacted)".to_owned(),
    }
}

/// A row for each thing said, and one that counts.
pub fn rows_of(_: &StreamId, fact: &Recorded) -> Vec<RowOp> {
    if fact.payload.bytes().is_none() {
        return Vec::new();
    }
    let plane = Cow::Borrowed("said");
    vec![
        RowOp { plane: plane.clone(), id: format!("{:04}", fact.seq), patch: json!({ "text": text(fact) }) },
        RowOp { plane, id: "last".to_owned(), patch: json!({ "seq": fact.seq, "at": fact.at }) },
    ]
}

/// The same as `append`, with the rows that `rows_of` makes of it.
pub fn append_with_rows(name: &str, expected: Seq, texts: &[&str]) -> Append {
    let mut append = append(name, expected, texts);
    let (stream, at) = (append.stream.clone(), append.at);
    for (fact, seq) in append.facts.iter_mut().zip(expected + 1..) {
        fact.rows = rows_of(&stream, &as_recorded(fact, seq, at));
    }
    append
}

/// A fork with rows: its own, and those of the shared facts.
pub fn fork_with_rows(ledger: &Ledger, name: &str, parent: &str, seq: Seq, texts: &[&str]) -> Append {
    let mut append = append_with_rows(name, seq, texts);
    append.expected = 0;
    let shared = ledger.read(&stream(parent), 0, usize::try_from(seq).unwrap()).unwrap();
    let ops = shared.iter().flat_map(|fact| rows_of(&append.stream, fact).into_iter().map(|op| (fact.seq, op)));
    append.fork_of = Some(ForkPoint { parent: stream(parent), seq, rows: ops.collect() });
    append
}

fn as_recorded(fact: &NewFact, seq: Seq, at: Time) -> Recorded {
    let payload = Payload::of(fact.payload.clone());
    Recorded { seq, at, kind: fact.kind.as_ref().into(), payload, hash: Hash::NONE }
}

pub fn verify(ledger: &Ledger) -> VerifyReport {
    ledger.verify(&rows_of, &mut |_| {})
}

pub fn assert_intact(ledger: &Ledger) {
    let report = verify(ledger);
    assert!(report.is_intact(), "{:#?}", report.damage);
}

pub fn archive_before(ledger: &Ledger, ms: i64) -> ArchiveReport {
    let policy = ArchiveBounds { older_than: Some(at(ms)), ..ArchiveBounds::default() };
    ledger.archive(policy, &mut |_| {}).unwrap()
}

pub fn export(ledger: &Ledger) -> String {
    let mut bytes = Vec::new();
    ledger.export_full(&mut bytes, &mut |_| {}).unwrap();
    String::from_utf8(bytes).unwrap()
}

pub fn import(ledger: &Ledger, text: &str) -> Result<Transferred, ImportError> {
    ledger.import_full(&mut text.as_bytes(), &rows_of, &mut |_| {})
}
