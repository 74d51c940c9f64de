//! Messages that the runtime makes itself and those that it shapes, field by field.

use abide_kernel::Fact;
use serde_json::{Map, Value, json};

use crate::story::Story;

/// The last message that the story queued, as it is stored, with its ids by their short names.
fn last(lines: &str) -> Value {
    let mut story = Story::begin();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        story.tell(line).unwrap();
    }
    let queued = |(_, fact): &(_, Fact)| {
        if let Fact::MessageQueued(queued) = fact { Some(queued.message.clone()) } else { None }
    };
    let message = story.facts.iter().rev().find_map(queued).unwrap();
    let Value::Object(fields) = serde_json::to_value(&*message).unwrap() else { panic!("no object") };
    let short = |value: Value| match value {
        Value::String(text) => story.short(&text).into(),
        Value::Object(of) => {
            let named = |(name, value): (String, Value)| {
                let value = value.as_str().map_or(value.clone(), |text| story.short(text).into());
                (name, value)
            };
            of.into_iter().map(named).collect::<Map<_, _>>().into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => value,
    };
    let mut fields: Map<String, Value> = fields.into_iter().map(|(name, value)| (name, short(value))).collect();
    fields.remove("message_id");
    fields.into()
}

#[test]
fn a_timers_tick() {
    let expected = json!({
        "kind": "timer_tick", "origin": { "kind": "timer", "id": "timer1" }, "trust": "trusted_system",
        "priority": "next", "text": "tea", "timer_id": "timer1", "work_item_id": "w1", "self_caused": true,
    });
    let timer = "person CreateWorkItem build\nround CreateTimer after=1m item=w1 tea\nround CompleteWorkItem w1";
    let made = last(&format!("{timer}\nround done\nadvance 1m"));
    let expected = without(&expected, &[]);
    assert_eq!(made, expected);
    let by_person = last("person CreateTimer after=1m tea\nadvance 1m");
    assert_eq!(by_person, without(&expected, &["work_item_id", "self_caused"]));
}

fn without(fields: &Value, names: &[&str]) -> Value {
    let mut fields = fields.clone();
    fields.as_object_mut().unwrap().retain(|name, _| !names.contains(&name.as_str()));
    fields
}

#[test]
fn the_tick_of_a_wait_names_it() {
    let made = last("operator hi\nround WaitFor timer after=1m\nadvance 1m");
    let expected = json!({
        "kind": "timer_tick", "origin": { "kind": "timer", "id": "timer1" }, "trust": "trusted_system",
        "priority": "next", "text": "later", "timer_id": "timer1", "waiting_intent_id": "wait1", "self_caused": true,
    });
    assert_eq!(made, expected);
}

#[test]
fn offers_of_work() {
    let queued = last("person CreateWorkItem build");
    let expected = json!({
        "kind": "system_tick", "origin": { "kind": "system" }, "trust": "trusted_system", "priority": "normal",
        "text": "A queued work item can be worked on: build", "work_item_id": "w1", "tick": "queued_available",
        "idempotency_key": "work_queue:queued_available:w1:1",
    });
    assert_eq!(queued, expected);
    let active = last("stop\nperson CreateWorkItem build\nperson PickWorkItem w1\nstart");
    assert_eq!(active["text"], "Continue the current work item: build");
    assert_eq!(active["tick"], "continue_active");
}

#[test]
fn a_recheck_says_what_blocks() {
    let blocked =
        "person CreateWorkItem build\nround UpdateWorkItem w1 blocked=rain recheck=1h\nround done\nadvance 1h";
    let made = last(blocked);
    let text = "Recheck whether this work item is still blocked by rain: build";
    let expected = json!({
        "kind": "system_tick", "origin": { "kind": "system" }, "trust": "trusted_system", "priority": "normal",
        "text": text, "work_item_id": "w1", "tick": "recheck", "idempotency_key": "recheck:w1:2:m2", "self_caused": true,
    });
    assert_eq!(made, expected);
    let by_person =
        last("stop\nperson CreateWorkItem build\nperson UpdateWorkItem w1 blocked=rain recheck=1h\nstart\nadvance 1h");
    let key = json!({ "idempotency_key": by_person["idempotency_key"] });
    assert_eq!(key, json!({ "idempotency_key": "recheck:w1:2:m1" }));
    let others = without(&by_person, &["idempotency_key"]);
    assert_eq!(others, without(&expected, &["idempotency_key", "self_caused"]));
}

#[test]
fn a_hints_tick_has_what_was_said_with_it() {
    let made = last("operator hi\nwake source=door resource=c1 one\nwake source=door resource=c1 two\nround done");
    let expected = json!({
        "kind": "system_tick", "origin": { "kind": "system", "id": "c1" }, "trust": "trusted_system", "priority": "next",
        "text": "one\ntwo", "tick": "wake_hint", "correlation_id": "c1", "idempotency_key": "wake_hint:c1:2",
    });
    assert_eq!(made, expected);
    let named =
        last("person CreateTrigger mode=wake_hint hook\noperator hi\nround WaitFor external trig1\ndeliver trig1");
    assert_eq!((&named["trigger_id"], named.get("text")), (&json!("trig1"), None));
}

#[test]
fn decisions_about_questions() {
    let asked = "person CreateWorkItem build\nround RequestApproval deadline=1h deploy it";
    let granted = last(&format!("{asked}\nperson DecideApproval appr1 grant"));
    let fields = json!([granted["kind"], granted["approval_id"], granted["work_item_id"], granted.get("self_caused")]);
    assert_eq!(fields, json!(["internal_followup", "appr1", "w1", null]));
    let expired = last(&format!("{asked}\nadvance 1h"));
    let fields = json!([expired["text"], expired["approval_id"], expired["work_item_id"], expired["self_caused"]]);
    assert_eq!(fields, json!(["Nobody answered in time; denied by default: deploy it", "appr1", "w1", true]));
}

#[test]
fn a_message_of_a_person_and_one_from_outside() {
    let said = last("operator hi");
    let expected = json!({
        "kind": "operator_prompt", "origin": { "kind": "operator" }, "trust": "trusted_operator", "priority": "normal",
        "text": "hi",
    });
    assert_eq!(said, expected);
    let heard = last("operator hi\nevent corr=c1 news");
    let expected = json!({
        "kind": "webhook_event", "origin": { "kind": "webhook" }, "trust": "trusted_integration", "priority": "normal",
        "text": "news", "correlation_id": "c1",
    });
    assert_eq!(heard, expected);
    let delivered = last("person CreateTrigger hook\noperator hi\ndeliver trig1 id=d1 corr=c1 news");
    let expected = json!({
        "kind": "webhook_event", "origin": { "kind": "webhook", "id": "trig1" }, "trust": "trusted_integration",
        "priority": "normal", "text": "news", "trigger_id": "trig1", "correlation_id": "c1", "idempotency_key": "d1",
    });
    assert_eq!(delivered, expected);
}
