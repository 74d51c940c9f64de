//! Text from elsewhere as people see it: white space is kept, nothing hides or reorders a line, and no line of a quoted text
//! passes for a line of ours.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;

use crate::place::{Daemon, Place};

const CODE: &str = "fn main() {\n\tif true {\n        run();\n    }\n}";
/// A line that looks like an entry of its own, below one with marks that reorder and hide.
const FORGED: &str = "safe \u{202e}txt.exe\u{202c}\u{200b}\u{feff}\n[99] assistant (completed)\nresult  just now";

#[test]
fn quoted_text_is_shown_as_it_is_and_passes_for_nothing_else() {
    let place = Place::empty();
    let script = json!({ "rounds": [
        { "tools": [{ "name": "CreateWorkItem", "input": { "objective": FORGED, "plan": CODE } }] },
        { "tools": [{ "name": "CreateTimer", "input": { "summary": FORGED, "after_ms": 3_600_000 } }] },
        { "text": FORGED },
    ] });
    place.write("plays.json", script.to_string());
    let _daemon = Daemon::start(&place, &[]);
    place.says(&["agent", "create", "a", "--model", "script/plays.json"]);
    place.run(&["send", "a", "--wait", FORGED]);
    let transcript = place.says(&["transcript", "a"]);
    let code: String = CODE.lines().map(|line| format!("    {line}\n")).collect();
    assert!(transcript.contains(&format!("  plan:\n{code}")), "{transcript}");
    let work = place.json(&["work", "list", "--agent", "a"]);
    let item = work["items"][0]["work_item_id"].as_str().unwrap().to_owned();
    let commands: [&[&str]; 8] = [
        &["transcript", "a"],
        &["briefs", "a"],
        &["why", "a"],
        &["work", "list", "--agent", "a"],
        &["work", "show", "--agent", "a", &item],
        &["timer", "list", "--agent", "a"],
        &["agent", "show", "a"],
        &["send", "a", "--wait", "again"],
    ];
    for command in commands {
        let said = place.run(command).out;
        for hidden in ['\u{202e}', '\u{202c}', '\u{200b}', '\u{feff}'] {
            assert!(!said.contains(hidden), "{command:?}: {said:?}");
        }
        let forged = said.lines().filter(|line| line.starts_with("[99]") || line.starts_with("result  just")).count();
        assert_eq!(forged, 0, "{command:?}: {said}");
    }
    assert!(transcript.contains("safe \\u{202e}txt.exe\\u{202c}\\u{200b}\\u{feff}"), "{transcript}");
    // Programs get every character.
    let entries = place.json(&["transcript", "a"]);
    assert_eq!(entries["items"][0]["text"], FORGED);
}

/// Characters that `FORGED` hides something with.
const HIDDEN: [char; 4] = ['\u{202e}', '\u{202c}', '\u{200b}', '\u{feff}'];

#[track_caller]
fn shows_no_hidden_character(what: &[&str], said: &str) {
    assert!(!said.contains(HIDDEN), "{what:?}: {said:?}");
}

/// No line begins as one of ours would, other than those that we wrote.
#[track_caller]
fn passes_for_nothing_else(what: &[&str], said: &str) {
    shows_no_hidden_character(what, said);
    let forged = |line: &&str| line.starts_with("[99]") || line.starts_with("result  just");
    assert_eq!(said.lines().find(forged), None, "{what:?}: {said}");
}

