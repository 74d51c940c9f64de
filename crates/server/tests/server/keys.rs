//! Idempotency keys: a request is met once, and a repeat hears what the first one heard.

use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::http::Ask;

fn message(text: &str) -> Ask {
    Ask::post("/v1/agents/a/messages").json(json!({ "text": text }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_gets_the_first_answer_and_changes_nothing() {
    let daemon = Daemon::start().await;
    let create = Ask::post("/v1/agents").json(json!({ "id": "a", "start": false })).key("make-a");
    let made = daemon.ask(create.clone()).await.is(201);
    let first = daemon.ask(message("hello").key("k1")).await.is(202);
    assert_eq!(daemon.ask(message("hello").key("k1")).await.is(202), first);
    assert_eq!(daemon.ask(create).await.is(201), made, "the summary of then, not of now");
    assert_eq!(daemon.kinds("a").await, ["agent.created", "message.queued"]);
    let listed = daemon.items("/v1/agents/a/messages").await;
    assert_eq!(listed[0]["idempotency_key"], "k1");
}

/// The requests from outside; an agent that runs has more to record at any time.
async fn changes(daemon: &Daemon) -> Vec<String> {
    let asked = ["control.applied", "timer.created", "wake_hint."];
    let kinds = daemon.kinds("a").await.into_iter();
    kinds.filter(|kind| asked.iter().any(|asked| kind.starts_with(asked))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_change_takes_a_key() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    daemon.finish("a", "hello").await;
    for (path, body) in [
        ("/v1/agents/a/stop", json!({})),
        ("/v1/agents/a/start", json!({})),
        ("/v1/agents/a/pause", json!({})),
        ("/v1/agents/a/resume", json!({})),
        // A repeat of the first stop, which must not be met again now that the agent runs.
        ("/v1/agents/a/stop", json!({})),
        ("/v1/agents/a/wake", json!({ "reason": "look" })),
        ("/v1/agents/a/timers", json!({ "summary": "t", "after_ms": 3_600_000 })),
        ("/v1/ledger/fork", json!({ "agent": "a", "at": 3, "as": "b" })),
    ] {
        let ask = Ask::post(path).json(body).key("the-key");
        let first = daemon.ask(ask.clone()).await;
        assert!(first.status < 300, "{path}: {}", first.json());
        let before = changes(&daemon).await;
        let again = daemon.ask(ask).await;
        assert_eq!((again.status, again.json()), (first.status, first.json()), "{path}");
        assert_eq!(changes(&daemon).await, before, "{path}");
    }
    assert_eq!(daemon.summary("b").await["agent"]["status"], "stopped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_made_under_a_key_is_not_shown_again() {
    let daemon = Daemon::start().await;
    let ask = Ask::post("/v1/tokens").json(json!({ "name": "t", "scope": "observer" })).key("k");
    daemon.ask(ask.clone()).await.is(201);
    daemon.ask(ask.clone()).await.refused(409, "shown_once");
    let daemon = daemon.restart().await;
    daemon.ask(ask).await.refused(409, "shown_once");
    assert_eq!(daemon.items("/v1/tokens").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_body_under_the_same_key_is_refused() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    daemon.ask(message("one").key("k")).await.is(202);
    daemon.ask(message("two").key("k")).await.refused(422, "key_reused");
    daemon.ask(message("one").key("k")).await.is(202);
    assert_eq!(daemon.items("/v1/agents/a/messages").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_caller_or_route_is_another_key() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    daemon.create_stopped("b").await;
    let other = daemon.token("other", "operator").await;
    daemon.ask(message("x").key("k")).await.is(202);
    daemon.send(message("x").key("k").token(&other)).await.is(202);
    daemon.ask(Ask::post("/v1/agents/b/messages").json(json!({ "text": "y" })).key("k")).await.is(202);
    daemon.ask(Ask::post("/v1/agents/a/wake").json(json!({ "reason": "z" })).key("k")).await.is(200);
    assert_eq!(daemon.items("/v1/agents/a/messages").await.len(), 2);
    assert_eq!(daemon.items("/v1/agents/b/messages").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_request_does_not_use_up_its_key() {
    let daemon = Daemon::start().await;
    daemon.ask(message("x").key("k")).await.refused(404, "not_found");
    daemon.create_stopped("a").await;
    daemon.ask(message("x").key("k")).await.is(202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_survive_a_restart() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let first = daemon.ask(message("hello").key("k")).await.is(202);
    let daemon = daemon.restart().await;
    assert_eq!(daemon.ask(message("hello").key("k")).await.is(202), first);
    daemon.ask(message("another").key("k")).await.refused(422, "key_reused");
    assert_eq!(daemon.items("/v1/agents/a/messages").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_repeat_while_the_first_is_under_way_is_told_so() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    // From here on the agent's loop stands still, and its callers wait.
    daemon.say("a", "block").await;
    daemon.event("a", "turn.round_started", |_| true).await;
    let one = daemon.ask(message("twice").key("k"));
    let other = daemon.ask(message("twice").key("k"));
    let (one, other) = (std::pin::pin!(one), std::pin::pin!(other));
    let (told, waiting) = match futures_util::future::select(one, other).await {
        futures_util::future::Either::Left((told, waiting)) | futures_util::future::Either::Right((told, waiting)) => {
            (told, waiting)
        }
    };
    told.refused(409, "key_under_way");
    daemon.hands.let_go();
    let accepted = waiting.await.is(202);
    assert_eq!(daemon.ask(message("twice").key("k")).await.is(202), accepted);
    let twice: Vec<Value> =
        daemon.items("/v1/agents/a/messages").await.into_iter().filter(|item| item["text"] == "twice").collect();
    assert_eq!(twice.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_none_is_refused() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    for key in ["", "a b", "\u{e4}", &"k".repeat(256)] {
        daemon.ask(message("x").key(key)).await.refused(400, "bad_key");
    }
    let mut twice = daemon.good(message("x").key("one"));
    twice.headers.push(("Idempotency-Key".to_owned(), "two".to_owned()));
    daemon.send(twice).await.refused(400, "bad_key");
    daemon.ask(message("x").key(&"k".repeat(255))).await.is(202);
    assert_eq!(daemon.items("/v1/agents/a/messages").await.len(), 1);
}
