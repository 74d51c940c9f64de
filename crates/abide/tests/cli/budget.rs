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
