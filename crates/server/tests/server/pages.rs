//! Pages and answers that hold much: where they end, and the memory that they may take.

use std::time::Duration;

use abide_api::ClientError;
use abide_api::client::page_query;
use abide_api::types::Page;
use abide_server::Limits;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};

use crate::daemon::{ADMIN, Daemon, soon};
use crate::http::{Ask, read_answer, read_chunk, read_head};

const MIB: usize = 1 << 20;
/// The bytes around the items of a page.
const FRAME: usize = 64;

/// Every page of a list, as its items and its size.
async fn pages(daemon: &Daemon, path: &str) -> Vec<(Vec<Value>, usize)> {
    let mut pages = Vec::new();
    let mut after = String::new();
    loop {
        let separator = if path.contains('?') { '&' } else { '?' };
        let answer = daemon.ask(Ask::get(&format!("{path}{separator}limit=1000{after}"))).await;
        let page = answer.is(200);
        let items = page["items"].as_array().unwrap().clone();
        assert!(!items.is_empty() || page["next"].is_null(), "{path} goes on after an empty page");
        pages.push((items, answer.body.len()));
        match page["next"].as_str() {
            None => return pages,
            Some(next) => after = format!("&after={next}"),
        }
    }
}

/// The items of all pages, none of which is larger than it may be.
async fn all(daemon: &Daemon, path: &str, least_pages: usize) -> Vec<Value> {
    let pages = pages(daemon, path).await;
    let sizes: Vec<(usize, usize)> = pages.iter().map(|(items, bytes)| (items.len(), *bytes)).collect();
    assert!(sizes.len() >= least_pages, "{path} in {sizes:?}");
    for (items, bytes) in &sizes {
        assert!(*bytes <= MIB + FRAME || *items == 1, "{path} has {items} items in {bytes} bytes");
    }
    pages.into_iter().flat_map(|(items, _)| items).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_a_history_ends_at_a_mebibyte() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let mut sent = Vec::new();
    for number in 0..7 {
        let text = format!("{number} {}", "x".repeat(300 << 10));
        daemon.say("a", &text).await;
        sent.push(text);
    }
    // One that is larger than a page by itself.
    sent.insert(3, "y".repeat(MIB - 100));
    daemon.create_stopped("b").await;
    for text in &sent {
        daemon.say("b", text).await;
    }
    for (path, count) in [("/v1/agents/a/transcript", 7), ("/v1/agents/b/transcript", 8)] {
        let texts: Vec<Value> = all(&daemon, path, 3).await.into_iter().map(|entry| entry["text"].clone()).collect();
        assert_eq!(texts.len(), count, "{path}");
        if count == 8 {
            assert_eq!(texts, sent);
        }
    }
    let events = all(&daemon, "/v1/agents/b/events", 4).await;
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
}

/// The newest so many begin where they begin, and go on as every list does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_are_all_reached_however_large_they_are() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let texts: Vec<String> = (0..9).map(|number| format!("{number} {}", "x".repeat(300 << 10))).collect();
    for text in &texts {
        daemon.say("a", text).await;
    }
    for last in [1, 5, 9, 100] {
        let answer = daemon.ask(Ask::get(&format!("/v1/agents/a/transcript?last={last}"))).await;
        assert!(answer.body.len() <= MIB + FRAME, "{}", answer.body.len());
        let page = answer.is(200);
        let mut found = page["items"].as_array().unwrap().clone();
        let mut next = page["next"].clone();
        while let Some(after) = next.as_str() {
            let page = daemon.get(&format!("/v1/agents/a/transcript?after={after}")).await;
            found.extend(page["items"].as_array().unwrap().iter().cloned());
            next = page["next"].clone();
        }
        let found: Vec<&str> = found.iter().map(|entry| entry["text"].as_str().unwrap()).collect();
        assert_eq!(found, texts[texts.len().saturating_sub(last)..], "the last {last}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_every_plane_ends_at_a_mebibyte() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    for number in 0..8 {
        let item = json!({ "objective": format!("{number}"), "plan": "p".repeat(200 << 10) });
        daemon.post("/v1/agents/a/work-items", item).await.is(201);
    }
    daemon.create("b").await;
    for number in 0..12 {
        let run = json!({ "cmd": format!("true {number} {}", "c".repeat(120 << 10)) });
        daemon.post("/v1/agents/b/tasks", run).await.is(201);
    }
    for number in 0..300 {
        let timer = json!({ "summary": format!("{number} {}", "s".repeat(4_000)), "after_ms": 3_600_000 });
        daemon.post("/v1/agents/a/timers", timer).await.is(201);
    }
    for (list, count, id) in [
        ("a/work-items", 8, "work_item_id"),
        ("a/work-items?filter=open", 8, "work_item_id"),
        ("a/timers", 300, "timer_id"),
        ("b/tasks", 12, "task_id"),
    ] {
        let path = format!("/v1/agents/{list}");
        let items = all(&daemon, &path, 2).await;
        let mut ids: Vec<&str> = items.iter().map(|item| item[id].as_str().unwrap()).collect();
        assert!(ids.is_sorted(), "{path}");
        ids.dedup();
        assert_eq!(ids.len(), count, "{path}");
    }
}

