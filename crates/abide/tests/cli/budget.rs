//! Budgets from the command line: set, reached, explained, raised.

use serde_json::json;

use crate::place::{Daemon, Place};

#[test]
fn a_budget_is_reached_explained_and_raised() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    let made = place.json(&["agent", "create", "scout", "--max-turns", "1", "--daily-usd", "2.5"]);
    assert_eq!(
        (&made["model"]["budget"]["max_turns"], &made["model"]["budget"]["daily"]["max_usd"]),
        (&json!(1), &json!(2.5))
    );
    assert_eq!(place.says(&["send", "scout", "first", "--wait"]), "first\n");
    let spent = "scout has used up its budget: 1 of 1 turns. Raise it to go on: `abide agent set scout --max-turns N`.";
    assert_eq!(place.refused(5, &["send", "scout", "second", "--wait"]), spent);
    let why = place.says(&["why", "scout"]);
    assert!(why.contains(spent), "{why}");
    let briefs = place.says(&["briefs", "scout"]);
    assert_eq!(briefs.matches("has used up its budget").count(), 1, "{briefs}");
    let raised = place.says(&["agent", "set", "scout", "--max-turns", "none", "--max-hours", "0.5"]);
    assert_eq!(raised, "scout may use 0.5 h; $2.5 a day\n");
    assert_eq!(place.says(&["send", "scout", "third", "--wait"]), "third\n");
    let shown = place.says(&["agent", "show", "scout"]);
    assert!(shown.contains("0.5 h; $2.5 a day"), "{shown}");
    let none = place.says(&["agent", "set", "scout", "--max-hours", "none", "--daily-usd", "none"]);
    assert_eq!(none, "scout has no budget\n");
    for wrong in [&["--max-turns", "few"][..], &["--max-usd", "-1"], &["--daily-hours", "soon"]] {
        assert_eq!(place.run(&[&["agent", "set", "scout"], wrong].concat()).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_short_time_is_told_in_a_unit_that_shows_it() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    place.says(&["agent", "create", "scout", "--max-hours", "0.05"]);
    assert_eq!(
        place.says(&["agent", "set", "scout", "--daily-hours", "0.000001"]),
        "scout may use 3 min; 4 ms a day\n"
    );
    place.write("slow.json", json!({ "rounds": [{ "text": "Here.", "delay_ms": 20 }], "loop": true }).to_string());
    place.says(&["agent", "set", "scout", "--model", "script/slow.json"]);
    place.run(&["send", "scout", "hi", "--wait"]);
    let error = place.refused(5, &["send", "scout", "hi", "--wait"]);
    assert!(error.contains(" ms of 4 ms"), "{error}");
    let shown = place.says(&["agent", "show", "scout"]);
    let took = shown.lines().find(|line| line.starts_with("turns took")).unwrap();
    assert!(took.ends_with(" ms"), "{took}");
}

#[test]
fn a_work_item_has_a_budget_of_its_own() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    place.says(&["agent", "create", "scout", "--no-start"]);
    let made = place.json(&["work", "create", "--agent", "scout", "paint", "--max-turns", "0", "--max-usd", "3"]);
    assert_eq!((&made["readiness"], &made["budget"]["max_usd"]), (&json!("budget_spent"), &json!(3.0)));
    let id = made["work_item_id"].as_str().unwrap();
    let shown = place.says(&["work", "show", "--agent", "scout", id]);
    assert!(shown.contains("0 turns, $3"), "{shown}");
    let update = ["work", "update", "--agent", "scout", id, "--max-turns", "none"];
    assert_eq!(place.says(&update), format!("{id} is at revision 2, runnable\n"));
    let kept = place.json(&["work", "show", "--agent", "scout", id]);
    assert_eq!(kept["budget"], json!({ "max_usd": 3.0 }));
}

