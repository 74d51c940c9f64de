//! Several waits at once: each ends by what it waits for, and by nothing else.

use serde_json::{Value, json};

use crate::served::Served;

fn open(served: &Served) -> Vec<String> {
    let waits = served.items("/v1/agents/many/waits");
    let open = waits.iter().filter(|wait| wait["status"] == "active");
    open.map(|wait| wait["reason"].as_str().unwrap().to_owned()).collect()
}

/// An event about something, once a turn has read it.
fn deliver(served: &Served, about: &str) -> Value {
    let event = json!({ "text": format!("{about} came"), "kind": "webhook_event", "correlation_id": about });
    let message = served.post("/v1/agents/many/messages", &event)["message_id"].clone();
    served.until_fact("many", "turn.terminal", |turn| turn["message_id"] == message)
}

#[test]
fn each_of_several_waits_is_ended_by_its_own_trigger() {
    let mut served = Served::start();
    let wait_for = |input: Value| json!({ "text": "I wait.", "tools": [{ "name": "WaitFor", "input": input }] });
    let event = |name: &str| wait_for(json!({ "wake": "external", "resource": name, "reason": name }));
    let tomorrow = wait_for(json!({ "wake": "timer", "after_ms": 86_400_000, "reason": "tomorrow" }));
    let rounds =
        json!([event("a"), event("b"), event("c"), tomorrow, { "text": "It was b." }, { "text": "It was a." }]);
    served.create_playing("many", &rounds);
    for text in ["first", "second", "third", "fourth"] {
        let message = served.send("many", text);
        served.until_fact("many", "turn.terminal", |turn| turn["message_id"] == message.as_str());
    }
    assert_eq!(open(&served), ["a", "b", "c", "tomorrow"]);
    assert_eq!(deliver(&served, "b")["last_assistant_message"], "It was b.");
    assert_eq!(open(&served), ["a", "c", "tomorrow"]);
    served.kill_and_up();
    assert_eq!(deliver(&served, "a")["last_assistant_message"], "It was a.");
    assert_eq!(open(&served), ["c", "tomorrow"]);
    let ended: Vec<Value> = served.facts("many", "wait.triggered");
    assert_eq!(ended.len(), 2, "{ended:?}");
    served.stop_and_verify();
}
