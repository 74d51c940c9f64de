//! Work items over HTTP: made, listed by where they stand, changed and completed by a person, stopped agent or not.

use abide_api::types::{
    PlanStatus, TodoState, TodoView, WorkItemBlock, WorkItemComplete, WorkItemCreate, WorkItemUpdate,
};
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::http::Ask;

const ITEMS: &str = "/v1/agents/a/work-items";

fn of(item: &Value) -> String {
    format!("{ITEMS}/{}", item["work_item_id"].as_str().unwrap())
}

async fn make(daemon: &Daemon, objective: &str) -> Value {
    daemon.post(ITEMS, json!({ "objective": objective })).await.is(201)
}

async fn listed(daemon: &Daemon, filter: &str) -> Vec<String> {
    let items = daemon.items(&format!("{ITEMS}?filter={filter}")).await;
    items.iter().map(|item| item["objective"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_from_its_creation_to_its_report() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let client = daemon.client();
    let entry = |text: &str, state| TodoView { text: text.to_owned(), state };
    let new = WorkItemCreate {
        objective: "paint the fence".to_owned(),
        plan: Some("with a brush".to_owned()),
        plan_status: Some(PlanStatus::Ready),
        todo: vec![entry("buy paint", TodoState::Pending)],
        budget: None,
    };
    let made = client.create_work_item("a", &new).await.unwrap();
    assert_eq!((made.revision, made.readiness.as_str(), made.current), (1, "runnable", false));
    assert_eq!((made.plan.as_deref(), made.todo.as_slice()), (Some("with a brush"), new.todo.as_slice()));
    let id = made.work_item_id.as_str();
    assert_eq!(client.work_item("a", id).await.unwrap(), made);
    assert!(client.pick_work_item("a", id).await.unwrap().current);
    let todo = vec![entry("buy paint", TodoState::Completed), entry("paint", TodoState::InProgress)];
    let update = WorkItemUpdate { todo: Some(todo.clone()), ..WorkItemUpdate::default() };
    let updated = client.update_work_item("a", id, &update).await.unwrap();
    assert_eq!((updated.revision, updated.todo, updated.plan), (2, todo, made.plan.clone()), "what is left out stays");
    let block = WorkItemBlock { blocked_by: "rain".to_owned(), recheck_after_ms: Some(3_600_000) };
    let blocked = client.block_work_item("a", id, &block).await.unwrap();
    assert_eq!((blocked.readiness.as_str(), blocked.blocked_by.as_deref()), ("blocked_until_recheck", Some("rain")));
    assert!(blocked.recheck_at.is_some());
    let free = daemon.post(&format!("{ITEMS}/{id}/update"), json!({ "blocked_by": null })).await.is(200);
    assert_eq!((&free["readiness"], &free["blocked_by"]), (&json!("runnable"), &Value::Null));
    let complete = WorkItemComplete { report: "it is green".to_owned() };
    let completed = client.complete_work_item("a", id, &complete).await.unwrap();
    assert_eq!(
        (completed.state.as_str(), completed.readiness.as_str(), completed.current),
        ("completed", "completed", false)
    );
    assert_eq!(completed.report.as_deref(), Some("it is green"));
    assert_eq!(daemon.items(ITEMS).await, [json!(completed)]);
    let kinds = daemon.kinds("a").await;
    assert_eq!(
        kinds[1..],
        ["created", "picked", "updated", "blocked", "unblocked", "completed"].map(|kind| format!("work_item.{kind}"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_are_listed_by_where_they_stand() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let current = make(&daemon, "current").await;
    make(&daemon, "queued").await;
    let blocked = make(&daemon, "blocked").await;
    daemon.post(ITEMS, json!({ "objective": "waiting", "plan_status": "needs_input" })).await.is(201);
    let done = make(&daemon, "done").await;
    daemon.post(&format!("{}/pick", of(&current)), json!({})).await.is(200);
    daemon.post(&format!("{}/block", of(&blocked)), json!({ "blocked_by": "rain" })).await.is(200);
    daemon.post(&format!("{}/complete", of(&done)), json!({ "report": "ok" })).await.is(200);
    for filter in ["current", "queued", "blocked", "waiting"] {
        assert_eq!(listed(&daemon, filter).await, [filter]);
    }
    assert_eq!(listed(&daemon, "completed").await, ["done"]);
    assert_eq!(listed(&daemon, "open").await, ["current", "queued", "blocked", "waiting"]);
    assert_eq!(listed(&daemon, "all").await.len(), 5);
    let problem = daemon.ask(Ask::get(&format!("{ITEMS}?filter=stuck"))).await.refused(400, "bad_query");
    assert_eq!(problem["hint"], "it takes one of all, open, completed, current, queued, blocked, waiting");
    daemon.ask(Ask::get("/v1/agents/nobody/work-items?filter=open")).await.refused(404, "not_found");
    // Focus moves, and the list knows; also after the rows were made anew.
    let picked = daemon.post(&format!("{}/pick", of(&blocked)), json!({})).await.is(200);
    assert_eq!((&picked["current"], &picked["readiness"]), (&json!(true), &json!("blocked")));
    for _ in 0..2 {
        let items = daemon.items(ITEMS).await;
        let focus: Vec<&Value> = items.iter().filter(|item| item["current"] == true).collect();
        assert_eq!((focus.len(), &focus[0]["objective"]), (1, &json!("blocked")));
        daemon.post("/v1/ledger/verify", json!({ "rebuild_rows": true })).await.is(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filtered_lists_come_in_full_pages() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    for number in 0..6 {
        let item = make(&daemon, &format!("{number}")).await;
        // Those that are in no page lie between those that are.
        if number % 2 == 0 {
            daemon.post(&format!("{}/complete", of(&item)), json!({ "report": "ok" })).await.is(200);
        }
    }
    for (filter, wanted) in [("completed", ["0", "2", "4"]), ("open", ["1", "3", "5"])] {
        let first = daemon.get(&format!("{ITEMS}?filter={filter}&limit=2")).await;
        assert_eq!(first["items"].as_array().unwrap().len(), 2, "{filter}");
        let next = first["next"].as_str().unwrap();
        let second = daemon.get(&format!("{ITEMS}?filter={filter}&limit=2&after={next}")).await;
        assert_eq!(second["next"], Value::Null);
        let items = first["items"].as_array().unwrap().iter().chain(second["items"].as_array().unwrap());
        let seen: Vec<&Value> = items.map(|item| &item["objective"]).collect();
        assert_eq!(seen, wanted, "{filter}");
    }
    daemon.ask(Ask::get(&format!("{ITEMS}?filter=open&after=x"))).await.refused(400, "bad_cursor");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let item = make(&daemon, "one").await;
    let path = of(&item);
    let before = daemon.kinds("a").await;
    for (path, body, pointer) in [
        (ITEMS, json!({}), ""),
        (ITEMS, json!({ "objective": "o", "state": "open" }), "/state"),
        (ITEMS, json!({ "objective": "o", "plan_status": "redy" }), "/plan_status"),
        (ITEMS, json!({ "objective": "o", "todo": [{ "text": "a", "state": "done" }] }), "/todo/0/state"),
        (&format!("{path}/update"), json!({ "report": "x" }), "/report"),
        (&format!("{path}/block"), json!({}), ""),
        (&format!("{path}/block"), json!({ "blocked_by": "x", "recheck_after_ms": -1 }), "/recheck_after_ms"),
        (&format!("{path}/complete"), json!({}), ""),
    ] {
        let problem = daemon.post(path, body.clone()).await.refused(422, "wrong_fields");
        assert_eq!(problem["pointer"], pointer, "{path} {body}: {problem}");
    }
    let two = json!([{ "text": "a", "state": "in_progress" }, { "text": "b", "state": "in_progress" }]);
    for (path, body, status, code) in [
        (ITEMS.to_owned(), json!({ "objective": " " }), 422, "empty"),
        (ITEMS.to_owned(), json!({ "objective": "x".repeat(5_000) }), 422, "too_long"),
        (format!("{path}/update"), json!({ "todo": two }), 422, "one_in_progress"),
        (format!("{path}/update"), json!({ "todo": vec![json!({ "text": "x" }); 257] }), 422, "todo_too_long"),
        (format!("{path}/update"), json!({ "recheck_after_ms": 5 }), 409, "not_blocked"),
        (
            format!("{path}/block"),
            json!({ "blocked_by": "x", "recheck_after_ms": u64::pow(2, 62) }),
            422,
            "too_far_ahead",
        ),
        (format!("{path}/complete"), json!({ "report": "" }), 422, "empty"),
        (format!("{ITEMS}/work_none/complete"), json!({ "report": "x" }), 404, "not_found"),
        (format!("{ITEMS}/work_none/pick"), json!({}), 404, "not_found"),
        ("/v1/agents/nobody/work-items".to_owned(), json!({ "objective": "o" }), 404, "not_found"),
    ] {
        let problem = daemon.post(&path, body.clone()).await.refused(status, code);
        assert!(problem["hint"].is_string(), "{problem}");
    }
    daemon.ask(Ask::get(&format!("{ITEMS}/work_none"))).await.refused(404, "not_found");
    assert_eq!(daemon.kinds("a").await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completed_item_stays_completed_however_long_ago() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let first = make(&daemon, "first").await;
    daemon.post(&format!("{}/complete", of(&first)), json!({ "report": "ok" })).await.is(200);
    // The state remembers the last 32.
    for number in 0..33 {
        if number == 32 || number == 0 {
            daemon.post(&format!("{}/pick", of(&first)), json!({})).await.refused(409, "not_open");
        }
        let item = make(&daemon, "another").await;
        daemon.post(&format!("{}/complete", of(&item)), json!({ "report": "ok" })).await.is(200);
    }
    daemon.post(&format!("{}/pick", of(&first)), json!({})).await.refused(409, "not_open");
    let shown = daemon.get(&of(&first)).await;
    assert_eq!((&shown["readiness"], &shown["report"]), (&json!("completed"), &json!("ok")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_under_a_key_is_given_once() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let create = Ask::post(ITEMS).json(json!({ "objective": "once" })).key("k1");
    let made = daemon.ask(create.clone()).await.is(201);
    assert_eq!(daemon.ask(create).await.is(201), made);
    let complete = Ask::post(&format!("{}/complete", of(&made))).json(json!({ "report": "ok" })).key("k2");
    let completed = daemon.ask(complete.clone()).await.is(200);
    assert_eq!(daemon.ask(complete).await.is(200), completed, "met already, and not refused as completed");
    assert_eq!(daemon.kinds("a").await, ["agent.created", "work_item.created", "work_item.completed"]);
}
