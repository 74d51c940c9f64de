//! `abide ledger replay DIR` and `abide why --fixture DIR`: folders of records, good and bad.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::place::{Place, contents, copy, document, text};

fn fixtures(kind: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(kind);
    let mut found: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(found.len() > 10, "only {} fixtures of this kind", found.len());
    found
}

fn expected_of(dir: &Path) -> serde_json::Map<String, Value> {
    serde_json::from_slice(&fs::read(dir.join("expected.json")).unwrap()).unwrap()
}

#[test]
fn every_fixture_replays_to_what_it_expects() {
    let place = Place::empty();
    for dir in fixtures("scheduler") {
        let printed = place.json(&["ledger", "replay", text(&dir)]);
        for (key, wanted) in expected_of(&dir) {
            assert_eq!(printed.get(&key), Some(&wanted), "{key} of {}", dir.display());
        }
    }
    assert!(!place.home().exists(), "replaying touches no home");
}

#[test]
fn a_wrong_expectation_is_named() {
    for (number, dir) in fixtures("scheduler").iter().enumerate() {
        let place = Place::empty();
        copy(dir, &place.path("fixture"));
        let mut expected = expected_of(dir);
        let key = expected.keys().nth(number % expected.len()).unwrap().clone();
        expected[&key] = json!("something else");
        place.write("fixture/expected.json", Value::from(expected).to_string());
        let ran = place.run(&["ledger", "replay", "fixture", "--json"]);
        assert_eq!(ran.code, Some(1));
        let printed = document(&ran.out);
        let difference = format!("{key}: expected \"something else\", got {}", printed[&key]);
        let message = format!("fixture replays to something else than its expected.json says:\n  {difference}");
        assert_eq!(document(&ran.err), json!({ "error": message, "differences": [difference] }));
    }
}

