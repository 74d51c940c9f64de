//! Ending well: a turn comes to its safe point or is given back, and the daemon is gone in time either way.

use std::time::Duration;

use abide_engine::PROGRAM;
use abide_kernel::pack::read_stored;
use abide_ledger::{Ledger, Options};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::Daemon;
use crate::served::{STOPPED, Served, until};

/// How long an end may take, whatever is under way.
const END: Duration = Duration::from_secs(10);

const LONG_MS: u64 = 600_000;

/// A turn that is under way, about the message whose id is returned.
fn begin(served: &Served, rounds: &Value) -> String {
    served.create_playing("worker", rounds);
    let message = served.send("worker", "go");
    served.until_fact("worker", "turn.round_started", |_| true);
    message
}

/// Sends a signal, and takes the daemon away from what serves the test.
fn signal(served: &mut Served, signal: Signal) -> Daemon {
    let daemon = served.daemon.take().unwrap();
    daemon.signal(signal);
    daemon
}

fn end_well(served: &mut Served, with: Signal) {
    let mut daemon = signal(served, with);
    assert_eq!(daemon.gone(END), (Some(0), STOPPED.to_owned()));
    assert!(!served.place.home().join("daemon.json").exists());
}

/// One answer, one end, and nothing left over, also after one more start.
fn answered_once(served: &mut Served, message: &str, answer: &str) {
    let brief = served.until_told("worker", message);
    assert_eq!((&brief["kind"], &brief["text"]), (&json!("result"), &json!(answer)));
    served.until_asleep("worker");
    served.kill_and_up();
    served.until_asleep("worker");
    assert_eq!(served.facts("worker", "brief.recorded").len(), 1);
    assert_eq!(served.facts("worker", "message.processed").len(), 1);
    let mut completed = served.facts("worker", "turn.terminal");
    completed.retain(|turn| turn["terminal_kind"] == "completed");
    assert_eq!(completed.len(), 1);
    served.stop_and_verify();
}

#[test]
fn an_answer_that_comes_in_time_is_the_answer() {
    let mut served = Served::start();
    let message = begin(&served, &json!([{ "text": "Just in time.", "delay_ms": 1_500 }]));
    end_well(&mut served, Signal::TERM);
    served.up();
    answered_once(&mut served, &message, "Just in time.");
}

#[test]
fn a_turn_that_has_more_to_do_stops_at_its_safe_point() {
    let mut served = Served::start();
    let look = json!({ "name": "CancelTimer", "input": { "timer_id": "timer_none" } });
    let rounds = json!([
        { "text": "Looking.", "tools": [look], "delay_ms": 1_500 },
        { "text": "Found it.", "delay_ms": 10 },
    ]);
    let message = begin(&served, &rounds);
    end_well(&mut served, Signal::INT);
    served.up();
    answered_once(&mut served, &message, "Found it.");
}

#[test]
fn a_turn_that_takes_too_long_is_given_back_and_taken_up_again() {
    let mut served = Served::start_with("shutdown_grace_ms = 300\n");
    let message = begin(&served, &json!([{ "text": "never", "delay_ms": LONG_MS }]));
    let waiting = served.send("worker", "and then");
    end_well(&mut served, Signal::TERM);
    served.script("worker", &json!({ "rounds": [{ "text": "Now." }, { "text": "Then." }] }));
    served.up();
    assert_eq!(served.until_told("worker", &message)["text"], "Now.");
    assert_eq!(served.until_told("worker", &waiting)["text"], "Then.");
    served.until_asleep("worker");
    let requeued = served.facts("worker", "message.requeued");
    assert_eq!(requeued, [json!({ "message_id": message, "reason": "shutdown" })]);
    let aborted = served.facts("worker", "exec.aborted");
    assert_eq!((aborted.len(), &aborted[0]["reason"]), (1, &json!("shutdown")));
    assert_eq!(aborted[0]["evidence"], json!(["shutdown_at_once", "reason grace_over"]));
    for kind in ["control.admitted", "control.applied"] {
        let facts = served.facts("worker", kind);
        let shutdown: Vec<&Value> = facts.iter().filter(|fact| fact["action"] == "shutdown").collect();
        assert_eq!(shutdown.len(), 1, "{kind}");
        assert_eq!(shutdown[0]["evidence"], json!(["reason SIGTERM"]), "{kind}");
    }
    assert_eq!(served.facts("worker", "brief.recorded").len(), 2);
    served.stop_and_verify();
}

