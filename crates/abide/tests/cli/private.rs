//! Files of a home are readable by their owner only.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::place::{Place, Ran};

/// Runs it with a mask that takes nothing away.
fn unmasked(place: &Place, args: &[&str]) -> Ran {
    let inner = place.command(args);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(place.path("")).env_clear().env("ABIDE_HOME", "home");
    Ran::of(command.output().unwrap())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn open_home() -> Place {
    let place = Place::empty();
    fs::create_dir(place.home()).unwrap();
    fs::set_permissions(place.home(), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

#[test]
fn others_read_nothing_of_a_home_that_was_there_before() {
    let place = open_home();
    assert_eq!(unmasked(&place, &["config", "set", "listen", "127.0.0.1:0"]).code, Some(0));
    let log = place.write("home/daemon.log", "Of an earlier version.\n");
    fs::set_permissions(log, fs::Permissions::from_mode(0o644)).unwrap();
    let started = unmasked(&place, &["daemon", "start"]);
    let open = |names: &[&str]| -> Vec<(String, u32)> {
        let found = names.iter().map(|name| ((*name).to_owned(), mode(&place.home().join(name))));
        found.filter(|(_, mode)| mode & 0o077 != 0).collect()
    };
    let folders = ["blobs", "archive", "agents"];
    let files = [
        "ledger.db",
        "ledger.db-wal",
        "ledger.db-shm",
        "ledger.lock",
        "daemon.log",
        "daemon.log.1",
        "config.toml",
        "token",
    ];
    let (while_up, closed) = (open(&files), open(&folders));
    let stopped = place.run(&["daemon", "stop"]);
    assert_eq!((started.code, stopped.code), (Some(0), Some(0)), "{} {}", started.err, stopped.err);
    assert_eq!((while_up, closed), (Vec::new(), Vec::new()));
}

/// Everything in a home that others may read, write or enter. What lies in a folder that an agent works in is the
/// agent's.
fn open_to_others(folder: &Path, home: &Path, found: &mut Vec<(String, u32)>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let inside = path.strip_prefix(home).unwrap();
        let parts: Vec<&str> = inside.iter().map(|part| part.to_str().unwrap()).collect();
        let of_agent = matches!(parts[..], ["worktrees", _, _] | ["mirrors", _, ..]) && kind.is_dir();
        if !of_agent && !kind.is_symlink() && mode(&path) & 0o077 != 0 {
            found.push((inside.display().to_string(), mode(&path)));
        }
        if kind.is_dir() && !of_agent && !matches!(parts[..], ["agents", _, "workspace"]) {
            open_to_others(&path, home, found);
        }
    }
}

#[test]
fn nothing_that_the_daemon_makes_is_open_to_others_whatever_the_umask() {
    let place = open_home();
    place.write("repo/file", "text");
    place.write("secret", "long enough to sign with");
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(args);
        assert!(command.current_dir(place.path("repo")).output().unwrap().status.success(), "{args:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    let started = unmasked(&place, &["daemon", "start", "--listen", "127.0.0.1:0"]);
    assert_eq!(started.code, Some(0), "{}", started.err);
    let ran: Vec<(String, Ran)> = [
        &["agent", "create", "a"][..],
        &["send", "a", "--wait", "hello"],
        &["task", "run", "--agent", "a", "--wait", "echo ran > file; echo said"],
        &["trigger", "create", "--agent", "a", "--secret-file", "secret", "said from outside"],
        &["agent", "create", "b"],
        &["workspace", "attach", "--agent", "b", "--worktree", "repo"],
        &["task", "run", "--agent", "b", "--wait", "echo changed > file"],
        &["config", "set", "log", "warn"],
    ]
    .iter()
    .map(|args| (args.join(" "), place.run(args)))
    .collect();
    let mut found = Vec::new();
    open_to_others(&place.home(), &place.home(), &mut found);
    let made = ["daemon.json", "worktrees/b", "agents/a/tasks", "token", "daemon.log"];
    let missing: Vec<&str> = made.into_iter().filter(|name| !place.home().join(name).exists()).collect();
    let detached = place.run(&["daemon", "stop"]);
    for (args, ran) in &ran {
        assert_eq!(ran.code, Some(0), "{args}: {}", ran.err);
    }
    assert_eq!(detached.code, Some(0), "{}", detached.err);
    assert_eq!((missing, found), (Vec::new(), Vec::new()));
    // It was empty when it became a home.
    assert_eq!(mode(&place.home()), 0o700);
}

#[test]
fn what_an_earlier_version_left_open_is_closed() {
    let place = Place::seeded();
    for name in ["ledger.db", "blobs", "archive"] {
        if name != "ledger.db" {
            fs::create_dir_all(place.home().join(name)).unwrap();
        }
        let open = if name == "ledger.db" { 0o644 } else { 0o755 };
        fs::set_permissions(place.home().join(name), fs::Permissions::from_mode(open)).unwrap();
    }
    place.says(&["ledger", "compact"]);
    let modes = ["ledger.db", "blobs", "archive"].map(|name| mode(&place.home().join(name)));
    assert_eq!(modes, [0o600, 0o700, 0o700]);
}

#[test]
fn doctor_says_when_others_may_look_into_the_home() {
    let place = open_home();
    let home = |report: &serde_json::Value| report["checks"][0].clone();
    let found = home(&place.json(&["doctor"]));
    assert_eq!((&found["name"], &found["verdict"]), (&"home".into(), &"warn".into()));
    assert_eq!(found["found"], "home can be written to, and is open to others (mode 755)");
    assert_eq!(found["fix"], "chmod 700 home");
    fs::set_permissions(place.home(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(home(&place.json(&["doctor"]))["verdict"], "ok");
}
