//! `abide daemon`, where none runs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

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

/// More than a log grows to before it is rotated.
const LONG: usize = 11 << 20;

/// The log is the daemon's own file, which somebody else makes long here; the daemon's next line finds it so.
#[test]
fn a_long_log_is_rotated_while_the_daemon_runs() {
    let place = Place::empty();
    place.write("home/config.toml", "listen = \"127.0.0.1:0\"\nlog = \"debug\"\n");
    let log = |number: usize| match number {
        0 => place.path("home/daemon.log"),
        older => place.path(&format!("home/daemon.log.{older}")),
    };
    place.says(&["daemon", "start"]);
    let follow = place.command(&["daemon", "logs", "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut follow = Follower(follow);
    let mut followed = BufReader::new(follow.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    for round in 0..5 {
        let long = format!("{}\nround {round}\n", "x".repeat(LONG));
        File::options().append(true).open(log(0)).unwrap().write_all(long.as_bytes()).unwrap();
        place.says(&["agent", "list"]);
        assert!(fs::metadata(log(0)).unwrap().len() < 1 << 20, "it was not rotated");
        assert_eq!(fs::metadata(log(0)).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(log(1)).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(log(1)).unwrap().contains(&format!("\nround {round}\n")));
        // No line is missing for a reader that follows, or that asks for more lines than the new log has.
        assert!(followed.any(|line| line == format!("round {round}")));
        assert!(followed.any(|line| line.contains("agent_list")));
        let last = place.says(&["daemon", "logs", "--last", "100"]);
        assert!(last.lines().any(|line| line == format!("round {round}")) && last.contains("agent_list"));
    }
    let kept: Vec<bool> = (0..=4).map(|number| log(number).exists()).collect();
    assert_eq!(kept, [true, true, true, true, false]);
    // Also what it says when it ends is in the new log.
    place.says(&["daemon", "stop"]);
    assert!(fs::read_to_string(log(0)).unwrap().contains("abide has stopped"));
}

/// Ended when the test is over.
struct Follower(Child);

impl Drop for Follower {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
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
