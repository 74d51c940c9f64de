//! Histories: events, transcript, decisions, and explanations of now and of then.

use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::http::Ask;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_moment_of_a_history_can_be_explained() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    daemon.say("a", "one").await;
    daemon.post("/v1/agents/a/start", json!({})).await.is(200);
    daemon.event("a", "message.processed", |_| true).await;
    daemon.finish("a", "wait").await;
    daemon.event("a", "posture.changed", |data| data["next_status"] == "asleep").await;
    // The scheduler had decided to stop before the first start; this time it is waited for by its place.
    daemon.post("/v1/agents/a/stop", json!({})).await.is(200);
    let stopped = daemon.summary("a").await["at_seq"].as_u64().unwrap();
    let mut events = daemon.client().follow(Some("a"), Some(&(stopped - 1).to_string())).await.unwrap();
    while events.next().await.unwrap().name != "scheduler.decision" {}
    let events = daemon.events("a").await;
    let mut statuses = Vec::new();
    for event in &events {
        let seq = event["seq"].as_u64().unwrap();
        let why = daemon.client().why("a", Some(seq)).await.unwrap();
        let raw = daemon.get(&format!("/v1/agents/a/why?at={seq}")).await;
        assert_eq!(serde_json::to_value(&why).unwrap(), raw, "at {seq}");
        assert_eq!((why.agent_id.as_str(), why.at_seq), ("a", seq));
        assert!(!why.sentence.is_empty() && why.waiting_on.iter().all(|on| on.seq <= seq), "{raw}");
        if statuses.last() != Some(&why.status) {
            statuses.push(why.status);
        }
        // The trail agrees with what is computed.
        if event["kind"] == "posture.changed" {
            assert_eq!(
                Some(event["data"]["next_status"].as_str().unwrap()),
                statuses.last().map(|status| status.as_str())
            );
        }
    }
    assert_eq!(statuses.first().map(|status| status.as_str()), Some("stopped"));
    assert!(statuses.iter().any(|status| status.as_str() == "awake_running"), "{statuses:?}");
    assert_eq!(statuses.last().map(|status| status.as_str()), Some("stopped"));
    let now = daemon.get("/v1/agents/a/why").await;
    assert_eq!(now["at_seq"], events.len());
    assert_eq!(now, daemon.get(&format!("/v1/agents/a/why?at={}", events.len())).await);
    assert_eq!(now["would_wake"], json!(["a start"]));
    for at in [0, events.len() + 1, 99_999] {
        daemon.ask(Ask::get(&format!("/v1/agents/a/why?at={at}"))).await.refused(404, "no_such_moment");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_go_forward_from_a_place_or_show_the_newest() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    for text in ["one", "two", "three"] {
        daemon.finish("a", text).await;
    }
    daemon.halt("a").await;
    for plane in ["events", "transcript", "decisions"] {
        let path = format!("/v1/agents/a/{plane}");
        let whole = daemon.items(&format!("{path}?limit=1000")).await;
        let seqs: Vec<u64> = whole.iter().map(|entry| entry["seq"].as_u64().unwrap()).collect();
        assert!(seqs.is_sorted(), "{plane}: {seqs:?}");
        for last in [1, 2, whole.len(), 1000] {
            let newest = daemon.items(&format!("{path}?last={last}")).await;
            assert_eq!(newest, whole[whole.len().saturating_sub(last)..], "the last {last} of {plane}");
        }
        for after in [0, seqs[0], seqs[1], *seqs.last().unwrap(), 1_000_000] {
            let later: Vec<Value> =
                whole.iter().filter(|entry| entry["seq"].as_u64().unwrap() > after).cloned().collect();
            assert_eq!(daemon.items(&format!("{path}?after={after}&limit=1000")).await, later, "{plane} after {after}");
        }
    }
    let events = daemon.events("a").await;
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_transcript_is_what_was_said_and_done() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let message = daemon.finish("a", "tell me").await;
    let said = daemon.client().transcript("a", "limit=100").await.unwrap().items;
    let roles: Vec<&str> = said.iter().map(|entry| entry.role.as_str()).collect();
    assert_eq!(roles, ["input", "assistant", "tool_call", "tool_result", "assistant"]);
    assert_eq!(
        (said[0].text.as_deref(), said[0].message_id.as_ref().map(|id| id.as_str())),
        (Some("tell me"), Some(message.as_str()))
    );
    let whose = |entry: &abide_api::types::TranscriptEntry| entry.origin.as_ref().map(|origin| origin.kind);
    assert_eq!(
        (said[0].kind.map(|kind| kind.as_str()), whose(&said[0]).map(|kind| kind.as_str())),
        (Some("operator_prompt"), Some("operator"))
    );
    assert_eq!((&said[1].kind, whose(&said[1])), (&None, None));
    assert_eq!((said[2].tool.as_deref(), &said[2].call_id), (Some("NotifyOperator"), &said[3].call_id));
    assert_eq!(said[3].status.map(|status| status.as_str()), Some("completed"));
    let briefs = daemon.client().briefs("a", "").await.unwrap().items;
    assert!(briefs.iter().any(|brief| brief.text == "look at this"), "{briefs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_typed_client_reads_what_the_server_sends() {
    let daemon = Daemon::start().await;
    let client = daemon.client();
    daemon.create("a").await;
    daemon.finish("a", "hello").await;
    let agents = client.agents(None).await.unwrap();
    assert_eq!((agents.items[0].id.as_str(), agents.next), ("a", None));
    assert_eq!(client.messages("a", "").await.unwrap().items[0].status.as_str(), "processed");
    let events = client.events("a", "last=1").await.unwrap();
    assert_eq!(events.items[0].seq, client.agent("a").await.unwrap().at_seq);
    let refused = client.agent("nobody").await.unwrap_err();
    assert!(matches!(&refused, abide_api::ClientError::Refused(problem) if problem.status == 404), "{refused}");
    let mut bytes = 0;
    let piece = |piece: &[u8]| {
        bytes += piece.len();
        Ok(())
    };
    client.download("/v1/ledger/export", piece).await.unwrap().unwrap();
    assert!(bytes > 1_000);
    let gone = abide_api::Client::new("http://127.0.0.1:9", "x").unwrap().health().await.unwrap_err();
    assert!(matches!(gone, abide_api::ClientError::Unreachable { .. }), "{gone}");
    for url in ["https://127.0.0.1", "127.0.0.1:80", "http://"] {
        assert!(abide_api::Client::new(url, "x").is_err(), "{url}");
    }
}
