//! Lists come in pages: every item on exactly one of them, whatever their size.

use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::http::Ask;

/// All items of a list, page by page.
async fn walk(daemon: &Daemon, path: &str, limit: usize) -> Vec<Value> {
    let mut items = Vec::new();
    let mut after = String::new();
    loop {
        let page = daemon.get(&format!("{path}?limit={limit}{after}")).await;
        let found = page["items"].as_array().unwrap();
        assert!(found.len() <= limit, "{path} with {limit}: {}", found.len());
        items.extend(found.iter().cloned());
        match page["next"].as_str() {
            None => return items,
            Some(next) => after = format!("&after={next}"),
        }
        assert!(!found.is_empty(), "{path} with {limit} goes on after an empty page");
    }
}

async fn check_pages(daemon: &Daemon, path: &str, count: usize) {
    let whole = daemon.items(&format!("{path}?limit=1000")).await;
    assert_eq!(whole.len(), count, "{path}");
    for limit in [1, 2, 3, count, count + 1, 1000] {
        assert_eq!(walk(daemon, path, limit.max(1)).await, whole, "{path} in pages of {limit}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_of_agents_and_tokens_is_reached_once() {
    let daemon = Daemon::start().await;
    check_pages(&daemon, "/v1/agents", 0).await;
    for id in ["b", "a", "c.d", "c", "0", "deleted", "z-z", "z_z"] {
        daemon.create_stopped(id).await;
    }
    daemon.delete("/v1/agents/deleted").await.is(200);
    // Streams that are no agent's do not show.
    daemon.ask(Ask::post("/v1/agents/a/messages").json(json!({ "text": "x" })).key("k")).await.is(202);
    check_pages(&daemon, "/v1/agents", 7).await;
    let ids: Vec<Value> = daemon.items("/v1/agents").await.iter().map(|item| item["id"].clone()).collect();
    assert_eq!(json!(ids), json!(["0", "a", "b", "c", "c.d", "z-z", "z_z"]));
    for name in ["one", "two", "three"] {
        daemon.token(name, "observer").await;
    }
    check_pages(&daemon, "/v1/tokens", 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_of_a_plane_and_of_a_history_is_reached_once() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    for text in ["one", "two", "three", "tell me", "wait"] {
        daemon.finish("a", text).await;
    }
    for summary in ["x", "y", "z"] {
        let timer = json!({ "summary": summary, "after_ms": 3_600_000 });
        daemon.post("/v1/agents/a/timers", timer).await.is(201);
    }
    daemon.halt("a").await;
    check_pages(&daemon, "/v1/agents/a/messages", 5).await;
    check_pages(&daemon, "/v1/agents/a/timers", 3).await;
    check_pages(&daemon, "/v1/agents/a/waits", 1).await;
    for plane in ["briefs", "transcript", "decisions", "events"] {
        let path = format!("/v1/agents/a/{plane}");
        let count = daemon.items(&format!("{path}?limit=1000")).await.len();
        assert!(count >= 5, "{plane}: {count}");
        check_pages(&daemon, &path, count).await;
    }
    for plane in ["tasks", "work-items", "triggers", "approvals", "children"] {
        check_pages(&daemon, &format!("/v1/agents/a/{plane}"), 0).await;
    }
}

/// An empty page for an invalid cursor would look like the end of the list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_cursor_is_refused() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let planes = ["messages", "briefs", "tasks", "children", "work-items", "timers", "waits", "triggers", "approvals"];
    for plane in planes {
        for after in ["zzz", "0", ""] {
            let ask = Ask::get(&format!("/v1/agents/a/{plane}?after={after}"));
            daemon.ask(ask).await.refused(400, "bad_cursor");
        }
    }
    for after in ["x", "1.", ".1", "1.x", "1.1.1", "-1"] {
        let ask = Ask::get(&format!("/v1/agents/a/transcript?after={after}"));
        daemon.ask(ask).await.refused(400, "bad_query");
    }
    daemon.ask(Ask::get("/v1/agents/a/events?after=1.1")).await.refused(400, "bad_query");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_without_a_limit_has_a_hundred_items() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    for number in 0..101 {
        daemon.say("a", &format!("{number}")).await;
    }
    let page = daemon.get("/v1/agents/a/messages").await;
    assert_eq!(page["items"].as_array().unwrap().len(), 100);
    let next = page["next"].as_str().unwrap();
    let rest = daemon.get(&format!("/v1/agents/a/messages?after={next}")).await;
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
    assert_eq!(rest["items"][0]["text"], "100", "messages are listed as they came");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_planes_of_an_agent_that_is_not_there_are_not_found() {
    let daemon = Daemon::start().await;
    for plane in [
        "messages",
        "transcript",
        "briefs",
        "tasks",
        "work-items",
        "timers",
        "waits",
        "triggers",
        "approvals",
        "decisions",
        "children",
        "events",
        "why",
        "export",
        "events/stream",
    ] {
        daemon.ask(Ask::get(&format!("/v1/agents/nobody/{plane}"))).await.refused(404, "not_found");
    }
}