#[test]
fn a_model_that_fails_is_followed_by_the_next() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    place.write("down.json", json!({ "rounds": [{ "error": "overloaded" }], "loop": true }).to_string());
    place.write("other.json", json!({ "rounds": [{ "text": "I am the other." }], "loop": true }).to_string());
    place.says(&["agent", "create", "scout", "--model", "script/down.json", "--fallback", "script/other.json"]);
    assert_eq!(place.says(&["send", "scout", "hi", "--wait"]), "I am the other.\n");
    let told = place.says(&["transcript", "scout"]);
    assert!(told.contains("down.json failed: overloaded") && told.contains("it goes on with script/"), "{told}");
    let shown = place.json(&["agent", "show", "scout"]);
    assert_eq!(shown["model"]["trouble"]["error"], "overloaded");
    let none = place.says(&["agent", "set", "scout", "--fallback", "none"]);
    assert_eq!(none, "scout has no other model when that fails\n");
    let made = place.json(&["agent", "create", "alone", "--fallback", "none"]);
    assert_eq!(made["model"]["fallback"], json!([]));
    assert_eq!(place.run(&["agent", "set", "scout", "--model", "ollama/ok space"]).code, Some(2));
    assert_eq!(place.run(&["agent", "set", "scout", "--fallback", "nonsense"]).code, Some(2));
}

/// No server listens here: a call to the provider would fail the test.
const UNPRICED: &str = "[providers.mine]\nkind = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
const PRICE: &str = "[models.\"mine/x\"]\ninput_usd = 1\noutput_usd = 2\n";

#[test]
fn a_limit_in_dollars_needs_a_price() {
    let place = Place::empty();
    place.write("home/config.toml", UNPRICED);
    let mut daemon = Daemon::start(&place, &[]);
    let create = ["agent", "create", "scout", "--model", "mine/x", "--max-usd", "1"];
    let error = place.refused(1, &create);
    for part in ["mine/x has no price", "`abide config set 'models.\"mine/x\".input_usd' USD 'models.", "limit tokens"]
    {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(place.run(&["agent", "show", "scout"]).code, Some(8), "nothing was made");
    daemon.kill();
    place.write("home/config.toml", format!("{UNPRICED}{PRICE}"));
    let mut daemon = Daemon::start(&place, &[]);
    place.says(&create);
    daemon.kill();
    // The price is taken away: nothing is spent that nobody counts, and everybody says why.
    place.write("home/config.toml", UNPRICED);
    let _daemon = Daemon::start(&place, &[]);
    let error = place.refused(1, &["send", "scout", "hi", "--wait"]);
    assert!(error.starts_with("unpriced: mine/x has no price"), "{error}");
    let why = place.says(&["why", "scout"]);
    assert!(why.contains("its last turn failed") && why.contains("mine/x has no price"), "{why}");
    let doctor = || place.run(&["doctor"]).out;
    let report = doctor();
    assert!(report.contains("scout has a limit in dollars, and mine/x has no price"), "{report}");
    place.says(&["agent", "set", "scout", "--max-usd", "none", "--max-tokens", "9"]);
    assert!(!doctor().contains("has a limit in dollars"));
}

#[test]
fn a_turn_that_goes_in_circles_is_a_question_to_a_person() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    let round = json!({ "tools": [{ "name": "ReadFile", "input": { "path": "nowhere" } }] });
    place.write("loop.json", json!({ "rounds": [round], "loop": true }).to_string());
    place.says(&["agent", "create", "scout", "--model", "script/loop.json"]);
    let ran = place.run(&["send", "scout", "hi", "--wait"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(4), ""), "{}", ran.err);
    assert!(ran.err.contains("The turn went in circles"), "{}", ran.err);
}

/// A client that waits for an answer is told the reason of a delay.
#[test]
fn every_time_that_a_provider_is_asked_again_is_told_of_once() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    let rounds = json!([{ "error": "overloaded" }, { "error": "overloaded" }, { "text": "Here." }]);
    place.write("busy.json", json!({ "rounds": rounds }).to_string());
    place.says(&["agent", "create", "scout", "--model", "script/busy.json"]);
    let ran = place.run(&["send", "scout", "hi", "--wait"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Here.\n"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 2, "{}", ran.err);
    for line in ran.err.lines() {
        assert!(line.starts_with("abide: scout waits until 20"), "{line}");
        assert!(line.contains("busy.json failed (overloaded"), "{line}");
    }
}