#[test]
fn an_expected_key_that_is_not_printed_is_a_difference() {
    let place = Place::empty();
    place.write("fixture/expected.json", r#"{"status":"awake_idle","mood":"good"}"#);
    let ran = place.run(&["ledger", "replay", "fixture"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(
        ran.err,
        "abide: fixture replays to something else than its expected.json says:\n  \
         mood: expected \"good\", but no such key is printed\n"
    );
}

#[test]
fn a_bad_fixture_is_refused_with_its_place() {
    for dir in fixtures("bad") {
        let place = Place::empty();
        let before = contents(&dir);
        let wanted = fs::read_to_string(dir.join("expected_error.txt")).unwrap();
        for command in [["ledger", "replay"], ["why", "--fixture"]] {
            let error = place.refused(1, &[&command[..], &[text(&dir)]].concat());
            for part in wanted.lines().filter(|line| !line.is_empty()) {
                assert!(error.contains(part), "{part:?} is not in {error:?}");
            }
            assert!(error.starts_with(text(&dir)), "{error}");
        }
        assert_eq!(contents(&dir), before);
        assert!(!place.home().exists());
    }
}

#[test]
fn why_has_the_keys_of_the_contract_and_a_sentence() {
    let place = Place::empty();
    for dir in fixtures("scheduler") {
        let why = place.json(&["why", "--fixture", text(&dir)]);
        let keys: Vec<&str> = why.as_object().unwrap().keys().map(String::as_str).collect();
        let contract = [
            "agent_id",
            "at_seq",
            "decision",
            "notes",
            "scheduling_posture",
            "sentence",
            "status",
            "waiting_on",
            "would_wake",
        ];
        assert_eq!(keys, contract, "{}", dir.display());
        let sentence = why["sentence"].as_str().unwrap();
        assert!(sentence.starts_with("fixture ") && sentence.len() > 20, "{sentence}");
        let said = place.says(&["why", "--fixture", text(&dir)]);
        assert_eq!(said.lines().next(), Some(sentence.replace('\n', "\\n").as_str()));
        let projection = place.json(&["ledger", "replay", text(&dir)]);
        assert_eq!(why["status"], projection["status"]);
        assert_eq!(why["scheduling_posture"], projection["scheduling_posture"]);
        // A replay leaves the queue aside; what comes next does not.
        let kind = &why["decision"]["kind"];
        let from_queue = projection["scheduling_posture"] == "has_queued_input" && kind == "StartModelTurn";
        assert!(from_queue || *kind == projection["decision"], "{}: {kind}", dir.display());
    }
}

#[test]
fn the_fixture_that_the_readme_explains() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let command =
        readme.split('`').find_map(|part| part.strip_prefix("abide ").filter(|part| part.contains("--fixture")));
    let command = command.unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    let place = Place::empty();
    let output = place.command(&words).current_dir(root).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "\
fixture sleeps until something outside happens, for \"Finish w1\".

Waiting on
  an external event for w1 (seq 0)

What would wake it
  the external event it waits for
  a message from the operator

Because (decision WaitForExternalChange, work_item_external_wait, at seq 1)
  wait wait1 external seq 0
"
    );
}

#[test]
fn a_message_in_the_queue_comes_next() {
    let place = Place::empty();
    place.write("fixture/ledger/messages.jsonl", r#"{"id":"m1","kind":"operator_prompt","text":"one"}"#);
    place.write("fixture/ledger/queue_entries.jsonl", r#"{"message_id":"m1","status":"queued"}"#);
    place.write("fixture/ledger/events.jsonl", r#"{"kind":"moon_rose","data":{}}"#);
    let why = place.json(&["why", "--fixture", "fixture"]);
    assert_eq!(why["sentence"], "fixture is about to run a turn for a queued message.");
    assert_eq!(why["decision"]["message_id"], "m1");
    fs::remove_file(place.path("fixture/ledger/queue_entries.jsonl")).unwrap();
    let why = place.json(&["why", "--fixture", "fixture"]);
    assert_eq!(why["sentence"], "fixture has nothing to do; a message will wake it.");
    assert_eq!(why["decision"]["evidence"], json!(["nothing_pending", "event moon_rose 1"]));
}

#[test]
fn what_somebody_wrote_moves_no_cursor() {
    let place = Place::empty();
    place.write("fixture/agent.json", r#"{"current_work_item_id":"w\u001b[2J"}"#);
    let item = r#"{"id":"w\u001b[2J","objective":"a\u001b[31m\nb","plan_status":"needs_input"}"#;
    place.write("fixture/ledger/work_items.jsonl", item);
    let said = place.says(&["why", "--fixture", "fixture"]);
    assert!(said.starts_with(r#"fixture needs your input on "a\u{1b}[31m\nb"; send it a message."#), "{said}");
    let replayed = place.says(&["ledger", "replay", "fixture"]);
    place.write("fixture/ledger/work_items.jsonl", "{\"id\":\"w\",\"state\":\"\\u001b[2J\"}");
    let error = place.refused(1, &["why", "--fixture", "fixture"]);
    for text in [said, replayed, error] {
        assert!(text.contains(r"\u{1b}") && !text.contains('\x1b'), "{text:?}");
    }
}

#[test]
fn a_replay_for_people() {
    let place = Place::empty();
    place.write("fixture/agent.json", r#"{"id":"night-watch","turn_index":3}"#);
    place.write(
        "fixture/ledger/queue_entries.jsonl",
        "{\"message_id\":\"m1\",\"status\":\"queued\"}\n{\"message_id\":\"m2\",\"status\":\"queued\"}\n",
    );
    place.write(
        "fixture/ledger/messages.jsonl",
        "{\"id\":\"m1\",\"kind\":\"operator_prompt\",\"text\":\"one\"}\n\
         {\"id\":\"m2\",\"kind\":\"operator_prompt\",\"text\":\"two\"}\n",
    );
    assert_eq!(
        place.says(&["ledger", "replay", "fixture"]),
        "\
active_agent_waiting_intents      0
active_tasks                      0
active_timers                     0
active_waiting_intents            0
active_work_item_waiting_intents  0
checkpoint_holds                  -
current_work_item_id              -
current_work_item_revision        -
decision                          Sleep
decision_reason                   no_pending_scheduler_facts
evidence                          nothing_pending
has_blocking_active_tasks         false
owed_results                      -
pending_wake_hint                 false
pending_wake_hint_reasons         -
queued_work_items                 0
replay_message_ids                m1, m2
runtime_error                     false
scheduling_posture                has_queued_input
status                            awake_idle
tool_executions                   0
turn_terminal_kind                -
"
    );
}

#[test]
fn what_is_no_fixture_is_said_to_be_none() {
    let place = Place::empty();
    place.write("file", "{}");
    place.write("other/notes.txt", "nothing of ours");
    for command in [["ledger", "replay"], ["why", "--fixture"]] {
        let refused = |code, dir| place.refused(code, &[&command[..], &[dir]].concat());
        assert_eq!(refused(8, "nowhere"), "nowhere does not exist");
        assert_eq!(refused(1, "file"), "file is not a folder; name the folder that holds agent.json and ledger/");
        assert_eq!(refused(8, "other"), "other holds no records: no agent.json and no ledger/*.jsonl");
    }
}

#[test]
fn every_file_of_a_fixture_is_optional() {
    let place = Place::empty();
    place.write("expects/expected.json", r#"{"status":"awake_idle","decision":"Sleep"}"#);
    place.write("ledger_only/ledger/timers.jsonl", "\n{\"id\":\"t1\"}\n\n");
    assert_eq!(place.json(&["ledger", "replay", "expects"])["decision"], "Sleep");
    assert_eq!(place.json(&["ledger", "replay", "ledger_only"])["active_timers"], 1);
}

#[test]
fn an_expected_json_that_can_not_be_read_is_named() {
    let place = Place::empty();
    let error = |name: &str, content: &[u8]| {
        place.write("fixture/agent.json", "{}");
        place.write("fixture/expected.json", content);
        let error = place.refused(1, &["ledger", "replay", "fixture"]);
        assert!(error.starts_with("fixture/expected.json is not "), "{name}: {error}");
        error
    };
    assert!(error("cut", b"{\"status\":").contains("EOF"));
    assert!(error("bytes", b"\xff\xfe").contains("not JSON"));
    assert!(error("list", b"[1]").contains("it takes keys of the projection"));
    fs::remove_file(place.path("fixture/expected.json")).unwrap();
    fs::create_dir(place.path("fixture/expected.json")).unwrap();
    let error = place.refused(1, &["ledger", "replay", "fixture"]);
    assert!(error.starts_with("can't read fixture/expected.json: "), "{error}");
}

#[test]
fn long_lines_are_read_and_never_repeated_at_length() {
    let place = Place::empty();
    let long = "x".repeat(4 << 20);
    place.write(
        "fixture/ledger/messages.jsonl",
        format!("{{\"id\":\"m\",\"kind\":\"operator_prompt\",\"text\":\"{long}\"}}"),
    );
    place.says(&["why", "--fixture", "fixture"]);
    place.write("fixture/ledger/messages.jsonl", format!("{{\"id\":\"m\",\"kind\":\"{long}\"}}"));
    let error = place.refused(1, &["why", "--fixture", "fixture"]);
    assert!(error.starts_with("fixture/ledger/messages.jsonl: line 1: field `kind`: "), "{error}");
    assert!(error.len() < 3_000, "{} bytes", error.len());
    place.write("fixture/ledger/messages.jsonl", "[".repeat(1 << 20));
    let error = place.refused(1, &["why", "--fixture", "fixture"]);
    assert!(error.starts_with("fixture/ledger/messages.jsonl: line 1: "), "{error}");
}

#[test]
fn a_line_is_told_once_and_is_the_files_own() {
    let place = Place::empty();
    let error = || place.refused(1, &["why", "--fixture", "fixture"]);
    place.write("fixture/agent.json", "{\n  \"turn_index\": 3,\n  \"status\" \"asleep\"\n}\n");
    assert_eq!(error(), "fixture/agent.json: line 3: not JSON: expected `:` at column 12");
    place.write("fixture/agent.json", b"{\n  \"id\":\n\n\"\xff\"}");
    assert!(error().starts_with("fixture/agent.json: line 4: not UTF-8: "), "{}", error());
    place.write("fixture/agent.json", "{\n  \"turn_index\": 3,\n  \"status\": \"dozing\"\n}\n");
    assert!(error().starts_with("fixture/agent.json: field `status`: unknown variant `dozing`"), "{}", error());
    place.write("fixture/agent.json", "{}");
    place.write("fixture/ledger/timers.jsonl", "{\"id\":\"t1\"}\n\n{\"id\"}\n");
    assert_eq!(error(), "fixture/ledger/timers.jsonl: line 3: not JSON: expected `:` at column 6");
}

#[test]
fn a_misspelled_ledger_file_is_refused() {
    for name in ["work_item.jsonl", "messages.json", "old/messages.jsonl"] {
        let place = Place::empty();
        place.write(&format!("fixture/ledger/{name}"), "{}\n");
        place.write("fixture/ledger/.hidden", "");
        let first = name.split('/').next().unwrap();
        let error = place.refused(1, &["ledger", "replay", "fixture"]);
        let known = "messages.jsonl, queue_entries.jsonl, events.jsonl, transcript.jsonl, tasks.jsonl, \
                     work_items.jsonl, waiting_intents.jsonl, timers.jsonl, tools.jsonl, briefs.jsonl";
        assert_eq!(error, format!("fixture/ledger/{first}: it is no file of a fixture; those are {known}"));
    }
}
