//! Records that can't be trusted: their agent is left alone, and says so; the others never notice.

use std::fs;

use serde_json::{Value, json};

use crate::hands::{LONG_MS, TASK, calls, result, tool};
use crate::place::Place;
use crate::served::{Served, until};

const MARK: &str = "the-text-that-gets-damaged";

/// Changes every copy of a text in the database, so that it is no longer UTF-8.
fn damage(place: &Place) {
    let path = place.home().join("ledger.db");
    let mut bytes = fs::read(&path).unwrap();
    let copies = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK.as_bytes());
    let copies: Vec<usize> = copies.map(|(at, _)| at).collect();
    assert!(!copies.is_empty(), "{MARK:?} is nowhere in the database");
    for at in copies {
        bytes[at] ^= 0x80;
    }
    fs::write(path, bytes).unwrap();
}

fn look_at(served: &Served, sick: &str) {
    let why = served.get(&format!("/v1/agents/{sick}/why"));
    assert_eq!((&why["status"], &why["decision"]["reason"]), (&json!("stopped"), &json!("quarantined")), "{why}");
    assert!(why["sentence"].as_str().unwrap().contains("is quarantined"), "{why}");
    let said = served.place.says(&["why", sick]);
    assert!(said.contains(&format!("{sick} is quarantined")), "{said}");
    assert!(served.place.says(&["why"]).contains(&format!("{sick} is quarantined")));
    assert!(served.place.says(&["agent", "list"]).contains(sick));
    for part in [
        "",
        "/messages",
        "/briefs",
        "/events",
        "/transcript",
        "/decisions",
        "/timers",
        "/waits",
        "/work-items",
        "/export",
    ] {
        let answer = served.call("GET", &format!("/v1/agents/{sick}{part}"), &[], None);
        assert!(answer.status < 500, "{part}: {} {}", answer.status, answer.body);
    }
    let show = served.call("GET", &format!("/v1/agents/{sick}"), &[], None);
    assert_eq!((show.status, &show.body["code"]), (409, &json!("quarantined")));
    for (path, body) in [("messages", json!({ "text": "are you well?" })), ("stop", json!({})), ("start", json!({}))] {
        let answer = served.call("POST", &format!("/v1/agents/{sick}/{path}"), &[], Some(&body));
        assert_eq!((answer.status, &answer.body["code"]), (409, &json!("quarantined")), "{path}");
    }
    let list = served.get("/v1/agents?limit=1000");
    let listed = list["items"].as_array().unwrap().iter().find(|item| item["id"] == sick);
    assert_eq!(listed.unwrap()["status"], "stopped", "{list}");
}

#[test]
fn an_agent_whose_records_are_damaged_is_left_alone() {
    let mut served = Served::start();
    // One of them is damaged while it sleeps; the other is woken by the start itself.
    served.create("asleep", "script/echo");
    let rounds = json!([{ "text": "late", "delay_ms": 600_000 }]);
    served.create_playing("busy", &rounds);
    for well in ["well-a", "well-b"] {
        served.create(well, "script/echo");
    }
    let told = served.send("asleep", MARK);
    served.until_told("asleep", &told);
    served.until_asleep("asleep");
    let busy = served.send("busy", MARK);
    served.until_fact("busy", "turn.started", |turn| turn["message_id"] == busy.as_str());
    let left = served.send("well-a", "before");
    served.until_told("well-a", &left);
    served.kill();
    // What was not yet moved out of the write-ahead log is moved by whoever opens it next.
    served.place.says(&["ledger", "compact"]);
    damage(&served.place);
    served.up();
    for well in ["well-a", "well-b"] {
        let message = served.send(well, "after");
        assert_eq!(served.until_told(well, &message)["text"], "after");
    }
    for sick in ["asleep", "busy"] {
        look_at(&served, sick);
    }
    // Whatever was tried with them, the others go on, in this daemon and the next.
    served.stop();
    let ran = served.place.run(&["ledger", "verify", "--json"]);
    assert_eq!(ran.code, Some(1), "damage is an exit code: {}", ran.out);
    served.up();
    let message = served.send("well-b", "still here");
    served.until_told("well-b", &message);
    look_at(&served, "busy");
}

