//! More connections than there is room for: idle ones give way, anonymous ones first, and nobody is kept out by somebody
//! else's.

use std::time::Duration;

use abide_server::Limits;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::daemon::{Daemon, soon};
use crate::http::{Answer, Ask, read_answer, read_head};
use crate::schema;

/// However slow the machine, no connection is closed for its silence.
fn patient() -> Limits {
    Limits { head: Duration::from_secs(120), ..Limits::default() }
}

fn overloaded(answer: &Answer) {
    answer.refused(429, "overloaded");
    assert!(answer.header("retry-after").unwrap().parse::<u64>().is_ok());
}

/// One request on a connection that stays open.
async fn ask_on(stream: &mut TcpStream, ask: &Ask) -> Answer {
    ask.send(stream).await;
    soon("an answer on a connection that stays open", read_answer(stream)).await
}

/// Waits until the other side has closed it.
async fn closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // Closed on bytes that it had not read, it is reset.
    let _reset = soon("a connection to be closed", stream.read_to_end(&mut rest)).await;
    assert_eq!(rest, b"", "nobody asked for anything");
}

async fn follow(daemon: &Daemon, token: &str) -> TcpStream {
    let mut stream = daemon.connect().await;
    daemon.good(Ask::get("/v1/events/stream").token(token)).send(&mut stream).await;
    assert_eq!(soon("an event stream", read_head(&mut stream)).await.status, 200);
    stream
}

/// How many connections are open, by what the daemon counts.
async fn count(daemon: &Daemon, name: &str) -> usize {
    let metrics = String::from_utf8(daemon.ask(Ask::get("/metrics")).await.body).unwrap();
    let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("abide_{name} "))).unwrap();
    line.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_anonymous_connection_gives_way_and_the_others_stay() {
    let daemon = Daemon::with(Limits { anonymous: 3, ..patient() }).await;
    let health = Ask::get("/healthz").header("Host", &daemon.address);
    let (mut first, mut second, mut third) = (daemon.connect().await, daemon.connect().await, daemon.connect().await);
    // In this order they become idle: the first one was used last.
    for stream in [&mut second, &mut third, &mut first] {
        ask_on(stream, &health).await.is(200);
    }
    let mut fourth = daemon.connect().await;
    ask_on(&mut fourth, &health).await.is(200);
    closed(&mut second).await;
    for stream in [&mut third, &mut first, &mut fourth] {
        ask_on(stream, &health).await.is(200);
    }
    assert_eq!(count(&daemon, "connections_closed_for_room_total").await, 2, "and one for the count itself");
}

