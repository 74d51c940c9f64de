//! The boundary of the runtime, seen from outside: when a turn starts, when none may, and which ticks there are.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::served::{Served, of_kind};

/// The kinds of the events that name this message, in order.
fn course(events: &[Value], message: &str) -> Vec<String> {
    let of_it = events.iter().filter(|event| event["data"]["message_id"] == message);
    of_it.map(|event| event["kind"].as_str().unwrap().to_owned()).filter(|kind| kind != "scheduler.decision").collect()
}

#[test]
fn a_message_is_queued_dequeued_and_processed() {
    let mut served = Served::start();
    served.create("worker", "script/echo");
    let message = served.send("worker", "hello");
    served.until_told("worker", &message);
    let course = course(&served.events("worker"), &message);
    let expected =
        ["message.queued", "message.dequeued", "turn.started", "turn.terminal", "message.processed", "brief.recorded"];
    assert_eq!(course, expected);
    served.stop_and_verify();
}

#[test]
fn a_stopped_agent_keeps_everything_and_starts_nothing() {
    let mut served = Served::start();
    served.create("other", "script/echo");
    served.create_playing("worker", &json!([{ "text": "never", "delay_ms": 600_000 }]));
    let post = |served: &Served, path: &str, body: Value| served.post(&format!("/v1/agents/worker/{path}"), &body);
    let cut = served.send("worker", "first");
    served.until_fact("worker", "turn.round_started", |_| true);
    let far = post(&served, "timers", json!({ "summary": "far", "after_ms": 86_400_000 }));
    let near = post(&served, "timers", json!({ "summary": "near", "after_ms": 300 }));
    let summary = post(&served, "stop", json!({}));
    assert_eq!(summary["agent"]["status"], "stopped");
    assert_eq!(summary["agent"]["current_run_id"], Value::Null);
    // The turn that was under way has its end, and its message its place.
    let stopped_at = served.events("worker").len();
    let aborted = served.facts("worker", "exec.aborted");
    assert_eq!((aborted.len(), &aborted[0]["reason"], &aborted[0]["message_id"]), (1, &json!("stop"), &json!(cut)));
    assert_eq!(served.facts("worker", "message.requeued"), [json!({ "message_id": cut, "reason": "stop" })]);
    // New messages are kept, ended items stay ended, and none of them starts a turn, in this daemon or the next.
    let later = served.send("worker", "second");
    let path = format!("/v1/agents/worker/timers/{}", far["timer_id"].as_str().unwrap());
    assert_eq!(served.call("DELETE", &path, &[], None).status, 200);
    served.kill_and_up();
    let beside = served.send("other", "meanwhile");
    served.until_told("other", &beside);
    let timer =
        served.post("/v1/agents/other/timers", &json!({ "summary": "later than the near one", "after_ms": 400 }));
    served.until_fact("other", "timer.fired", |fired| fired["timer_id"] == timer["timer_id"]);
    served.kill_and_up();
    let summary = served.get("/v1/agents/worker");
    assert_eq!((&summary["agent"]["status"], &summary["agent"]["pending"]), (&json!("stopped"), &json!(2)));
    assert_eq!(summary["decision"]["kind"], "Stop");
    let timers = served.get("/v1/agents/worker/timers");
    let status = |id: &Value| {
        timers["items"].as_array().unwrap().iter().find(|timer| timer["timer_id"] == *id).unwrap()["status"].clone()
    };
    assert_eq!((status(&far["timer_id"]), status(&near["timer_id"])), (json!("cancelled"), json!("active")));
    let since = served.events("worker").split_off(stopped_at);
    for kind in ["message.dequeued", "turn.started", "turn.round_started", "timer.fired"] {
        assert!(of_kind(&since, kind).is_empty(), "{kind} while it was stopped");
    }
    // Started again, it goes on in order.
    served.script("worker", &json!({ "rounds": [{ "text": "One." }, { "text": "Two." }, { "text": "Three." }] }));
    post(&served, "start", json!({}));
    served.until_told("worker", &cut);
    served.until_told("worker", &later);
    let fired = served.until_fact("worker", "timer.fired", |fired| fired["timer_id"] == near["timer_id"]);
    served.until_fact("worker", "message.processed", |done| done["message_id"] == fired["message_id"]);
    served.until_asleep("worker");
    assert_eq!(served.facts("worker", "brief.recorded").len(), 2);
    let course = course(&served.events("worker"), &cut);
    let expected = [
        "message.queued",
        "message.dequeued",
        "turn.started",
        "exec.aborted",
        "message.requeued",
        "message.dequeued",
        "turn.started",
        "turn.terminal",
        "message.processed",
        "brief.recorded",
    ];
    assert_eq!(course, expected);
    served.stop_and_verify();
}

#[test]
fn no_tick_comes_twice_however_often_the_agent_looks() {
    let mut served = Served::start();
    let create =
        json!({ "name": "CreateWorkItem", "input": { "objective": "paint the fence", "plan_status": "ready" } });
    let pick = json!({ "name": "PickWorkItem", "input": { "work_item_id": { "$result": "/work_item_id" } } });
    let update = json!({ "name": "UpdateWorkItem", "input": {
        "work_item_id": { "$result": "/work_item_id", "back": 2 }, "plan": "with green paint" } });
    let model = served.script(
        "worker",
        &json!({
            "rounds": [{ "tools": [create] }, { "tools": [pick] }, { "text": "It is on my list." }],
            "when": [{ "contains": "green", "rounds": [{ "tools": [update] }, { "text": "Green it is." }] }],
        }),
    );
    served.create("worker", &model);
    let asked = served.send("worker", "paint it");
    served.until_told("worker", &asked);
    // Its idle boundaries: after the tick, after every message and hint, and after every start.
    let ticks = |served: &Served| {
        let mut ticks = served.facts("worker", "message.queued");
        ticks.retain(|message| message["tick"] == "continue_active");
        ticks
    };
    let look_often = |served: &mut Served| {
        for n in 0..4 {
            let message = served.send("worker", &format!("how is it going, {n}"));
            served.until_told("worker", &message);
            served.post("/v1/agents/worker/wake", &json!({ "reason": "look", "source": format!("test-{n}") }));
            served.until_asleep("worker");
            served.kill_and_up();
        }
    };
    let first = served.until_fact("worker", "message.queued", |message| message["tick"] == "continue_active");
    served.until_fact("worker", "message.processed", |done| done["message_id"] == first["message_id"]);
    for _ in 0..3 {
        served.kill_and_up();
        served.until_asleep("worker");
        assert_eq!(ticks(&served).len(), 1, "nothing has changed");
    }
    look_often(&mut served);
    let message = served.send("worker", "make it green");
    served.until_told("worker", &message);
    look_often(&mut served);
    let keys: Vec<String> =
        ticks(&served).iter().map(|tick| tick["idempotency_key"].as_str().unwrap().to_owned()).collect();
    let item = first["work_item_id"].as_str().unwrap();
    assert!(keys.iter().all(|key| key.starts_with(&format!("work_queue:continue_active:{item}:"))), "{keys:?}");
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{keys:?}");
    let decided = served.facts("worker", "scheduler.decision");
    let emitted =
        decided.iter().filter(|fact| fact["reason"] == "continue_active" && fact["kind"] == "EmitSystemTick").count();
    assert_eq!(emitted, keys.len(), "every tick has its decision");
    served.stop_and_verify();
}
