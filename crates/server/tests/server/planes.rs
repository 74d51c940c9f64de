//! The planes: timers, waits, approvals and the rest, open and ended, in lists and in the summary.

use abide_api::types::{AgentSummary, CatchUp, TimerCreate};
use abide_kernel::time::Time;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::http::Ask;

const HOUR: u64 = 3_600_000;

fn at(value: &Value) -> Time {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_is_made_listed_and_cancelled() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let client = daemon.client();
    let new = TimerCreate { summary: "tea".to_owned(), after_ms: Some(HOUR), ..TimerCreate::default() };
    let once = client.create_timer("a", &new).await.unwrap();
    assert_eq!(once.upcoming, [once.next_fire_at.unwrap()]);
    let every = json!({ "summary": "pulse", "every_ms": HOUR, "catch_up": "none" });
    let every = daemon.post("/v1/agents/a/timers", every).await.is(201);
    let upcoming: Vec<Time> = every["upcoming"].as_array().unwrap().iter().map(at).collect();
    assert_eq!(upcoming.len(), 5);
    assert_eq!(upcoming[0], at(&every["next_fire_at"]));
    assert!(upcoming.windows(2).all(|pair| pair[1] == pair[0].plus_ms(HOUR)), "{upcoming:?}");
    let gone = json!({ "summary": "gone", "at": "2020-01-01T00:00:00Z" });
    let refused = daemon.post("/v1/agents/a/timers", gone).await.refused(422, "in_the_past");
    assert!(refused["hint"].as_str().unwrap().contains("to come"), "{refused}");
    let dated = json!({ "summary": "new year", "at": "2099-01-01T01:00:00+01:00" });
    let dated = daemon.post("/v1/agents/a/timers", dated).await.is(201);
    assert_eq!(dated["next_fire_at"], "2099-01-01T00:00:00.000Z");

    let timers = client.timers("a", "").await.unwrap().items;
    let mut summaries: Vec<&str> = timers.iter().map(|timer| timer.summary.as_str()).collect();
    summaries.sort_unstable();
    assert_eq!(summaries, ["new year", "pulse", "tea"]);
    assert!(timers.iter().all(|timer| timer.status.as_str() == "active" && timer.fire_count == 0));
    assert_eq!(daemon.summary("a").await["active_timers"].as_array().unwrap().len(), 3);

    assert!(client.end("a", "timers", once.timer_id.as_str()).await.unwrap().ended);
    daemon.delete(&format!("/v1/agents/a/timers/{}", once.timer_id)).await.refused(404, "not_found");
    daemon.delete("/v1/agents/a/timers/timer_none").await.refused(404, "not_found");
    daemon.delete("/v1/agents/nobody/timers/timer_none").await.refused(404, "not_found");
    let ended = client.timers("a", "").await.unwrap().items;
    let ended = ended.iter().find(|timer| timer.timer_id == once.timer_id).unwrap();
    assert_eq!((ended.status.as_str(), ended.next_fire_at), ("cancelled", None));
    let id = every["timer_id"].as_str().unwrap();
    daemon.delete(&format!("/v1/agents/a/timers/{id}")).await.is(200);
    let ended = client.timers("a", "").await.unwrap().items;
    let ended = ended.iter().find(|timer| timer.timer_id.as_str() == id).unwrap();
    assert_eq!((ended.status.as_str(), ended.every_ms), ("cancelled", Some(HOUR)), "it is still known how often");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_fires_and_its_tick_is_worked_on() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let once = json!({ "summary": "tea is ready", "after_ms": 30 });
    let once = daemon.post("/v1/agents/a/timers", once).await.is(201);
    let fired = daemon.event("a", "timer.fired", |data| data["timer_id"] == once["timer_id"]).await;
    assert_eq!(fired["data"]["due"], once["next_fire_at"]);
    let tick = fired["data"]["message_id"].clone();
    daemon.event("a", "message.processed", |data| data["message_id"] == tick).await;
    daemon.event("a", "timer.completed", |data| data["timer_id"] == once["timer_id"]).await;
    let message = daemon.items("/v1/agents/a/messages").await.pop().unwrap();
    assert_eq!((&message["kind"], &message["text"]), (&json!("timer_tick"), &json!("tea is ready")));
    let timer = daemon.items("/v1/agents/a/timers").await.pop().unwrap();
    assert_eq!((&timer["status"], &timer["fire_count"]), (&json!("completed"), &json!(1)));
    assert_eq!((&timer["last_fired_at"], &timer["next_fire_at"]), (&once["next_fire_at"], &Value::Null));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_that_repeats_goes_on_until_it_is_cancelled() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let new = TimerCreate {
        summary: "pulse".to_owned(),
        every_ms: Some(100),
        catch_up: Some(CatchUp::All),
        ..TimerCreate::default()
    };
    let timer = daemon.client().create_timer("a", &new).await.unwrap();
    let due: Vec<Time> = timer.upcoming.to_vec();
    for occurrence in &due[..3] {
        daemon.event("a", "timer.fired", |data| at(&data["due"]) == *occurrence).await;
    }
    daemon.delete(&format!("/v1/agents/a/timers/{}", timer.timer_id)).await.is(200);
    let listed = daemon.items("/v1/agents/a/timers").await.pop().unwrap();
    assert_eq!(listed["status"], "cancelled");
    assert!(listed["fire_count"].as_u64().unwrap() >= 3, "{listed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_of_a_stopped_agent_fires_after_its_start() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let timer = daemon.post("/v1/agents/a/timers", json!({ "summary": "late", "after_ms": 0 })).await.is(201);
    // A second agent's timer, due later, has fired: the first one's time has come, and nothing happened.
    daemon.create("b").await;
    daemon.post("/v1/agents/b/timers", json!({ "summary": "x", "after_ms": 20 })).await.is(201);
    daemon.event("b", "timer.fired", |_| true).await;
    assert_eq!(daemon.kinds("a").await, ["agent.created", "timer.created"]);
    daemon.post("/v1/agents/a/start", json!({})).await.is(200);
    daemon.event("a", "timer.fired", |data| data["timer_id"] == timer["timer_id"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_survives_a_restart() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    daemon.post("/v1/agents/a/timers", json!({ "summary": "later", "after_ms": 50 })).await.is(201);
    daemon.post("/v1/agents/a/start", json!({})).await.is(200);
    let daemon = daemon.restart().await;
    // No request names the agent; the wake index knows of it. The stream does not wake it.
    daemon.event("a", "timer.fired", |_| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_is_listed_ended_by_what_it_names_and_cancelled() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    daemon.finish("a", "wait for the order").await;
    let wait = daemon.items("/v1/agents/a/waits").await.pop().unwrap();
    assert_eq!(
        (&wait["kind"], &wait["resource"], &wait["status"]),
        (&json!("external"), &json!("order-7"), &json!("active"))
    );
    let summary = daemon.summary("a").await;
    assert_eq!(summary["active_waiting_intents"][0]["waiting_intent_id"], wait["waiting_intent_id"]);
    assert_eq!(summary["closure"]["outcome"], "waiting");
    let why = daemon.get("/v1/agents/a/why").await;
    assert!(why["waiting_on"][0]["what"].as_str().unwrap().contains("order-7"), "{why}");

    let event =
        json!({ "json": { "order": 7 }, "kind": "webhook_event", "origin": "shop", "correlation_id": "order-7" });
    let id = daemon.post("/v1/agents/a/messages", event).await.is(202)["message_id"].clone();
    daemon.event("a", "message.processed", |data| data["message_id"] == id).await;
    let ended = daemon.items("/v1/agents/a/waits").await.pop().unwrap();
    assert_eq!((&ended["status"], &ended["trigger_count"]), (&json!("triggered"), &json!(1)));
    assert_eq!(ended["resource"], "order-7", "a wait that ended is shown as it was when it was open");
    let message = daemon.items("/v1/agents/a/messages").await.pop().unwrap();
    assert_eq!((&message["origin"]["id"], &message["json"]["order"]), (&json!("shop"), &json!(7)));

    daemon.finish("a", "wait again").await;
    let wait = daemon.items("/v1/agents/a/waits").await.pop().unwrap();
    let path = format!("/v1/agents/a/waits/{}", wait["waiting_intent_id"].as_str().unwrap());
    assert_eq!(daemon.delete(&path).await.is(200), json!({ "ended": true }));
    daemon.delete(&path).await.refused(404, "not_found");
    let cancelled = daemon.client().waits("a", "").await.unwrap().items.pop().unwrap();
    assert_eq!(cancelled.status.as_str(), "cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_plane_of_an_agent_with_something_in_each_reads_as_documented() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    for text in ["tell me", "open a door", "plan", "run", "ask", "wait", "sleep", "occupy"] {
        let message = daemon.say("a", text).await;
        daemon.event("a", "message.processed", |data| data["message_id"] == message.as_str()).await;
    }
    for kind in ["channel_event", "webhook_event", "callback_event"] {
        daemon.post("/v1/agents/a/messages", json!({ "text": kind, "kind": kind, "origin": "x" })).await.is(202);
    }
    daemon.post("/v1/agents/a/timers", json!({ "summary": "t", "every_ms": HOUR })).await.is(201);
    let open: AgentSummary = daemon.client().agent("a").await.unwrap();
    assert_eq!(open.pending_approvals.len(), 1);
    assert_eq!(
        (open.pending_approvals[0].status.as_str(), open.pending_approvals[0].default.as_str()),
        ("pending", "deny")
    );
    assert_eq!(open.active_external_triggers.len(), 1);
    assert_eq!(open.active_external_triggers[0].status.as_str(), "active");
    // Open, and then stopped: what ends with the stop reads as well, and so it does after the rows are made anew.
    for round in 0..3 {
        for plane in [
            "messages",
            "briefs",
            "tasks",
            "work-items",
            "timers",
            "waits",
            "triggers",
            "approvals",
            "transcript",
            "decisions",
        ] {
            assert!(!daemon.items(&format!("/v1/agents/a/{plane}")).await.is_empty(), "{plane}");
        }
        daemon.summary("a").await;
        match round {
            0 => {
                daemon.post("/v1/agents/a/stop", json!({})).await.is(200);
                daemon.hands.let_go();
                daemon.event("a", "task.completed", |_| true).await;
            }
            1 => {
                daemon.post("/v1/ledger/verify", json!({ "rebuild_rows": true })).await.is(200);
                let fork = json!({ "agent": "a", "at": daemon.summary("a").await["at_seq"], "as": "b" });
                daemon.post("/v1/ledger/fork", fork).await.is(200);
            }
            _ => {}
        }
    }
    for plane in ["messages", "briefs", "tasks", "work-items", "timers", "waits", "triggers", "approvals"] {
        daemon.items(&format!("/v1/agents/b/{plane}")).await;
    }
    let approval = daemon.items("/v1/agents/b/approvals").await.pop().unwrap();
    assert_eq!((&approval["status"], &approval["decided_by"]), (&json!("expired"), &json!("wait_ended")));
    let trigger = daemon.items("/v1/agents/b/triggers").await.pop().unwrap();
    assert_eq!(trigger["status"], "revoked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_planes_of_a_stopped_agent_can_be_changed() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let timer = daemon.post("/v1/agents/a/timers", json!({ "summary": "t", "after_ms": HOUR })).await.is(201);
    let path = format!("/v1/agents/a/timers/{}", timer["timer_id"].as_str().unwrap());
    daemon.delete(&path).await.is(200);
    daemon.ask(Ask::get("/v1/agents/a/timers")).await.is(200);
    assert_eq!(daemon.kinds("a").await, ["agent.created", "timer.created", "timer.cancelled"]);
}
