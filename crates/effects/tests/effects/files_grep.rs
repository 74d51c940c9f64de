//! Grep: which lines are found, where, and within which bounds.

use abide_effects::limits;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::files_stage::Workspace;

fn grep(workspace: &Workspace, input: Value) -> Value {
    let result = workspace.does("Grep", input);
    assert_eq!(result["truncated"], false, "{result}");
    result["matches"].clone()
}

#[test]
fn lines_are_found_with_their_numbers() {
    let workspace = Workspace::new();
    workspace.put("src/a.rs", "fn main() {\n    let x = 1;\n}\n\nfn other() {}\n");
    workspace.put("src/b.txt", "the fn of it\r\nis fun\r\n");
    workspace.put("target/c.rs", "fn hidden() {}\n");
    workspace.put(".hidden/d.rs", "fn hidden() {}\n");
    workspace.put(".gitignore", "target\n");
    let found = |path: &str, line: u32, text: &str| json!({ "path": path, "line": line, "text": text });
    let (main, other) = (found("src/a.rs", 1, "fn main() {"), found("src/a.rs", 5, "fn other() {}"));
    let text = found("src/b.txt", 1, "the fn of it");
    let cases = [
        (json!({ "pattern": "fn " }), json!([main, other, text])),
        (json!({ "pattern": "fn ", "glob": "*.rs" }), json!([main, other])),
        (json!({ "pattern": "fn ", "glob": "!*.rs" }), json!([text])),
        (json!({ "pattern": "fn ", "glob": "src/*.{rs,txt}" }), json!([main, other, text])),
        (json!({ "pattern": "fn ", "path": "src", "glob": "src/*.rs" }), json!([main, other])),
        (json!({ "pattern": "fn ", "path": "src/a.rs" }), json!([main, other])),
        (json!({ "pattern": "(?i)^FN MAIN" }), json!([main])),
        (json!({ "pattern": "it$" }), json!([text])),
        (json!({ "pattern": "hidden" }), json!([])),
        (json!({ "pattern": "hidden", "path": "target" }), json!([found("target/c.rs", 1, "fn hidden() {}")])),
        (json!({ "pattern": "hidden", "glob": ".hidden/**" }), json!([found(".hidden/d.rs", 1, "fn hidden() {}")])),
        (json!({ "pattern": "hidden", "path": ".hidden" }), json!([found(".hidden/d.rs", 1, "fn hidden() {}")])),
        (
            json!({ "pattern": "let", "context": 1 }),
            json!([{ "path": "src/a.rs", "line": 2, "text": "    let x = 1;", "before": ["fn main() {"], "after": ["}"] }]),
        ),
    ];
    for (input, matches) in cases {
        assert_eq!(grep(&workspace, input.clone()), matches, "{input}");
    }
    workspace.refuses("Grep", json!({ "pattern": "x", "path": "nowhere" }), "not_found");
}

#[test]
fn what_is_found_is_bounded_and_says_so() {
    let workspace = Workspace::new();
    workspace.put("many", "line\n".repeat(5_000));
    let result = workspace.does("Grep", json!({ "pattern": "line" }));
    assert_eq!((result["matches"].as_array().unwrap().len(), &result["truncated"]), (200, &json!(true)));
    assert_eq!(grep(&workspace, json!({ "pattern": "nothing" })), json!([]));
    workspace.put("many", "line\n".repeat(3));
    assert_eq!(grep(&workspace, json!({ "pattern": "line", "limit": 3 })).as_array().unwrap().len(), 3);
    assert_eq!(workspace.does("Grep", json!({ "pattern": "line", "limit": 2 }))["truncated"], true);

    // A long line is shown around what was found in it.
    workspace.put("long", format!("{}needle{}\n", "é".repeat(50_000), "ü".repeat(50_000)));
    let matches = grep(&workspace, json!({ "pattern": "needle" }));
    let text = matches[0]["text"].as_str().unwrap();
    assert!(text.contains("éneedleü") && text.starts_with('…') && text.ends_with('…') && text.len() < 600, "{text}");
    workspace.put("long", (0..2_000).map(|n| format!("{n}{}\n", "x".repeat(10_000))).collect::<String>());
    let result = workspace.does("Grep", json!({ "pattern": "x", "limit": 2_000, "context": 20 }));
    assert!(result.to_string().len() < 2 * limits::GREP_BYTES && result["truncated"] == true);

    // A line that is longer than anything that is held.
    workspace.put("long", "x".repeat(40 << 20));
    let result = workspace.does("Grep", json!({ "pattern": "y", "path": "long" }));
    assert!(result["note"].as_str().unwrap().contains("too long"), "{result}");
}

