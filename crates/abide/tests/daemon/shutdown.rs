//! Ending well: a turn comes to its safe point or is given back, and the daemon is gone in time either way.

use std::time::Duration;

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
    assert_eq!(served.facts("worker", "brief.recorded").len(), 2);
    served.stop_and_verify();
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for (second, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut served = Served::start_with("shutdown_grace_ms = 600000\n");
        let message = begin(&served, &json!([{ "text": "never", "delay_ms": LONG_MS }]));
        served.daemon.as_ref().unwrap().signal(Signal::TERM);
        until("a daemon on its way out", || {
            let answer = served.call("GET", "/v1/agents", &[], None);
            (answer.status == 503 && answer.body["code"] == "closing").then_some(())
        });
        let mut daemon = signal(&mut served, second);
        assert_eq!(daemon.gone(END), (Some(code), STOPPED.to_owned()));
        assert!(!served.place.home().join("daemon.json").exists());
        served.script("worker", &json!({ "rounds": [{ "text": "Now." }] }));
        served.up();
        answered_once(&mut served, &message, "Now.");
    }
}
