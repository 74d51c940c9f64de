//! The daemon as its users meet it: messages over HTTP, a hundred thousand agents asleep, and how fast it is there.

#![allow(clippy::disallowed_methods, reason = "measurements make files as users do")]
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench stops where it fails, and prints its figures")]

#[path = "daemon/models.rs"]
mod models;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use abide_engine::{Core, Request};
use abide_kernel::AgentState;
use abide_kernel::config::{Config, Identity};
use abide_kernel::id::AgentId;
use abide_kernel::input::{Input, NewMessage};
use abide_kernel::time::Time;
use abide_ledger::{Commit, Ledger, NewFact, Options, StreamId};

const CLIENTS: usize = 64;
const ASLEEP: u64 = 100_000;
const OPEN: u64 = 10;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wish| name.starts_with(wish.as_str()));
    if wants("engine.admit") {
        admit();
    }
    if wants("hooks.ingest") {
        ingest();
    }
    if wants("models.overhead") {
        models::overhead();
    }
    if wants("models.history") {
        models::history();
    }
    if wants("engine.asleep") || wants("engine.boot") {
        asleep();
    }
}

fn print(name: &str, value: f64, unit: &str, baseline: f64, ratio: f64, goal: &str) {
    println!(
        r#"{{"name":"{name}","value":{value:.2},"unit":"{unit}","baseline":{baseline:.2},"ratio":{ratio:.3},"goal":"{goal}"}}"#
    );
}

fn agent(number: u64) -> AgentId {
    AgentId::new(&format!("agent-{number}")).unwrap()
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

/// A daemon of our own; ended when it is dropped.
struct Daemon {
    child: Child,
    url: String,
    token: String,
    ready_after: Duration,
}

impl Daemon {
    fn start(home: &Path) -> Daemon {
        let begin = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_abide"))
            .args(["--json", "--home"])
            .arg(home)
            .args(["up", "--listen", "127.0.0.1:0"])
            .env("ABIDE_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready_after = begin.elapsed();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        let token = std::fs::read_to_string(home.join("token")).unwrap().trim().to_owned();
        Daemon { child, url: ready["url"].as_str().unwrap().to_owned(), token, ready_after }
    }

    fn resident_bytes(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0
    }

    fn address(&self) -> String {
        self.url.trim_start_matches("http://").to_owned()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let told = Command::new("kill").arg(self.child.id().to_string()).status();
        if told.is_err() {
            drop(self.child.kill());
        }
        drop(self.child.wait());
    }
}

/// One client on one connection, as little in the way as possible: it writes, and reads until the answer is whole.
struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// How much of it the last answer took.
    filled: usize,
}

impl Client {
    fn connect(address: &str) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, buffer: vec![0; 16 * 1024], filled: 0 }
    }

    fn post(&mut self, path: &str, token: &str, body: &str) -> u16 {
        self.send(path, &format!("Authorization: Bearer {token}\r\n"), body)
    }

    /// The body of the last answer, and what was read before it.
    fn said(&self) -> String {
        String::from_utf8_lossy(&self.buffer[..self.filled]).into_owned()
    }

    fn send(&mut self, path: &str, header: &str, body: &str) -> u16 {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{header}\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).unwrap();
        let mut filled = 0;
        loop {
            filled += self.stream.read(&mut self.buffer[filled..]).unwrap();
            let text = std::str::from_utf8(&self.buffer[..filled]).unwrap();
            if let Some((head, rest)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                if rest.len() >= length.parse::<usize>().unwrap() {
                    self.filled = filled;
                    return head[9..12].parse().unwrap();
                }
            }
        }
    }
}

struct Admitted {
    per_second: f64,
    p99_ms: f64,
}

impl Admitted {
    fn of(mut times: Vec<f64>, took: Duration) -> Admitted {
        times.sort_by(f64::total_cmp);
        Admitted { per_second: times.len() as f64 / took.as_secs_f64(), p99_ms: times[times.len() * 99 / 100] }
    }
}

