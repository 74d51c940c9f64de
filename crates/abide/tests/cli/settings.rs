//! The table of settings: what each of its columns does, and the document that is made of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::place::{Daemon, Place, Ran};

/// The part of docs/settings.md above this line is written by hand.
const GENERATED: &str =
    "<!-- Below: `abide config schema --markdown`. UPDATE=1 writes it anew when this test runs. -->\n";

/// The rows of the first table, as `key, type, values, default, variable, restart, abide.toml`.
fn rows(place: &Place) -> Vec<[String; 7]> {
    let markdown = place.says(&["config", "schema", "--markdown"]);
    let table = markdown.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| {
        let cells: Vec<String> = line.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', "")).collect();
        cells.try_into().unwrap()
    };
    table.map(cells).collect()
}

#[test]
fn the_document_has_the_table_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let document = fs::read_to_string(&path).unwrap();
    let (head, found) = document.split_once(GENERATED).expect("docs/settings.md has the line that ends its head");
    let generated = format!("\n{}", Place::empty().says(&["config", "schema", "--markdown"]));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, format!("{head}{GENERATED}{generated}")).unwrap();
        return;
    }
    assert_eq!(found, generated, "docs/settings.md is stale: UPDATE=1 cargo nextest run -p abide -E 'test(settings)'");
}

/// Every property of the schema by the name of its setting.
fn properties(schema: &Value, prefix: &str, found: &mut BTreeMap<String, Value>) {
    for (name, property) in schema["properties"].as_object().unwrap() {
        if property["properties"].is_object() {
            properties(property, &format!("{prefix}{name}."), found);
        } else if property["additionalProperties"].is_null() {
            found.insert(format!("{prefix}{name}"), property.clone());
        }
    }
}

#[test]
fn a_value_out_of_range_is_refused_with_the_range() {
    let place = Place::empty();
    let mut all = BTreeMap::new();
    properties(&place.json(&["config", "schema"]), "", &mut all);
    let (mut numbers, mut words) = (0, 0);
    for (key, property) in &all {
        // The word that a table's name stands for is tested by its own name.
        let key = key.strip_suffix(".mode").unwrap_or(key);
        let refused = |value: &str| {
            let ran = place.run(&["config", "set", key, "--", value]);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{key} {value}: {}", ran.err);
            ran.err
        };
        if let (Some(least), Some(most)) = (property["minimum"].as_i64(), property["maximum"].as_i64()) {
            for wrong in [least - 1, most + 1] {
                let error = refused(&wrong.to_string());
                let range = property["type"] == "integer";
                assert!(!range || error.contains(&format!("to {most}")), "{error}");
            }
            numbers += 1;
        }
        let of_items = &property["items"]["enum"];
        if let Some(known) = property["enum"].as_array().or(of_items.as_array()) {
            let error = refused("nonsense");
            assert!(known.iter().all(|word| error.contains(word.as_str().unwrap())), "{error}");
            words += 1;
        }
        if property["type"] == "boolean" {
            assert!(refused("perhaps").ends_with("is neither true nor false\n"));
        }
    }
    assert!(numbers >= 6 && words >= 4, "{numbers} numbers and {words} words were found in {all:?}");
    assert!(!place.home().exists(), "nothing was written");
}

#[test]
fn each_variable_of_the_table_sets_its_setting() {
    let place = Place::empty();
    let values: BTreeMap<&str, &str> = [
        ("listen", "127.0.0.1:1"),
        ("store", "sqlite"),
        ("model", "ollama/small"),
        ("fallback", "ollama/other"),
        ("log", "trace"),
        ("sandbox", "required"),
        ("public_url", "https://example.com"),
        ("workspace_roots", "/srv"),
    ]
    .into();
    let rows = rows(&place);
    let with_variable = rows.iter().filter(|[_, _, _, _, variable, ..]| !variable.is_empty());
    let mut seen = Vec::new();
    for [key, _, _, _, variable, ..] in with_variable {
        let value = values.get(key.as_str()).unwrap_or_else(|| panic!("say what {key} may be"));
        let ran = Ran::of(place.command(&["config", "get", key, "--json"]).env(variable, value).output().unwrap());
        let got: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(got["origin"], format!("environment {variable}"));
        let shown = got["value"].as_array().map_or(&got["value"], |list| &list[0]);
        assert_eq!(shown, value, "{key}");
        seen.push(key.as_str());
    }
    assert_eq!(seen.len(), values.len(), "of these only {seen:?} are in the table");
}

#[test]
fn setting_says_whether_a_restart_is_needed() {
    let place = Place::empty();
    let rows = rows(&place);
    let _daemon = Daemon::start(&place, &[]);
    for [key, _, values, default, _, restart, _] in &rows {
        // A value that each of these takes: its default, or one that its range names.
        let value = match (default.as_str(), values.as_str()) {
            ("none" | "", values) if values.contains("URL") || values.contains("https") => "https://example.com",
            ("none", values) if values.contains("NAME=") || values.contains("HOST=") => "A=B",
            ("none", values) if values.contains("path") => "/dev/null",
            ("none", values) if values.contains("PROVIDER") => "ollama/x",
            ("none", _) => "A",
            (default, _) => default,
        };
        let said = place.json(&["config", "set", key, value]);
        assert_eq!(said["restart_needed"], restart == "yes", "{key}: {said}");
    }
}

#[test]
fn a_workspace_sets_what_the_table_lets_it() {
    let place = Place::empty();
    let mut lets = Vec::new();
    for [key, _, _, _, _, _, workspace] in rows(&place) {
        place.write("work/abide.toml", format!("{key} = 1\n"));
        let error = place.refused(1, &["config", "trust", "work"]);
        match workspace.as_str() {
            "yes" => assert!(error.contains(&format!("{key} takes ")), "{error}"),
            _ => {
                assert!(error.contains(&format!("a workspace may not set {key}: it belongs in config.toml")), "{error}")
            }
        }
        lets.extend((workspace == "yes").then_some(key));
    }
    assert_eq!(lets, ["model", "fallback"]);
    for content in ["[providers.mine]\nkind = \"ollama\"\n", "[models.\"ollama/x\"]\n"] {
        place.write("work/abide.toml", content);
        let error = place.refused(1, &["config", "trust", "work"]);
        assert!(error.contains("a workspace may not set ") && error.contains("belongs in config.toml"), "{error}");
    }
}
