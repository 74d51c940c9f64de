//! `abide daemon`, where none runs.

use std::fs;

use crate::place::{Daemon, Place, document};

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

const KEYED: &str = "listen = \"127.0.0.1:0\"\n[providers.mine]\nkind = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\nkey_env = \"MY_KEY\"\n";

#[test]
fn a_key_that_is_not_there_to_be_taken_along_is_told() {
    let place = Place::empty();
    place.write("home/config.toml", KEYED);
    let told = "mine has no key: MY_KEY is not set here; set it, and `abide daemon restart` takes it along";
    let started = place.run(&["daemon", "start"]);
    let restarted = place.run(&["daemon", "restart", "--json"]);
    let keyed = crate::place::Ran::of(place.command(&["daemon", "restart"]).env("MY_KEY", "k").output().unwrap());
    place.says(&["daemon", "stop"]);
    assert_eq!((started.code, started.err), (Some(0), format!("abide: {told}\n")));
    assert_eq!(document(&restarted.out)["warnings"], serde_json::json!([told]));
    assert_eq!((keyed.code, keyed.err.as_str()), (Some(0), ""));
}

#[test]
fn settings_that_changed_since_it_started_are_told() {
    let place = Place::empty();
    place.write("home/config.toml", "log = \"warn\"\n");
    let mut daemon = Daemon::start(&place, &[]);
    let told = || {
        let doctor = place.json(&["doctor"]);
        let checks = doctor["checks"].as_array().unwrap().clone();
        let config = checks.into_iter().find(|check| check["name"] == "config").unwrap();
        (place.json(&["daemon", "status"])["config_changed"] == true, config["found"].as_str().unwrap().to_owned())
    };
    assert_eq!(told(), (false, "every setting reads".to_owned()));
    place.write("home/config.toml", "log = \"info\"\n");
    assert_eq!(told(), (true, "config.toml changed since the daemon started".to_owned()));
    let status = place.says(&["daemon", "status"]);
    assert!(
        status.contains("config.toml changed since the daemon started: `abide daemon restart` reads it"),
        "{status}"
    );
    // Who is refused for what may be in the file by now hears of it.
    let create = ["agent", "create", "scout", "--model", "nobody/x"];
    let note = "\nabide: config.toml changed since the daemon started: `abide daemon restart` reads it\n";
    let refused = place.run(&create);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.ends_with(note), "{}", refused.err);
    daemon.kill();
    let _daemon = Daemon::start(&place, &[]);
    assert!(!told().0);
    assert!(!place.run(&create).err.contains("config.toml changed"));
}
