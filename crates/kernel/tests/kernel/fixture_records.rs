//! Folders of records: each loads to what it claims, and one with a mistake in it says where.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use abide_kernel::fixture::{Files, History, differences, load};
use serde_json::{Value, json};

use crate::story::Story;

/// Files by their lines: `tasks {"id":"t1",…}` is a record of `ledger/tasks.jsonl`, `agent {…}` is all of `agent.json`.
fn files(records: &str) -> Files {
    let mut files = Files::new();
    for record in records.lines().map(str::trim).filter(|record| !record.is_empty()) {
        let (name, json) = record.split_once(' ').unwrap_or((record, ""));
        let path = if name == "agent" { "agent.json".to_owned() } else { format!("ledger/{name}.jsonl") };
        let file = files.entry(path).or_default();
        file.extend_from_slice(json.as_bytes());
        file.push(b'\n');
    }
    files
}

/// The records, and what of their projection matters here.
#[track_caller]
fn check(records: &str, expected: &Value) {
    let fixture = load(&files(records)).unwrap();
    assert_eq!(differences(expected, &fixture.projection()), Vec::<String>::new());
}

#[track_caller]
fn refused(records: &str, expected: &str) {
    assert_eq!(load(&files(records)).unwrap_err().to_string(), expected);
}

fn read(folder: &Path, at: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{at}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            read(&path, &format!("{name}/"), files);
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
}

#[test]
fn every_scheduler_fixture_is_what_it_expects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/scheduler");
    let mut failures = BTreeMap::new();
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mut files = Files::new();
        read(&path, "", &mut files);
        let Some(expected) = files.remove("expected.json") else { continue };
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        let found = differences(&expected, &load(&files).unwrap().projection());
        if !found.is_empty() {
            failures.insert(path, found);
        }
        count += 1;
    }
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(count > 0, "no fixture was found");
}

#[test]
fn a_task_that_ended_is_not_reopened_by_a_later_record() {
    for owed in [true, false] {
        check(
            &format!(
                r#"tasks {{"id":"t1","status":"completed","owed":{owed}}}
                   tasks {{"id":"t1","status":"running","wait_policy":"blocking"}}"#
            ),
            &json!({ "active_tasks": 0, "has_blocking_active_tasks": false }),
        );
    }
    check(
        r#"tasks {"id":"t1","status":"running","wait_policy":"blocking"}
           tasks {"id":"t2","status":"running"}
           tasks {"id":"t1","status":"completed"}"#,
        &json!({ "active_tasks": 1, "has_blocking_active_tasks": false }),
    );
}

