//! Server-sent events: one per fact, in order, with neither gap nor repeat.

use std::time::Duration;

use abide_api::sse::{SseEvent, SseParser};
use abide_server::Limits;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::daemon::{Daemon, soon};
use crate::http::{Ask, read_chunk, read_head};
use crate::schema;

/// A stream as it goes over the wire.
struct Wire {
    stream: TcpStream,
    parser: SseParser,
    comments: Vec<String>,
    ready: Vec<SseEvent>,
}

impl Wire {
    async fn open(daemon: &Daemon, ask: Ask) -> Wire {
        let ask = daemon.good(ask);
        let mut stream = daemon.connect().await;
        ask.send(&mut stream).await;
        let head = read_head(&mut stream).await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        assert_eq!(head.header("cache-control"), Some("no-store"));
        Wire { stream, parser: SseParser::default(), comments: Vec::new(), ready: Vec::new() }
    }

    /// Takes in one more piece; false at the end.
    async fn more(&mut self) -> bool {
        let Some(chunk) = soon("a piece of the stream", read_chunk(&mut self.stream)).await else { return false };
        let text = String::from_utf8(chunk.clone()).unwrap();
        self.comments.extend(text.lines().filter_map(|line| line.strip_prefix(": ")).map(str::to_owned));
        self.ready.extend(self.parser.push(&chunk));
        true
    }

    async fn events(&mut self, count: usize) -> Vec<SseEvent> {
        while self.ready.len() < count {
            assert!(self.more().await, "the stream ended after {} of {count} events", self.ready.len());
        }
        self.ready.drain(..count).collect()
    }
}

fn stream_of(id: &str) -> Ask {
    Ask::get(&format!("/v1/agents/{id}/events/stream"))
}

/// The event as the history has it.
fn value(event: &SseEvent) -> Value {
    let value: Value = serde_json::from_str(&event.data).unwrap();
    schema::conforms("Event", &value, "an event");
    assert_eq!(value["kind"], event.name.as_str());
    value
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_the_history_as_it_happens() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let mut wire = Wire::open(&daemon, Ask::get("/v1/agents/a/events/stream?after=0")).await;
    daemon.finish("a", "one").await;
    daemon.finish("a", "two").await;
    daemon.halt("a").await;
    let history = daemon.events("a").await;
    let streamed = wire.events(history.len()).await;
    assert_eq!(streamed.iter().map(value).collect::<Vec<_>>(), history);
    let ids: Vec<String> = streamed.iter().map(|event| event.id.clone().unwrap()).collect();
    assert_eq!(ids, (1..=history.len()).map(|seq| seq.to_string()).collect::<Vec<_>>());
}

/// A piece of text as it was spoken.
fn delta(event: &SseEvent) -> Value {
    let value: Value = serde_json::from_str(&event.data).unwrap();
    schema::conforms("TextDelta", &value, "a piece of text");
    assert_eq!(event.id, None, "nobody resumes at it");
    value
}

