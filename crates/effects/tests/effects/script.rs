//! The scripted model, sentence by sentence of what is promised about it.

use std::time::Duration;

use crate::stage::{Stage, message};

#[test]
fn one_round_per_call_in_order_and_then_done() {
    let mut stage = Stage::of(r#"{"rounds": [{"text": "one"}, {"text": "two"}]}"#);
    let said: Vec<String> = (0..4).map(|n| stage.say(&message(&format!("m{n}"), "go on"))).collect();
    assert_eq!(said, ["one", "two", "Done.", "Done."]);
}

#[test]
fn a_delayed_round_takes_its_time_and_ends_when_it_is_dropped() {
    let script = r#"{"rounds": [{"text": "late", "delay_ms": 50}]}"#;
    let mut stage = Stage::of(script);
    assert_eq!(stage.say_within(&message("m1", "go"), Duration::from_millis(49)), None);
    // The place moves with the carry of an answer, and there was none: the round plays again.
    assert_eq!(stage.say_within(&message("m1", "go"), Duration::from_millis(51)).unwrap().text, "late");
}
