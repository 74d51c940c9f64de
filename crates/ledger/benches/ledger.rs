//! How fast the ledger appends, against the same work done bare, in the same run, on the same disk.
//!
//! One JSON line per figure: `{"name","value","unit","baseline","ratio","goal"}`; the goal says which way the ratio
//! should go.

#![allow(clippy::disallowed_methods, reason = "measurements make files as users do")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench stops where it fails, and prints its figures")]

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use abide_kernel::id::AgentId;
use abide_kernel::time::Time;
use abide_ledger::{Commit, Ledger, NewFact, Options, Receipt, RowOp, StreamId};
use rusqlite::Connection;

const PAYLOAD: usize = 300;
const ROUNDS: usize = 5;

fn main() {
    // Cargo hands `--bench` to every bench; anything else is a wish for fewer figures.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wish| name.contains(wish.as_str()));
    if wants("ledger.append.64") {
        let (value, baseline) = paired(|dir| tasks(dir, 64, 40_000), |dir| bare(dir, 64, 64, 40_000));
        print("ledger.append.64", value, "facts/s", baseline, ">= 0.4");
    }
    if wanted.iter().any(|wish| wish == "threads") {
        let (value, baseline) = paired(|dir| threads(dir, 64, 40_000), |dir| bare(dir, 64, 64, 40_000));
        print("ledger.append.64.threads", value, "facts/s", baseline, ">= 0.3");
    }
    if wants("ledger.append.1024") {
        let (value, baseline) = paired(|dir| outstanding(dir, 1024, 100_000), |dir| bare(dir, 1024, 1000, 100_000));
        print("ledger.append.1024", value, "facts/s", baseline, ">= 0.5");
    }
    if wants("ledger.rows") {
        let (value, baseline) = paired(|dir| row_writes(dir, 256, 40_000), |dir| bare_row_writes(dir, 256, 40_000));
        print("ledger.rows", value, "facts/s", baseline, ">= 0.3");
    }
    if wants("ledger.latency") {
        let (value, baseline) = paired(|dir| latency(dir, 1000), |dir| bare_latency(dir, 1000));
        print("ledger.latency", value, "us", baseline, "<= 2");
    }
    if wants("ledger.read") {
        let (value, baseline) = paired(|dir| read_back(dir, 200_000), |dir| bare_read(dir, 200_000));
        print("ledger.read", value, "facts/s", baseline, ">= 0.3");
    }
}

fn print(name: &str, value: f64, unit: &str, baseline: f64, goal: &str) {
    let ratio = value / baseline;
    println!(
        "{}",
        serde_json::json!({ "name": name, "value": value.round(), "unit": unit, "baseline": baseline.round(),
            "ratio": (ratio * 100.0).round() / 100.0, "goal": goal })
    );
}

/// Medians of both, taken in turns so that a slow minute of the disk hits them alike.
fn paired(value: impl Fn(&Path) -> f64, baseline: impl Fn(&Path) -> f64) -> (f64, f64) {
    let run = |work: &dyn Fn(&Path) -> f64| {
        let dir = tempfile::tempdir().unwrap();
        work(dir.path())
    };
    let (mut values, mut baselines): (Vec<f64>, Vec<f64>) = (0..ROUNDS).map(|_| (run(&value), run(&baseline))).unzip();
    let median = |list: &mut Vec<f64>| {
        list.sort_by(f64::total_cmp);
        list[list.len() / 2]
    };
    (median(&mut values), median(&mut baselines))
}

fn stream(i: usize) -> StreamId {
    StreamId::agent(&AgentId::new(&format!("agent-{i}")).unwrap())
}

fn payload(i: u64) -> Vec<u8> {
    let mut payload = format!("{{\"n\":{i:016},\"text\":\"").into_bytes();
    payload.resize(PAYLOAD - 2, b'x');
    payload.extend_from_slice(b"\"}");
    payload
}

fn one(stream: &StreamId, expected: u64, i: u64) -> Commit {
    Commit::append(stream.clone(), expected, Time::from_ms(1_700_000_000_000), vec![NewFact::new("Said", payload(i))])
}