#[test]
fn a_pending_wake_hint_is_one() {
    check(r#"agent {"pending_wake_hint_reason":"the door"}"#, &json!({ "pending_wake_hint": true }));
    check("agent {}", &json!({ "pending_wake_hint": false }));
}

#[test]
fn items_count_as_queued_unless_they_are_in_focus() {
    let items = r#"work_items {"id":"w1","objective":"one"}
                   work_items {"id":"w2","objective":"two"}
                   work_items {"id":"w3","objective":"three","blocked_by":"rain"}"#;
    check(items, &json!({ "current_work_item_id": null, "queued_work_items": 2 }));
    check(
        &format!("agent {{\"current_work_item_id\":\"w1\"}}\n{items}"),
        &json!({ "current_work_item_id": "w1", "queued_work_items": 1 }),
    );
    check(
        &format!("agent {{\"current_work_item_id\":\"w3\"}}\n{items}"),
        &json!({ "current_work_item_id": "w3", "queued_work_items": 2 }),
    );
}

#[test]
fn waits_count_by_whose_they_are() {
    check(
        r#"work_items {"id":"w1","objective":"one"}
           waiting_intents {"id":"x1","kind":"external","work_item_id":"w1","resource":"c1"}
           waiting_intents {"id":"x2","kind":"operator_input"}
           waiting_intents {"id":"x3","kind":"operator_input","status":"cancelled"}"#,
        &json!({
            "active_waiting_intents": 2, "active_work_item_waiting_intents": 1, "active_agent_waiting_intents": 1,
        }),
    );
}

#[test]
fn a_timer_that_is_over_is_none() {
    check(
        r#"timers {"id":"t1","next_fire_at":"2026-01-01T00:00:00Z"}
           timers {"id":"t2","every_ms":60000,"next_fire_at":"2026-01-01T00:00:00Z"}
           timers {"id":"t1","status":"cancelled"}"#,
        &json!({ "active_timers": 1 }),
    );
}

#[test]
fn an_error_stays_until_a_turn_is_completed() {
    let failed = r#"events {"kind":"runtime_error","data":{"error":"no room"}}"#;
    check(failed, &json!({ "runtime_error": true }));
    let ended =
        |kind: &str| format!("{failed}\nevents {{\"kind\":\"turn_terminal\",\"data\":{{\"kind\":\"{kind}\"}}}}");
    check(&ended("aborted"), &json!({ "runtime_error": true }));
    check(&ended("completed"), &json!({ "runtime_error": false }));
}

#[test]
fn a_mistake_is_named_by_file_line_and_field() {
    refused(r#"tasks {"id":"t1"}"#, "ledger/tasks.jsonl: line 1: field `status`: missing");
    refused(
        r#"tasks {"id":"t1","status":"running"}
           tasks
           tasks {"status":"running"}"#,
        "ledger/tasks.jsonl: line 3: field `id`: missing",
    );
    refused("tasks 7", "ledger/tasks.jsonl: line 1: a record is a JSON object");
    refused("agent []", "agent.json: line 1: a record is a JSON object");
    refused(
        r#"queue_entries {"id":"m1","status":"queued"}"#,
        "ledger/queue_entries.jsonl: line 1: field `message_id`: m1 is not in ledger/messages.jsonl",
    );
    let mut broken = files(r#"agent {"id":"a"}"#);
    broken.insert("ledger/tasks.jsonl".to_owned(), b"{\"id\":\"t1\",\"status\":\"running\"}\n\n{\"id\":".to_vec());
    let problem = load(&broken).unwrap_err().to_string();
    assert!(problem.starts_with("ledger/tasks.jsonl: line 3: not JSON: "), "{problem}");
    assert!(problem.contains(" at column 6") && !problem.contains("line 1"), "{problem}");
    broken.insert("ledger/tasks.jsonl".to_owned(), b"\n{\"id\":\"\xff\"}".to_vec());
    let problem = load(&broken).unwrap_err().to_string();
    assert!(problem.starts_with("ledger/tasks.jsonl: line 2: not UTF-8: "), "{problem}");
    broken.insert("agent.json".to_owned(), b"{\n\"id\":\n\"\xff\"}".to_vec());
    let problem = load(&broken).unwrap_err().to_string();
    assert!(problem.starts_with("agent.json: line 3: not UTF-8: "), "{problem}");
    broken.insert("agent.json".to_owned(), b"{\n\"id\":\n}".to_vec());
    let problem = load(&broken).unwrap_err().to_string();
    assert!(problem.starts_with("agent.json: line 3: not JSON: "), "{problem}");
    broken.insert("ledger/task.jsonl".to_owned(), Vec::new());
    let problem = load(&broken).unwrap_err().to_string();
    assert!(
        problem.starts_with("ledger/task.jsonl: it is no file of a fixture; those are messages.jsonl, "),
        "{problem}"
    );
}

/// A message has what its record says, and its entry the time at which the message was made.
#[test]
fn a_message_is_loaded_field_by_field() {
    let records = r#"messages {"id":"m1","kind":"timer_tick","created_at":"2026-01-02T00:00:00Z","text":"tea","json":{"a":1},"work_item_id":"w1","task_id":"t1","timer_id":"timer1","trigger_id":"trig1","approval_id":"appr1","waiting_intent_id":"x1","answers":"m0","correlation_id":"c1","causation_id":"m9","idempotency_key":"k1","self_caused":true,"priority":"next"}
                     queue_entries {"id":"m1","status":"queued"}
                     events {"kind":"odd","at":"2026-01-03T00:00:00Z"}
                     events {"kind":"odd"}"#;
    let fixture = load(&files(records)).unwrap();
    let entry = fixture.state.queue.entries().next().unwrap();
    let message = serde_json::to_value(&*entry.message).unwrap();
    for (name, expected) in [
        ("kind", json!("timer_tick")),
        ("text", json!("tea")),
        ("json", json!({ "a": 1 })),
        ("work_item_id", json!("w1")),
        ("task_id", json!("t1")),
        ("timer_id", json!("timer1")),
        ("trigger_id", json!("trig1")),
        ("approval_id", json!("appr1")),
        ("waiting_intent_id", json!("x1")),
        ("answers", json!("m0")),
        ("correlation_id", json!("c1")),
        ("causation_id", json!("m9")),
        ("idempotency_key", json!("k1")),
        ("self_caused", json!(true)),
        ("priority", json!("next")),
    ] {
        assert_eq!(message[name], expected, "{name}");
    }
    assert_eq!(entry.at.to_string(), "2026-01-02T00:00:00.000Z");
    assert_eq!(fixture.now.to_string(), "2026-01-03T00:00:00.000Z");
    assert_eq!(fixture.other_events, BTreeMap::from([("odd".to_owned(), 2)]));
}

/// The files of a story are its facts and what was said.
#[test]
fn an_export_has_every_event_and_what_was_said() {
    let mut story = Story::begin();
    for line in ["operator hi", "round Tool look", "tool call1", "round done", "task t1"] {
        story.tell(line).unwrap();
    }
    let mut history = History::default();
    for (seq, (at, fact)) in (1..).zip(&story.facts) {
        history.add(seq, *at, fact);
    }
    let files = abide_kernel::fixture::files(&story.state, story.now, history);
    let lines = |name: &str| -> Vec<Value> {
        let text = std::str::from_utf8(&files[&format!("ledger/{name}.jsonl")]).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let events = lines("events");
    assert_eq!(events.len(), story.facts.len());
    assert!(events.iter().zip(&story.facts).all(|(line, (_, fact))| line["kind"] == fact.kind()));
    let said: Vec<Value> = lines("transcript").into_iter().map(|line| line["text"].clone()).collect();
    assert!(said.contains(&json!("hi")) && said.contains(&json!("done")), "{said:?}");
    assert_eq!(lines("tasks")[0]["id"], "t1");
    assert_eq!(load(&files).unwrap().state.tasks, story.state.tasks);
}
