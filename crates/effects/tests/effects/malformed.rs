//! Files that are no scripts: what is wrong with them is said so that a person can mend it.

use abide_effects::limits::SCRIPT_BYTES;
use abide_kernel::vocabulary::ProviderError;

use crate::stage::{Stage, message};

fn failure(stage: &mut Stage) -> String {
    let failure = stage.call(&message("m1", "go")).unwrap_err();
    assert_eq!((failure.error, failure.retry_after_ms, failure.carry), (ProviderError::Invalid, None, None));
    let file = stage.model.strip_prefix("script/").unwrap();
    failure.message.strip_prefix(file).unwrap().trim_start().to_owned()
}

#[test]
fn a_fault_names_the_line_and_the_field() {
    let cases = [
        ("", "line 1", "EOF"),
        ("{", "line 1", "EOF"),
        ("[]", "line 1", "expected a script: an object"),
        ("[[], [], true]", "line 1", "expected a script: an object"),
        ("{\"rounds\": [\n[\"hi\", null, null, null, null]]}", "line 2", "expected a round: an object"),
        ("{\"rounds\": [\n{\"tools\": [[\"Sleep\", {}]]}]}", "line 2", "expected a tool: an object"),
        ("{\"when\": [\n[\"x\", []]]}", "line 2", "expected an entry: an object"),
        ("{}\n{}", "line 2", "trailing characters"),
        ("{\n\"rounds\": [\n{\"txet\": \"hi\"}]}", "line 3", "unknown field, expected one of `text`"),
        ("{\n\"round\": []}", "line 2", "unknown field, expected one of `rounds`"),
        ("{\"rounds\": {}}", "line 1", "expected a sequence"),
        ("{\"rounds\": [\n{\"text\": 5}]}", "line 2", "invalid type, expected a string"),
        ("{\"rounds\": [\n{\"tools\": [\n{\"input\": {}}]}]}", "line 3", "`name`"),
        (
            "{\"rounds\": [\n{\"tools\": [\n{\"name\": \"Sleep\", \"inputs\": {}}]}]}",
            "line 3",
            "unknown field, expected `name` or `input`",
        ),
        ("{\"rounds\": [\n{\"tools\": [\n{\"name\": \"Sleep\", \"input\": [1]}]}]}", "line 3", "expected a map"),
        ("{\"rounds\": [\n{\"delay_ms\": -1}]}", "line 2", "invalid value, expected u64"),
        ("{\"rounds\": [\n{\"delay_ms\": 86400001}]}", "line 2", "`delay_ms` is more than 86400000"),
        ("{\"rounds\": [\n{\"error\": \"tired\"}]}", "line 2", "unknown variant, expected one of `rate_limited`"),
        ("{\"rounds\": [\n{\"error\": \"auth\", \"text\": \"x\"}]}", "line 2", "`error` or `text`"),
        ("{\"rounds\": [\n{\"error\": \"auth\", \"tools\": []}]}", "line 2", "`error` or `tools`"),
        ("{\"rounds\": [\n{\"retry_after_ms\": 5}]}", "line 2", "`retry_after_ms` goes with `error`"),
        (
            "{\"rounds\": [\n{\"error\": \"auth\", \"retry_after_ms\": 99999999999999999}]}",
            "line 2",
            "`retry_after_ms` is more than",
        ),
        ("{\"when\": [\n{\"rounds\": []}]}", "line 2", "`contains`"),
        ("{\"when\": [\n{\"contains\": \"x\"}]}", "line 2", "`rounds`"),
        (
            "{\"when\": [\n{\"contains\": \"x\", \"rounds\": [], \"loop\": true}]}",
            "line 2",
            "unknown field, expected `contains` or `rounds`",
        ),
        ("{\"loop\": \"yes\"}", "line 1", "expected a boolean"),
        ("{\"rounds\": [],\n\"rounds\": []}", "line 2", "duplicate field `rounds`"),
        (&tool("{\"$result\": 5}"), "line 2", "`$result` takes a JSON pointer"),
        (&tool("{\"$result\": \"n\"}"), "line 2", "`$result` takes a JSON pointer"),
        (&tool("{\"$input\": null}"), "line 2", "`$input` takes a JSON pointer"),
        (&tool("{\"$result\": \"/n\", \"back\": 0}"), "line 2", "`back` takes a number from 1"),
        (&tool("{\"$result\": \"/n\", \"back\": \"2\"}"), "line 2", "`back` takes a number from 1"),
        (&tool("{\"$result\": \"/n\", \"bcak\": 2}"), "line 2", "another field can't stand beside `$result`"),
        (&tool("[{\"$input\": \"/n\", \"back\": 2}]"), "line 2", "another field can't stand beside `$input`"),
        (&tool("{\"$input\": \"/n\", \"$result\": \"/n\"}"), "line 2", "another field can't stand beside `$result`"),
    ];
    for (script, line, says) in cases {
        let message = failure(&mut Stage::of(script));
        assert!(message.starts_with("is not a script: "), "{script}: {message}");
        assert!(message.contains(line) && message.contains(says), "{script}: {message}");
    }
}

