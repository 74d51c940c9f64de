//! Homes and exports that older versions wrote, opened by today's program.

use std::fs;

use serde_json::Value;

use crate::fixture;
use crate::served::{Served, until};

/// The lists of an agent: their names among the expectations, and their routes.
const LISTS: &[(&str, &str)] = &[
    ("work", "work-items"),
    ("tasks", "tasks"),
    ("timers", "timers"),
    ("waits", "waits"),
    ("triggers", "triggers"),
    ("approvals", "approvals"),
    ("workspaces", "workspaces"),
    ("briefs", "briefs"),
    ("transcript", "transcript"),
];

/// A home of that version, without what is private to it: the daemon makes itself a new token.
fn served(version: &str) -> Served {
    let served = Served::down("");
    fixture::unpack_home(version, &served.place.home());
    served
}

fn expected(version: &str) -> Value {
    serde_json::from_slice(&fs::read(fixture::folder(version).join("expected.json")).unwrap()).unwrap()
}

/// Whether everything that the older version showed is shown. A later one may show more of each thing.
#[track_caller]
fn assert_shows(place: &str, expected: &Value, shown: &Value) {
    match (expected, shown) {
        (Value::Object(expected), Value::Object(shown)) => {
            for (name, value) in expected {
                assert_shows(&format!("{place}.{name}"), value, shown.get(name).unwrap_or(&Value::Null));
            }
        }
        (Value::Array(expected), Value::Array(shown)) => {
            assert_eq!(expected.len(), shown.len(), "{place}");
            for (number, (expected, shown)) in expected.iter().zip(shown).enumerate() {
                assert_shows(&format!("{place}[{number}]"), expected, shown);
            }
        }
        (_, _) => assert_eq!(expected, shown, "{place}"),
    }
}

#[track_caller]
fn assert_shows_all(served: &Served, expected: &Value) {
    assert_shows("agents", &expected["agents"], &served.items("/v1/agents").into());
    for agent in expected["agents"].as_array().unwrap().iter().map(|agent| agent["id"].as_str().unwrap()) {
        let lists = &expected[format!("agent/{agent}")];
        for (name, route) in LISTS {
            let shown = served.items(&format!("/v1/agents/{agent}/{route}"));
            assert_shows(&format!("{agent} {name}"), &lists[*name], &shown.into());
        }
        assert_shows(agent, &lists["show"], &served.get(&format!("/v1/agents/{agent}")));
    }
    for archived in expected["archived"].as_array().unwrap().iter().map(|agent| agent.as_str().unwrap()) {
        assert!(!served.events(archived).is_empty(), "{archived}");
    }
}

#[test]
fn a_daemon_serves_a_home_of_every_older_version() {
    for version in fixture::VERSIONS {
        let mut served = served(version);
        let doctor = served.place.run(&["doctor", "--json"]);
        let is_older = fixture::OLDER_FORMATS.contains(version);
        assert_eq!(doctor.out.contains("an older version of abide wrote it"), is_older, "{}", doctor.out);
        served.up();
        let expected = expected(version);
        // While rows are rebuilt, and when they are.
        assert_shows_all(&served, &expected);
        until("rebuilt rows", || (served.get("/v1/ledger/stats")["outdated_rows"] == 0).then_some(()));
        assert_shows_all(&served, &expected);
        let task = expected["agent/runner"]["tasks"][0]["task_id"].as_str().unwrap();
        assert_eq!(served.place.says(&["task", "output", "--agent", "runner", task]), "by hand\n");
        served.kill_and_up();
        served.post("/v1/agents/patient/messages", &serde_json::json!({ "text": "still there?" }));
        served.stop_and_verify();
        assert_eq!(served.place.json(&["ledger", "verify"])["outdated_rows"], 0);
    }
}

#[test]
fn commands_that_look_upgrade_a_home_that_nobody_serves() {
    for version in fixture::OLDER_FORMATS {
        let served = served(version);
        let said = served.place.says(&["ledger", "verify"]);
        assert!(said.contains("to be rebuilt: the rows of ") && said.contains("everything is intact"), "{said}");
        let said = served.place.says(&["ledger", "verify", "--rebuild-rows"]);
        assert!(!said.contains("to be rebuilt"), "{said}");
        served.place.says(&["ledger", "export", "--full", "file"]);
        assert_eq!(fs::read(served.place.path("file")).unwrap(), fixture::export(version));
    }
}

#[test]
fn an_export_of_every_older_version_is_imported() {
    for version in fixture::VERSIONS {
        let mut served = Served::down("");
        served.place.write("old", fixture::export(version));
        served.place.says(&["ledger", "import", "old"]);
        served.place.says(&["ledger", "export", "--full", "new"]);
        assert_eq!(fs::read(served.place.path("new")).unwrap(), fixture::export(version));
        served.up();
        assert_eq!(served.get("/v1/ledger/stats")["outdated_rows"], 0, "rows are made by the import");
        assert_shows_all(&served, &expected(version));
        served.stop_and_verify();
    }
}

/// The number of the format, in the header of every SQLite database.
const USER_VERSION: std::ops::Range<usize> = 60..64;

#[test]
fn a_home_of_a_later_version_is_refused_and_left_as_it_is() {
    let served = served(fixture::VERSIONS[0]);
    let database = served.place.home().join("ledger.db");
    let mut bytes = fs::read(&database).unwrap();
    bytes[USER_VERSION].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&database, &bytes).unwrap();
    for command in [&["up"][..], &["ledger", "verify"], &["ledger", "export", "--full", "file"]] {
        let said = served.place.refused(6, command);
        assert!(said.starts_with("home/ledger.db has format 99; this is abide "), "{said}");
    }
    let doctor = served.place.run(&["doctor"]);
    assert!(doctor.code == Some(1) && doctor.out.contains("has format 99;"), "{}", doctor.out);
    assert_eq!(fs::read(&database).unwrap(), bytes);
    served.place.write("later", "{\"abide_ledger\":2,\"oldest_reader\":99,\"program\":\"9.8.7\"}\n");
    let said = served.place.refused(6, &["--home", "new", "ledger", "import", "later"]);
    assert!(said.ends_with("use abide 9.8.7 or later"), "{said}");
    assert!(!served.place.path("new").exists());
}