fn rate(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

/// Each task has a stream and waits for each of its commits: committers as the runtime has them.
fn tasks(dir: &Path, tasks: usize, count: u64) -> f64 {
    let ledger = Ledger::open(dir, Options::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let next = Arc::new(AtomicU64::new(0));
    let begin = Instant::now();
    runtime.block_on(async {
        let committers: Vec<_> = (0..tasks)
            .map(|t| {
                let (ledger, next, stream) = (ledger.clone(), Arc::clone(&next), stream(t));
                tokio::spawn(async move {
                    let mut seq = 0;
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        if i >= count {
                            return;
                        }
                        seq = ledger.commit(one(&stream, seq, i)).await.unwrap().heads[0].seq;
                    }
                })
            })
            .collect();
        for committer in committers {
            committer.await.unwrap();
        }
    });
    rate(count, begin.elapsed())
}

/// The same with a thread each: what is added is the system waking 64 threads per sync. Only when asked for.
fn threads(dir: &Path, threads: usize, count: u64) -> f64 {
    let ledger = Ledger::open(dir, Options::default()).unwrap();
    let next = AtomicU64::new(0);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for t in 0..threads {
            let (ledger, next) = (&ledger, &next);
            scope.spawn(move || {
                let stream = stream(t);
                let mut seq = 0;
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        return;
                    }
                    seq = ledger.commit(one(&stream, seq, i)).wait().unwrap().heads[0].seq;
                }
            });
        }
    });
    rate(count, begin.elapsed())
}

/// One thread keeps this many commits under way, each of another stream.
fn outstanding(dir: &Path, outstanding: usize, count: u64) -> f64 {
    let ledger = Ledger::open(dir, Options::default()).unwrap();
    let streams: Vec<StreamId> = (0..outstanding).map(stream).collect();
    let mut receipts: std::collections::VecDeque<(usize, Receipt)> = std::collections::VecDeque::new();
    let mut seqs = vec![0; outstanding];
    let begin = Instant::now();
    for i in 0..count {
        let s = i as usize % outstanding;
        if receipts.len() == outstanding {
            let (s, receipt) = receipts.pop_front().unwrap();
            seqs[s] = receipt.wait().unwrap().heads[0].seq;
        }
        receipts.push_back((s, ledger.commit(one(&streams[s], seqs[s], i))));
    }
    for (_, receipt) in receipts {
        receipt.wait().unwrap();
    }
    rate(count, begin.elapsed())
}

fn bare_database(dir: &Path) -> Connection {
    let conn = Connection::open(dir.join("bare.db")).unwrap();
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE facts (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
            kind INTEGER NOT NULL, form INTEGER NOT NULL, payload BLOB NOT NULL, hash BLOB NOT NULL, prev INTEGER NOT NULL);",
    )
    .unwrap();
    conn
}