/// A thousand idle clients keep out neither clients with a token nor health checks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_keep_nobody_out() {
    let daemon = Daemon::with(Limits { connections: 64, anonymous: 16, ..patient() }).await;
    daemon.create_stopped("a").await;
    let mut idle = Vec::new();
    for number in 0..300 {
        idle.push(daemon.connect().await);
        if number % 20 == 0 {
            daemon.say("a", "served at once").await;
            daemon.send(Ask::get("/healthz")).await.is(200);
        }
    }
    assert!(count(&daemon, "connections_anonymous").await <= 16);
    assert_eq!(daemon.items("/v1/agents/a/messages").await.len(), 15);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_without_a_token_has_to_send_its_head_soon() {
    let daemon = Daemon::with(Limits { head: Duration::from_millis(200), ..Limits::default() }).await;
    let ask = daemon.good(Ask::get("/v1/agents"));
    let mut known = daemon.connect().await;
    ask_on(&mut known, &ask).await.is(200);
    // Says nothing; says half a head; has asked for something that takes no token.
    let mut silent = daemon.connect().await;
    let mut half = daemon.connect().await;
    half.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").await.unwrap();
    let mut asked = daemon.connect().await;
    ask_on(&mut asked, &Ask::get("/healthz").header("Host", &daemon.address)).await.is(200);
    // A token that is not good is none.
    let mut wrong = daemon.connect().await;
    ask_on(&mut wrong, &ask.clone().token("abide_wrong")).await.refused(401, "unauthorized");
    for stream in [&mut silent, &mut half, &mut asked, &mut wrong] {
        closed(stream).await;
    }
    // One that has shown a token is idle for longer than all of these, and may be.
    ask_on(&mut known, &ask).await.is(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_has_at_most_half_of_all_connections() {
    let daemon = Daemon::with(Limits { connections: 8, ..patient() }).await;
    let (greedy, other) = (daemon.token("greedy", "observer").await, daemon.token("other", "observer").await);
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(follow(&daemon, &greedy).await);
    }
    // Neither another stream nor a request: everything that it holds is under way.
    for path in ["/v1/events/stream", "/v1/agents"] {
        let ask = daemon.good(Ask::get(path).token(&greedy));
        let answer = daemon.send(ask.clone()).await;
        overloaded(&answer);
        schema::check(&ask, &answer);
    }
    daemon.send(daemon.good(Ask::get("/v1/agents").token(&other))).await.is(200);
    daemon.get("/v1/agents").await;
    // None of its streams was ended for it.
    daemon.create_stopped("a").await;
    for stream in &mut streams {
        let mut told = [0; 64];
        assert!(soon("an event", stream.read(&mut told)).await.unwrap() > 0);
    }
    drop(streams);
    while daemon.send(daemon.good(Ask::get("/v1/agents").token(&greedy))).await.status == 429 {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_s_own_idle_connection_gives_way_to_its_next_one() {
    let daemon = Daemon::with(Limits { connections: 6, ..patient() }).await;
    let token = daemon.token("many", "observer").await;
    let ask = daemon.good(Ask::get("/v1/agents").token(&token));
    let mut admin = daemon.connect().await;
    ask_on(&mut admin, &daemon.good(Ask::get("/v1/agents"))).await.is(200);
    let followed = follow(&daemon, &token).await;
    let (mut first, mut second) = (daemon.connect().await, daemon.connect().await);
    ask_on(&mut first, &ask).await.is(200);
    ask_on(&mut second, &ask).await.is(200);
    let mut third = daemon.connect().await;
    ask_on(&mut third, &ask).await.is(200);
    closed(&mut first).await;
    ask_on(&mut second, &ask).await.is(200);
    ask_on(&mut third, &ask).await.is(200);
    // It cost nobody else anything.
    ask_on(&mut admin, &daemon.good(Ask::get("/v1/agents"))).await.is(200);
    drop(followed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_of_tokens_give_way_where_there_is_no_other_room() {
    let daemon = Daemon::with(Limits { connections: 2, ..patient() }).await;
    let (one, two) = (daemon.token("one", "observer").await, daemon.token("two", "observer").await);
    let ask = |token: &str| daemon.good(Ask::get("/v1/agents").token(token));
    let mut streams = vec![follow(&daemon, &one).await];
    let mut idle = daemon.connect().await;
    ask_on(&mut idle, &ask(&two)).await.is(200);
    daemon.get("/v1/agents").await;
    closed(&mut idle).await;
    // Both are busy now, each for a token: there is nothing to be closed, and the next one is told to come again.
    streams.push(follow(&daemon, &two).await);
    let mut refused = daemon.connect().await;
    let answer = soon("a word to who is turned away", read_answer(&mut refused)).await;
    overloaded(&answer);
    schema::check(&daemon.good(Ask::get("/v1/agents")), &answer);
    closed(&mut refused).await;
    drop(streams);
    while daemon.ask(Ask::get("/v1/agents")).await.status == 429 {}
}

/// A sender of webhooks has no token of ours; the URL of its trigger is as good. More of them are served at once than there
/// may be anonymous connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_under_way_give_way_to_nobody() {
    let daemon = Daemon::with(Limits { anonymous: 2, ..patient() }).await;
    daemon.create_stopped("a").await;
    let made = daemon.post("/v1/agents/a/triggers", json!({ "name": "deploys" })).await.is(201);
    let path = made["url"].as_str().unwrap().strip_prefix(&format!("http://{}", daemon.address)).unwrap().to_owned();
    let body = br#"{"version":7}"#;
    let ask = Ask::post(&path).header("Host", &daemon.address).header("Content-Type", "application/json");
    let ask = ask.header("Content-Length", &body.len().to_string()).header("Expect", "100-continue");
    let mut senders = Vec::new();
    for _ in 0..6 {
        let mut sender = daemon.connect().await;
        sender.write_all(ask.head().as_bytes()).await.unwrap();
        assert_eq!(soon("a word to go on", read_head(&mut sender)).await.status, 100);
        senders.push(sender);
    }
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(daemon.connect().await);
    }
    closed(&mut idle[0]).await;
    for sender in &mut senders {
        sender.write_all(body).await.unwrap();
        soon("the answer to a delivery", read_answer(sender)).await.is(202);
    }
    assert_eq!(daemon.items("/v1/agents/a/messages").await.len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_streams_of_one_token_leave_room_for_those_of_others() {
    let daemon = Daemon::with(Limits { streams: 4, ..patient() }).await;
    let (greedy, other) = (daemon.token("greedy", "observer").await, daemon.token("other", "observer").await);
    let streams = [follow(&daemon, &greedy).await, follow(&daemon, &greedy).await];
    overloaded(&daemon.send(daemon.good(Ask::get("/v1/events/stream").token(&greedy))).await);
    // Its requests are another matter.
    daemon.send(daemon.good(Ask::get("/v1/agents").token(&greedy))).await.is(200);
    let others = [follow(&daemon, &other).await, follow(&daemon, &other).await];
    drop((streams, others));
}

#[test]
fn connections_leave_room_for_files() {
    let bounds = |files| {
        let limits = Limits::for_open_files(files);
        (limits.connections, limits.streams)
    };
    assert_eq!(bounds(u64::MAX), (4_096, 2_048));
    assert_eq!(bounds(1 << 20), (4_096, 2_048));
    assert_eq!(bounds(4_608), (4_096, 2_048));
    assert_eq!(bounds(2_048), (1_536, 768));
    assert_eq!(bounds(1_024), (512, 256));
    assert_eq!(bounds(256), (128, 64));
    assert_eq!(bounds(1), (1, 1));
}
