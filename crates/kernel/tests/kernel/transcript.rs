//! The transcript: which entries each fact makes, field by field.

use abide_kernel::transcript::entries;
use abide_kernel::{Fact, limits};
use serde_json::{Value, json};

use crate::prompt::{calls, finish, said, story};
use crate::story::Story;

/// The entries of a story without their times, ids by their short names.
fn shown(story: &Story) -> Vec<Value> {
    let mut all = Vec::new();
    for (seq, (at, fact)) in (1..).zip(&story.facts) {
        for entry in entries(seq, *at, fact) {
            assert_eq!((entry.seq, entry.at), (seq, *at));
            let text = serde_json::to_string(&entry).unwrap();
            let mut shown: Value = serde_json::from_str(&story.short(&text)).unwrap();
            shown.as_object_mut().unwrap().retain(|name, _| name != "seq" && name != "at");
            all.push(shown);
        }
    }
    all
}

#[test]
fn everything_that_was_said_and_done_is_an_entry() {
    let mut story = story("operator build it");
    let ids = calls(&mut story, "Now.", &[json!({ "path": "a" })]);
    finish(&mut story, ids[0].clone(), json!({ "content": "text" }));
    let ids = calls(&mut story, "", &[json!({ "path": "b" })]);
    finish(&mut story, ids[0].clone(), json!({ "content": "x".repeat(20_000) }));
    said(&mut story, "Built.");
    let origin = json!({ "kind": "operator" });
    let long = json!({ "content": "x".repeat(20_000) }).to_string();
    let expected = [
        json!({ "role": "input", "kind": "operator_prompt", "origin": origin, "text": "build it", "message_id": "m1" }),
        json!({ "role": "assistant", "text": "Now.", "exec_id": "exec1" }),
        json!({
            "role": "tool_call", "json": { "path": "a" }, "exec_id": "exec1", "call_id": "call_1-1-0", "tool": "ReadFile",
        }),
        json!({
            "role": "tool_result", "json": { "content": "text" }, "exec_id": "exec1", "call_id": "call_1-1-0",
            "tool": "ReadFile", "status": "completed",
        }),
        // Words that were not said are no entry.
        json!({
            "role": "tool_call", "json": { "path": "b" }, "exec_id": "exec1", "call_id": "call_1-2-0", "tool": "ReadFile",
        }),
        json!({
            "role": "tool_result", "text": format!("{}…", limits::clip(&long, 16 * 1024)), "exec_id": "exec1",
            "call_id": "call_1-2-0", "tool": "ReadFile", "status": "completed",
        }),
        json!({ "role": "assistant", "text": "Built.", "exec_id": "exec1" }),
    ];
    assert_eq!(shown(&story), expected);
}

/// Sixteen KiB of a result are shown whole, and one byte more is cut.
#[test]
fn a_result_is_cut_past_its_bound() {
    let mut story = story("operator build it");
    let around = json!({ "content": "" }).to_string().len();
    for (more, whole) in [(0, true), (1, false)] {
        let ids = calls(&mut story, "", &[json!({ "path": more })]);
        finish(&mut story, ids[0].clone(), json!({ "content": "x".repeat(16 * 1024 - around + more) }));
        let last = shown(&story).pop().unwrap();
        assert_eq!((last.get("json").is_some(), last.get("text").is_some()), (whole, !whole), "{more} more");
    }
}

/// An answer of nothing is an entry all the same.
#[test]
fn an_empty_answer_is_one() {
    let mut story = story("operator hi");
    story.tell("round").unwrap();
    let all = shown(&story);
    assert!(all.contains(&json!({ "role": "assistant", "text": "", "exec_id": "exec1" })), "{all:?}");
}

#[test]
fn what_went_wrong_is_a_note() {
    let notes = |lines: &str| -> Vec<Value> {
        shown(&story(lines)).into_iter().filter(|entry| entry["role"] == "note").collect()
    };
    let note = |text: &str| json!({ "role": "note", "text": text, "exec_id": "exec1" });
    assert_eq!(notes("operator hi\ncrash"), [note("the turn was cut short: cut")]);
    assert_eq!(notes("operator hi\nfail invalid"), [note("invalid: no")]);
    let fallback = notes("models a/one b/two\noperator hi\nfail overloaded");
    assert_eq!(fallback, [note("a/one failed: overloaded: no"), note("overloaded: no; it goes on with b/two")]);
    let cut = notes("operator hi\nround cut=yes begun");
    assert_eq!(cut, [note("the answer is cut: the model had written as much as it may (max_output_tokens)")]);
    let compacted = notes("operator hi\nround done\ncompact");
    assert_eq!(compacted.len(), 1);
    let text = compacted[0]["text"].as_str().unwrap();
    assert!(text.ends_with(" messages were summarised"), "{text}");
}

/// Most facts are about something else.
#[test]
fn nothing_else_makes_an_entry() {
    let speaks = |fact: &Fact| {
        [
            "message.queued",
            "turn.assistant_round_recorded",
            "tool.finished",
            "exec.aborted",
            "turn.provider_round_failed",
            "context.compacted",
        ]
        .contains(&fact.kind())
    };
    let at = abide_kernel::time::Time::EPOCH;
    for (kind, bytes) in crate::golden::golden() {
        let fact = Fact::decode(&kind, &bytes).unwrap();
        assert_eq!(entries(1, at, &fact).is_empty(), !speaks(&fact), "{kind}");
    }
}
