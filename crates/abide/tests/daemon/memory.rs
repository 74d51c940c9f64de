//! The memory of the daemon: readers of large pages take little of it, and what they took is given back.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::served::{Served, until};

const MIB: u64 = 1 << 20;

/// A line of the daemon's own record with the system, in bytes.
fn memory(served: &Served, name: &str) -> u64 {
    let notice: Value = serde_json::from_slice(&fs::read(served.place.home().join("daemon.json")).unwrap()).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", notice["pid"])).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Asks for the same thing several times on one connection.
fn ask(served: &Served, path: &str, times: usize) -> TcpStream {
    let address = served.address();
    let mut stream = TcpStream::connect(&address.host).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n", address.host, address.token);
    stream.write_all(request.repeat(times).as_bytes()).unwrap();
    stream
}

#[test]
fn readers_of_large_pages_take_little_memory_and_give_it_back() {
    let mut served = Served::start();
    // Text takes as much memory as it has bytes; small values in JSON take many times as much.
    let bodies =
        [("a", json!({ "text": "y".repeat(1_000_000) }), 60), ("b", json!({ "json": vec![[(); 0]; 300_000] }), 20)];
    for (agent, body, count) in &bodies {
        served.post("/v1/agents", &json!({ "id": agent, "start": false }));
        for _ in 0..*count {
            served.post(&format!("/v1/agents/{agent}/messages"), body);
        }
    }
    served.stop();
    served.up();
    served.get("/v1/agents");
    let before = memory(&served, "VmRSS");
    let mut readers = Vec::new();
    for plane in ["a/messages", "a/events", "b/messages", "b/transcript"] {
        for _ in 0..12 {
            readers.push(ask(&served, &format!("/v1/agents/{plane}?limit=1000"), 6));
        }
    }
    // Every one of them has at least begun to be answered.
    for reader in &mut readers {
        reader.read_exact(&mut [0]).unwrap();
    }
    let peak = memory(&served, "VmHWM");
    assert!(peak < before + 400 * MIB, "from {} to {} MiB", before / MIB, peak / MIB);
    drop(readers);
    // The ledger's caches stay, which are 64 MiB at most.
    until("memory that is given back", || (memory(&served, "VmRSS") < before + 80 * MIB).then_some(()));
}

/// Messages wait on disk, not in memory: a start with hundreds of megabytes of them costs little, and each is read whole
/// when its turn comes.
#[test]
fn messages_that_wait_take_no_memory_and_are_worked_on_whole() {
    const COUNT: u64 = 300;
    let mut served = Served::start();
    let rounds = json!({ "rounds": [], "loop": true, "when": [
        { "contains": "the last words", "rounds": [ { "text": "Read to its end." } ] } ] });
    let model = served.script("reader.json", &rounds);
    served.post("/v1/agents", &json!({ "id": "a", "model": model, "start": false }));
    let text = format!("{} the last words", "y".repeat(1_000_000));
    for _ in 0..COUNT {
        served.post("/v1/agents/a/messages", &json!({ "text": text }));
    }
    served.stop();
    served.up();
    served.get("/v1/agents");
    let before = memory(&served, "VmRSS");
    served.post("/v1/agents/a/start", &json!({}));
    until("every message to be answered", || {
        let briefs = served.facts("a", "brief.recorded");
        (briefs.iter().filter(|brief| brief["text"] == "Read to its end.").count() as u64 == COUNT).then_some(())
    });
    let peak = memory(&served, "VmHWM");
    assert!(peak < before + 150 * MIB, "from {} to {} MiB", before / MIB, peak / MIB);
    served.stop_and_verify();
}
