//! Where a script is: main rounds, entries that messages set off, restarts, edits. Every call of the stage reads the
//! place back from what was written down, so each of these stories has a restart between any two calls.

use std::sync::Arc;

use serde_json::json;

use crate::stage::{Stage, json_message, message};

const TWO_ENTRIES: &str = r#"{
    "rounds": [{"text": "main 1"}, {"text": "main 2"}, {"text": "main 3"}],
    "when": [
        {"contains": "deploy", "rounds": [{"text": "deploy 1"}, {"text": "deploy 2"}]},
        {"contains": "test", "rounds": [{"text": "test 1"}]}
    ]
}"#;

/// The reply to each of these messages, in turn.
fn story(script: &str, told: &[(&str, &str)], expected: &[&str]) {
    let mut stage = Stage::of(script);
    let said: Vec<String> = told.iter().map(|(id, text)| stage.say(&message(id, text))).collect();
    assert_eq!(said, expected, "{told:?}");
}

#[test]
fn a_message_sets_off_the_first_entry_whose_text_it_contains() {
    story(TWO_ENTRIES, &[("m1", "run the tests")], &["test 1"]);
    story(TWO_ENTRIES, &[("m1", "test, then deploy")], &["deploy 1"]);
    story(TWO_ENTRIES, &[("m1", "Deploy")], &["main 1"]);
}

#[test]
fn json_contains_what_it_says_on_one_line() {
    let mut stage = Stage::of(TWO_ENTRIES);
    assert_eq!(stage.say(&json_message("m1", json!({ "action": "deploy" }))), "deploy 1");
}

#[test]
fn after_the_entry_come_the_main_rounds() {
    let told = [("m1", "deploy"), ("m1", "deploy"), ("m1", "deploy"), ("m2", "hello")];
    story(TWO_ENTRIES, &told, &["deploy 1", "deploy 2", "main 1", "main 2"]);
}

#[test]
fn an_entry_goes_on_with_the_message_that_its_wait_brings() {
    let told = [("m1", "deploy"), ("m2", "the task is done"), ("m3", "hello")];
    story(TWO_ENTRIES, &told, &["deploy 1", "deploy 2", "main 1"]);
}

#[test]
fn each_new_message_plays_its_entry_from_the_first_round() {
    let told = [("m1", "deploy"), ("m2", "deploy again"), ("m3", "go on"), ("m4", "hello"), ("m5", "deploy")];
    story(TWO_ENTRIES, &told, &["deploy 1", "deploy 1", "deploy 2", "main 1", "deploy 1"]);
}

#[test]
fn another_entry_takes_the_place_of_the_one_that_was_on() {
    let told = [("m1", "deploy"), ("m2", "test"), ("m2", "test"), ("m3", "hello")];
    story(TWO_ENTRIES, &told, &["deploy 1", "test 1", "main 1", "main 2"]);
}

#[test]
fn a_replayed_message_goes_on_where_it_was() {
    let told = [("m1", "hello"), ("m2", "deploy"), ("m2", "deploy"), ("m2", "deploy"), ("m2", "deploy")];
    story(TWO_ENTRIES, &told, &["main 1", "deploy 1", "deploy 2", "main 2", "main 3"]);
    // Others in between don't make it new.
    let told = [("m1", "deploy"), ("m2", "test"), ("m1", "deploy"), ("m1", "deploy")];
    story(TWO_ENTRIES, &told, &["deploy 1", "test 1", "deploy 2", "main 1"]);
}

#[test]
fn a_failed_round_keeps_its_entry_for_the_message_that_comes_again() {
    let script = r#"{"rounds": [{"text": "main"}],
        "when": [{"contains": "deploy", "rounds": [{"error": "rate_limited", "retry_after_ms": 9}, {"text": "deployed"}]}]}"#;
    let told = [("m1", "deploy"), ("m2", "hello"), ("m1", "deploy"), ("m3", "hello")];
    story(script, &told, &["rate_limited retry Some(9)", "main", "deployed", "Done."]);
    // A key that fails holds the message, which comes again.
    let held = script.replace("rate_limited", "auth");
    story(&held, &told, &["auth retry Some(9)", "main", "deployed", "Done."]);
    // A failure that ends its message brings it never again, so its rounds are free for the next one.
    let ended = script.replace("rate_limited", "invalid");
    story(&ended, &[("m1", "deploy"), ("m2", "hello")], &["invalid retry Some(9)", "deployed"]);
}

