//! `abide ledger export`: one agent as a folder, or everything as a file.

use std::collections::BTreeSet;
use std::fs;

use abide_kernel::fixture::Fixture;
use serde_json::json;

use crate::home::seeded;
use crate::place::{Place, contents};

#[test]
fn an_exported_agent_replays_to_what_it_was() {
    let place = Place::seeded();
    let mut decisions = BTreeSet::new();
    for (id, state) in &seeded().agents {
        let folder = format!("exports/{id}");
        let said = place.json(&["ledger", "export", id.as_str(), &folder]);
        assert_eq!(said, json!({ "agent_id": id, "facts": state.seq, "dir": folder }));
        let (state, now) = (state.clone(), state.at);
        let live = Fixture { state, now, other_events: Default::default() }.projection();
        assert_eq!(place.json(&["ledger", "replay", &folder]), live, "{id}");
        decisions.insert(live["decision"].as_str().unwrap().to_owned());
    }
    let all = ["Noop", "StayIdle", "Stop", "WaitForOperator", "WaitForTask", "WaitForTimer"];
    assert!(all.iter().all(|kind| decisions.contains(*kind)), "the agents are too much alike: {decisions:?}");
}

#[test]
fn an_export_explains_the_agent() {
    let place = Place::seeded();
    let seq = seeded().seq("builder");
    let said = place.says(&["ledger", "export", "builder", "folder"]);
    assert_eq!(said, format!("wrote {seq} facts of builder to folder\n"));
    let why = place.json(&["why", "--fixture", "folder"]);
    assert_eq!(why["agent_id"], "builder");
    assert_eq!(why["at_seq"], seq);
    assert_eq!(
        why["waiting_on"][0]["what"],
        "a task's result (task_build) for the agent (1 message is parked behind it): the build"
    );
}

#[test]
fn an_export_overwrites_nothing() {
    let place = Place::seeded();
    place.write("file", "mine");
    place.write("folder/mine", "mine");
    fs::create_dir(place.path("empty")).unwrap();
    let error = place.refused(6, &["ledger", "export", "idle", "file"]);
    assert_eq!(error, "file exists and is not an empty folder; choose another");
    let error = place.refused(6, &["ledger", "export", "idle", "folder"]);
    assert_eq!(error, "folder exists and is not an empty folder; choose another");
    let error = place.refused(6, &["ledger", "export", "--full", "file"]);
    assert_eq!(error, "file exists; choose another name");
    assert_eq!(fs::read(place.path("file")).unwrap(), b"mine");
    assert_eq!(contents(&place.path("folder")).len(), 1);
    place.says(&["ledger", "export", "idle", "empty"]);
    place.says(&["ledger", "replay", "empty"]);
}

#[test]
fn an_export_that_can_not_be_written_leaves_nothing() {
    let place = Place::seeded();
    place.write("file", "mine");
    let error = place.refused(1, &["ledger", "export", "idle", "file/folder"]);
    assert!(error.starts_with("can't create file/folder: "), "{error}");
    let error = place.refused(1, &["ledger", "export", "--full", "nowhere/file"]);
    assert!(error.starts_with("can't write nowhere/file: "), "{error}");
    let left: Vec<_> = fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn an_agent_that_is_not_there_is_not_found() {
    let place = Place::seeded();
    assert_eq!(
        place.refused(8, &["ledger", "export", "nobody", "folder"]),
        "no agent is called nobody; there are builder, busy, chatty, clock, forked, idle, planner, stopped"
    );
    assert!(!place.path("folder").exists());
}

#[test]
fn the_whole_ledger_goes_and_comes_back_the_same() {
    let place = Place::seeded();
    let facts = seeded().facts_for_people();
    let said = place.says(&["ledger", "export", "--full", "first"]);
    assert_eq!(said, format!("wrote {facts} facts of 8 streams to first\n"));
    let said = place.says(&["--home", "other", "ledger", "import", "first"]);
    assert_eq!(said, format!("imported {facts} facts of 8 streams\n"));
    let said = place.json(&["--home", "other", "ledger", "export", "--full", "second"]);
    assert_eq!(said, json!({ "file": "second", "facts": seeded().facts, "streams": 8, "blobs": 1 }));
    assert_eq!(fs::read(place.path("first")).unwrap(), fs::read(place.path("second")).unwrap());
    assert_eq!(place.json(&["--home", "other", "ledger", "verify"])["intact"], true);
    for id in seeded().agents.keys() {
        for home in ["home", "other"] {
            place.says(&["--home", home, "ledger", "export", id.as_str(), &format!("{home}-{id}")]);
        }
        let (mine, theirs) = (place.path(&format!("home-{id}")), place.path(&format!("other-{id}")));
        assert!(contents(&mine).into_values().eq(contents(&theirs).into_values()), "{id}");
    }
}