/// Asks it to end, and asks again as soon as it is about to.
fn end_twice(served: &mut Served, second: Signal, code: i32) {
    served.daemon.as_ref().unwrap().signal(Signal::TERM);
    until("a daemon on its way out", || {
        let answer = served.call("GET", "/v1/agents", &[], None);
        (answer.status == 503 && answer.body["code"] == "closing").then_some(())
    });
    let mut daemon = signal(served, second);
    assert_eq!(daemon.gone(END), (Some(code), STOPPED.to_owned()));
    assert!(!served.place.home().join("daemon.json").exists());
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for (second, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut served = Served::start_with("shutdown_grace_ms = 600000\n");
        let message = begin(&served, &json!([{ "text": "never", "delay_ms": LONG_MS }]));
        end_twice(&mut served, second, code);
        served.script("worker", &json!({ "rounds": [{ "text": "Now." }] }));
        served.up();
        answered_once(&mut served, &message, "Now.");
    }
}

/// The message did not take the daemon down, however often somebody is impatient while its model takes its time.
#[test]
fn impatient_shutdowns_are_no_crashes() {
    const TIMES: usize = 4;
    let mut served = Served::start_with("shutdown_grace_ms = 600000\n");
    let message = begin(&served, &json!([{ "text": "never", "delay_ms": LONG_MS }]));
    for time in 1..=TIMES {
        until("a model that is asked", || (served.facts("worker", "turn.round_started").len() == time).then_some(()));
        end_twice(&mut served, Signal::TERM, 143);
        if time == TIMES {
            served.script("worker", &json!({ "rounds": [{ "text": "Now." }] }));
        }
        served.up();
    }
    answered_once(&mut served, &message, "Now.");
    served.up();
    let given_back = json!({ "message_id": message, "reason": "shutdown" });
    assert_eq!(served.facts("worker", "message.requeued"), vec![given_back; TIMES]);
    // It was given back before the process ended, and not found cut by the next one.
    let aborted = served.facts("worker", "exec.aborted");
    let evidence = json!(["shutdown_at_once", "reason second_signal"]);
    assert!(aborted.iter().all(|aborted| aborted["evidence"] == evidence), "{aborted:?}");
}

/// The shutdowns of an agent that are on disk. The daemon answers nobody any more.
fn recorded_shutdowns(served: &Served) -> usize {
    let ledger = Ledger::open(&served.place.home(), Options::read_only().by(PROGRAM)).unwrap();
    let facts = ledger.read(&"agent/worker".parse().unwrap(), 0, usize::MAX).unwrap();
    let shutdown = |payload: &[u8]| read_stored(payload).is_ok_and(|fact: Value| fact["action"] == "shutdown");
    let applied = facts.iter().filter(|fact| &*fact.kind == "control.applied");
    applied.filter(|fact| fact.payload.stored().is_some_and(shutdown)).count()
}

/// Killed after the shutdown was recorded, and before the turn came to its safe point.
#[test]
fn a_kill_during_a_shutdown_is_no_crash() {
    const TIMES: usize = 4;
    let mut served = Served::start_with("shutdown_grace_ms = 600000\n");
    let message = begin(&served, &json!([{ "text": "never", "delay_ms": LONG_MS }]));
    for time in 1..=TIMES {
        until("a model that is asked", || (served.facts("worker", "turn.round_started").len() == time).then_some(()));
        served.daemon.as_ref().unwrap().signal(Signal::TERM);
        until("a recorded shutdown", || (recorded_shutdowns(&served) == time).then_some(()));
        served.kill();
        if time == TIMES {
            served.script("worker", &json!({ "rounds": [{ "text": "Now." }] }));
        }
        served.up();
    }
    assert_eq!(served.until_told("worker", &message)["text"], "Now.");
    let given_back = json!({ "message_id": message, "reason": "shutdown" });
    assert_eq!(served.facts("worker", "message.requeued"), vec![given_back; TIMES]);
    let aborted = served.facts("worker", "exec.aborted");
    assert!(aborted.iter().all(|aborted| aborted["process_ended"] == true), "{aborted:?}");
    served.stop_and_verify();
}