/// A model's name may lead to any file, and the fault is told to models.
#[test]
fn a_fault_says_where_it_is_and_nothing_of_what_the_file_holds() {
    for script in [
        "\"CANARY\"",
        "[\"CANARY\"]",
        "4242424242",
        "{\"CANARY\": 1}",
        "{\"rounds\": \"CANARY, expected CANARY\"}",
        "{\"rounds\": [\"CANARY\"]}",
        "{\"rounds\": [{\"CANARY\": 1}]}",
        "{\"rounds\": [{\"error\": \"CANARY\"}]}",
        "{\"rounds\": [{\"delay_ms\": 4242424242}]}",
        "{\"rounds\": [{\"delay_ms\": -42}]}",
        "{\"rounds\": [{\"text\": 4242}]}",
        "{\"loop\": \"CANARY\"}",
        &tool("{\"$result\": \"/n\", \"CANARY\": 2}"),
        &tool("{\"$result\": \"CANARY\"}"),
        "root:x:0:0:CANARY",
        "{\"rounds\": [{\"text\": \"a\"}]} CANARY",
    ] {
        let message = failure(&mut Stage::of(script));
        assert!(message.contains("line ") && message.contains(" column "), "{script}: {message}");
        assert!(!message.contains("CANARY") && !message.contains("42"), "{script}: {message}");
    }
}

/// A script, one of whose inputs has this in it, on the second line.
fn tool(value: &str) -> String {
    format!("{{\"rounds\": [{{\"tools\": [\n{{\"name\": \"Sleep\", \"input\": {{\"reason\": {value}}}}}]}}]}}")
}

#[test]
fn a_text_that_is_too_long_to_carry_is_refused() {
    let script = format!("{{\"when\": [{{\"contains\": \"{}\", \"rounds\": []}}]}}", "x".repeat(4_097));
    assert!(failure(&mut Stage::of(&script)).contains("`contains` has more than 4096 bytes"));
}

#[test]
fn what_is_no_file_or_too_large_is_refused() {
    let mut stage = Stage::of("{}");
    stage.model = stage.name("missing.json");
    assert!(failure(&mut stage).starts_with("can't be read: No such file"));

    std::fs::create_dir(stage.path("folder")).unwrap();
    stage.model = stage.name("folder");
    assert!(failure(&mut stage).starts_with("can't be read: it is not a file"));

    let most = usize::try_from(SCRIPT_BYTES).unwrap();
    stage.model = stage.name("large.json");
    stage.write("large.json", &format!("{{}}{}", " ".repeat(most - 2)));
    assert_eq!(stage.say(&message("m1", "go")), "Done.");
    stage.write("large.json", &format!("{{}}{}", " ".repeat(most - 1)));
    assert!(failure(&mut stage).starts_with("is too large for a script: at most 4194304 bytes"));

    std::fs::write(stage.path("binary.json"), b"{\"rounds\": [{\"text\": \"\xff\"}]}").unwrap();
    stage.model = stage.name("binary.json");
    assert!(failure(&mut stage).contains("line 1"));
}
