//! Timers belong to the ledger, not to the process: they wake their agents in whichever daemon comes next.

use std::time::{SystemTime, UNIX_EPOCH};

use abide_kernel::time::Time;
use serde_json::{Value, json};

use crate::served::{Served, of_kind, until};

fn create_timer(served: &Served, id: &str, when: &str, ms: u64) -> Value {
    served.post(&format!("/v1/agents/{id}/timers"), &json!({ "summary": format!("tea for {id}"), when: ms }))
}

fn has_passed(time: &str) -> bool {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Time::EPOCH.plus_ms(u64::try_from(since_epoch.as_millis()).unwrap()) > time.parse::<Time>().unwrap()
}

/// The turn that a tick of this timer led to, once it is over.
fn until_turn(served: &Served, id: &str, timer: &Value) -> Value {
    let fired = served.until_fact(id, "timer.fired", |fired| fired["timer_id"] == timer["timer_id"]);
    served.until_fact(id, "turn.terminal", |turn| turn["message_id"] == fired["message_id"])
}

#[test]
fn failure_02_an_agent_that_owns_only_a_timer_wakes_after_a_kill() {
    let mut served = Served::start();
    served.create("napper", "script/echo");
    let timer = create_timer(&served, "napper", "after_ms", 4_000);
    served.kill_and_up();
    assert!(served.facts("napper", "timer.fired").is_empty(), "it is not due yet");
    let turn = until_turn(&served, "napper", &timer);
    assert_eq!(
        (&turn["terminal_kind"], &turn["last_assistant_message"]),
        (&json!("completed"), &json!("tea for napper"))
    );
    assert!(has_passed(timer["next_fire_at"].as_str().unwrap()), "not before its time");
    served.kill_and_up();
    served.until_asleep("napper");
    assert_eq!(served.facts("napper", "timer.fired").len(), 1);
    assert_eq!(served.facts("napper", "turn.started").len(), 1);
    served.stop_and_verify();
}

#[test]
fn a_timer_that_came_due_while_nobody_was_there_fires_once() {
    let mut served = Served::start();
    served.create("once", "script/echo");
    served.create("often", "script/echo");
    let once = create_timer(&served, "once", "after_ms", 2_500);
    let often = create_timer(&served, "often", "every_ms", 2_500);
    served.kill();
    let third = often["upcoming"][2].as_str().unwrap().to_owned();
    until("the third occurrence", || has_passed(&third).then_some(()));
    served.up();
    until_turn(&served, "once", &once);
    until_turn(&served, "often", &often);
    let events = served.events("often");
    let (missed, fired) = (of_kind(&events, "timer.missed"), of_kind(&events, "timer.fired"));
    assert!(missed[0]["count"].as_u64().unwrap() >= 2, "what was missed is counted: {missed:?}");
    assert_eq!(fired[0]["fire_count"], 1, "one tick stands for all of them");
    assert!(fired[0]["due"].as_str().unwrap() >= third.as_str(), "{fired:?}");
    let answer =
        served.call("DELETE", &format!("/v1/agents/often/timers/{}", often["timer_id"].as_str().unwrap()), &[], None);
    assert_eq!(answer.status, 200, "{}", answer.body);
    served.kill_and_up();
    served.until_asleep("once");
    served.until_asleep("often");
    let fired = served.facts("once", "timer.fired");
    assert_eq!(fired.len(), 1, "{fired:?}");
    assert_eq!(fired[0]["due"], once["next_fire_at"]);
    assert_eq!(served.facts("once", "turn.started").len(), 1);
    served.stop_and_verify();
}

#[test]
fn a_check_holds_back_what_is_not_worth_a_turn() {
    let mut served = Served::start();
    served.create("post", "script/echo");
    let new = json!({ "summary": "Mail!", "every_ms": 300, "check": "cat letter && rm letter" });
    let timer = served.post("/v1/agents/post/timers", &new);
    let no = |missed: &Value| missed["reason"] == "check_said_no";
    let missed = served.until_fact("post", "timer.missed", no);
    assert!(missed["note"].as_str().unwrap().starts_with("exit code 1: cat: "), "{missed}");
    assert!(served.facts("post", "turn.started").is_empty(), "nobody was woken for nothing");
    let folder = served.place.home().join("agents/post/workspace");
    std::fs::write(folder.join("letter.new"), "Dear Ann").unwrap();
    std::fs::rename(folder.join("letter.new"), folder.join("letter")).unwrap();
    let turn = until_turn(&served, "post", &timer);
    assert_eq!(turn["last_assistant_message"], "Mail!\n\nIts check said:\nDear Ann");
    let path = format!("/v1/agents/post/timers/{}", timer["timer_id"].as_str().unwrap());
    assert_eq!(served.get(&path)["check"], "cat letter && rm letter");
    assert_eq!(served.call("DELETE", &path, &[], None).status, 200);
    assert_eq!(served.get(&path)["status"], "cancelled", "it is still known");
    served.stop_and_verify();
}

#[test]
fn a_check_that_was_cut_off_is_run_again() {
    let mut served = Served::start();
    served.create("post", "script/echo");
    let new =
        json!({ "summary": "Mail!", "after_ms": 1, "check": "touch begun; while ! test -e go; do sleep 0.05; done" });
    let timer = served.post("/v1/agents/post/timers", &new);
    let folder = served.place.home().join("agents/post/workspace");
    until("the check runs", || folder.join("begun").exists().then_some(()));
    let why = served.get("/v1/agents/post/why");
    assert!(why.to_string().contains("the check of timer_"), "{why}");
    served.kill_and_up();
    let again = served.until_fact("post", "timer.check_started", |check| check["evidence"] == json!(["restart"]));
    assert_eq!(again["due"], timer["next_fire_at"], "for the same occurrence");
    std::fs::write(folder.join("go"), "").unwrap();
    let turn = until_turn(&served, "post", &timer);
    assert_eq!(turn["last_assistant_message"], "Mail!", "it said nothing");
    assert_eq!(served.facts("post", "timer.fired").len(), 1);
    served.stop_and_verify();
}

#[test]
fn a_stop_ends_a_check_and_a_shutdown_does_not_wait_for_it() {
    let mut served = Served::start();
    for id in ["stopped", "shut"] {
        served.create(id, "script/echo");
        let new = json!({ "summary": "Mail!", "after_ms": 1, "check": "touch begun; exec sleep 50" });
        served.post(&format!("/v1/agents/{id}/timers"), &new);
        let folder = served.place.home().join(format!("agents/{id}/workspace"));
        until("the check runs", || folder.join("begun").exists().then_some(()));
    }
    served.post("/v1/agents/stopped/stop", &json!({}));
    let missed = served.facts("stopped", "timer.missed");
    assert_eq!((&missed[0]["reason"], &missed[0]["count"]), (&json!("stopped"), &json!(1)));
    assert_eq!(served.facts("stopped", "timer.completed").len(), 1, "it was its only one");
    served.stop();
    served.up();
    served.until_fact("shut", "timer.check_started", |check| check["evidence"] == json!(["restart"]));
    served.post("/v1/agents/shut/stop", &json!({}));
    served.stop_and_verify();
}
