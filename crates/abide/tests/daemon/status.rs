//! One status: lists, summaries and answers say the same of an agent at the same moment.

use serde_json::{Value, json};

use crate::hands::{calls, tool};
use crate::served::{Served, until};

/// The status of an agent in the list of all.
fn listed(served: &Served, id: &str) -> Value {
    let items = served.items("/v1/agents");
    let item = items.into_iter().find(|item| item["id"] == id);
    item.unwrap_or_else(|| panic!("{id} is not listed"))["status"].clone()
}

fn shown(served: &Served, id: &str) -> Value {
    served.get(&format!("/v1/agents/{id}"))["agent"]["status"].clone()
}

/// The model's answer takes until the turn is stopped, so the turn runs while both are asked.
#[test]
fn a_list_shows_an_agent_that_runs_as_running() {
    let mut served = Served::start();
    served.create_playing("worker", &json!([{ "text": "Late.", "delay_ms": 600_000 }]));
    assert_eq!((listed(&served, "worker"), shown(&served, "worker")), (json!("asleep"), json!("asleep")));
    served.send("worker", "go");
    served.until_fact("worker", "turn.round_started", |_| true);
    let running = json!("awake_running");
    assert_eq!((listed(&served, "worker"), shown(&served, "worker")), (running.clone(), running.clone()));
    // A turn that was cut is taken up again: the list follows.
    served.kill_and_up();
    until("the turn", || (shown(&served, "worker") == running).then_some(()));
    assert_eq!(listed(&served, "worker"), running);
    served.post("/v1/agents/worker/stop", &json!({}));
    assert_eq!((listed(&served, "worker"), shown(&served, "worker")), (json!("stopped"), json!("stopped")));
    served.stop_and_verify();
}

/// Many agents at work: whenever an agent is at rest before and after, the list that was asked for in between agrees.
#[test]
fn lists_and_summaries_agree_under_load() {
    let mut served = Served::start();
    let ids: Vec<String> = (0..8).map(|number| format!("a{number}")).collect();
    for id in &ids {
        served.create(id, "script/echo");
    }
    for round in 0..20 {
        for id in &ids {
            served.send(id, &format!("message {round}"));
        }
        for id in &ids {
            // The stream of an agent orders what was seen: equal sequences mean that nothing happened in between.
            let before = served.get(&format!("/v1/agents/{id}"));
            let status = listed(&served, id);
            let after = served.get(&format!("/v1/agents/{id}"));
            if before["at_seq"] == after["at_seq"] {
                assert_eq!(status, after["agent"]["status"], "{id}: {after}");
            }
        }
    }
    for id in &ids {
        served.until_asleep(id);
        assert_eq!(listed(&served, id), "asleep");
    }
    served.stop_and_verify();
}

#[test]
fn a_supervised_child_takes_no_operators_message_and_says_so() {
    let mut served = Served::start();
    let waits = calls(tool("WaitFor", json!({ "wake": "task_result", "reason": "the child" })));
    let child = served.script("child", &json!({ "rounds": [{ "text": "Late.", "delay_ms": 600_000 }] }));
    served.offer(&["child"]);
    served.kill_and_up();
    let spawn = tool("SpawnAgent", json!({ "message": "look", "model": child }));
    served.create_playing("lead", &json!([calls(spawn), waits]));
    served.send("lead", "go");
    served.until_fact("lead", "task.running", |_| true);
    let summary = served.get("/v1/agents/lead.1");
    assert_eq!(
        summary["lifecycle"],
        json!({ "accepts_messages": false, "hint": "it works for lead: send it to lead" })
    );
    let refused = served.call("POST", "/v1/agents/lead.1/messages", &[], Some(&json!({ "text": "hi" })));
    assert_eq!((refused.status, &refused.body["code"]), (409, &json!("supervised")));
    assert_eq!(served.get("/v1/agents/lead")["lifecycle"]["accepts_messages"], true);
    served.stop_and_verify();
}

#[test]
fn a_wait_has_the_delivery_mode_of_its_trigger_and_a_wake_says_that_it_parks() {
    let mut served = Served::start();
    let trigger = json!({ "name": "door", "delivery_mode": "wake_hint" });
    let wait = json!({ "wake": "external", "resource": { "$result": "/trigger_id" }, "reason": "the door" });
    served.create_playing("worker", &json!([calls(tool("CreateTrigger", trigger)), calls(tool("WaitFor", wait))]));
    served.send("worker", "go");
    served.until_asleep("worker");
    let waits = served.items("/v1/agents/worker/waits");
    assert_eq!(waits[0]["delivery_mode"], "wake_hint", "{waits:?}");
    assert_eq!(served.get("/v1/agents/worker")["active_waiting_intents"][0]["delivery_mode"], "wake_hint");
    let woken = served.post("/v1/agents/worker/wake", &json!({ "reason": "look", "body": "the window is open" }));
    let behind = waits[0]["waiting_intent_id"].as_str().unwrap();
    assert_eq!(woken["disposition"], "parked", "{woken}");
    assert!(woken["reason"].as_str().unwrap().contains(behind), "{woken}");
    served.until_fact("worker", "message.parked", |_| true);
    served.stop_and_verify();
}
