//! A word in between, and the end of one execution.

use serde_json::{Value, json};

use crate::served::Served;

fn look() -> Value {
    json!({ "name": "CancelTimer", "input": { "timer_id": "timer_none" } })
}

#[test]
fn an_interjection_joins_at_a_safe_point() {
    let mut served = Served::start();
    let rounds = json!([
        { "text": "Looking.", "tools": [look()], "delay_ms": 2_000 },
        { "text": "Both done." },
        { "text": "By itself." },
    ]);
    served.create_playing("worker", &rounds);
    let message = served.send("worker", "do this");
    let round = served.until_fact("worker", "turn.round_started", |_| true);
    let word = served.send_as("worker", "and that", "interject");
    assert_eq!(served.until_told("worker", &message)["text"], "Both done.");
    let joined = served.until_fact("worker", "message.interjected", |_| true);
    assert_eq!((&joined["message_id"], &joined["joined"]), (&json!(word), &json!(message)));
    assert_eq!((&joined["exec_id"], &joined["safe_point"]), (&round["exec_id"], &json!("after_model_round")));
    served.until_asleep("worker");
    assert_eq!(served.facts("worker", "turn.started").len(), 1, "it has no turn of its own");
    // A message that joined a turn is part of it for good.
    served.kill_and_up();
    served.until_asleep("worker");
    assert_eq!(served.facts("worker", "turn.started").len(), 1);
    let alone = served.send_as("worker", "anything else", "interject");
    assert_eq!(served.until_told("worker", &alone)["text"], "By itself.", "with nothing to join, it is a turn");
    served.stop_and_verify();
}

#[test]
fn an_interjection_survives_the_kill_of_the_turn_it_joined() {
    let mut served = Served::start();
    let rounds =
        json!([{ "text": "Looking.", "tools": [look()], "delay_ms": 1_500 }, { "text": "x", "delay_ms": 600_000 }]);
    served.create_playing("worker", &rounds);
    let message = served.send("worker", "do this");
    served.until_fact("worker", "turn.round_started", |_| true);
    let word = served.send_as("worker", "and that", "interject");
    served.until_fact("worker", "message.interjected", |joined| joined["message_id"] == word.as_str());
    served.until_fact("worker", "turn.round_started", |round| round["round"] == 2);
    served.kill();
    served.script("worker", &json!({ "rounds": [{}, { "text": "Both done." }] }));
    served.up();
    assert_eq!(served.until_told("worker", &message)["text"], "Both done.");
    served.until_asleep("worker");
    let started = served.facts("worker", "turn.started");
    assert!(started.iter().all(|turn| turn["message_id"] == message.as_str()), "{started:?}");
    assert_eq!(served.facts("worker", "brief.recorded").len(), 1);
    served.stop_and_verify();
}

#[test]
fn an_abort_ends_the_execution_that_it_names() {
    let mut served = Served::start();
    served.create_playing("worker", &json!([{ "text": "never", "delay_ms": 600_000 }]));
    let abort = |served: &Served, body: Value| served.call("POST", "/v1/agents/worker/abort", &[], Some(&body));
    assert_eq!(abort(&served, json!({})).status, 409, "nothing runs");
    let message = served.send("worker", "go");
    let exec = served.until_fact("worker", "turn.started", |_| true)["exec_id"].clone();
    let stale = abort(&served, json!({ "exec_id": "exec_00000000-0000-7000-8000-000000000000" }));
    assert_eq!((stale.status, &stale.body["code"]), (409, &json!("stale_exec")));
    assert_eq!(served.get("/v1/agents/worker")["agent"]["current_run_id"], exec, "it still runs");
    let done = abort(&served, json!({ "exec_id": exec }));
    assert_eq!((done.status, &done.body["agent"]["current_run_id"]), (200, &Value::Null), "{}", done.body);
    let brief = served.until_told("worker", &message);
    assert_eq!(brief["kind"], "failure");
    assert_eq!(abort(&served, json!({ "exec_id": exec })).status, 409, "it is over");
    // It is not taken up again, and the next one is.
    served.script("worker", &json!({ "rounds": [{ "text": "Now." }] }));
    served.kill_and_up();
    let next = served.send("worker", "again");
    assert_eq!(served.until_told("worker", &next)["text"], "Now.");
    served.until_asleep("worker");
    assert_eq!(served.facts("worker", "turn.started").len(), 2);
    assert_eq!(served.facts("worker", "message.aborted").len(), 1);
    served.stop_and_verify();
}