/// The child says nothing any more, so its supervisor hears at once that it is lost.
#[test]
fn a_child_whose_records_are_damaged_is_no_longer_waited_for() {
    let mut served = Served::start_offering(&["child"]);
    let rounds = json!([
        { "text": MARK, "tools": [tool("CreateWorkItem", json!({ "objective": "build" }))] },
        { "text": "late", "delay_ms": LONG_MS },
    ]);
    let model = served.script("child", &json!({ "rounds": rounds }));
    let spawn = calls(tool("SpawnAgent", json!({ "message": "build it", "model": model })));
    let wait = json!({ "wake": "task_result", "resource": result(TASK, 1), "reason": "the child" });
    served.create_playing("lead", &json!([spawn, calls(tool("WaitFor", wait)), { "text": "The child is lost." }]));
    served.send("lead", "have it built");
    let made = until("a child", || served.results("lead", "SpawnAgent").into_iter().next());
    let (task, child) = (made.pointer(TASK).unwrap().as_str().unwrap(), made["agent_id"].as_str().unwrap());
    // It is named before it is made.
    until("its records", || {
        (served.call("GET", &format!("/v1/agents/{child}"), &[], None).status == 200).then_some(())
    });
    until("its second round", || (served.facts(child, "turn.round_started").len() == 2).then_some(()));
    served.until_asleep("lead");
    served.kill();
    served.place.says(&["ledger", "compact"]);
    damage(&served.place);
    served.up();
    let ended = served.until_task("lead", task, "interrupted");
    assert!(ended["evidence"].to_string().contains(&format!("child_quarantined {child}")), "{ended}");
    let said = |turn: &Value| turn["last_assistant_message"] == "The child is lost.";
    served.until_fact("lead", "turn.terminal", said);
    assert_eq!(served.get(&format!("/v1/agents/{child}/why"))["decision"]["reason"], "quarantined");
}

/// A supervisor that can't be read dismisses no child, so that stopping all agents has to stop its children by itself.
#[test]
fn stopping_all_agents_stops_the_children_of_one_that_is_damaged() {
    let mut served = Served::start_offering(&["child"]);
    let rounds = json!([{ "text": "late", "delay_ms": LONG_MS }, { "text": "late", "delay_ms": LONG_MS }]);
    let model = served.script("child", &json!({ "rounds": rounds }));
    let spawn = calls(tool("SpawnAgent", json!({ "message": "build it", "model": model })));
    let wait = json!({ "wake": "task_result", "resource": result(TASK, 1), "reason": MARK });
    served.create_playing("lead", &json!([spawn, calls(tool("WaitFor", wait)), { "text": "Never said." }]));
    served.send("lead", "have it built");
    let made = until("a child", || served.results("lead", "SpawnAgent").into_iter().next());
    let child = made["agent_id"].as_str().unwrap();
    until("its records", || {
        (served.call("GET", &format!("/v1/agents/{child}"), &[], None).status == 200).then_some(())
    });
    served.until_fact(child, "turn.round_started", |_| true);
    served.until_asleep("lead");
    served.kill();
    served.place.says(&["ledger", "compact"]);
    damage(&served.place);
    served.up();
    // Its turn may have begun again, or be fenced: it depends on which of the two agents was read first.
    let ran = served.place.run(&["agent", "stop", "--all"]);
    assert_eq!((ran.code, ran.out), (Some(6), format!("main is stopped\n{child} is stopped\n")), "{}", ran.err);
    assert!(ran.err.starts_with("abide: can't stop lead: lead is quarantined: "), "{}", ran.err);
    assert!(ran.err.ends_with("\nabide: 1 of 3 agents could not be stopped\n"), "{}", ran.err);
    served.until_fact(child, "control.applied", |fact| fact["action"] == "stop");
}