fn admit() {
    let mut runs = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        runs.0.push(admitted(CLIENTS));
        runs.1.push(admitted(1));
        runs.2.push(appended(40_000));
    }
    let baseline = median(runs.2);
    for (name, runs) in [("engine.admit", runs.0), ("engine.admit.one", runs.1)] {
        let p99 = median(runs.iter().map(|run| run.p99_ms).collect());
        let value = median(runs.iter().map(|run| run.per_second).collect());
        let unit = format!("messages/s over HTTP, p99 {p99:.1} ms, baseline appends/s of 64");
        print(name, value, &unit, baseline, value / baseline, ">= 0.1");
    }
}

/// 64 clients that post to so many stopped agents.
fn admitted(agents: usize) -> Admitted {
    const MESSAGES: u64 = 6_000;
    let home = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    let mut first = Client::connect(&daemon.address());
    for number in 0..agents {
        let body = format!(r#"{{"id":"agent-{number}","start":false}}"#);
        assert_eq!(first.post("/v1/agents", &daemon.token, &body), 201);
    }
    let next = Arc::new(AtomicU64::new(0));
    let begin = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (next, address, token) = (Arc::clone(&next), daemon.address(), daemon.token.clone());
            std::thread::spawn(move || {
                let mut connection = Client::connect(&address);
                let path = format!("/v1/agents/agent-{}/messages", client % agents);
                let mut times = Vec::new();
                while next.fetch_add(1, Ordering::Relaxed) < MESSAGES {
                    let sent = Instant::now();
                    assert_eq!(connection.post(&path, &token, r#"{"text":"Please look at the build."}"#), 202);
                    times.push(sent.elapsed().as_secs_f64() * 1e3);
                }
                times
            })
        })
        .collect();
    let times: Vec<f64> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    Admitted::of(times, begin.elapsed())
}

/// Deliveries that are acknowledged, against messages in the same run; and those that carry an id, which is kept, too.
fn ingest() {
    let mut runs = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        runs.0.push(ingested(false));
        runs.1.push(ingested(true));
        runs.2.push(admitted(CLIENTS));
    }
    let rate = |runs: &[Admitted]| median(runs.iter().map(|run| run.per_second).collect());
    let baseline = rate(&runs.2);
    for (name, runs, goal) in [("hooks.ingest", runs.0, ">= 0.8"), ("hooks.ingest.id", runs.1, ">= 0.5")] {
        let p99 = median(runs.iter().map(|run| run.p99_ms).collect());
        let value = rate(&runs);
        let unit = format!("deliveries/s, p99 {p99:.1} ms, baseline messages/s of engine.admit");
        print(name, value, &unit, baseline, value / baseline, goal);
    }
}

