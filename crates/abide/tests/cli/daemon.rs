//! `abide daemon`, where none runs.

use std::fs;

use crate::place::{Place, document};

#[test]
fn status_says_that_none_runs() {
    let place = Place::empty();
    let ran = place.run(&["daemon", "status"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(7), "not running\n"));
    assert!(ran.err.starts_with("abide: no daemon serves home; "), "{}", ran.err);
    let ran = place.run(&["daemon", "status", "--json"]);
    assert_eq!(ran.code, Some(7));
    assert_eq!(document(&ran.out), serde_json::json!({ "running": false, "home": "home" }));
    assert!(!place.home().exists());
}

#[test]
fn settings_that_are_wrong_are_said_before_anything_starts() {
    let place = Place::empty();
    let error = place.refused(1, &["daemon", "start", "--listen", "here"]);
    assert!(error.starts_with("--listen: \"here\" is no address to listen on"), "{error}");
    assert_eq!(
        place.refused(1, &["daemon", "restart", "--store", "postgres://x"]),
        "--store: \"postgres://x\" is no store that this version knows: it takes sqlite"
    );
    assert!(!place.home().exists());
}

#[test]
fn logs_are_the_end_of_a_file() {
    let place = Place::empty();
    let error = place.refused(8, &["daemon", "logs"]);
    assert!(error.starts_with("home/daemon.log does not exist; `abide daemon start` makes it"), "{error}");
    place.write("home/daemon.log", "one\n\ntwo\x1b[2J\nthree\n");
    assert_eq!(place.says(&["daemon", "logs"]), "one\n\ntwo\\u{1b}[2J\nthree\n");
    assert_eq!(place.says(&["daemon", "logs", "--last", "1"]), "three\n");
    assert_eq!(place.says(&["daemon", "logs", "--last", "1", "--json"]), "{\"line\":\"three\"}\n");
    fs::write(place.path("home/daemon.log"), "x".repeat(3 << 20)).unwrap();
    place.says(&["daemon", "logs"]);
}
