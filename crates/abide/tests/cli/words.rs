//! The words of commands that talk to a daemon: what is wrong with them is said before anybody is asked.

use crate::place::{Place, Ran, document};

/// Every command that needs a daemon.
const NEED_ONE: &[&[&str]] = &[
    &["agent", "create", "a"],
    &["agent", "list"],
    &["agent", "show", "a"],
    &["agent", "start", "a"],
    &["agent", "start", "a", "b"],
    &["agent", "start", "--all"],
    &["agent", "stop", "a"],
    &["agent", "stop", "a", "b"],
    &["agent", "stop", "--all"],
    &["agent", "resume", "a"],
    &["agent", "pause", "a"],
    &["agent", "abort", "a"],
    &["agent", "delete", "a"],
    &["send", "a", "hello"],
    &["send", "a", "hello", "--wait", "--timeout", "1"],
    &["why"],
    &["why", "a"],
    &["watch"],
    &["watch", "a"],
    &["transcript", "a"],
    &["briefs", "a"],
    &["work", "list", "--agent", "a"],
    &["work", "list", "--agent", "a", "--filter", "open"],
    &["work", "show", "--agent", "a", "work_1"],
    &["work", "create", "--agent", "a", "paint"],
    &["work", "pick", "--agent", "a", "work_1"],
    &["work", "update", "--agent", "a", "work_1", "--unblock"],
    &["work", "block", "--agent", "a", "work_1", "--by", "rain"],
    &["work", "complete", "--agent", "a", "work_1", "--report", "done"],
    &["task", "list", "--agent", "a"],
    &["timer", "create", "--agent", "a", "tea", "--in", "5m"],
    &["timer", "create", "--agent", "a", "tea", "--cron", "0 9 * * mon-fri", "--time-zone", "Europe/Berlin"],
    &["timer", "create", "--agent", "a", "tea", "--every", "5m", "--check", "test -s inbox"],
    &["timer", "list", "--agent", "a"],
    &["timer", "show", "--agent", "a", "timer_1"],
    &["timer", "cancel", "--agent", "a", "timer_1"],
    &["wait", "list", "--agent", "a"],
    &["wait", "cancel", "--agent", "a", "wait_1"],
    &["trigger", "create", "n", "--agent", "a", "--mode", "wake_hint", "--work-item", "w"],
    &["trigger", "list", "--agent", "a"],
    &["trigger", "rotate", "t", "--agent", "a"],
    &["trigger", "revoke", "t", "--agent", "a"],
    &["approval", "list", "--agent", "a"],
    &["approval", "grant", "--agent", "a", "appr_1"],
    &["approval", "deny", "--agent", "a", "appr_1"],
    &["token", "create", "--name", "n", "--scope", "observer"],
    &["token", "list"],
    &["token", "revoke", "t"],
    &["daemon", "stop"],
];

const HINT: &str = "start one with `abide daemon start`, or with `abide up` in the foreground";

#[test]
fn without_a_daemon_they_say_how_to_start_one() {
    let place = Place::empty();
    for command in NEED_ONE {
        let error = place.refused(7, command);
        assert_eq!(error, format!("no daemon serves home; {HINT}"), "{command:?}");
    }
    assert!(!place.home().exists(), "looking makes no home");
}

