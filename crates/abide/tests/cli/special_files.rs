//! Pipes, devices and sockets where a file is expected: refused by name, and never waited for.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::place::{Daemon, Place, Ran, text};

/// Nothing here takes so long but what waits for a pipe.
const SOON: Duration = Duration::from_secs(20);

fn run_soon(mut command: Command) -> Ran {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > SOON {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it waits: {command:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ran::of(child.wait_with_output().unwrap())
}

fn make_pipe(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // A daemon may have made its own meanwhile.
    drop(fs::remove_file(path));
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Puts each kind of special file at a path in turn, and has `check` look at what that is called.
fn each_kind(path: &Path, check: impl Fn(&str)) {
    make_pipe(path);
    check("a pipe");
    fs::remove_file(path).unwrap();
    // Read to its end, it would take all memory there is.
    symlink("/dev/zero", path).unwrap();
    check("a device");
    fs::remove_file(path).unwrap();
    let socket = UnixListener::bind(path).unwrap();
    check("a socket");
    drop(socket);
    fs::remove_file(path).unwrap();
}

#[test]
fn a_daemon_refuses_a_special_file_among_those_it_starts_with() {
    let place = Place::empty();
    for name in ["config.toml", "policy.toml", "token", "hook.key", "triggers/trig_1"] {
        let file = place.home().join(name);
        each_kind(&file, |kind| {
            let ran = run_soon(place.command(&["up", "--listen", "127.0.0.1:0"]));
            let (said, path) = (&ran.err, format!("home/{name}"));
            assert_eq!(ran.code, Some(1), "{name}, {kind}: {said}");
            assert!(said.contains(&path) && said.contains(kind), "{name}, {kind}: {said}");
        });
    }
}

/// Files that the daemon writes itself are replaced.
#[test]
fn a_daemon_replaces_a_special_file_among_those_it_writes() {
    let place = Place::empty();
    place.write("home/config.toml", "[notify]\ncommand = \"true\"\n");
    for name in ["daemon.json", "notify/command.json"] {
        let file = place.home().join(name);
        make_pipe(&file);
        let mut daemon = Daemon::start(&place, &[]);
        assert!(fs::metadata(&file).unwrap().is_file(), "{name}");
        daemon.kill();
    }
}

#[test]
fn a_command_refuses_a_special_file_that_it_is_given() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    let file = place.path("given");
    let given = text(&file);
    let commands: [&[&str]; 2] =
        [&["agent", "create", "x", "--instructions", given], &["agent", "set", "main", "--instructions", given]];
    each_kind(&file, |kind| {
        for words in commands {
            let ran = run_soon(place.command(words));
            assert_eq!(ran.code, Some(1), "{words:?}, {kind}: {}", ran.err);
            assert!(ran.err.contains(given) && ran.err.contains(kind), "{words:?}, {kind}: {}", ran.err);
        }
    });
}

#[test]
fn a_command_refuses_a_special_file_as_the_token() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    let token = place.home().join("token");
    each_kind(&token, |kind| {
        let ran = run_soon(place.command(&["agent", "list"]));
        assert_eq!(ran.code, Some(1), "{kind}: {}", ran.err);
        assert!(ran.err.contains("home/token") && ran.err.contains(kind), "{kind}: {}", ran.err);
    });
}

/// A policy that is replaced by a pipe while the daemon runs: the rules before it hold on, and nobody waits.
#[test]
fn a_policy_that_becomes_a_pipe_changes_nothing() {
    let place = Place::empty();
    place.write("home/policy.toml", "[[rule]]\naction = \"deny\"\ntool = \"CreateTimer\"\n");
    let call = r#"{ "rounds": [{ "tools": [{ "name": "CreateTimer", "input": { "summary": "x", "after_ms": 1000 } }] }, { "text": "Done." }], "loop": true }"#;
    let script = place.write("call.json", call);
    let _daemon = Daemon::start(&place, &[]);
    place.says(&["agent", "create", "a", "--model", &format!("script/{}", script.display())]);
    let policy = place.home().join("policy.toml");
    make_pipe(&policy);
    let ran = run_soon(place.command(&["send", "a", "--wait", "go"]));
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{}", ran.err);
    assert_eq!(place.json(&["timer", "list", "--agent", "a"])["items"].as_array().unwrap().len(), 0);
}
