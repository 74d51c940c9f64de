//! The outcome of a message: shown with the message, waited for within bounds, and the same after a restart.

use std::pin::pin;

use abide_server::Limits;
use futures_util::future::{Either, select};
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::http::{Answer, Ask};

fn path(message: &str, query: &str) -> String {
    format!("/v1/agents/a/messages/{message}{query}")
}

async fn show(daemon: &Daemon, message: &str, query: &str) -> Value {
    daemon.get(&path(message, query)).await
}

/// An agent whose model has begun to answer and goes on when the test lets go.
async fn held(daemon: &Daemon) -> String {
    daemon.create("a").await;
    let message = daemon.say("a", "hold").await;
    daemon.event("a", "turn.round_started", |_| true).await;
    message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_shown_with_its_outcome_and_its_briefs() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let message = daemon.say("a", "hello").await;
    let shown = show(&daemon, &message, "?wait=60s").await;
    assert_eq!((&shown["outcome"], &shown["text"]), (&json!("answered"), &json!("hello")));
    let briefs = shown["briefs"].as_array().unwrap();
    assert_eq!((briefs.len(), &briefs[0]["kind"], &briefs[0]["text"]), (1, &json!("result"), &json!("hello")));
    assert_eq!(briefs[0]["message_id"], message.as_str());
    let listed = &daemon.items("/v1/agents/a/messages").await[0];
    assert_eq!((listed.get("outcome"), listed.get("briefs")), (None, None), "lists show the rows alone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_waits_until_the_message_is_answered() {
    let daemon = Daemon::start().await;
    let message = held(&daemon).await;
    let under_way = show(&daemon, &message, "").await;
    assert_eq!(under_way["outcome"], "under_way");
    assert!(under_way["sentence"].as_str().unwrap().starts_with("a is running a turn"), "{under_way}");
    let over = show(&daemon, &message, "?wait=1ms").await;
    assert_eq!(over["outcome"], "under_way", "the time is over");
    let waiting = pin!(show(&daemon, &message, "?wait=60s"));
    let meanwhile = pin!(async {
        daemon.say("a", "another").await;
        daemon.hands.let_go();
        std::future::pending::<()>().await;
    });
    let Either::Left((shown, _)) = select(waiting, meanwhile).await else { panic!("it never ends") };
    assert_eq!((&shown["outcome"], &shown["briefs"][0]["text"]), (&json!("answered"), &json!("hold")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_has_a_unit_and_an_end() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let message = daemon.finish("a", "hello").await;
    for wait in ["60s", "60000ms", "1m", "0s"] {
        assert_eq!(show(&daemon, &message, &format!("?wait={wait}")).await["outcome"], "answered", "{wait}");
    }
    for (wait, why) in
        [("61s", "wait is at most 60s"), ("60001ms", "at most"), ("30", "no duration"), ("", "no duration")]
    {
        let refused = daemon.ask(Ask::get(&path(&message, &format!("?wait={wait}")))).await.refused(400, "bad_query");
        assert!(refused["detail"].as_str().unwrap().contains(why), "{refused}");
    }
    daemon.ask(Ask::get(&path("msg_no", "?wait=60s"))).await.refused(404, "not_found");
    daemon.ask(Ask::get("/v1/agents/nobody/messages/msg_no?wait=60s")).await.refused(404, "not_found");
}

/// Two requests that wait, of which one is refused because the other has the only place.
async fn waits_alone(daemon: &Daemon, message: &str, meanwhile: impl AsyncFnOnce()) -> Value {
    let ask = || daemon.ask(Ask::get(&path(message, "?wait=60s")));
    let (one, other) = (pin!(ask()), pin!(ask()));
    let (refused, waiting): (Answer, _) = match select(one, other).await {
        Either::Left((refused, waiting)) | Either::Right((refused, waiting)) => (refused, waiting),
    };
    refused.refused(429, "overloaded");
    assert!(refused.header("retry-after").is_some());
    meanwhile().await;
    waiting.await.is(200)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_have_places_of_their_own() {
    let daemon = Daemon::with(Limits { waits: 1, requests: 1, ..Limits::default() }).await;
    let message = held(&daemon).await;
    let shown = waits_alone(&daemon, &message, async || {
        // The only place of other requests is free, also for the same message.
        assert_eq!(show(&daemon, &message, "").await["outcome"], "under_way");
        daemon.hands.let_go();
    });
    assert_eq!(shown.await["outcome"], "answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_token_leaves_places_to_wait_for_others() {
    let daemon = Daemon::with(Limits { waits: 2, ..Limits::default() }).await;
    let message = held(&daemon).await;
    let token = daemon.token("other", "observer").await;
    let shown = waits_alone(&daemon, &message, async || {
        let ask = Ask::get(&path(&message, "?wait=1ms")).token(&token);
        assert_eq!(daemon.send(daemon.good(ask)).await.is(200)["outcome"], "under_way");
        daemon.hands.let_go();
    });
    assert_eq!(shown.await["outcome"], "answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_ends_when_the_daemon_shuts_down() {
    let daemon = Daemon::with(Limits { waits: 1, ..Limits::default() }).await;
    let message = held(&daemon).await;
    let shown = waits_alone(&daemon, &message, async || daemon.app.close()).await;
    assert_eq!(shown["outcome"], "under_way");
    daemon.ask(Ask::get(&path(&message, "?wait=60s"))).await.refused(503, "closing");
    let daemon = daemon.restart().await;
    daemon.hands.let_go();
    assert_eq!(show(&daemon, &message, "?wait=60s").await["outcome"], "answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_an_outcome_until_it_is_answered() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let message = daemon.say("a", "ask").await;
    let asked = show(&daemon, &message, "?wait=60s").await;
    assert_eq!((&asked["outcome"], &asked["briefs"][0]["kind"]), (&json!("waits_for_person"), &json!("ack")));
    assert!(asked["question"].as_str().unwrap().contains("a waits for your approval"), "{asked}");
    let approval = daemon.items("/v1/agents/a/approvals").await[0]["approval_id"].as_str().unwrap().to_owned();
    daemon.post(&format!("/v1/agents/a/approvals/{approval}/grant"), json!({})).await.is(200);
    let shown = show(&daemon, &message, "?wait=60s").await;
    assert_eq!(shown["outcome"], "answered");
    let kinds: Vec<&Value> = shown["briefs"].as_array().unwrap().iter().map(|brief| &brief["kind"]).collect();
    assert_eq!(kinds, ["ack", "result"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_a_stopped_and_of_a_deleted_agent_have_an_outcome() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let answered = daemon.finish("a", "hello").await;
    daemon.halt("a").await;
    let kept = daemon.say("a", "are you there").await;
    let stopped = show(&daemon, &kept, "?wait=60s").await;
    assert_eq!(stopped["outcome"], "stopped");
    assert!(stopped["sentence"].as_str().unwrap().ends_with("`abide agent start a`"), "{stopped}");
    daemon.delete("/v1/agents/a").await.is(200);
    let daemon = daemon.restart().await;
    assert_eq!(show(&daemon, &kept, "?wait=60s").await["outcome"], "stopped");
    assert_eq!(show(&daemon, &answered, "").await["outcome"], "answered");
}
