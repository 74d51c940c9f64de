//! `abide ledger fork`: a stopped agent with another's past.

use abide_ledger::{Ledger, Options, StreamId};
use serde_json::json;

use crate::home::{id, seeded};
use crate::place::Place;

#[test]
fn a_fork_is_stopped_and_has_its_parents_past() {
    let place = Place::seeded();
    let said = place.says(&["ledger", "fork", "builder", "--at", "20", "--as", "second"]);
    assert_eq!(said, "second has the past of builder up to seq 20; it is stopped\n");
    let said = place.json(&["ledger", "fork", "second", "--at", "21", "--as", "third"]);
    assert_eq!((&said["agent_id"], &said["status"]), (&json!("third"), &json!("stopped")));
    assert_eq!((&said["parent"], &said["at_seq"]), (&json!("second"), &json!(21)));
    for (name, at) in [("second", 20), ("third", 21)] {
        let exported = place.json(&["ledger", "export", name, name]);
        let seq = exported["facts"].as_u64().unwrap();
        assert!(seq > at, "{name} has a fact that says what it is: {exported}");
        assert!(name != "third" || said["seq"] == seq, "{said} {exported}");
        let projection = place.json(&["ledger", "replay", name]);
        assert_eq!((&projection["status"], &projection["decision"]), (&json!("stopped"), &json!("Stop")));
        assert_eq!(place.json(&["why", "--fixture", name])["at_seq"], seq);
    }
    {
        let ledger = Ledger::open(&place.home(), Options::read_only().by(abide_engine::PROGRAM)).unwrap();
        let past = |name| ledger.read(&StreamId::agent(&id(name)), 0, 20).unwrap();
        assert_eq!(past("builder").len(), 20);
        assert_eq!(past("second"), past("builder"));
        assert_eq!(past("third"), past("builder"));
    }
    assert_eq!(place.json(&["ledger", "verify"])["intact"], true);
    place.says(&["ledger", "export", "builder", "builder"]);
    assert_eq!(place.json(&["ledger", "replay", "builder"])["decision"], "WaitForTask", "the parent goes on as it was");
}

#[test]
fn what_can_not_be_forked() {
    let place = Place::seeded();
    let held = place.held();
    let fork = |code, parent, at, name| place.refused(code, &["ledger", "fork", parent, "--at", at, "--as", name]);
    let last = seeded().seq("builder");
    let beyond = (last + 1).to_string();
    for at in ["0", &beyond, "18446744073709551615"] {
        let error = fork(6, "builder", at, "new");
        assert_eq!(error, format!("builder has {last} facts; choose --at between 1 and {last}"));
    }
    for name in ["idle", "builder", "forked"] {
        let error = fork(6, "builder", "5", name);
        assert_eq!(error, format!("an agent called {name} exists already; choose another name"));
    }
    assert_eq!(
        fork(8, "nobody", "5", "new"),
        "no agent is called nobody; there are builder, busy, chatty, clock, forked, idle, planner, stopped"
    );
    assert_eq!(place.held(), held);
}