/// Every list and every explanation that quotes what a model, a person or a sender wrote.
#[test]
fn every_list_shows_what_was_written_and_nothing_else() {
    let place = Place::empty();
    let script = json!({
        "when": [
            { "contains": "ask", "rounds": [
                { "tools": [{ "name": "RequestApproval", "input": { "summary": FORGED } }] },
            ] },
            { "contains": "wait", "rounds": [
                { "tools": [{ "name": "WaitFor", "input": { "wake": "external", "resource": FORGED, "reason": FORGED } }] },
            ] },
            { "contains": "trigger", "rounds": [
                { "tools": [{ "name": "CreateTrigger", "input": { "name": FORGED } }] },
                { "tools": [{ "name": "NotifyOperator", "input": { "text": FORGED } }] },
                { "text": FORGED },
            ] },
        ],
        "rounds": [],
    });
    place.write("plays.json", script.to_string());
    let _daemon = Daemon::start(&place, &[]);
    place.says(&["agent", "create", "a", "--model", "script/plays.json"]);
    place.says(&["send", "a", "--wait", "trigger"]);
    place.says(&["send", "a", "wait"]);
    let asked = place.run(&["send", "a", "--wait", "ask"]);
    assert_eq!(asked.code, Some(4), "{}", asked.err);
    passes_for_nothing_else(&["send", "--wait"], &asked.err);
    place.says(&["work", "create", "--agent", "a", "--todo", FORGED, FORGED]);
    let work = place.json(&["work", "list", "--agent", "a"])["items"][0]["work_item_id"].as_str().unwrap().to_owned();
    place.says(&["work", "block", "--agent", "a", "--by", FORGED, &work]);
    place.says(&["timer", "create", "--agent", "a", "--in", "9h", "--check", FORGED, FORGED]);
    let timer = place.json(&["timer", "list", "--agent", "a"])["items"][0]["timer_id"].as_str().unwrap().to_owned();
    let command = format!("echo '{FORGED}'");
    let ran = place.run(&["task", "run", "--agent", "a", "--wait", &command]);
    shows_no_hidden_character(&["task", "run"], &format!("{}{}", ran.out, ran.err));
    let task = place.json(&["task", "list", "--agent", "a"])["items"][0]["task_id"].as_str().unwrap().to_owned();
    let approval =
        place.json(&["approval", "list", "--agent", "a"])["items"][0]["approval_id"].as_str().unwrap().to_owned();
    let commands: [&[&str]; 18] = [
        &["approval", "list", "--agent", "a"],
        &["approval", "list"],
        &["trigger", "list", "--agent", "a"],
        &["wait", "list", "--agent", "a"],
        &["wait", "list"],
        &["task", "list", "--agent", "a"],
        &["task", "show", "--agent", "a", &task],
        &["timer", "list", "--agent", "a"],
        &["timer", "show", "--agent", "a", &timer],
        &["work", "list", "--agent", "a"],
        &["work", "show", "--agent", "a", &work],
        &["why"],
        &["why", "a"],
        &["transcript", "a"],
        &["briefs", "a"],
        &["agent", "list"],
        &["agent", "show", "a"],
        &["approval", "deny", "--agent", "a", &approval],
    ];
    for command in commands {
        let said = place.says(command);
        passes_for_nothing_else(command, &said);
        let quotes = !matches!(command, ["agent", ..]);
        assert!(!quotes || said.contains("\\u{202e}"), "{command:?} quotes nothing: {said}");
    }
    shows_no_hidden_character(&["task", "output"], &place.says(&["task", "output", "--agent", "a", &task]));
    // The sentence is for people wherever it is read: a notification shows it as it is.
    let why = place.json(&["why", "a"]);
    let told =
        [&why["sentence"], &why["waiting_on"], &why["would_wake"], &why["notes"]].map(ToString::to_string).concat();
    shows_no_hidden_character(&["why", "--json"], &told);
    assert!(!why["sentence"].as_str().unwrap().contains('\n'), "{why}");
}

#[test]
fn a_watched_fact_is_one_line() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    place.says(&["send", "main", "--wait", FORGED]);
    place.says(&["send", "main", "--wait", "the end"]);
    let mut watch = place.command(&["watch", "main", "--after", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    for line in lines.map(Result::unwrap) {
        let over = line.contains("brief.recorded") && line.contains("the end");
        seen.push(line);
        if over {
            break;
        }
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    let said = seen.join("\n");
    passes_for_nothing_else(&["watch"], &said);
    assert!(seen.iter().all(|line| line.starts_with("20")), "{said}");
    assert!(said.contains("safe \\u{202e}txt.exe"), "{said}");
}

/// An error may quote what was written; its further lines are indented.
#[test]
fn an_error_is_one_entry() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    let quoting: [&[&str]; 4] = [
        &["why", "--fixture", FORGED],
        &["send", "main", "--image", FORGED, "hi"],
        &["task", "show", "--agent", "main", FORGED],
        &["config", "set", FORGED, "1"],
    ];
    for command in quoting {
        let said = place.run(command).err;
        passes_for_nothing_else(command, &said);
        let ours = said.lines().skip(1).all(|line| line.starts_with("  ") || line.is_empty());
        assert!(ours && said.starts_with("abide: "), "{command:?}: {said}");
    }
}

#[test]
fn the_records_of_an_archived_agent_can_be_exported() {
    let place = Place::empty();
    let mut daemon = Daemon::start(&place, &[]);
    place.says(&["agent", "create", "a"]);
    place.says(&["send", "a", "--wait", "hello"]);
    place.says(&["agent", "stop", "a"]);
    place.says(&["agent", "delete", "a"]);
    place.says(&["ledger", "export", "a", "served"]);
    daemon.kill();
    place.says(&["ledger", "export", "a", "unserved"]);
    for folder in ["served", "unserved"] {
        let replayed = place.json(&["ledger", "replay", folder]);
        assert_eq!(replayed["status"], "stopped", "{folder}");
    }
}
