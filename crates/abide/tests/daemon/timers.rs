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
fn an_agent_that_owns_only_a_timer_wakes_after_a_kill() {
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