/// The requests of a client that reads nothing: more than the sockets on both sides hold.
const ASKED: usize = 6;

async fn deaf(daemon: &Daemon, ask: Ask) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(daemon.address.parse().unwrap()).await.unwrap();
    for _ in 0..ASKED {
        ask.send(&mut stream).await;
    }
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_events_is_made_in_pieces_of_a_mebibyte() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    for _ in 0..9 {
        daemon.say("a", &"x".repeat(400 << 10)).await;
    }
    for path in ["/v1/agents/a/events/stream?after=0", "/v1/events/stream?after=start"] {
        let mut stream = daemon.connect().await;
        daemon.good(Ask::get(path)).send(&mut stream).await;
        assert_eq!(read_head(&mut stream).await.status, 200);
        let mut seen = 0;
        while seen < 9 {
            let piece = soon("a piece", read_chunk(&mut stream)).await.unwrap();
            assert!(piece.len() <= MIB + (400 << 10) + 1024, "{path}: {}", piece.len());
            seen += String::from_utf8(piece).unwrap().matches("event: message.queued").count();
        }
    }
}

/// The memory of answers, as it is counted.
async fn held(daemon: &Daemon) -> usize {
    let metrics = String::from_utf8(daemon.ask(Ask::get("/metrics")).await.body).unwrap();
    let line = metrics.lines().find_map(|line| line.strip_prefix("abide_answer_bytes_held "));
    line.unwrap().parse().unwrap()
}

/// Answers that nobody takes hold their memory, and those that come after them wait: of one token, within its half.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_share_a_bounded_memory_and_no_token_takes_all_of_it() {
    let limits = Limits { answer_bytes: 32 * MIB, stall: Duration::from_secs(600), ..Limits::default() };
    let daemon = Daemon::with(limits).await;
    daemon.create_stopped("a").await;
    // Answers of a mebibyte each, more of them than sockets hold for a reader that reads nothing.
    for _ in 0..4 {
        daemon.say("a", &"x".repeat(MIB - 100)).await;
    }
    let observer = daemon.token("greedy", "observer").await;
    let ask = Ask::get("/v1/agents/a/transcript?limit=1").header("Host", &daemon.address);
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(deaf(&daemon, ask.clone().token(&observer)).await);
    }
    // The greedy one has its half, and not a byte more; the other half serves everybody else.
    for _ in 0..8 {
        daemon.ask(ask.clone().token(ADMIN)).await.is(200);
        let held = held(&daemon).await;
        assert!(held <= 16 * MIB, "{held}");
    }
    // Those that waited get their answers as soon as there is room.
    let taken = waiting.into_iter().map(|mut stream| async move {
        for _ in 0..ASKED {
            let answer = soon("an answer", read_answer(&mut stream)).await;
            assert_eq!(answer.is(200)["items"].as_array().unwrap().len(), 1);
        }
    });
    join_all(taken).await;
    // And the memory is free again.
    while held(&daemon).await > 0 {}
}