#[test]
fn what_is_no_text_is_passed_over() {
    let workspace = Workspace::new();
    workspace.put("binary", b"\0\0needle\n");
    workspace.put("latin1", b"caf\xe9 needle\n");
    workspace.put("utf16", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0");
    let matches = grep(&workspace, json!({ "pattern": "needle" }));
    assert_eq!(
        matches,
        json!([{ "path": "latin1", "line": 1, "text": "caf\u{fffd} needle" }, { "path": "utf16", "line": 1, "text": "needle" }])
    );
    let result = workspace.does("Grep", json!({ "pattern": "needle", "path": "binary" }));
    assert!(result["note"].as_str().unwrap().contains("binary"));
    // A hole of ten gigabytes is left at its first byte; a pipe is not opened.
    std::fs::File::create(workspace.path("sparse")).unwrap().set_len(10 << 30).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(workspace.path("pipe")).status().unwrap().success());
    assert_eq!(grep(&workspace, json!({ "pattern": "needle" })), matches);
    workspace.refuses("Grep", json!({ "pattern": "needle", "path": "pipe" }), "not_a_file");
}

#[test]
fn patterns_that_are_none_are_refused() {
    let workspace = Workspace::new();
    for pattern in ["(", "a{2,1}", "*", "a\nb", "a\\nb", "(?=x)", "(((a{1000}){1000}){1000})"] {
        let refusal = workspace.refuses("Grep", json!({ "pattern": pattern }), "invalid_input");
        assert!(refusal.message.starts_with("`pattern` of Grep is") && refusal.hint.len() < 1_000, "{refusal:?}");
    }
    for input in [
        json!({ "pattern": "x", "limit": 0 }),
        json!({ "pattern": "x", "limit": 2_001 }),
        json!({ "pattern": "x", "context": 21 }),
        json!({ "pattern": "x", "path": "" }),
        json!({ "pattern": "x", "i": true }),
    ] {
        workspace.refuses("Grep", input, "invalid_input");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// With context or without, each line that has it is found once, and every line shown is one of the file.
    #[test]
    fn every_line_is_found_once(lines in prop::collection::vec("[ab]{0,3}", 0..30), context in 0_u64..4) {
        let workspace = Workspace::new();
        workspace.put("f", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
        let matches = grep(&workspace, json!({ "pattern": "ab", "context": context }));
        let mut shown = Vec::new();
        for found in matches.as_array().unwrap() {
            let list = |name: &str| found[name].as_array().cloned().unwrap_or_default();
            let at = usize::try_from(found["line"].as_u64().unwrap()).unwrap() - 1;
            let (before, after) = (list("before"), list("after"));
            prop_assert_eq!(&lines[at - before.len()..at], before.iter().map(|line| line.as_str().unwrap()).collect::<Vec<_>>());
            prop_assert_eq!(&lines[at + 1..=at + after.len()], after.iter().map(|line| line.as_str().unwrap()).collect::<Vec<_>>());
            prop_assert_eq!(&lines[at], found["text"].as_str().unwrap());
            shown.extend(at - before.len()..=at + after.len());
        }
        let mut once = shown.clone();
        once.dedup();
        prop_assert_eq!(&once, &shown);
        let with: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].contains("ab")).collect();
        let found: Vec<usize> = matches.as_array().unwrap().iter().map(|found| found["line"].as_u64().unwrap() as usize - 1).collect();
        prop_assert_eq!(found, with);
    }
}
