//! `abide agent start` and `abide agent stop` of several agents, and of all of them.

use serde_json::{Value, json};

use crate::place::{Daemon, Place, document};

const IDS: [&str; 3] = ["a", "b", "c"];

fn create(place: &Place, ids: &[&str]) {
    for id in ids {
        place.says(&["agent", "create", id]);
    }
}

fn status(place: &Place, id: &str) -> String {
    place.json(&["agent", "show", id])["agent"]["status"].as_str().unwrap().to_owned()
}

/// The id and the status of each summary, in the order in which they were printed.
fn statuses(printed: &Value) -> Vec<(&str, &str)> {
    assert_eq!(printed["next"], Value::Null);
    let text = Value::as_str;
    let items = printed["items"].as_array().unwrap().iter();
    items.map(|it| (text(&it["identity"]["id"]).unwrap(), text(&it["agent"]["status"]).unwrap())).collect()
}

/// The ids alone.
fn ids(printed: &Value) -> Vec<&str> {
    statuses(printed).into_iter().map(|(id, _)| id).collect()
}

#[test]
fn several_agents_are_stopped_and_started() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    create(&place, &IDS);
    assert_eq!(place.says(&["agent", "stop", "b", "a", "b"]), "b is stopped\na is stopped\n");
    assert_ne!(status(&place, "c"), "stopped", "it was not named");
    // One that is stopped already stays so.
    let stopped = place.json(&["agent", "stop", "a", "b", "c"]);
    assert_eq!(statuses(&stopped), IDS.map(|id| (id, "stopped")));
    let started = place.json(&["agent", "start", "c", "a"]);
    assert_eq!(ids(&started), ["c", "a"]);
    for (id, wanted) in [("a", false), ("b", true), ("c", false)] {
        assert_eq!(status(&place, id) == "stopped", wanted, "{id}");
    }
    // One agent is a summary, as it always was.
    assert_eq!(place.json(&["agent", "stop", "a"])["identity"]["id"], "a");
}

#[test]
fn a_failure_keeps_no_other_agent_from_being_stopped() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    create(&place, &IDS);
    let ran = place.run(&["agent", "stop", "a", "nobody", "b", "nothing"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(8), "a is stopped\nb is stopped\n"), "{}", ran.err);
    let wanted = "\
abide: can't stop nobody: no agent is called nobody
abide: can't stop nothing: no agent is called nothing
abide: 2 of 4 agents could not be stopped
";
    assert_eq!(ran.err, wanted);

    // The exit code is the first failure's, in the order of the words: c runs already, and nobody does not exist.
    let ran = place.run(&["agent", "start", "c", "nobody", "a", "--json"]);
    assert_eq!(ran.code, Some(6), "{}", ran.err);
    assert_eq!(ids(&document(&ran.out)), ["a"]);
    let errors: Vec<Value> = ran.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [runs, unknown, all] = &errors[..] else { panic!("{}", ran.err) };
    assert_eq!((&runs["agent_id"], &runs["code"]), (&json!("c"), &json!("not_stopped")));
    assert_eq!((&unknown["agent_id"], &unknown["code"]), (&json!("nobody"), &json!("not_found")));
    assert_eq!(unknown["hint"], "`abide agent list` lists the agents (GET /v1/agents)");
    assert_eq!(*all, json!({ "error": "2 of 3 agents could not be started" }));
    assert_eq!(place.run(&["agent", "start", "nobody", "c"]).code, Some(8));
}

#[test]
fn all_agents_are_stopped_and_started() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    // More than are asked at a time.
    let many: Vec<String> = (10..30).map(|number| format!("n{number}")).collect();
    create(&place, &many.iter().map(String::as_str).collect::<Vec<_>>());
    place.says(&["agent", "stop", "n12", "n29"]);
    place.says(&["agent", "delete", "n29"]);
    let there: Vec<&str> = ["main"].into_iter().chain(many.iter().map(String::as_str).take(19)).collect();
    let wanted: String = there.iter().map(|id| format!("{id} is stopped\n")).collect();
    assert_eq!(place.says(&["agent", "stop", "--all"]), wanted);
    let again = place.json(&["agent", "stop", "--all"]);
    assert_eq!(statuses(&again), there.iter().map(|id| (*id, "stopped")).collect::<Vec<_>>());

    place.says(&["agent", "start", "n15"]);
    let started = place.json(&["agent", "start", "--all"]);
    assert_eq!(ids(&started), there, "n15 runs already, which is fine");
    assert!(statuses(&started).iter().all(|(_, status)| *status != "stopped"), "{started}");
}

#[test]
fn all_of_no_agents_are_stopped() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    place.says(&["agent", "stop", "main"]);
    place.says(&["agent", "delete", "main"]);
    for (action, said) in [("stop", "no agents to stop\n"), ("start", "no agents to start\n")] {
        assert_eq!(place.says(&["agent", action, "--all"]), said);
        assert_eq!(place.json(&["agent", action, "--all"]), json!({ "items": [], "next": null }));
    }
}