#[test]
fn a_daemon_that_has_gone_counts_as_none() {
    let place = Place::empty();
    // No process has this id: it is above what the kernel gives out.
    let gone = r#"{"url":"http://127.0.0.1:9","pid":2147483647}"#;
    for (daemon, lock) in [(gone, "2147483647\n"), ("{\"url\":", ""), ("[]", "")] {
        place.write("home/daemon.json", daemon);
        place.write("home/ledger.lock", lock);
        place.write("home/token", "secret\n");
        assert_eq!(place.refused(7, &["agent", "list"]), format!("no daemon serves home; {HINT}"));
    }
    // A process of this id lives, and it is not the daemon: it never wrote the lock.
    place.write("home/daemon.json", format!(r#"{{"url":"http://127.0.0.1:9","pid":{}}}"#, std::process::id()));
    assert_eq!(place.refused(7, &["agent", "list"]), format!("no daemon serves home; {HINT}"));
    assert_eq!(place.refused(7, &["daemon", "stop"]), format!("no daemon serves home; {HINT}"));
    // One that wrote the lock and does not answer: nobody is there, and nobody is sent a signal.
    place.write("home/ledger.lock", std::process::id().to_string());
    let error = place.refused(7, &["agent", "list"]);
    assert!(error.starts_with("no daemon answers at http://127.0.0.1:9 ("), "{error}");
    let error = place.refused(7, &["daemon", "stop"]);
    assert!(error.ends_with("does not hold the ledger of home; it is left alone"), "{error}");
}

#[test]
fn another_daemon_is_found_by_its_address() {
    let place = Place::empty();
    let error = place.refused(7, &["--url", "http://127.0.0.1:9", "agent", "list"]);
    assert!(error.starts_with("no daemon answers at http://127.0.0.1:9 ("), "{error}");
    let json = place.run(&["--url", "http://127.0.0.1:9", "agent", "list", "--json"]);
    assert_eq!(document(&json.err)["hint"], HINT);
    let ran = Ran::of(place.command(&["agent", "list"]).env("ABIDE_URL", "http://127.0.0.1:9").output().unwrap());
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    let error = place.refused(2, &["--url", "ftp://somewhere", "agent", "list"]);
    assert_eq!(error, "\"ftp://somewhere\" is no address of a daemon: write http://HOST:PORT");
}

#[test]
fn words_that_make_no_sense() {
    let place = Place::empty();
    let cases: &[(&[&str], &str)] = &[
        (&["agent", "show", "Big"], "\"Big\" can't be an agent's id"),
        (&["agent", "stop"], "the following required arguments were not provided:\n  <ID|--all>"),
        (&["agent", "start"], "the following required arguments were not provided:\n  <ID|--all>"),
        (&["agent", "stop", "a", "--all"], "cannot be used with"),
        (&["agent", "start", "--all", "a", "b"], "cannot be used with"),
        (&["agent", "create", "a", "--model", "echo"], "write PROVIDER/MODEL"),
        (&["agent", "create", "a", "--role", "king"], "it takes one of orchestrator, execution"),
        (&["send", "a"], "the following required arguments were not provided:\n  <TEXT>"),
        (&["send", "a", "x", "--priority", "now"], "it takes one of interject, next, normal, background"),
        (&["send", "a", "x", "--kind", "control"], "it takes one of operator_prompt, channel_event"),
        (&["send", "a", "x", "--timeout", "5"], "the following required arguments were not provided:\n  --wait"),
        (&["send", "a", "x", "--wait", "--timeout", "soon"], "it takes seconds, or a number and a unit"),
        (&["timer", "create", "--agent", "a", "tea"], "the following required arguments were not provided"),
        (
            &["timer", "create", "--agent", "a", "tea", "--in", "5"],
            "it takes a number and a unit: 500ms, 30s, 5m, 2h, 1d",
        ),
        (&["timer", "create", "--agent", "a", "tea", "--at", "noon"], "is not an RFC 3339 time"),
        (&["timer", "create", "--agent", "a", "tea", "--in", "5m", "--every", "5m"], "cannot be used with"),
        (
            &["timer", "create", "--agent", "a", "tea", "--in", "5m", "--catch-up", "some"],
            "it takes one of latest, none, all",
        ),
        (&["timer", "create", "--agent", "a", "tea", "--every", "99ms"], "it takes 100ms or more"),
        (&["timer", "create", "--agent", "a", "tea", "--in", "5m", "--cron", "0 9 * * *"], "cannot be used with"),
        (&["timer", "list"], "the following required arguments were not provided:\n  --agent <ID>"),
        (&["token", "create", "--name", "n", "--scope", "root"], "it takes one of observer, operator, admin"),
        (&["completions", "cmd"], "invalid value 'cmd'"),
    ];
    for (words, wanted) in cases {
        let ran = place.run(&[words, &["--json"][..]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{words:?}: {}", ran.err);
        let error = document(&ran.err);
        assert!(error["error"].as_str().unwrap().contains(wanted), "{words:?}: {error}");
    }
    let error = place.refused(2, &["send", "a", "x", "--wait", "--kind", "channel_event"]);
    assert_eq!(error, "--wait is for an operator_prompt: no other kind is answered");
    let error = place.refused(2, &["watch", "a", "--after", "now"]);
    assert_eq!(error, "--after \"now\" is no seq of a: it takes a whole number");
}

#[test]
fn every_shell_gets_its_completions() {
    let place = Place::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.says(&["completions", shell]);
        assert!(script.contains("abide") && script.contains("transcript"), "{shell}");
        assert_eq!(place.json(&["completions", shell])["script"], script.as_str());
    }
}

#[test]
fn help_names_every_command_and_no_old_spelling() {
    let place = Place::empty();
    let help = place.says(&["--help"]);
    for command in [
        "agent",
        "send",
        "why",
        "watch",
        "transcript",
        "briefs",
        "work",
        "task",
        "timer",
        "wait",
        "trigger",
        "approval",
        "up",
        "daemon",
        "ledger",
        "config",
        "token",
        "doctor",
        "completions",
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
    }
    assert!(!help.contains("--detached"));
    let help = place.says(&["agent", "--help"]);
    assert!(!help.contains("pause") && !help.contains("resume"), "{help}");
}
