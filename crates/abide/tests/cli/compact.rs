//! `abide ledger compact`: facts move, nothing changes.

use std::fs;

use abide_ledger::{Ledger, Options};
use serde_json::json;

use crate::home::seeded;
use crate::place::{Place, contents};

#[test]
fn what_was_moved_reads_the_same() {
    let place = Place::seeded();
    let look = |when: &str| {
        let file = format!("full-{when}");
        place.says(&["ledger", "export", "--full", &file]);
        let mut seen = vec![fs::read(place.path(&file)).unwrap()];
        for id in seeded().agents.keys() {
            let folder = format!("{id}-{when}");
            place.says(&["ledger", "export", id.as_str(), &folder]);
            seen.extend(contents(&place.path(&folder)).into_values());
        }
        seen
    };
    let before = look("before");
    let said = place.json(&["ledger", "compact"]);
    assert_eq!((&said["facts"], &said["segments"]), (&json!(seeded().facts), &json!(1)));
    assert_eq!(look("after"), before);
    let report = place.json(&["ledger", "verify"]);
    assert_eq!((&report["intact"], &report["facts"]), (&json!(true), &json!(seeded().facts)));
    assert_eq!(report["segments"], said["segments"]);
    assert_eq!(place.says(&["ledger", "compact"]), "nothing to move: no fact is older than 30 days\n");
    place.says(&["ledger", "fork", "builder", "--at", "20", "--as", "second"]);
    assert_eq!(place.json(&["ledger", "verify"])["intact"], true);
}

#[test]
fn a_segment_that_is_damaged_is_named() {
    let place = Place::seeded();
    place.says(&["ledger", "compact"]);
    let (path, mut bytes) = contents(&place.home().join("archive")).pop_first().unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let ran = place.run(&["ledger", "verify"]);
    assert_eq!(ran.code, Some(1));
    let file = path.file_name().unwrap().to_str().unwrap();
    assert!(ran.out.contains(&format!("damaged: archive/{file}: ")), "{}", ran.out);
}

#[test]
fn a_ledger_with_nothing_old_is_left_alone() {
    let place = Place::seeded();
    let days = "100000";
    let said = place.says(&["ledger", "compact", "--older-than-days", days]);
    assert_eq!(said, "nothing to move: no fact is older than 100,000 days\n");
    let said = place.json(&["ledger", "compact", "--older-than-days", days, "--max-bytes", "1000000000"]);
    assert_eq!(said, json!({ "segments": 0, "facts": 0, "bytes": 0 }));
    let said = place.json(&["ledger", "compact", "--older-than-days", days, "--max-bytes", "0"]);
    assert!(said["facts"].as_u64() > Some(1000), "{said}");
}

#[test]
fn an_empty_ledger_has_nothing_to_move() {
    let place = Place::empty();
    drop(Ledger::open(&place.home(), Options::default()).unwrap());
    assert_eq!(place.says(&["ledger", "compact"]), "nothing to move: no fact is older than 30 days\n");
    assert_eq!(place.says(&["ledger", "verify"]), "checked 0 facts of 0 streams\neverything is intact\n");
    assert_eq!(place.refused(8, &["ledger", "export", "idle", "x"]), "no agent is called idle; this ledger is empty");
}
