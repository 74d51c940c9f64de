//! More than there is room for: it is refused with a time to try again, and nothing that was accepted is lost.

use std::time::Duration;

use abide_server::Limits;
use futures_util::future::{Either, join, join_all, select};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use crate::daemon::Daemon;
use crate::http::{Answer, Ask, read_answer, read_head};

fn overloaded(answer: &Answer) {
    answer.refused(429, "overloaded");
    assert!(answer.header("retry-after").unwrap().parse::<u64>().is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn too_many_requests_at_once_are_refused_and_the_others_met() {
    let daemon = Daemon::with(Limits { requests: 1, ..Limits::default() }).await;
    daemon.create("a").await;
    daemon.say("a", "block").await;
    daemon.event("a", "turn.round_started", |_| true).await;
    // The loop stands still, so whichever comes first stays under way.
    let one = std::pin::pin!(daemon.post("/v1/agents/a/messages", json!({ "text": "x" })));
    let other = std::pin::pin!(daemon.post("/v1/agents/a/messages", json!({ "text": "x" })));
    let (refused, waiting) = match select(one, other).await {
        Either::Left((refused, waiting)) | Either::Right((refused, waiting)) => (refused, waiting),
    };
    overloaded(&refused);
    daemon.hands.let_go();
    waiting.await.is(202);
    assert_eq!(daemon.items("/v1/agents/a/messages").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_of_one_token_leave_room_for_those_of_others() {
    let daemon = Daemon::with(Limits { requests: 2, ..Limits::default() }).await;
    daemon.create("a").await;
    let other = daemon.token("other", "observer").await;
    daemon.say("a", "block").await;
    daemon.event("a", "turn.round_started", |_| true).await;
    // The loop stands still, and so does a message for it.
    let waiting = async {
        loop {
            // One of the lists may have the token's only place.
            let answer = daemon.post("/v1/agents/a/messages", json!({ "text": "x" })).await;
            if answer.status != 429 {
                return answer;
            }
        }
    };
    let meanwhile = async {
        while daemon.ask(Ask::get("/v1/agents")).await.status != 429 {}
        daemon.send(daemon.good(Ask::get("/v1/agents").token(&other))).await.is(200);
        daemon.hands.let_go();
    };
    let (answer, ()) = join(waiting, meanwhile).await;
    answer.is(202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_that_was_accepted_is_lost() {
    let daemon = Daemon::with(Limits { requests: 4, ..Limits::default() }).await;
    daemon.create_stopped("a").await;
    let sent = (0..50).map(|number| daemon.post("/v1/agents/a/messages", json!({ "text": format!("{number}") })));
    let mut accepted = Vec::new();
    for answer in join_all(sent).await {
        match answer.status {
            202 => accepted.push(answer.json()["message_id"].as_str().unwrap().to_owned()),
            _ => overloaded(&answer),
        }
    }
    assert!(!accepted.is_empty());
    let daemon = daemon.restart().await;
    let listed = daemon.items("/v1/agents/a/messages?limit=1000").await;
    let mut listed: Vec<String> = listed.iter().map(|item| item["message_id"].as_str().unwrap().to_owned()).collect();
    listed.sort();
    accepted.sort();
    assert_eq!(listed, accepted, "what was accepted, once each, and nothing else");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_streams_are_refused() {
    let daemon = Daemon::with(Limits { streams: 1, ..Limits::default() }).await;
    // Made without waiting for its rest: waiting is done on a stream, too.
    daemon.post("/v1/agents", json!({ "id": "a", "start": false })).await.is(201);
    let mut first = daemon.connect().await;
    daemon.good(Ask::get("/v1/agents/a/events/stream")).send(&mut first).await;
    assert_eq!(read_head(&mut first).await.status, 200);
    overloaded(&daemon.ask(Ask::get("/v1/agents/a/events/stream")).await);
    overloaded(&daemon.ask(Ask::get("/v1/events/stream")).await);
    daemon.say("a", "others are served").await;
    drop(first);
    loop {
        let mut next = daemon.connect().await;
        daemon.good(Ask::get("/v1/events/stream")).send(&mut next).await;
        if read_head(&mut next).await.status == 200 {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_much_held_at_once_is_refused() {
    let daemon = Daemon::with(Limits { held_bytes: 4 << 10, ..Limits::default() }).await;
    daemon.create_stopped("a").await;
    let body = json!({ "text": "x".repeat(3 << 10) }).to_string();
    let ask = daemon.good(Ask::post("/v1/agents/a/messages"));
    let ask = ask.header("Content-Length", &body.len().to_string()).header("Expect", "100-continue");
    let mut first = daemon.connect().await;
    first.write_all(ask.head().as_bytes()).await.unwrap();
    // Asked to go on, it has its room.
    assert_eq!(read_head(&mut first).await.status, 100);
    overloaded(&daemon.post("/v1/agents/a/messages", json!({ "text": "y".repeat(3 << 10) })).await);
    first.write_all(body.as_bytes()).await.unwrap();
    read_answer(&mut first).await.is(202);
    daemon.post("/v1/agents/a/messages", json!({ "text": "y".repeat(3 << 10) })).await.is(202);
    assert_eq!(daemon.items("/v1/agents/a/messages").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_reads_nothing_is_cut_off_and_the_others_go_on() {
    let limits = Limits { stall: Duration::from_millis(200), ..Limits::default() };
    let daemon = Daemon::with(limits).await;
    daemon.create_stopped("a").await;
    // More than the sockets on both sides will hold.
    let large = "x".repeat(900 << 10);
    for _ in 0..16 {
        daemon.say("a", &large).await;
    }
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut deaf = socket.connect(daemon.address.parse().unwrap()).await.unwrap();
    daemon.good(Ask::get("/v1/agents/a/events/stream?after=0")).send(&mut deaf).await;
    let mut keen = daemon.client().follow(Some("a"), Some("0")).await.unwrap();
    for seq in 1..=18 {
        assert_eq!(keen.next().await.unwrap().id, Some(seq.to_string()));
    }
    // The one that reads is still counted, the other one no longer.
    loop {
        let metrics = String::from_utf8(daemon.ask(Ask::get("/metrics")).await.body).unwrap();
        if metrics.contains("\nabide_event_streams_open 1\n") {
            break;
        }
    }
    daemon.say("a", "still here").await;
    assert_eq!(keen.next().await.unwrap().id, Some("19".to_owned()));
    let mut taken = Vec::new();
    // The answer that it finds when it wakes up is cut short.
    let _cut = deaf.read_to_end(&mut taken).await;
    assert!(taken.len() < 16 * large.len(), "{}", taken.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_is_refused_before_anything_is_recorded() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let host = &daemon.app.host;
    let agent = abide_kernel::id::AgentId::new("a").unwrap();
    // Straight into the host, many at a time: the limit is what matters here, not the wire.
    let mut queued = 0;
    while queued < abide_kernel::limits::QUEUE_MAX {
        let some = (0..200).map(|_| {
            let message = abide_kernel::input::NewMessage { text: Some("x".to_owned()), ..Default::default() };
            host.ask(&agent, abide_kernel::input::Input::Queue(message))
        });
        queued += join_all(some).await.into_iter().filter(Result::is_ok).count();
    }
    let seq = daemon.summary("a").await["at_seq"].clone();
    let refused = daemon.post("/v1/agents/a/messages", json!({ "text": "one too many" })).await;
    refused.refused(429, "queue_full");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(daemon.summary("a").await["at_seq"], seq);
}
