//! Bodies and queries that can't be read, and those that are too much.

use std::time::Duration;

use abide_server::Limits;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::daemon::Daemon;
use crate::http::{Ask, read_answer};
use crate::schema;

const MIB: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_json_is_refused_as_such() {
    let daemon = Daemon::start().await;
    for body in ["{", "id", "{\"id\":\"a\"", "{'id':'a'}", "\u{feff}{}", "{\"id\":\"a\"} x"] {
        daemon.ask(Ask::post("/v1/agents").bytes(body)).await.refused(400, "not_json");
    }
    daemon.ask(Ask::post("/v1/agents").bytes(vec![0xff, 0xfe])).await.refused(400, "not_json");
    daemon.ask(Ask::post("/v1/agents")).await.refused(400, "not_json");
    // Deeper than anybody means it.
    daemon.ask(Ask::post("/v1/agents").bytes("[".repeat(100_000))).await.refused(400, "not_json");
    assert!(daemon.items("/v1/agents").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_that_is_there_twice_is_refused() {
    let daemon = Daemon::start().await;
    for body in [r#"{"id":"a","id":"b"}"#, r#"{"id":"a","budget":{"max_turns":1,"max_turns":2}}"#] {
        let problem = daemon.ask(Ask::post("/v1/agents").bytes(body)).await.refused(422, "wrong_fields");
        assert!(problem["detail"].as_str().unwrap().contains("is there twice"), "{problem}");
    }
    assert!(daemon.items("/v1/agents").await.is_empty());
    // Everything else reads as it always did.
    let odd = json!({ "t": true, "i": -1, "u": u64::MAX, "f": 0.5, "s": "\u{1f600}", "l": [1, { "a": [] }] });
    daemon.create_stopped("a").await;
    daemon.post("/v1/agents/a/messages", json!({ "json": odd })).await.is(202);
    assert_eq!(daemon.items("/v1/agents/a/messages").await[0]["json"], odd);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_and_unknown_fields_are_named() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    for (path, body, pointer) in [
        ("/v1/agents", json!([]), ""),
        ("/v1/agents", json!(null), ""),
        ("/v1/agents", json!({}), ""),
        ("/v1/agents", json!({ "id": 1 }), "/id"),
        ("/v1/agents", json!({ "id": "Big" }), "/id"),
        ("/v1/agents", json!({ "id": "../x" }), "/id"),
        ("/v1/agents", json!({ "id": "x", "colour": "red" }), "/colour"),
        ("/v1/agents", json!({ "id": "x", "role": "king" }), "/role"),
        ("/v1/agents", json!({ "id": "x", "start": "yes" }), "/start"),
        ("/v1/agents", json!({ "id": "x", "model": "nameless" }), "/model"),
        ("/v1/agents", json!({ "id": "x", "workspace": "relative" }), "/workspace"),
        ("/v1/agents/a/messages", json!({}), "/text"),
        ("/v1/agents/a/messages", json!({ "text": "a", "json": {} }), "/text"),
        ("/v1/agents/a/messages", json!({ "text": " " }), "/text"),
        ("/v1/agents/a/messages", json!({ "text": 5 }), "/text"),
        ("/v1/agents/a/messages", json!({ "text": "a", "kind": "task_result" }), "/kind"),
        ("/v1/agents/a/messages", json!({ "text": "a", "priority": "now" }), "/priority"),
        ("/v1/agents/a/messages", json!({ "text": "a", "correlation_id": "" }), "/correlation_id"),
        ("/v1/agents/a/messages", json!({ "text": "a", "trust": "system" }), "/trust"),
        ("/v1/agents/a/timers", json!({ "summary": "s" }), ""),
        ("/v1/agents/a/timers", json!({ "summary": "s", "after_ms": 1, "every_ms": 100 }), ""),
        ("/v1/agents/a/timers", json!({ "summary": "s", "after_ms": -1 }), "/after_ms"),
        ("/v1/agents/a/timers", json!({ "summary": "s", "at": "tomorrow" }), "/at"),
        ("/v1/agents/a/timers", json!({ "summary": "s", "after_ms": 1, "catch_up": "some" }), "/catch_up"),
        ("/v1/agents/a/timers", json!({ "summary": "s", "after_ms": 1, "cron": "0 9 * * *" }), ""),
        ("/v1/agents/a/timers", json!({ "summary": "s", "after_ms": 1, "time_zone": "UTC" }), "/time_zone"),
        ("/v1/agents/a/start", json!({ "now": true }), "/now"),
        ("/v1/agents/a/abort", json!({ "exec": "x" }), "/exec"),
        ("/v1/agents/a/wake", json!({ "reason": " " }), "/reason"),
        ("/v1/ledger/fork", json!({ "agent": "a", "at": 1, "as": "NO" }), "/as"),
    ] {
        let answer = daemon.post(path, body.clone()).await;
        let problem = answer.refused(422, "wrong_fields");
        assert_eq!(problem["pointer"], pointer, "{path} {body}: {problem}");
    }
    for (body, pointer) in [
        (json!({ "id": "b" }), "/id"),
        (json!({ "budget": { "max_turns": "x" } }), "/budget/max_turns"),
        (json!({ "budget": { "max_turns": 9_223_372_036_854_775_808_u64 } }), "/budget/max_turns"),
        (json!({ "budget": { "max_usd": -1.0 } }), "/budget/max_usd"),
        (json!({ "budget": [1, 2] }), "/budget"),
        (json!({ "budget": { "max_cats": 1 } }), "/budget/max_cats"),
    ] {
        let problem = daemon.patch("/v1/agents/a", body.clone()).await.refused(422, "wrong_fields");
        assert_eq!(problem["pointer"], pointer, "{body}: {problem}");
    }
    // A refusal of the kernel because of nonsense is about the request, too.
    for (path, body, code) in [
        ("/v1/agents/a/timers", json!({ "summary": "", "after_ms": 1 }), "empty"),
        ("/v1/agents/a/timers", json!({ "summary": "s", "every_ms": 99 }), "too_often"),
        ("/v1/agents/a/timers", json!({ "summary": "s", "cron": "0 0 31 2 *" }), "never_fires"),
        ("/v1/agents/a/timers", json!({ "summary": "s", "cron": "0 25 * * *" }), "bad_cron"),
        (
            "/v1/agents/a/timers",
            json!({ "summary": "s", "cron": "0 9 * * *", "time_zone": "Mars" }),
            "unknown_time_zone",
        ),
        ("/v1/agents/a/timers", json!({ "summary": "s", "every_ms": 100, "check": " " }), "empty"),
        ("/v1/agents/a/timers", json!({ "summary": "s", "after_ms": 9_000_000_000_000_000_u64 }), "too_far_ahead"),
        (
            "/v1/agents/a/messages",
            json!({ "text": "a", "kind": "channel_event", "priority": "interject" }),
            "only_operators_interject",
        ),
    ] {
        daemon.post(path, body).await.refused(422, code);
    }
    assert_eq!(daemon.kinds("a").await, ["agent.created"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_too_large_is_refused_however_it_comes() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let path = "/v1/agents/a/messages";

    // Announced, and not sent at all.
    let ask = daemon.good(Ask::post(path)).header("Content-Length", &(MIB + 1).to_string());
    let mut stream = daemon.connect().await;
    stream.write_all(ask.head().as_bytes()).await.unwrap();
    let answer = read_answer(&mut stream).await;
    answer.refused(413, "too_large");
    schema::check(&ask, &answer);

    // Announced, and sent to its end before anything is read.
    let large = json!({ "text": "x".repeat(3 * MIB) });
    daemon.post(path, large.clone()).await.refused(413, "too_large");

    // In chunks, without a word about how many.
    let mut chunked = Vec::new();
    for piece in large.to_string().as_bytes().chunks(64 * 1024) {
        chunked.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        chunked.extend(piece);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    let ask = daemon.good(Ask::post(path).bytes(chunked).header("Transfer-Encoding", "chunked"));
    daemon.send(ask).await.refused(413, "too_large");

    // Just as much as goes is taken.
    let around = json!({ "text": "" }).to_string().len();
    daemon.post(path, json!({ "text": "x".repeat(MIB - around) })).await.is(202);
    assert_eq!(daemon.kinds("a").await, ["agent.created", "message.queued"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_refused_before_the_body_is_read_hears_of_it_all_the_same() {
    let daemon = Daemon::start().await;
    let body = json!({ "text": "x".repeat(MIB / 2) }).to_string();
    let ask = Ask::post("/v1/agents/a/messages").bytes(body);
    daemon.send(ask.clone().token("wrong")).await.refused(401, "unauthorized");
    daemon.ask(ask.clone().header("Origin", "http://evil.example")).await.refused(403, "foreign_origin");
    daemon.ask(ask.header("Idempotency-Key", "not good")).await.refused(400, "bad_key");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunked_body_is_read_like_any_other() {
    let daemon = Daemon::start().await;
    let body = b"8\r\n{\"id\":\"c\r\n4\r\nat\"}\r\n0\r\n\r\n".to_vec();
    let made = daemon.ask(Ask::post("/v1/agents").bytes(body).header("Transfer-Encoding", "chunked")).await.is(201);
    assert_eq!(made["identity"]["id"], "cat");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let limits = Limits { read: Duration::from_millis(200), ..Limits::default() };
    let daemon = Daemon::with(limits).await;
    let ask = daemon.good(Ask::post("/v1/agents")).header("Content-Length", "100");
    let mut stream = daemon.connect().await;
    stream.write_all(ask.head().as_bytes()).await.unwrap();
    stream.write_all(b"{\"id\":").await.unwrap();
    let answer = read_answer(&mut stream).await;
    answer.refused(408, "too_slow");
    schema::check(&ask, &answer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_cut_off_changes_nothing() {
    let daemon = Daemon::start().await;
    let ask = daemon.good(Ask::post("/v1/agents")).header("Content-Length", "100");
    let mut stream = daemon.connect().await;
    stream.write_all(ask.head().as_bytes()).await.unwrap();
    stream.write_all(b"{\"id\":\"a\"}").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    // Whether it is told or not: the connection ends.
    let _ended = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest).await;
    assert!(daemon.items("/v1/agents").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_are_read_strictly() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    for path in [
        "/v1/agents?colour=red",
        "/v1/agents?limit=1&limit=2",
        "/v1/agents?limit=0",
        "/v1/agents?limit=1001",
        "/v1/agents?limit=abc",
        "/v1/agents?limit=",
        "/v1/agents?limit=-1",
        "/v1/agents?limit=%2B1",
        "/v1/agents/a/events?last=0",
        "/v1/agents/a/events?last=1001",
        "/v1/agents/a/events?last=1&after=0",
        "/v1/agents/a/events?after=x",
        "/v1/agents/a/events?after=99999999999999999999",
        "/v1/agents/a/why?at=last",
        "/v1/agents/a?limit=1",
        "/healthz?x=1",
        "/openapi.json?x=1",
    ] {
        daemon.ask(Ask::get(path)).await.refused(400, "bad_query");
    }
    for path in ["/v1/agents?after=NOT%20A%20NAME", "/v1/agents/a/events/stream?after=x", "/v1/events/stream?after=x"] {
        daemon.ask(Ask::get(path)).await.refused(400, "bad_cursor");
    }
    daemon.ask(Ask::get("/v1/agents/%ff")).await.refused(400, "bad_path");
    daemon.ask(Ask::get("/v1/agents/No%20Body")).await.refused(404, "not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_to_nothing_is_refused_and_types_have_names_that_people_know() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let change = async |body: Value| daemon.patch("/v1/agents/a", body).await.refused(422, "wrong_fields");
    for field in ["model", "workspace", "role", "instructions", "network", "fallback", "budget"] {
        let mut body = json!({});
        body[field] = json!(null);
        let problem = change(body).await;
        assert_eq!(problem["pointer"], format!("/{field}"));
        assert!(problem["detail"].as_str().unwrap().starts_with("null changes nothing"), "{problem}");
    }
    let cases = [
        (json!({ "budget": { "max_usd": "much" } }), "invalid type: string \"much\", expected a number"),
        (
            json!({ "budget": { "max_turns": "u64" } }),
            "invalid type: string \"u64\", expected a whole number, 0 or more",
        ),
    ];
    for (body, detail) in cases {
        assert_eq!(change(body).await["detail"], detail);
    }
}
