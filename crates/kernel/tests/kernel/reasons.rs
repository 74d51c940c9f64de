//! Every reason that a decision can give, and a story that comes to it (spec 6).

use std::collections::{BTreeMap, BTreeSet};

use abide_kernel::decide;
use abide_kernel::fixture::{self, Files};
use abide_kernel::vocabulary::Reason;
use serde_json::json;

use crate::story::{Story, tell};

const STORIES: &[(&str, &str)] = &[
    ("stopped", "stop"),
    ("shutdown_requested", "shutdown"),
    ("quarantined", "quarantine bad"),
    ("turn_in_progress", "operator hi\ndecide"),
    ("budget_spent", "budget turns=0\noperator hi"),
    ("model_reentry_message", "operator hi"),
    ("liveness_only_message", "event"),
    ("message_parked", "operator hi\nround WaitFor external c1\nevent news"),
    ("wake_hint", "wake look"),
    ("duplicate_wake_hint", "wake source=s look\nfail timeout after=1h\nwake source=s look"),
    ("continue_active", "operator hi\nround CreateWorkItem build\nround PickWorkItem w1\nround done"),
    ("queued_available", "person CreateWorkItem build"),
    ("duplicate_tick", "person CreateWorkItem build\nperson PickWorkItem w1\nfail timeout after=1h"),
    (
        "suppressed_after_reentry",
        "stop\nperson CreateWorkItem build\nperson PickWorkItem w1\noperator hi\nstart\nround done",
    ),
    ("home_budget_spent", "operator hi\nfail home_budget_spent"),
    ("model_key", "operator hi\nfail auth"),
    ("work_item_needs_input", "person CreateWorkItem status=needs_input build"),
    ("active_operator_wait", "operator hi\nround WaitFor operator"),
    ("approval_pending", "operator hi\nround RequestApproval deploy"),
    (
        "no_progress_budget_spent",
        "person CreateWorkItem build\nround a\nadvance 30s\nround b\nadvance 2m\nround c\nadvance 10m\nround d",
    ),
    (
        "self_turns_paced",
        "limits self_turns=1\noperator hi\nround CreateTimer every=1s tea\nround a\nadvance 1s\nround b\nadvance 1s",
    ),
    ("work_ticks_spent", "person CreateWorkItem build\nagain 50 round CreateWorkItem more | round done"),
    ("disk_reserve", "disk after=1m 5 bytes are free\noperator hi"),
    ("work_item_task_wait", "task t1\nperson CreateWorkItem build\nround WaitFor task"),
    ("active_task_wait", "task t1\noperator hi\nround WaitFor task"),
    ("work_item_external_wait", "person CreateWorkItem build\nround WaitFor external"),
    ("active_agent_waiting_intents", "operator hi\nround WaitFor external"),
    ("work_item_timer_wait", "person CreateWorkItem build\nround WaitFor timer after=1h"),
    ("active_timers", "person CreateTimer every=1h tea"),
    ("recheck_pending", "person CreateWorkItem build\nround UpdateWorkItem w1 blocked=rain recheck=1h\nround done"),
    ("tick_backoff", "person CreateWorkItem build\nround done"),
    ("provider_backoff", "operator hi\nfail timeout"),
    ("work_item_blocked", "person CreateWorkItem build\nround UpdateWorkItem w1 blocked=rain\nround done"),
    ("no_pending_scheduler_facts", "operator hi\nround done"),
    ("already_asleep", "operator hi\nround done\ndecide"),
];

#[test]
fn every_reason_is_given_by_a_story() {
    for (reason, story) in STORIES {
        let told = tell(story);
        let given = told.iter().any(|line| line.split([' ', ',']).any(|word| word == *reason));
        assert!(given, "{reason} is not given by:\n{story}\n=>\n{}", told.join("\n"));
    }
}

#[test]
fn every_reason_has_a_story() {
    let told: BTreeSet<&str> = STORIES.iter().map(|(reason, _)| *reason).collect();
    let reasons: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(told, reasons);
}

#[test]
fn a_decision_says_all_of_its_fields() {
    let mut story = Story::begin();
    for line in ["stop", "person CreateWorkItem build", "task t1 item=w1", "task t1 ends", "start"] {
        story.tell(line).unwrap();
    }
    let decision = serde_json::to_value(story.state.decision().unwrap()).unwrap();
    let fields: Vec<&str> = decision.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "boundary",
        "evidence",
        "ignored",
        "kind",
        "liveness_only",
        "message_id",
        "model_reentry",
        "reason",
        "task_id",
        "work_item_id",
    ];
    assert_eq!(fields, expected);
    assert_eq!(decision["boundary"], "message");
    assert_eq!(decision["model_reentry"], true);
    assert_eq!(decision["liveness_only"], false);
}

/// The folder of an agent with these records.
fn folder(agent: serde_json::Value, records: &[(&str, serde_json::Value)]) -> Files {
    let mut files: Files = BTreeMap::from([("agent.json".to_owned(), agent.to_string().into_bytes())]);
    for (name, record) in records {
        let file = files.entry(format!("ledger/{name}.jsonl")).or_default();
        file.extend(format!("{record}\n").into_bytes());
    }
    files
}

/// With the queue left aside, a tick that is in it is a reason not to make another.
#[test]
fn a_tick_in_the_queue_is_a_duplicate_at_the_idle_boundary() {
    let key = "work_queue:continue_active:w1:1";
    let tick = json!({ "id": "m1", "kind": "system_tick", "text": "go", "work_item_id": "w1", "idempotency_key": key });
    let files = folder(
        json!({ "current_work_item_id": "w1" }),
        &[
            ("work_items", json!({ "id": "w1", "objective": "build", "state": "open", "revision": 1 })),
            ("messages", tick),
            ("queue_entries", json!({ "message_id": "m1", "status": "queued" })),
        ],
    );
    let fixture = fixture::load(&files).unwrap();
    let decision = fixture.decision();
    assert_eq!(decision.kind.as_str(), "Noop");
    assert_eq!(decision.reason, Reason::DuplicateTick);
    assert_eq!(decision.ignored, ["duplicate_tick w1"]);
    assert_eq!(decide(&fixture.state, fixture.now).reason, Reason::ModelReentryMessage);
}

/// Statuses of old exports.
#[test]
fn old_statuses_load() {
    let status = |text: &str| fixture::load(&folder(json!({ "status": text }), &[])).unwrap().state.status();
    assert_eq!(status("paused").as_str(), "stopped");
    assert_eq!(status("awaiting_task").as_str(), "awake_idle");
}

#[test]
fn a_record_that_does_not_read_is_named_by_file_line_and_field() {
    let records =
        [("tasks", json!({ "id": "t1", "status": "running" })), ("tasks", json!({ "id": "t2", "status": "asleep" }))];
    let error = fixture::load(&folder(json!({}), &records)).unwrap_err().to_string();
    assert!(error.starts_with("ledger/tasks.jsonl: line 2: field `status`:"), "{error}");
}