/// 64 clients that deliver to as many stopped agents, perhaps each under an id of its own.
fn ingested(ids: bool) -> Admitted {
    const DELIVERIES: u64 = 6_000;
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("config.toml"), "hook_rate = 1000000\n").unwrap();
    let daemon = Daemon::start(home.path());
    let mut first = Client::connect(&daemon.address());
    let paths: Vec<String> = (0..CLIENTS)
        .map(|number| {
            let body = format!(r#"{{"id":"agent-{number}","start":false}}"#);
            assert_eq!(first.post("/v1/agents", &daemon.token, &body), 201);
            let triggers = format!("/v1/agents/agent-{number}/triggers");
            assert_eq!(first.post(&triggers, &daemon.token, r#"{"name":"builds"}"#), 201);
            let made = first.said();
            made[made.find("/hooks/").unwrap()..].split('"').next().unwrap().to_owned()
        })
        .collect();
    let next = Arc::new(AtomicU64::new(0));
    let begin = Instant::now();
    let clients: Vec<_> = paths
        .into_iter()
        .map(|path| {
            let (next, address) = (Arc::clone(&next), daemon.address());
            std::thread::spawn(move || {
                let mut connection = Client::connect(&address);
                let mut times = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= DELIVERIES {
                        return times;
                    }
                    let sent = Instant::now();
                    let id = if ids { format!("webhook-id: {number}\r\n") } else { String::new() };
                    assert_eq!(connection.send(&path, &id, r#"{"text":"Please look at the build."}"#), 202);
                    times.push(sent.elapsed().as_secs_f64() * 1e3);
                }
            })
        })
        .collect();
    let times: Vec<f64> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    Admitted::of(times, begin.elapsed())
}

/// The measurement of `ledger.append.64`: 64 committers, each waiting for its commit.
fn appended(count: u64) -> f64 {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let next = Arc::new(AtomicU64::new(0));
    let begin = Instant::now();
    runtime.block_on(async {
        let committers: Vec<_> = (0..64)
            .map(|number| {
                let (ledger, next, stream) = (ledger.clone(), Arc::clone(&next), StreamId::agent(&agent(number)));
                tokio::spawn(async move {
                    let mut seq = 0;
                    while next.fetch_add(1, Ordering::Relaxed) < count {
                        let facts = vec![NewFact::new("Said", vec![b'x'; 300])];
                        let commit = Commit::append(stream.clone(), seq, Time::from_ms(1), facts);
                        seq = ledger.commit(commit).await.unwrap().heads[0].seq;
                    }
                })
            })
            .collect();
        for committer in committers {
            committer.await.unwrap();
        }
    });
    count as f64 / begin.elapsed().as_secs_f64()
}

/// A home with very many agents that sleep, and a few that have a message waiting.
fn fill(home: &Path) {
    let ledger = Ledger::open(home, Options::default().by(abide_engine::PROGRAM)).unwrap();
    let (mut draws, mut last) = (0, None);
    for number in 0..ASLEEP + OPEN {
        let id = agent(number);
        let mut core = Core::<AgentState>::new(id.clone());
        let create = Input::Create { identity: Identity::named(id), config: Config::default(), start: true };
        core.ask(Request::new(1, create));
        let waits = number >= ASLEEP;
        let mut commits = 0;
        while !(waits && commits == 3) {
            draws += 1;
            let Some(commit) = core.poll(Time::from_ms(1_700_000_000_000), draws) else { break };
            last = Some(ledger.commit(commit));
            core.committed();
            commits += 1;
            if waits && commits == 2 {
                let message = NewMessage { text: Some("More.".to_owned()), ..NewMessage::default() };
                core.ask(Request::new(1, Input::Queue(message)));
            }
        }
        if number % 4_096 == 0
            && let Some(receipt) = last.take()
        {
            receipt.wait().unwrap();
        }
    }
    if let Some(receipt) = last {
        receipt.wait().unwrap();
    }
}

fn copied(home: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(home).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
    }
    copy
}

fn asleep() {
    let (full, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fill(full.path());
    // The first start of a home makes its token and, where nothing is, an agent; what is measured is a later one.
    drop(Daemon::start(empty.path()));
    std::fs::copy(empty.path().join("token"), full.path().join("token")).unwrap();
    let mut memory = (Vec::new(), Vec::new());
    let mut times = (Vec::new(), Vec::new());
    for _ in 0..9 {
        // Open homes are answered at once, so every start gets a home of its own in which agents are still asleep.
        let (again, idle) = (copied(full.path()), copied(empty.path()));
        let daemon = Daemon::start(idle.path());
        times.0.push(daemon.ready_after.as_secs_f64() * 1e3);
        memory.0.push(daemon.resident_bytes());
        drop(daemon);
        let daemon = Daemon::start(again.path());
        times.1.push(daemon.ready_after.as_secs_f64() * 1e3);
        memory.1.push(daemon.resident_bytes());
    }
    let each = (median(memory.1) - median(memory.0)) / ASLEEP as f64;
    print("engine.asleep", each, "bytes resident per sleeping agent of 100000", 256.0, each / 256.0, "<= 1");
    let (baseline, value) = (median(times.0), median(times.1));
    print("engine.boot", value, "ms to ready with them, baseline an empty home", baseline, value / baseline, "<= 3");
}
