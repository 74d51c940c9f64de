//! Agents: made, changed, forked, deleted, and left alone when their records can't be read.

use abide_api::types::{AgentChange, AgentCreate, AgentSummary, BudgetView, Fork, LimitsView, Role};
use abide_kernel::id::AgentId;
use abide_kernel::time::Time;
use abide_ledger::{Append, Commit, NewFact, StreamId};
use serde_json::{Value, json};

use crate::daemon::{ADMIN, Daemon};
use crate::http::Ask;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_made_with_what_was_said() {
    let daemon = Daemon::start().await;
    let new = AgentCreate {
        id: "a".to_owned(),
        model: Some("script/x.json".to_owned()),
        workspace: Some("/tmp".to_owned()),
        force: None,
        role: Some(Role::Execution),
        instructions: Some("be brief".to_owned()),
        network: Some(true),
        budget: Some(BudgetView { max_tokens: Some(9), ..BudgetView::default() }),
        fallback: Some(vec!["script/y.json".to_owned()]),
        start: Some(false),
        ..AgentCreate::default()
    };
    let made = daemon.client().create_agent(&new).await.unwrap();
    assert_eq!((made.identity.kind.as_str(), made.identity.role.as_str()), ("named", "execution"));
    assert_eq!((made.agent.status.as_str(), made.agent.pending, made.agent.turn_index), ("stopped", 0, 0));
    assert_eq!((made.model.name.as_str(), made.model.budget.max_tokens), ("script/x.json", Some(9)));
    assert_eq!(
        (made.model.fallback.as_slice(), made.model.in_use.as_str()),
        (&["script/y.json".to_owned()][..], "script/x.json")
    );
    assert!(made.lifecycle.accepts_messages && made.lifecycle.hint.is_some());
    let seen = daemon.client().agent("a").await.unwrap();
    assert_eq!(AgentSummary { at_seq: made.at_seq, ..seen }, made);
    let recorded = &daemon.events("a").await[0]["data"]["config"];
    assert_eq!(recorded["workspace"], "/tmp");
    assert_eq!((&recorded["instructions"], &recorded["network"]), (&json!("be brief"), &json!(true)));
    daemon.post("/v1/agents", json!({ "id": "a" })).await.refused(409, "exists");

    let plain = daemon.create("plain").await;
    assert_eq!((&plain["model"]["name"], &plain["identity"]["role"]), (&json!("script/echo"), &json!("orchestrator")));
    daemon.event("plain", "posture.changed", |data| data["next_status"] == "asleep").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_what_it_says_and_nothing_else() {
    let daemon = Daemon::start().await;
    daemon.post("/v1/agents", json!({ "id": "a", "start": false, "instructions": "be brief" })).await.is(201);
    daemon.event("a", "scheduler.decision", |_| true).await;
    let daily = Some(LimitsView { max_wall_ms: Some(60_000), ..LimitsView::default() });
    let budget = BudgetView { max_turns: Some(7), max_usd: Some(1.5), daily, ..BudgetView::default() };
    let change = AgentChange {
        model: Some("script/y.json".to_owned()),
        role: Some(Role::Execution),
        budget: Some(budget.clone()),
        ..AgentChange::default()
    };
    let changed: AgentSummary = daemon.client().change_agent("a", &change).await.unwrap();
    assert_eq!((changed.model.name.as_str(), changed.identity.role.as_str()), ("script/y.json", "execution"));
    assert_eq!(changed.model.budget, budget);
    let config = async || {
        let mut events = daemon.events("a").await.into_iter();
        events.rfind(|event| event["kind"] == "agent.configured").unwrap()["data"]["config"].clone()
    };
    assert_eq!(config().await["instructions"], "be brief");
    // Nothing new is no fact.
    daemon.patch("/v1/agents/a", json!({})).await.is(200);
    daemon.patch("/v1/agents/a", json!({ "model": "script/y.json" })).await.is(200);
    assert_eq!(daemon.kinds("a").await, ["agent.created", "agent.configured"]);
    let cleared = daemon.patch("/v1/agents/a", json!({ "instructions": "", "budget": {} })).await.is(200);
    let mut none = json!({ "max_turns": null, "max_tokens": null, "max_usd": null, "max_wall_ms": null });
    none["daily"] = none.clone();
    assert_eq!(cleared["model"]["budget"], none);
    assert_eq!(config().await.get("instructions"), None);
    let listed = &daemon.items("/v1/agents").await[0];
    assert_eq!((&listed["model"], &listed["role"]), (&json!("script/y.json"), &json!("execution")));
    daemon.patch("/v1/agents/nobody", json!({})).await.refused(404, "not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spent_budget_stops_turns_until_it_is_raised() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let wrong = json!({ "budget": { "daily": { "max_usd": -1.0 } } });
    let refused = daemon.patch("/v1/agents/a", wrong).await.refused(422, "wrong_fields");
    assert_eq!(refused["pointer"], "/budget/daily/max_usd");
    daemon.patch("/v1/agents/a", json!({ "budget": { "max_turns": 1 } })).await.is(200);
    daemon.post("/v1/agents/a/start", json!({})).await.is(200);
    daemon.finish("a", "first").await;
    let second = daemon.say("a", "second").await;
    daemon.event("a", "scheduler.decision", |data| data["reason"] == "budget_spent").await;
    assert_eq!(daemon.summary("a").await["agent"]["pending"], 1);
    daemon.patch("/v1/agents/a", json!({ "budget": { "max_turns": 2 } })).await.is(200);
    daemon.event("a", "message.processed", |data| data["message_id"] == second.as_str()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_takes_a_stopped_agent_and_its_id_for_good() {
    let daemon = Daemon::start().await;
    daemon.delete("/v1/agents/a").await.refused(404, "not_found");
    daemon.create("a").await;
    daemon.finish("a", "hello").await;
    daemon.delete("/v1/agents/a").await.refused(409, "not_stopped");
    daemon.post("/v1/agents/a/stop", json!({})).await.is(200);
    assert_eq!(daemon.delete("/v1/agents/a").await.is(200), json!({ "id": "a", "archived": true }));
    is_gone(&daemon).await;
    is_gone(&daemon.restart().await).await;
}

/// An agent that was deleted is not there, and what it was can still be read.
async fn is_gone(daemon: &Daemon) {
    for path in ["/v1/agents/a", "/v1/agents/a/why", "/v1/agents/a/messages", "/v1/agents/a/timers"] {
        let refused = daemon.ask(Ask::get(path)).await.refused(404, "not_found");
        assert_eq!(refused["detail"], "a was deleted; its events and its transcript can still be read");
    }
    for (path, body) in [
        ("start", json!({})),
        ("stop", json!({})),
        ("abort", json!({})),
        ("wake", json!({ "reason": "x" })),
        ("messages", json!({ "text": "x" })),
        ("timers", json!({ "summary": "x", "after_ms": 1 })),
    ] {
        daemon.post(&format!("/v1/agents/a/{path}"), body).await.refused(404, "not_found");
    }
    daemon.patch("/v1/agents/a", json!({})).await.refused(404, "not_found");
    daemon.delete("/v1/agents/a").await.refused(404, "not_found");
    daemon.post("/v1/agents", json!({ "id": "a" })).await.refused(409, "exists");
    assert!(daemon.items("/v1/agents").await.is_empty());
    assert_eq!(daemon.kinds("a").await.last().unwrap(), "agent.archived");
    let said = daemon.items("/v1/agents/a/transcript").await;
    assert_eq!(said.last().unwrap()["text"], "hello");
    for past in ["decisions", "why?at=1", "export", "patches"] {
        daemon.ask(Ask::get(&format!("/v1/agents/a/{past}"))).await.is(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_is_a_stopped_agent_with_the_past_of_another() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    daemon.finish("a", "before").await;
    let at = daemon.summary("a").await["at_seq"].as_u64().unwrap();
    daemon.finish("a", "after").await;
    let fork = Fork { agent: "a".to_owned(), at, name: "b".to_owned() };
    let forked = daemon.client().fork(&fork).await.unwrap();
    assert_eq!(json!(forked), json!({ "agent_id": "b", "parent": "a", "at_seq": at, "status": "stopped" }));
    let (parent, child) = (daemon.events("a").await, daemon.events("b").await);
    let at = usize::try_from(at).unwrap();
    let past = |events: &[Value]| events[..at].iter().map(|event| event["data"].clone()).collect::<Vec<_>>();
    assert_eq!(past(&parent), past(&child));
    assert_eq!(child[at]["kind"], "agent.forked");
    assert!(!json!(child).to_string().contains("after"));
    daemon.post("/v1/agents/b/start", json!({})).await.is(200);
    daemon.finish("b", "on its own").await;

    let fork = |agent: &str, at: usize, name: &str| json!({ "agent": agent, "at": at, "as": name });
    daemon.post("/v1/ledger/fork", fork("a", 1, "b")).await.refused(409, "exists");
    daemon.post("/v1/ledger/fork", fork("nobody", 1, "c")).await.refused(404, "not_found");
    daemon.post("/v1/ledger/fork", fork("a", 0, "c")).await.refused(404, "no_such_moment");
    daemon.post("/v1/ledger/fork", fork("a", 9999, "c")).await.refused(404, "no_such_moment");
    daemon.ask(Ask::get("/v1/agents/c")).await.refused(404, "not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_records_do_not_read_is_left_alone_and_the_others_live() {
    let daemon = Daemon::start().await;
    daemon.create("good").await;
    let stream = StreamId::agent(&AgentId::new("bad").unwrap());
    let facts = vec![NewFact::new("nonsense.happened", b"{}".to_vec())];
    let append = Append { stream, expected: 0, at: Time::EPOCH, facts, fork_of: None };
    daemon.app.host.ledger().commit(Commit { appends: vec![append], ..Commit::default() }).await.unwrap();

    daemon.ask(Ask::get("/v1/agents/bad")).await.refused(409, "quarantined");
    daemon.ask(Ask::get("/v1/agents/bad/timers")).await.refused(409, "quarantined");
    daemon.ask(Ask::get("/v1/agents/bad/why?at=1")).await.refused(409, "quarantined");
    daemon.ask(Ask::get("/v1/agents/bad/export")).await.refused(409, "quarantined");
    daemon.post("/v1/agents/bad/messages", json!({ "text": "x" })).await.refused(409, "quarantined");
    daemon.post("/v1/agents/bad/start", json!({})).await.refused(409, "quarantined");
    daemon.patch("/v1/agents/bad", json!({})).await.refused(409, "quarantined");
    daemon.delete("/v1/agents/bad").await.refused(409, "quarantined");
    let why = daemon.get("/v1/agents/bad/why").await;
    assert!(why["sentence"].as_str().unwrap().contains("quarantined"), "{why}");
    assert_eq!(daemon.kinds("bad").await, ["nonsense.happened"]);
    assert_eq!(daemon.items("/v1/agents").await.len(), 2);
    daemon.finish("good", "still here").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_is_the_files_of_a_fixture() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    daemon.finish("a", "hello").await;
    let files = daemon.get("/v1/agents/a/export").await["files"].clone();
    let agent: Value = serde_json::from_str(files["agent.json"].as_str().unwrap()).unwrap();
    assert_eq!(agent["turn_index"], 1);
    assert!(files["ledger/events.jsonl"].as_str().unwrap().contains("hello"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ledger_is_looked_after_while_it_is_served() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    daemon.finish("a", "hello").await;
    let stats = daemon.get("/v1/ledger/stats").await;
    assert!(stats["facts"].as_u64().unwrap() > 5, "{stats}");
    for body in [json!({}), json!({ "rebuild_rows": true })] {
        let report = daemon.post("/v1/ledger/verify", body).await.is(200);
        assert_eq!((&report["intact"], &report["damage"]), (&json!(true), &json!([])));
    }
    let compacted = daemon.post("/v1/ledger/compact", json!({ "older_than_days": 0 })).await.is(200);
    assert!(compacted["facts"].is_u64(), "{compacted}");
    let report = daemon.ask(Ask::post("/v1/ledger/verify")).await.is(200);
    assert_eq!(report["intact"], true, "{report}");
    daemon.finish("a", "still here").await;
    let export = daemon.ask(Ask::get("/v1/ledger/export")).await;
    let lines = export.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    assert!(lines.len() > 5, "{lines:#?}");
}

/// A limit in dollars means nothing where nobody knows a price; said while somebody is there to hear it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_is_limited_only_where_every_model_has_a_price() {
    let daemon = Daemon::start().await;
    let refused = |answer: crate::http::Answer, pointer: &str| {
        let problem = answer.refused(422, "wrong_fields");
        assert!(problem["detail"].as_str().unwrap().contains("free/unpriced has no price"), "{problem}");
        assert_eq!(problem["pointer"], pointer, "{problem}");
    };
    let money = json!({ "max_usd": 1.0 });
    let daily = json!({ "daily": { "max_usd": 1.0 } });
    for (body, pointer) in [
        (json!({ "id": "x", "model": "free/unpriced", "budget": money }), "/model"),
        (json!({ "id": "x", "model": "free/unpriced", "budget": daily }), "/model"),
        (json!({ "id": "x", "fallback": ["script/y.json", "free/unpriced"], "budget": money }), "/fallback/1"),
    ] {
        refused(daemon.post("/v1/agents", body).await, pointer);
    }
    assert!(daemon.items("/v1/agents").await.is_empty());
    // With another limit it may think with it, and is held to that.
    let tokens = json!({ "id": "free", "model": "free/unpriced", "budget": { "max_tokens": 9 }, "start": false });
    daemon.post("/v1/agents", tokens).await.is(201);
    refused(daemon.patch("/v1/agents/free", json!({ "budget": daily })).await, "/budget");
    let item = json!({ "objective": "paint", "budget": { "max_usd": 1.0 } });
    refused(daemon.post("/v1/agents/free/work-items", item.clone()).await, "/budget/max_usd");
    // An agent with a limit can't be given such a model; models are free for other agents.
    daemon.post("/v1/agents", json!({ "id": "paid", "budget": money, "start": false })).await.is(201);
    refused(daemon.patch("/v1/agents/paid", json!({ "model": "free/unpriced" })).await, "/model");
    refused(daemon.patch("/v1/agents/paid", json!({ "fallback": ["free/unpriced"] })).await, "/fallback/0");
    daemon.patch("/v1/agents/paid", json!({ "instructions": "be brief" })).await.is(200);
    let both = json!({ "model": "free/unpriced", "budget": { "max_turns": 3 } });
    daemon.patch("/v1/agents/paid", both).await.is(200);
    // An item's limit counts like the agent's.
    daemon.create_stopped("worker").await;
    daemon.post("/v1/agents/worker/work-items", item).await.is(201);
    refused(daemon.patch("/v1/agents/worker", json!({ "model": "free/unpriced" })).await, "/model");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_model_is_asked_twice_for_the_same() {
    let daemon = Daemon::start().await;
    let twice = |answer: crate::http::Answer, pointer: &str| {
        let problem = answer.refused(422, "wrong_fields");
        assert!(problem["detail"].as_str().unwrap().contains("asked twice"), "{problem}");
        assert_eq!(problem["pointer"], pointer, "{problem}");
    };
    twice(daemon.post("/v1/agents", json!({ "id": "a", "fallback": ["script/echo"] })).await, "/fallback/0");
    daemon.post("/v1/agents", json!({ "id": "a", "fallback": ["script/b.json"], "start": false })).await.is(201);
    twice(daemon.patch("/v1/agents/a", json!({ "model": "script/b.json" })).await, "/model");
    let fallback = json!({ "fallback": ["script/c.json", "script/c.json"] });
    twice(daemon.patch("/v1/agents/a", fallback).await, "/fallback/1");
    daemon.patch("/v1/agents/a", json!({ "model": "script/b.json", "fallback": [] })).await.is(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_would_be_rounded_to_nothing_is_refused() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let problem = daemon.patch("/v1/agents/a", json!({ "budget": { "max_usd": 0.000_000_4 } })).await;
    assert_eq!(problem.refused(422, "wrong_fields")["pointer"], "/budget/max_usd");
    for usd in [0.0, 0.000_001] {
        let changed = daemon.patch("/v1/agents/a", json!({ "budget": { "max_usd": usd } })).await.is(200);
        assert_eq!(changed["model"]["budget"]["max_usd"], usd);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_is_chosen_as_far_as_the_token_reaches() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let made = daemon.post("/v1/tokens", json!({ "name": "ci", "scope": "operator" })).await.is(201);
    let operator = made["token"].as_str().unwrap().to_owned();
    let admin = ADMIN.to_owned();
    for (token, path, force, expected) in [
        (&operator, "/work", None, 200),
        (&operator, "/outside", None, 403),
        (&operator, "/outside", Some(true), 403),
        (&operator, "/work", Some(true), 403),
        (&operator, "/work", Some(false), 200),
        (&operator, "/system", None, 403),
        (&admin, "/outside", None, 200),
        (&admin, "/system", None, 403),
        (&admin, "/system", Some(true), 200),
        (&admin, "/whole", Some(true), 403),
    ] {
        let body = |name: &str| {
            let mut body = json!({ name: path });
            if let Some(force) = force {
                body["force"] = force.into();
            }
            body
        };
        let create = {
            let mut create = body("workspace");
            create["id"] = format!("x{}", daemon.items("/v1/agents").await.len()).into();
            create["start"] = false.into();
            create
        };
        let asked = [
            Ask::post("/v1/agents").json(create),
            Ask::new("PATCH", "/v1/agents/a").json(body("workspace")),
            Ask::post("/v1/agents/a/workspaces").json(body("path")),
        ];
        for ask in asked {
            let answer = daemon.send(ask.token(token)).await;
            let status = if answer.status == 201 { 200 } else { answer.status };
            assert_eq!(status, expected, "{path} {force:?}: {}", String::from_utf8_lossy(&answer.body));
        }
    }
    let ask = Ask::new("PATCH", "/v1/agents/a").json(json!({ "workspace": "/outside" })).token(&operator);
    let problem = daemon.send(ask).await.refused(403, "outside_roots");
    assert_eq!((&problem["pointer"], &problem["hint"]), (&json!("/workspace"), &json!("see workspace_roots")));
}
