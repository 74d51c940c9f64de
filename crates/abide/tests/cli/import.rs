//! `abide ledger import`: all of a file, or nothing of it.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use abide_ledger::{Ledger, Options};
use serde_json::json;

use crate::home::seeded;
use crate::place::{Place, contents};

/// A full export of the seeded home, by line, and a place with an empty ledger.
fn export() -> (Place, Vec<String>) {
    let from = Place::seeded();
    from.says(&["ledger", "export", "--full", "file"]);
    let text = fs::read_to_string(from.path("file")).unwrap();
    let to = Place::empty();
    drop(Ledger::open(&to.home(), Options::default()).unwrap());
    assert_eq!(to.held(), json!({ "streams": 0, "facts": 0, "blobs": 0, "blob_bytes": 0 }));
    (to, text.lines().map(str::to_owned).collect())
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The first line with this text in it, counted from 1.
fn line_with(lines: &[String], text: &str) -> usize {
    1 + lines.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no line has {text:?}"))
}

#[test]
fn a_file_that_was_changed_is_refused_whole() {
    let (place, lines) = export();
    let answer = line_with(&lines, "Good morning to you");
    let blob = line_with(&lines, "{\"blob\"");
    let wake = line_with(&lines, "{\"wake\"");
    let fork = line_with(&lines, "{\"fork\"");
    let head = line_with(&lines, "{\"head\"");
    let last = lines.len();
    let changed = |line: usize, from: &str, to: &str| {
        assert!(lines[line - 1].contains(from), "line {line} has no {from:?}");
        let mut lines = lines.clone();
        lines[line - 1] = lines[line - 1].replacen(from, to, 1);
        joined(&lines)
    };
    let without = |line: usize| {
        let mut lines = lines.clone();
        lines.remove(line - 1);
        joined(&lines)
    };
    let cases: &[(&str, String, usize, &str)] = &[
        ("another word in a payload", changed(answer, "morning", "evening"), answer, "field \"hash\""),
        ("another time", changed(answer, "\"at\":\"2023", "\"at\":\"2022"), answer, "field \"hash\""),
        ("no time at all", changed(answer, "\"at\":\"2023", "\"at\":\"soon"), answer, "field \"at\""),
        ("a field is missing", changed(answer, "\"kind\"", "\"kinds\""), answer, "field \"kind\""),
        ("a seq is text", changed(answer, "\"seq\":", "\"seq\":\"x\",\"_\":"), answer, "field \"seq\""),
        ("no such stream can be", changed(answer, "agent/idle", "agent/IDLE"), answer, "field \"stream\""),
        ("not JSON", changed(answer, "{", ""), answer, "the whole line"),
        ("a fact is missing", without(answer), answer, "field \"seq\""),
        ("another blob", changed(blob, "source", "sauce"), blob, "field \"blob\""),
        ("another parent", changed(fork, "planner", "nobody"), fork, "field \"of\""),
        ("another head", changed(head, "\"seq\":", "\"seq\":1"), head, "field \"hash\""),
        ("another wake", changed(wake, "\"why\":\"", "\"why\":\"not "), last, "field \"digest\""),
        ("a wake is missing", without(wake), last - 1, "field \"digest\""),
        ("other counts", changed(last, "\"facts\":", "\"facts\":1"), last, "field \"end\""),
        ("another format", changed(1, "\"abide_ledger\":2", "\"abide_ledger\":3"), 1, "field \"abide_ledger\""),
        ("no reader", changed(1, "\"oldest_reader\":3,", ""), 1, "field \"oldest_reader\""),
        ("no first line", without(1), 1, "field \"abide_ledger\""),
        ("no end", joined(&lines[..last - 1]), last, "the whole line"),
        ("more after the end", format!("{}\n", joined(&lines)), last + 1, "the whole line"),
        ("nothing", String::new(), 1, "the whole line"),
        ("prose", "Dear reader,\n".to_owned(), 1, "the whole line"),
    ];
    for (what, file, line, field) in cases {
        place.write("changed", file);
        let error = place.refused(1, &["ledger", "import", "changed"]);
        assert!(error.starts_with(&format!("changed: line {line}, {field}: ")), "{what}: {error}");
        assert_eq!(error.matches("nothing was imported").count(), 1, "{what}: {error}");
        assert_eq!(place.held(), json!({ "streams": 0, "facts": 0, "blobs": 0, "blob_bytes": 0 }), "{what}");
    }
    place.write("good", joined(&lines));
    place.says(&["ledger", "import", "good"]);
    assert_eq!(place.held()["facts"], seeded().facts);
}

#[test]
fn a_file_that_was_cut_anywhere_is_refused_whole() {
    let (place, lines) = export();
    let whole = joined(&lines);
    for part in 1..40 {
        // Odd steps, so that cuts fall within lines as well as at their ends.
        let at = whole.len() * part / 40 + part % 3;
        let at = (at..whole.len()).find(|at| whole.is_char_boundary(*at)).unwrap();
        place.write("cut", &whole[..at]);
        let error = place.refused(1, &["ledger", "import", "cut"]);
        let line = whole[..at].matches('\n').count() + 1;
        let expected = format!("cut: line {line}, the whole line: the file ends here");
        assert!(error.starts_with(&expected), "cut at {at}: {error}");
    }
    assert_eq!(place.held()["facts"], 0);
    assert!(contents(&place.home()).keys().all(|path| !path.starts_with(place.home().join("blobs"))));
}

#[test]
fn an_agent_that_is_there_already_is_not_imported_again() {
    let place = Place::seeded();
    place.says(&["ledger", "export", "--full", "file"]);
    let held = place.held();
    let error = place.refused(6, &["ledger", "import", "file"]);
    assert_eq!(error, "file: agent/idle exists here already; nothing was imported: import into an empty home");
    assert_eq!(place.held(), held);
    assert_eq!(place.json(&["ledger", "verify"])["intact"], true);
}

#[test]
fn what_is_no_file_makes_no_home() {
    let place = Place::empty();
    fs::create_dir(place.path("folder")).unwrap();
    assert_eq!(place.refused(8, &["ledger", "import", "nowhere"]), "nowhere does not exist");
    assert_eq!(
        place.refused(1, &["ledger", "import", "folder"]),
        "folder is a folder; name a file that `abide ledger export --full` wrote"
    );
    assert!(!place.home().exists());
}

#[test]
fn a_refused_import_into_a_new_home_leaves_nothing() {
    let place = Place::empty();
    let nothing = "{\"abide_ledger\":1}\n";
    place.write("nothing", nothing);
    let before = contents(&place.path(""));
    place.refused(1, &["ledger", "import", "nothing"]);
    assert!(!place.home().exists());
    place.refused(1, &["--home", "deep/er", "ledger", "import", "nothing"]);
    assert!(!place.path("deep").exists());
    assert_eq!(contents(&place.path("")), before);
    // Foreign files stay.
    place.write("home/config.toml", "");
    place.refused(1, &["ledger", "import", "nothing"]);
    let left: Vec<_> = fs::read_dir(place.home()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["config.toml"]);
    // And so does a ledger that was there, however empty.
    drop(Ledger::open(&place.home(), Options::default()).unwrap());
    place.refused(1, &["ledger", "import", "nothing"]);
    assert_eq!(place.held()["facts"], 0);
}

#[test]
fn an_import_that_is_interrupted_leaves_nothing() {
    let (place, lines) = export();
    let mut child = place
        .command(&["ledger", "import", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than a pipe holds: when it is written, most of it has been read.
    let most = joined(&lines[..lines.len() - 1]);
    assert!(most.len() > 1 << 18, "{}", most.len());
    stdin.write_all(most.as_bytes()).unwrap();
    let signal = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(signal.success());
    let status = child.wait().unwrap();
    drop(stdin);
    assert_eq!(status.signal(), Some(2));
    assert_eq!(place.held()["facts"], 0);
    place.write("good", joined(&lines));
    place.says(&["ledger", "import", "good"]);
    assert_eq!(place.json(&["ledger", "verify"])["intact"], true);
}
