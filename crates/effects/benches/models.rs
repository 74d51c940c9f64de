//! The cost of a call to a model for this process, against the same bytes sent and read bare, in the same run.
//!
//! The provider is on this machine and answers at once. Only the thread of the caller is counted, so what the provider
//! needs is not in the figures.

#![allow(clippy::disallowed_methods, reason = "measurements make files as users do")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench stops where it fails, and prints its figures")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use abide_effects::model::remote::{Card, Protocol, Provider, Remote};
use abide_effects::tools::ToolSet;
use abide_kernel::fact::CallRecord;
use abide_kernel::id::{CallId, ExecId};
use abide_kernel::prompt::{CallResult, Item, Part, Prompt};
use serde_json::json;

const ROUNDS: usize = 15;
const CALLS: u32 = 100;
/// Earlier rounds in the prompt, and pieces that the answer comes in.
const EARLIER: usize = 20;
const PIECES: usize = 100;

fn main() {
    // Cargo hands `--bench` to every bench; anything else is a wish for fewer figures.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if !wanted.is_empty() && !wanted.iter().any(|wish| "models.call".contains(wish.as_str())) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let base_url = serve();
    let remote = remote(&base_url);
    let prompt = prompt();
    let bare = reqwest::Client::builder().no_proxy().build().unwrap();
    let body = body_of(&runtime, &prompt);
    let url = format!("{base_url}/v1/messages");
    let (mut values, mut baselines): (Vec<f64>, Vec<f64>) = (0..=ROUNDS)
        .map(|_| {
            let value = cpu_us(&runtime, async || call(&remote, &prompt).await);
            let baseline = cpu_us(&runtime, async || call_bare(&bare, &url, &body).await);
            (value, baseline)
        })
        // The first makes the connections.
        .skip(1)
        .unzip();
    let (value, baseline) = (median(&mut values), median(&mut baselines));
    println!(
        "{}",
        json!({ "name": "models.call", "value": value.round(), "unit": "us CPU per call", "baseline": baseline.round(),
            "ratio": (value / baseline * 100.0).round() / 100.0, "goal": "<= 6", "request_bytes": body.len(),
            "answer_pieces": PIECES })
    );
}

async fn call(remote: &Remote, prompt: &Prompt) {
    let mut heard = String::new();
    let exec_id = ExecId::new("exec_0198c0de-0000-7000-8000-000000000001");
    let reply = remote.call(prompt, &ToolSet::every(), &exec_id, 1, &mut |text| heard.push_str(text)).await.unwrap();
    assert_eq!((heard, reply.calls.len()), (reply.text, 1));
}

async fn call_bare(client: &reqwest::Client, url: &str, body: &str) {
    let request = client.post(url).header("content-type", "application/json").body(body.to_owned());
    let mut response = request.send().await.unwrap();
    let mut bytes = 0;
    while let Some(piece) = response.chunk().await.unwrap() {
        bytes += piece.len();
    }
    assert_eq!(bytes, stream().len());
}

/// Of this thread, for one of many calls.
fn cpu_us(runtime: &tokio::runtime::Runtime, call: impl AsyncFn()) -> f64 {
    let before = cpu_time();
    runtime.block_on(async {
        for _ in 0..CALLS {
            call().await;
        }
    });
    (cpu_time() - before).as_secs_f64() * 1e6 / f64::from(CALLS)
}

/// Of this thread, in user and system mode.
fn cpu_time() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(schedstat.split(' ').next().unwrap().parse().unwrap())
}

fn median(list: &mut [f64]) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

fn remote(base_url: &str) -> Remote {
    let provider = Provider {
        name: "anthropic".to_owned(),
        protocol: Protocol::Anthropic,
        base_url: base_url.to_owned(),
        key: None,
        key_env: None,
    };
    let card =
        Card { window_tokens: 200_000, max_output_tokens: 8_000, context_tokens: 192_000, prices: None, images: true };
    Remote { name: "anthropic/m-1".to_owned(), model: "m-1".to_owned(), provider: Arc::new(provider), card }
}

/// A conversation as it is after a while: some thousand tokens of calls and results.
fn prompt() -> Prompt {
    let mut items = vec![Item::User { parts: vec![Part::Text("Find out why the build is slow.".to_owned())] }];
    for round in 0..EARLIER {
        let call_id = CallId::new(format!("call_0198c0de-0000-7000-8000-000000000001-{round}-0"));
        let input = json!({ "cmd": "cargo build --timings", "workdir": "crates/effects", "yield_time_ms": 10_000 });
        let call = CallRecord { call_id: call_id.clone(), tool: "ExecCommand".to_owned(), input: input.into() };
        items.push(Item::Assistant { text: "I look at the next crate.".to_owned(), calls: vec![call], thought: None });
        let content =
            json!({ "disposition": "completed", "exit_code": 0, "stdout": "Compiling abide-effects\n".repeat(40) });
        let content = content.to_string();
        items.push(Item::Results { results: vec![CallResult { call_id, content, failed: false, images: Vec::new() }] });
    }
    Prompt {
        system: "You look after a repository.\n".repeat(60),
        stable: items.len(),
        items: items.into_iter().map(Arc::new).collect(),
    }
}

/// The answer: text in many pieces, and a call.
fn stream() -> String {
    let mut events = vec![
        json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant",
            "content": [], "model": "m-1", "usage": { "input_tokens": 9_000, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
    ];
    let piece = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "several words " } });
    events.extend(std::iter::repeat_n(piece, PIECES));
    events.extend([
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "content_block_start", "index": 1,
            "content_block": { "type": "tool_use", "id": "toolu_1", "name": "ReadFile", "input": {} } }),
        json!({ "type": "content_block_delta", "index": 1,
            "delta": { "type": "input_json_delta", "partial_json": "{\"path\": \"Cargo.toml\"}" } }),
        json!({ "type": "content_block_stop", "index": 1 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 300 } }),
        json!({ "type": "message_stop" }),
    ]);
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect()
}

/// Answers every request with the same stream, each event in a chunk of its own as a provider sends them.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let mut answer =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for event in stream().split_inclusive("\n\n") {
        answer.extend(format!("{:x}\r\n{event}\r\n", event.len()).into_bytes());
    }
    answer.extend(b"0\r\n\r\n");
    let answer = Arc::new(answer);
    // It ends with the process: nobody waits for it.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            std::thread::spawn(move || while read(&stream).is_some() && stream.write_all(&answer).is_ok() {});
        }
    });
    base_url
}

/// The body of the next request on a connection. Every request is awaited, so that nothing of another can be behind it.
fn read(stream: &TcpStream) -> Option<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

/// The bytes that the adapter sends for the prompt.
fn body_of(runtime: &tokio::runtime::Runtime, prompt: &Prompt) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let remote = remote(&format!("http://{}", listener.local_addr().unwrap()));
    let asked = std::thread::spawn(move || read(&listener.accept().unwrap().0).unwrap());
    let exec_id = ExecId::new("exec_1");
    // This address has no server.
    let _ = runtime.block_on(remote.call(prompt, &ToolSet::every(), &exec_id, 1, &mut |_| {}));
    String::from_utf8(asked.join().unwrap()).unwrap()
}
