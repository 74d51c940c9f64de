//! Folders of records: each loads to what it claims, and one with a mistake in it says where.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use abide_kernel::fixture::{Files, History, differences, load};
use abide_kernel::id::TaskId;
use abide_kernel::vocabulary::{DecisionKind, MessageKind, TriggerKind};
use abide_kernel::{AgentState, decide};
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
    let records = r#"messages {"id":"m1","kind":"timer_tick","origin":{"kind":"operator","id":"ann"},"created_at":"2026-01-02T00:00:00Z","text":"tea","json":{"a":1},"work_item_id":"w1","task_id":"t1","timer_id":"timer1","trigger_id":"trig1","approval_id":"appr1","waiting_intent_id":"x1","answers":"m0","correlation_id":"c1","causation_id":"m9","idempotency_key":"k1","self_caused":true,"priority":"next","trust":"untrusted_external"}
                     queue_entries {"id":"m1","status":"queued"}
                     events {"kind":"odd","at":"2026-01-03T00:00:00Z"}
                     events {"kind":"odd"}"#;
    let fixture = load(&files(records)).unwrap();
    let entry = fixture.state.planes.queue.entries().next().unwrap();
    let message = serde_json::to_value(&*entry.message).unwrap();
    let expected = json!({
        "message_id": "m1", "kind": "timer_tick", "origin": { "kind": "operator", "id": "ann" }, "trust": "untrusted_external",
        "priority": "next", "text": "tea", "json": { "a": 1 }, "work_item_id": "w1", "task_id": "t1",
        "timer_id": "timer1", "trigger_id": "trig1", "approval_id": "appr1", "waiting_intent_id": "x1", "answers": "m0",
        "correlation_id": "c1", "causation_id": "m9", "idempotency_key": "k1", "self_caused": true,
    });
    assert_eq!(message, expected);
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
    assert_eq!(load(&files).unwrap().state.planes.tasks, story.state.planes.tasks);
}

/// The state of a folder that says nothing else.
fn loaded(records: &str) -> AgentState {
    load(&files(records)).unwrap().state
}

/// A tick that the item's own record counts already is not counted again.
#[test]
fn a_tick_is_counted_once() {
    let key = r#""kind":"system_tick","idempotency_key":"work_queue:queued_available:w1:1""#;
    let ticks = |ticks: &str, status: &str| {
        let records = format!(
            r#"work_items {{"id":"w1","objective":"one","ticks":{ticks}}}
               messages {{"id":"m1",{key},"created_at":"2026-01-02T00:00:00Z"}}
               queue_entries {{"id":"m1","status":"{status}"}}"#
        );
        let state = loaded(&records);
        serde_json::to_value(&state.planes.work.items().values().next().unwrap().ticks).unwrap()
    };
    let none = r#"{"attempts":0,"idle":0}"#;
    let at = "2026-01-02T00:00:00.000Z";
    assert_eq!(ticks(none, "queued"), json!({ "attempts": 1, "idle": 0, "undelivered": "m1" }));
    assert_eq!(ticks(none, "processed"), json!({ "attempts": 1, "idle": 1, "last_at": at }));
    assert_eq!(ticks(none, "dropped"), json!({ "attempts": 1, "idle": 0 }));
    let counted = r#"{"attempts":1,"idle":0}"#;
    assert_eq!(ticks(counted, "processed"), json!({ "attempts": 1, "idle": 0 }));
    assert_eq!(ticks(counted, "queued"), json!({ "attempts": 1, "idle": 0, "undelivered": "m1" }));
    let under_way = r#"{"attempts":1,"idle":0,"undelivered":"m9"}"#;
    assert_eq!(ticks(under_way, "queued"), json!({ "attempts": 1, "idle": 0, "undelivered": "m9" }));
}