/// An answer whose reader is cut off gives its room back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_cut_off_holds_nothing() {
    let limits = Limits { answer_bytes: 16 * MIB, stall: Duration::from_millis(200), ..Limits::default() };
    let daemon = Daemon::with(limits).await;
    daemon.create_stopped("a").await;
    daemon.say("a", &"x".repeat(MIB - 100)).await;
    let ask = daemon.good(Ask::get("/v1/agents/a/transcript?limit=1"));
    let mut deaf_readers = Vec::new();
    for _ in 0..12 {
        deaf_readers.push(deaf(&daemon, ask.clone()).await);
    }
    // To make an answer takes all that one token may have here: nothing else of it is held at that moment.
    daemon.ask(ask).await.is(200);
    while held(&daemon).await > 0 {}
    drop(deaf_readers);
}

/// Only a page without `next` is the last: the typed client and the command line go on after short and empty ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_typed_client_follows_a_list_to_its_end() {
    let daemon = Daemon::start().await;
    let client = daemon.client();
    let page = |items: &[u8], next: Option<&str>| Page { items: items.to_vec(), next: next.map(str::to_owned) };
    let pages = |after: Option<String>| {
        let page = match after.as_deref() {
            None => page(&[1, 2], Some("2")),
            Some("2") => page(&[], Some("3")),
            Some("3") => page(&[4], Some("4")),
            Some(_) => page(&[5], None),
        };
        async { Ok(page) }
    };
    assert_eq!(client.all(pages).await.unwrap(), [1, 2, 4, 5]);
    let round = client.all(|_| async { Ok(page(&[1], Some("1"))) }).await.unwrap_err();
    assert!(matches!(round, ClientError::Foreign { .. }), "{round}");
    daemon.create_stopped("a").await;
    for _ in 0..5 {
        daemon.say("a", &"x".repeat(400 << 10)).await;
    }
    let client = &client;
    let transcript = |after: Option<String>| async move { client.transcript("a", &page_query(after.as_deref())).await };
    assert_eq!(client.all(transcript).await.unwrap().len(), 5);
}

/// A list and the message itself, of the same message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_shows_the_beginning_of_a_long_message_and_its_own_route_all_of_it() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let text = format!("begin {} end", "x".repeat(900_000));
    let data = json!({ "rows": vec!["cell"; 2_000] });
    let bodies =
        [json!({ "text": text }), json!({ "json": data, "kind": "webhook_event" }), json!({ "text": "short" })];
    for body in &bodies {
        daemon.post("/v1/agents/a/messages", body.clone()).await.is(202);
    }
    let listed = all(&daemon, "/v1/agents/a/messages", 1).await;
    let kept: Vec<(usize, &Value, &Value)> = listed
        .iter()
        .map(|message| (message["text"].as_str().unwrap().len(), &message["bytes"], &message["truncated"]))
        .collect();
    let (yes, none) = (&json!(true), &Value::Null);
    let (long, large) = (&json!(text.len()), &json!(data.to_string().len()));
    assert_eq!(kept, [(4_096, long, yes), (4_096, large, yes), (5, none, none)]);
    for (message, body) in listed.iter().zip(&bodies) {
        let id = message["message_id"].as_str().unwrap();
        let whole = daemon.get(&format!("/v1/agents/a/messages/{id}")).await;
        assert_eq!((&whole["text"], &whole["json"]), (&body["text"], &body["json"]));
        assert_eq!((&whole["bytes"], &whole["truncated"]), (none, none));
        for field in ["seq", "status", "kind", "at"] {
            assert_eq!(whole[field], message[field], "{field}");
        }
    }
    daemon.ask(Ask::get("/v1/agents/a/messages/msg_no")).await.refused(404, "not_found");
    daemon.ask(Ask::get("/v1/agents/nobody/messages/msg_no")).await.refused(404, "not_found");
}