/// Takes in events until so many rounds were recorded. Every piece of text comes within its round; what was said in each
/// comes back.
async fn rounds(wire: &mut Wire, count: usize) -> Vec<String> {
    let mut open: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    let mut said = Vec::new();
    while said.len() < count {
        let event = wire.events(1).await.remove(0);
        if event.name == "text.delta" {
            let delta = delta(&event);
            let round = open.get_mut(&delta["exec_id"].to_string());
            let round = round.unwrap_or_else(|| panic!("outside of its round: {delta}"));
            round.push_str(delta["text"].as_str().unwrap());
            continue;
        }
        let fact = value(&event);
        let exec = fact["data"]["exec_id"].to_string();
        match event.name.as_str() {
            "turn.round_started" => assert!(open.insert(exec, String::new()).is_none()),
            "turn.provider_round_completed" => said.extend(open.remove(&exec)),
            _ => {}
        }
    }
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_is_heard_while_it_is_spoken_and_within_its_round() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    daemon.create("b").await;
    let mut one = Wire::open(&daemon, Ask::get("/v1/agents/a/events/stream?after=0")).await;
    let mut all = Wire::open(&daemon, Ask::get("/v1/events/stream?after=start")).await;
    for number in 0..20 {
        daemon.say("b", &format!("speak beside {number}")).await;
        daemon.finish("a", &format!("speak one two three {number}")).await;
    }
    let expected: Vec<String> = (0..20).map(|number| format!("speak one two three {number}")).collect();
    assert_eq!(rounds(&mut one, 20).await, expected);
    let mut heard = rounds(&mut all, 40).await;
    heard.retain(|text| text.contains("one"));
    assert_eq!(heard, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_names_its_agent_where_there_are_several() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let (mut one, mut all) =
        (Wire::open(&daemon, stream_of("a")).await, Wire::open(&daemon, Ask::get("/v1/events/stream")).await);
    daemon.finish("a", "speak").await;
    for (wire, agent) in [(&mut one, Value::Null), (&mut all, json!("a"))] {
        let event = loop {
            let event = wire.events(1).await.remove(0);
            if event.name == "text.delta" {
                break delta(&event);
            }
        };
        assert_eq!((&event["agent_id"], &event["round"], &event["text"]), (&agent, &json!(1), &json!("speak")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_an_old_story_hears_new_text_in_its_place() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    for number in 0..30 {
        daemon.finish("a", &format!("speak {number}")).await;
    }
    // Text from before the first listener is in the facts alone; the stream is far behind when more is said.
    let mut wires = Vec::new();
    for path in ["/v1/agents/a/events/stream?after=0", "/v1/events/stream?after=start"] {
        wires.push(Wire::open(&daemon, Ask::get(path)).await);
    }
    daemon.finish("a", "speak of now").await;
    for wire in &mut wires {
        let said = rounds(wire, 31).await;
        assert!(said[..30].iter().all(String::is_empty) && said[30] == "speak of now", "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_without_a_place_begins_now() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    daemon.say("a", "before").await;
    let mut wire = Wire::open(&daemon, stream_of("a")).await;
    daemon.say("a", "after").await;
    let event = value(&wire.events(1).await[0]);
    assert_eq!((&event["seq"], &event["data"]["text"]), (&json!(4), &json!("after")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_goes_on_where_it_was_also_after_a_restart() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let mut seen = Vec::new();
    let mut wire = Wire::open(&daemon, Ask::get("/v1/agents/a/events/stream?after=0")).await;
    daemon.finish("a", "one").await;
    seen.extend(wire.events(4).await);
    drop(wire);
    daemon.finish("a", "two").await;
    // The header is what a browser sends; it goes before the query it first came with.
    let ask = Ask::get("/v1/agents/a/events/stream?after=0").header("Last-Event-ID", "4");
    let mut wire = Wire::open(&daemon, ask).await;
    seen.extend(wire.events(6).await);
    let daemon = daemon.restart().await;
    daemon.finish("a", "three").await;
    let mut wire = Wire::open(&daemon, Ask::get("/v1/agents/a/events/stream?after=10")).await;
    daemon.halt("a").await;
    let history = daemon.events("a").await;
    seen.extend(wire.events(history.len() - 10).await);
    assert_eq!(seen.iter().map(value).collect::<Vec<_>>(), history);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_of_all_agents_has_every_fact_once_and_resumes_by_its_cursor() {
    let daemon = Daemon::start().await;
    let mut wire = Wire::open(&daemon, Ask::get("/v1/events/stream?after=start")).await;
    for id in ["a", "b", "c"] {
        daemon.create_stopped(id).await;
    }
    // Keys and tokens are nobody's news.
    daemon.token("t", "observer").await;
    daemon.ask(Ask::post("/v1/agents/a/messages").json(json!({ "text": "keyed" })).key("k")).await.is(202);
    daemon.say("b", "x").await;
    let streamed = wire.events(8).await;
    let named = |events: &[SseEvent]| -> Vec<(String, u64)> {
        events
            .iter()
            .map(value)
            .map(|event| (event["agent_id"].as_str().unwrap().to_owned(), event["seq"].as_u64().unwrap()))
            .collect()
    };
    let of = |id: &str, seq| (id.to_owned(), seq);
    let created = [of("a", 1), of("a", 2), of("b", 1), of("b", 2), of("c", 1), of("c", 2)];
    assert_eq!(named(&streamed), [&created[..], &[of("a", 3), of("b", 3)]].concat());

    let cursor = streamed[5].id.clone().unwrap();
    let mut again = Wire::open(&daemon, Ask::get("/v1/events/stream").header("Last-Event-ID", &cursor)).await;
    assert_eq!(again.events(2).await, streamed[6..]);
    let daemon = daemon.restart().await;
    let mut again = Wire::open(&daemon, Ask::get(&format!("/v1/events/stream?after={cursor}"))).await;
    daemon.say("c", "y").await;
    let rest = again.events(3).await;
    assert_eq!(rest[..2], streamed[6..]);
    assert_eq!(named(&rest[2..]), [of("c", 3)]);
    // Without a place it begins now.
    let mut now = Wire::open(&daemon, Ask::get("/v1/events/stream")).await;
    daemon.say("a", "z").await;
    assert_eq!(named(&now.events(1).await), [of("a", 4)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_followers_see_the_same_while_it_happens() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let mut wires = Vec::new();
    for _ in 0..5 {
        wires.push(Wire::open(&daemon, Ask::get("/v1/agents/a/events/stream?after=0")).await);
        wires.push(Wire::open(&daemon, Ask::get("/v1/events/stream?after=start")).await);
    }
    // Together: what one sends, another may see before it is answered.
    let sent = (0..20).map(|number| daemon.post("/v1/agents/a/messages", json!({ "text": format!("{number}") })));
    for answer in futures_util::future::join_all(sent).await {
        answer.is(202);
    }
    let history = daemon.events("a").await;
    assert_eq!(history.len(), 22);
    for wire in &mut wires {
        assert_eq!(wire.events(22).await.iter().map(value).collect::<Vec<_>>(), history);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_that_the_ledger_does_not_have_yet_is_told_and_the_stream_goes_on() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let mut one = Wire::open(&daemon, Ask::get("/v1/agents/a/events/stream?after=99")).await;
    let resync = one.events(1).await.remove(0);
    assert_eq!((resync.name.as_str(), resync.id.as_deref()), ("resync", Some("2")));
    let mut all = Wire::open(&daemon, Ask::get("/v1/events/stream").header("Last-Event-ID", "cffffff")).await;
    let resync_all = all.events(1).await.remove(0);
    assert_eq!(resync_all.name, "resync");
    daemon.say("a", "x").await;
    assert_eq!(value(&one.events(1).await[0])["seq"], 3);
    assert_eq!(value(&all.events(1).await[0])["seq"], 3);
    // The place it was given is a good one.
    let ask = Ask::get("/v1/events/stream").header("Last-Event-ID", &resync_all.id.unwrap());
    assert_eq!(value(&Wire::open(&daemon, ask).await.events(1).await[0])["seq"], 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_stream_gives_signs_of_life() {
    let limits = Limits { heartbeat: Duration::from_millis(20), ..Limits::default() };
    let daemon = Daemon::with(limits).await;
    daemon.create_stopped("a").await;
    for ask in [stream_of("a"), Ask::get("/v1/events/stream")] {
        let mut wire = Wire::open(&daemon, ask).await;
        while wire.comments.len() < 4 {
            assert!(wire.more().await);
        }
        assert_eq!(wire.comments[..4], ["hello", "still here", "still here", "still here"]);
        assert!(wire.ready.is_empty());
        daemon.say("a", "x").await;
        wire.events(1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_when_the_daemon_does() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let mut wires =
        vec![Wire::open(&daemon, stream_of("a")).await, Wire::open(&daemon, Ask::get("/v1/events/stream")).await];
    daemon.say("a", "last").await;
    daemon.app.close();
    for wire in &mut wires {
        wire.events(1).await;
        while wire.more().await {}
        assert!(wire.ready.is_empty());
    }
    // A new client is told that the daemon shuts down; health checks are still answered.
    let refused = daemon.ask(Ask::post("/v1/agents/a/messages").json(json!({ "text": "x" }))).await;
    refused.refused(503, "closing");
    assert!(refused.header("retry-after").is_some());
    daemon.ask(stream_of("a")).await.refused(503, "closing");
    daemon.send(Ask::get("/readyz")).await.refused(503, "closing");
    daemon.send(Ask::get("/healthz")).await.is(200);
    daemon.stop().await;
}