#[test]
fn an_interjection_is_a_new_message_in_the_turn() {
    let mut stage = Stage::of(TWO_ENTRIES);
    let turn = message("m1", "deploy");
    assert_eq!(stage.say(&turn), "deploy 1");
    stage.joined.push(Arc::new(message("m2", "test first")));
    assert_eq!(stage.say(&turn), "test 1");
    assert_eq!(stage.say(&turn), "deploy 2");
    // One that says nothing to set anything off changes nothing.
    stage.joined.push(Arc::new(message("m3", "thanks")));
    assert_eq!(stage.say(&turn), "main 1");
    // Given back to the queue, it is not new.
    stage.joined.clear();
    assert_eq!(stage.say(&message("m2", "test first")), "main 2");
}

#[test]
fn a_turn_whose_interjection_came_before_any_round_plays_that_first() {
    let mut stage = Stage::of(TWO_ENTRIES);
    stage.joined.push(Arc::new(message("m2", "test")));
    let turn = message("m1", "deploy");
    let said: Vec<String> = (0..4).map(|_| stage.say(&turn)).collect();
    assert_eq!(said, ["test 1", "deploy 1", "deploy 2", "main 1"]);
}

#[test]
fn an_entry_without_rounds_leaves_the_main_rounds() {
    let script = r#"{"rounds": [{"text": "main"}], "when": [{"contains": "", "rounds": []}]}"#;
    story(script, &[("m1", "a"), ("m2", "b")], &["main", "Done."]);
}

#[test]
fn entries_do_not_loop() {
    let script =
        r#"{"rounds": [{"text": "main"}], "when": [{"contains": "x", "rounds": [{"text": "x"}]}], "loop": true}"#;
    story(script, &[("m1", "x"), ("m1", "x"), ("m1", "x"), ("m2", "x")], &["x", "main", "main", "x"]);
}

#[test]
fn another_file_starts_at_its_first_round() {
    let mut stage = Stage::of(TWO_ENTRIES);
    assert_eq!(stage.say(&message("m1", "hello")), "main 1");
    stage.write("other.json", r#"{"rounds": [{"text": "other 1"}, {"text": "other 2"}]}"#);
    stage.model = stage.name("other.json");
    assert_eq!(stage.say(&message("m1", "hello")), "other 1");
    assert_eq!(stage.say(&message("m2", "hello")), "other 2");
    stage.model = stage.name("play.json");
    assert_eq!(stage.say(&message("m3", "hello")), "main 1");
}

#[test]
fn what_another_provider_carries_is_no_place() {
    for carry in [json!(null), json!("x"), json!({ "previous_response_id": "r1" }), json!({ "script": 1, "next": -4 })]
    {
        let mut stage = Stage::of(TWO_ENTRIES);
        stage.carry = Some(carry.into());
        assert_eq!(stage.say(&message("m1", "hello")), "main 1");
    }
}

#[test]
fn the_file_can_be_edited_while_it_plays() {
    let mut stage = Stage::of(r#"{"rounds": [{"text": "one"}]}"#);
    assert_eq!(stage.say(&message("m1", "hello")), "one");
    assert_eq!(stage.say(&message("m2", "hello")), "Done.");
    stage.write("play.json", r#"{"rounds": [{"text": "one"}, {"text": "two"}]}"#);
    assert_eq!(stage.say(&message("m3", "hello")), "two");
    // An entry is known by its text, so one that is put before it does not move it, and one that is gone is over.
    stage.write("play.json", TWO_ENTRIES);
    assert_eq!(stage.say(&message("m4", "deploy")), "deploy 1");
    let moved = TWO_ENTRIES.replace(r#""when": ["#, r#""when": [{"contains": "new", "rounds": []},"#);
    stage.write("play.json", &moved);
    assert_eq!(stage.say(&message("m4", "deploy")), "deploy 2");
    stage.write("play.json", r#"{"rounds": [{"text": "short"}], "loop": true}"#);
    assert_eq!(stage.say(&message("m4", "deploy")), "short");
}

#[test]
fn the_place_stays_small() {
    let mut stage = Stage::of(r#"{"when": [{"contains": "go", "rounds": [{"text": "going"}]}]}"#);
    for n in 0..200 {
        assert_eq!(stage.say(&message(&format!("msg_{n:036}"), "go")), "going");
    }
    assert!(stage.carry.unwrap().to_string().len() < 2_000);
}

#[test]
fn more_interjections_than_places_that_are_kept_end_all_the_same() {
    let mut stage = Stage::of(r#"{"when": [{"contains": "go", "rounds": [{"text": "going"}]}]}"#);
    stage.joined = (0..40).map(|n| Arc::new(message(&format!("i{n}"), "go"))).collect();
    let said: Vec<String> = (0..42).map(|_| stage.say(&message("m1", "go"))).collect();
    assert_eq!(said.iter().filter(|said| *said == "going").count(), 41);
    assert_eq!(said[41], "Done.");
}
