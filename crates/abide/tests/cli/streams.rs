//! Homes, exit codes, and what goes to which stream.

use std::fs::{self, OpenOptions};
use std::process::Stdio;

use abide_ledger::{Ledger, Options};

use crate::place::{Place, Ran, contents, document};

#[test]
fn looking_makes_no_home() {
    let place = Place::empty();
    place.write("file", "");
    fs::create_dir(place.path("folder")).unwrap();
    let commands: &[&[&str]] = &[
        &["ledger", "stats"],
        &["ledger", "verify"],
        &["ledger", "compact"],
        &["ledger", "export", "a", "x"],
        &["ledger", "export", "--full", "x"],
        &["ledger", "fork", "a", "--at", "1", "--as", "b"],
    ];
    for command in commands {
        for (home, what) in [("home", "does not exist"), ("file", "is not a folder"), ("folder", "holds no ledger")] {
            let error = place.refused(8, &[&["--home", home], *command].concat());
            assert_eq!(error, format!("{home} {what}; --home DIR or $ABIDE_HOME says where the ledger is"));
        }
    }
    let left: Vec<_> = fs::read_dir(place.path("")).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(contents(&place.path("folder")).is_empty());
}

#[test]
fn where_the_home_is() {
    let place = Place::seeded();
    let share = place.path("share");
    fs::create_dir_all(&share).unwrap();
    fs::rename(place.home(), share.join("abide")).unwrap();
    let share = share.to_str().unwrap();
    let ends = |variables: &[(&str, &str)]| {
        let mut command = place.command(&["ledger", "stats", "--json"]);
        command.env_remove("ABIDE_HOME").envs(variables.iter().copied());
        let ran = Ran::of(command.output().unwrap());
        ran.code.unwrap()
    };
    assert_eq!(ends(&[("XDG_DATA_HOME", share)]), 0);
    assert_eq!(ends(&[("XDG_DATA_HOME", share), ("ABIDE_HOME", "")]), 0, "set to nothing is not set");
    assert_eq!(ends(&[("XDG_DATA_HOME", share), ("ABIDE_HOME", "elsewhere")]), 8);
    assert_eq!(ends(&[("XDG_DATA_HOME", "share"), ("HOME", "/nonexistent")]), 8, "a relative one is ignored");
    assert_eq!(ends(&[]), 1);
}

#[test]
fn a_second_process_is_refused_with_the_pid_of_the_first() {
    let place = Place::seeded();
    place.says(&["ledger", "export", "--full", "file"]);
    let held = Ledger::open(&place.home(), Options::default().by(abide_engine::PROGRAM)).unwrap();
    let commands: &[&[&str]] = &[
        &["ledger", "compact"],
        &["ledger", "fork", "idle", "--at", "1", "--as", "new"],
        &["ledger", "import", "file"],
    ];
    for command in commands {
        let error = place.refused(6, command);
        let holder = std::process::id();
        assert_eq!(error, format!("home is in use by process {holder}: stop it, or talk to it instead"));
    }
    // Looking needs no lock.
    place.says(&["ledger", "verify"]);
    place.says(&["ledger", "export", "idle", "idle"]);
    drop(held);
    place.says(&["ledger", "fork", "idle", "--at", "1", "--as", "new"]);
}

#[test]
fn words_that_make_no_command() {
    let place = Place::seeded();
    let before = contents(&place.home());
    let cases: &[(&[&str], &str)] = &[
        (&["ledgers"], "unrecognized subcommand 'ledgers'"),
        (&["ledger", "burn"], "unrecognized subcommand 'burn'"),
        (&["ledger", "replay"], "the following required arguments were not provided:\n  <DIR>"),
        (&["ledger", "export", "idle"], "the following required arguments were not provided:\n  <DIR>"),
        (&["ledger", "export", "Idle", "x"], "\"Idle\" can't be an agent's id: it takes 1 to 64 of a-z"),
        (&["ledger", "export", "idle", "x", "--full", "y"], "cannot be used with"),
        (&["ledger", "fork", "idle", "--at", "one", "--as", "x"], "it takes a whole number, the seq of a fact"),
        (&["ledger", "fork", "idle", "--at", "-1", "--as", "x"], "it takes a whole number, the seq of a fact"),
        (&["ledger", "fork", "idle", "--at", "1", "--as", "../x"], "\"../x\" can't be an agent's id"),
        (&["ledger", "compact", "--older-than-days", "few"], "invalid value 'few'"),
        (&["why", "idle", "--fixture", "x"], "cannot be used with"),
        (&["why", "--at", "3"], "the following required arguments were not provided:\n  <ID>"),
        (&["why", "idle", "--at", "soon"], "it takes a whole number, the seq of a fact"),
    ];
    for (words, wanted) in cases {
        let ran = place.run(words);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{words:?}");
        assert!(ran.err.contains(wanted), "{words:?}: {}", ran.err);
        let ran = place.run(&[words, &["--json"][..]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{words:?}");
        let error = document(&ran.err);
        assert!(error["error"].as_str().unwrap().contains(wanted), "{words:?}: {error}");
    }
    assert_eq!(contents(&place.home()), before);
}

#[test]
fn no_words_at_all_are_answered_with_help() {
    let place = Place::empty();
    for (words, commands) in [(&[][..], &["ledger", "why"][..]), (&["ledger"][..], &["stats", "verify", "replay"][..])]
    {
        let ran = place.run(words);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
        assert!(commands.iter().all(|command| ran.err.contains(&format!("\n  {command} "))), "{}", ran.err);
    }
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let place = Place::seeded();
    place.says(&["ledger", "export", "chatty", "folder"]);
    for words in [&["ledger", "replay", "folder"][..], &["ledger", "stats", "--json"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place.command(words).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{words:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_is_full_changes_no_exit_code() {
    let place = Place::empty();
    place.write("fixture/agent.json", "{}");
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = Ran::of(place.command(&["ledger", "replay", "fixture"]).stdout(full()).output().unwrap());
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.starts_with("abide: can't write to stdout: "), "{}", ran.err);
    let status = place.command(&["ledger", "replay", "nowhere"]).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(8));
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_no_utf8_are_names_too() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let place = Place::seeded();
    let name = OsStr::from_bytes(b"caf\xe9");
    for full in [false, true] {
        let words: &[&str] = if full { &["ledger", "export", "--full"] } else { &["ledger", "export", "idle"] };
        let name = if full { OsStr::from_bytes(b"th\xe9") } else { name };
        let ran = Ran::of(place.command(words).arg(name).arg("--json").output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        document(&ran.out);
    }
    let ran = Ran::of(place.command(&["why", "--fixture"]).arg(name).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}
