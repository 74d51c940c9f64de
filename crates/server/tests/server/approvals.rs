//! Approvals over HTTP: the first decision counts.

use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::http::Ask;

async fn asked(daemon: &Daemon) -> (String, Value) {
    daemon.finish("a", "ask").await;
    let approval = daemon.items("/v1/agents/a/approvals").await.pop().unwrap();
    assert_eq!((&approval["status"], &approval["decided_by"]), (&json!("pending"), &Value::Null));
    (format!("/v1/agents/a/approvals/{}", approval["approval_id"].as_str().unwrap()), approval)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_answer_counts_and_the_second_hears_whose_it_was() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let (path, approval) = asked(&daemon).await;
    let token = daemon.token("ada", "operator").await;
    let ask = |action: &str| Ask::post(&format!("{path}/{action}")).json(json!({})).token(&token);
    let granted = daemon.ask(ask("grant").key("k")).await.is(200);
    assert_eq!((&granted["status"], &granted["decided_by"]), (&json!("granted"), &json!("ada")));
    assert!(granted["decided_at"].is_string());
    assert_eq!(daemon.ask(ask("grant").key("k")).await.is(200), granted, "the same request, the same answer");
    let problem = daemon.post(&format!("{path}/deny"), json!({})).await.refused(409, "already_decided");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("granted") && detail.contains("ada"), "{detail}");
    assert_eq!(daemon.items("/v1/agents/a/approvals").await, [granted]);
    // The agent hears it once, and goes on.
    let told = daemon.event("a", "message.queued", |data| data["approval_id"] == approval["approval_id"]).await;
    assert!(told["data"]["text"].as_str().unwrap().starts_with("ada granted"), "{told}");
    daemon.event("a", "message.processed", |data| data["message_id"] == told["data"]["message_id"]).await;
    let decided = daemon.kinds("a").await.into_iter().filter(|kind| kind == "approval.decided").count();
    assert_eq!(decided, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_no_is_said_by_whoever_may_say_it() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let (path, _) = asked(&daemon).await;
    let denied = daemon.ask(Ask::post(&format!("{path}/deny"))).await.is(200);
    assert_eq!(denied["status"], "denied");
    daemon.post(&format!("{path}/grant"), json!({ "reason": "x" })).await.refused(422, "wrong_fields");
    for (path, code) in
        [("/v1/agents/a/approvals/appr_none/grant", "not_found"), ("/v1/agents/nobody/approvals/x/deny", "not_found")]
    {
        daemon.post(path, json!({})).await.refused(404, code);
    }
    let reader = daemon.token("reader", "observer").await;
    let ask = Ask::post(&format!("{path}/grant")).token(&reader);
    daemon.ask(ask).await.refused(403, "scope");
}