/// The same facts, a column for each field, by one thread, in transactions of a size: no chain, no heads, nobody to
/// answer.
fn bare(dir: &Path, streams: u64, batch: u64, count: u64) -> f64 {
    let conn = bare_database(dir);
    let begin = Instant::now();
    let mut i = 0;
    while i < count {
        let transaction = conn.unchecked_transaction().unwrap();
        let mut add = conn
            .prepare_cached("INSERT INTO facts (id, stream, seq, at, kind, form, payload, hash, prev) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
            .unwrap();
        for _ in 0..batch.min(count - i) {
            let hash = [7u8; 32];
            let id = i64::try_from(i + 1).unwrap();
            let stream = i64::try_from(i % streams).unwrap();
            add.execute((id, stream, id, 1_700_000_000_000i64, 1, 0, payload(i), &hash[..], id)).unwrap();
            i += 1;
        }
        drop(add);
        transaction.commit().unwrap();
    }
    rate(count, begin.elapsed())
}

/// A row as lists show it: made by the first of four facts, and patched by the others.
fn row(i: u64) -> RowOp {
    let patch = match i % 4 {
        0 => serde_json::json!({ "message_id": format!("msg_{i:032}"), "status": "queued", "text": "x".repeat(160) }),
        step => serde_json::json!({ "status": "dequeued", "step": step }),
    };
    RowOp { plane: "messages".into(), id: format!("msg_{:032}", i / 4), patch }
}

/// One thread keeps this many commits under way, each with a fact and a row of it.
fn row_writes(dir: &Path, outstanding: usize, count: u64) -> f64 {
    let ledger = Ledger::open(dir, Options::default()).unwrap();
    let streams: Vec<StreamId> = (0..outstanding).map(stream).collect();
    let mut receipts: std::collections::VecDeque<(usize, Receipt)> = std::collections::VecDeque::new();
    let mut seqs = vec![0; outstanding];
    let begin = Instant::now();
    for i in 0..count {
        let s = i as usize % outstanding;
        if receipts.len() == outstanding {
            let (s, receipt) = receipts.pop_front().unwrap();
            seqs[s] = receipt.wait().unwrap().heads[0].seq;
        }
        let mut commit = one(&streams[s], seqs[s], i);
        commit.appends[0].facts[0].rows = vec![row(i / outstanding as u64)];
        receipts.push_back((s, ledger.commit(commit)));
    }
    for (_, receipt) in receipts {
        receipt.wait().unwrap();
    }
    rate(count, begin.elapsed())
}

/// The same facts, and the rows as they come, without a look at what was there.
fn bare_row_writes(dir: &Path, streams: u64, count: u64) -> f64 {
    let conn = bare_database(dir);
    conn.execute_batch(
        "CREATE TABLE rows (stream INTEGER NOT NULL, plane TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL,
            value BLOB NOT NULL, PRIMARY KEY (stream, plane, id)) WITHOUT ROWID",
    )
    .unwrap();
    let begin = Instant::now();
    let mut i = 0;
    while i < count {
        let transaction = conn.unchecked_transaction().unwrap();
        let mut add = conn
            .prepare_cached("INSERT INTO facts (id, stream, seq, at, kind, form, payload, hash, prev) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
            .unwrap();
        let mut set = conn
            .prepare_cached("INSERT INTO rows (stream, plane, id, seq, value) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq, value = excluded.value")
            .unwrap();
        for _ in 0..streams.min(count - i) {
            let (id, stream) = (i64::try_from(i + 1).unwrap(), i64::try_from(i % streams).unwrap());
            add.execute((id, stream, id, 1_700_000_000_000i64, 1, 0, payload(i), &[7u8; 32][..], id)).unwrap();
            let RowOp { plane, id: row, patch } = row(i / streams);
            set.execute((stream, plane.as_ref(), row, id, patch.to_string().into_bytes())).unwrap();
            i += 1;
        }
        drop((add, set));
        transaction.commit().unwrap();
    }
    rate(count, begin.elapsed())
}

/// Microseconds, the median of one committer's waits.
fn latency(dir: &Path, count: u64) -> f64 {
    let ledger = Ledger::open(dir, Options::default()).unwrap();
    let stream = stream(0);
    median_of((0..count).map(|i| {
        let commit = one(&stream, i, i);
        let begin = Instant::now();
        ledger.commit(commit).wait().unwrap();
        begin.elapsed()
    }))
}

fn bare_latency(dir: &Path, count: u64) -> f64 {
    let mut file = std::fs::File::create(dir.join("bare")).unwrap();
    median_of((0..count).map(|i| {
        let payload = payload(i);
        let begin = Instant::now();
        file.write_all(&payload).unwrap();
        file.sync_data().unwrap();
        begin.elapsed()
    }))
}

fn median_of(times: impl Iterator<Item = Duration>) -> f64 {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// One stream's whole history, chain checked, against stepping through the same rows.
fn read_back(dir: &Path, count: u64) -> f64 {
    let ledger = Ledger::open(dir, Options::default()).unwrap();
    let stream = stream(0);
    let mut seq = 0;
    while seq < count {
        let facts = (seq..seq + 1000).map(|i| NewFact::new("Said", payload(i))).collect();
        seq = ledger.commit(Commit::append(stream.clone(), seq, Time::EPOCH, facts)).wait().unwrap().heads[0].seq;
    }
    let begin = Instant::now();
    let mut after = 0;
    while after < count {
        after = ledger.read(&stream, after, 10_000).unwrap().last().unwrap().seq;
    }
    rate(count, begin.elapsed())
}

fn bare_read(dir: &Path, count: u64) -> f64 {
    bare(dir, 1, 1000, count);
    let conn = Connection::open(dir.join("bare.db")).unwrap();
    let begin = Instant::now();
    let mut statement = conn.prepare("SELECT id, stream, seq, at, kind, form, payload, hash, prev FROM facts").unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut bytes = 0;
    while let Some(row) = rows.next().unwrap() {
        let payload: Vec<u8> = row.get(6).unwrap();
        let hash: Vec<u8> = row.get(7).unwrap();
        bytes += payload.len() + hash.len() + row.get::<_, i64>(2).unwrap() as usize;
    }
    assert!(bytes > 0);
    rate(count, begin.elapsed())
}