/// The meaning of a name follows from the kind of the wait; an unknown trigger is known by how its ids begin.
#[test]
fn what_is_waited_for_is_known_by_its_name() {
    let resource = |kind: &str, name: &str| {
        let wait = format!(r#"waiting_intents {{"id":"x1","kind":"{kind}","resource":"{name}"}}"#);
        serde_json::to_value(&loaded(&wait).planes.waits.open().values().next().unwrap().resource).unwrap()
    };
    assert_eq!(resource("external", "trig_1"), json!({ "trigger": "trig_1" }));
    assert_eq!(resource("external", "c1"), json!({ "correlation": "c1" }));
    assert_eq!(resource("task_result", "t1"), json!({ "task": "t1" }));
    assert_eq!(resource("timer", "timer1"), json!({ "timer": "timer1" }));
    assert_eq!(resource("operator_input", "appr1"), json!({ "approval": "appr1" }));
}

/// An interjection goes with the message that it joined, also where that one is parked.
#[test]
fn an_interjection_is_loaded_where_its_message_is_live() {
    let kept = |status: &str| {
        let records = format!(
            r#"messages {{"id":"m1","kind":"operator_prompt","text":"one"}}
               messages {{"id":"m2","kind":"operator_prompt","text":"two"}}
               queue_entries {{"id":"m1","status":"{status}"}}
               queue_entries {{"id":"m2","status":"interjected","joined":"m1"}}"#
        );
        loaded(&records).planes.queue.entries().map(|entry| entry.message.message_id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(kept("dequeued"), ["m1", "m2"]);
    assert_eq!(kept("parked"), ["m1", "m2"]);
    assert_eq!(kept("queued"), ["m1", "m2"]);
    assert!(kept("processed").is_empty());
    assert!(loaded("agent {}").planes.queue.is_empty() && !loaded("messages {\"id\":\"m1\",\"kind\":\"operator_prompt\"}\nqueue_entries {\"id\":\"m1\",\"status\":\"queued\"}").planes.queue.is_empty());
}

/// A turn that runs is about the message that was taken for it, not about one that waits.
#[test]
fn a_running_turn_is_about_the_message_that_was_taken() {
    let running = loaded(
        r#"agent {"status":"awake_running","current_run_id":"exec_1"}
           messages {"id":"m1","kind":"operator_prompt","text":"one"}
           messages {"id":"m2","kind":"webhook_event","text":"two"}
           queue_entries {"id":"m1","status":"queued"}
           queue_entries {"id":"m2","status":"dequeued"}"#,
    );
    let turn = running.turns.current.unwrap();
    let found = (turn.message_id.as_str(), turn.continuation.trigger_kind.as_str(), turn.exec_id.as_str());
    assert_eq!(found, ("m2", TriggerKind::of(MessageKind::WebhookEvent).as_str(), "exec_1"));
}

/// A summary counts, under either spelling of its kind.
#[test]
fn a_summary_among_the_events_is_taken_in() {
    for kind in ["context_compacted", "context.compacted"] {
        let data = r#"{"compacted_messages":7,"epoch":3,"summary":"short"}"#;
        let last = loaded(&format!("events {{\"kind\":\"{kind}\",\"data\":{data}}}")).turns.compaction.unwrap();
        assert_eq!((last.compacted_messages, last.epoch, last.summary.as_deref()), (7, 3, Some("short")), "{kind}");
    }
    assert_eq!(loaded(r#"events {"kind":"odd"}"#).turns.compaction, None);
}

/// A work tick is something to do, also where its text is not recorded.
#[test]
fn a_work_tick_without_a_text_starts_a_turn() {
    let decided = |tick: &str| {
        let records = format!(
            r#"messages {{"id":"m1","kind":"system_tick","tick":"{tick}"}}
               queue_entries {{"id":"m1","status":"queued"}}"#
        );
        let state = loaded(&records);
        decide(&state, state.at).kind
    };
    assert_eq!(decided("queued_available"), DecisionKind::StartModelTurn);
    assert_eq!(decided("wake_hint"), DecisionKind::ReduceMessageOnly);
}

/// The result of a task that is owed is carried by its message, unless a full record says by which.
#[test]
fn a_result_is_carried_by_its_message() {
    let records = r#"tasks {"id":"t1","status":"completed"}
                     messages {"id":"m1","kind":"task_result","task_id":"t1","text":"done"}
                     queue_entries {"id":"m1","status":"queued"}"#;
    let carrier = |records: &str| {
        let state = loaded(records);
        let task = state.planes.tasks.get(&TaskId::new("t1")).unwrap();
        (state.planes.tasks.owed().len(), task.result_message.as_ref().map(ToString::to_string))
    };
    assert_eq!(carrier(records), (1, Some("m1".to_owned())));
    assert_eq!(carrier(&records.replace("\"queued\"", "\"processed\"")), (0, None));
    assert_eq!(carrier(&format!("agent {{\"state\":{{}}}}\n{records}")), (0, None));
}

/// Timers and what else ends at a time, and messages that wait for their own.
#[test]
fn an_export_has_what_was_told_and_where_each_message_ended() {
    let mut story = Story::begin();
    let lines = [
        "person CreateTimer after=1h tea",
        "stop",
        "person CreateWorkItem status=needs_input build",
        "advance 2h",
        "start",
        "round Tool a ; Tool b",
        "tool call1",
        "tool call2",
        "round hello",
        "operator x",
        "round y",
    ];
    for line in lines {
        story.tell(line).unwrap();
    }
    story.tell("person CreateTimer every=1h milk").unwrap();
    for line in ["operator hi", "advance 1h", "person CancelTimer timer2"] {
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
    let briefs: Vec<Value> = lines("briefs").iter().map(|brief| json!([brief["kind"], brief["text"]])).collect();
    assert!(briefs.contains(&json!(["result", "y"])), "{briefs:?}");
    let dropped = story.facts.iter().filter(|(_, fact)| fact.kind() == "message.dropped").count();
    let ended = lines("queue_entries").iter().filter(|entry| entry["status"] == "dropped").count();
    assert_eq!((dropped, ended), (1, 1));
    let read = load(&files).unwrap().state;
    assert_eq!((&read.planes.briefs, read.turns.tool_executions), (&story.state.planes.briefs, 2));
    assert_eq!(lines("work_items")[0]["objective"], "build");
    assert_eq!(read.planes.work.items(), story.state.planes.work.items());
}

#[test]
fn each_key_that_came_out_otherwise_is_named() {
    let expected = json!({ "same": 1, "other": 2, "missing": null });
    let printed = json!({ "same": 1, "other": 3, "more": 4 });
    let found = differences(&expected, &printed);
    let wanted = ["missing: expected null, but no such key is printed", "other: expected 2, got 3"];
    assert_eq!(found.iter().map(String::as_str).collect::<std::collections::BTreeSet<_>>(), wanted.into());
    assert_eq!(differences(&json!([]), &printed), ["expected.json is not an object"]);
}
