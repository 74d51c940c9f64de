//! Placeholders in a script's tool inputs, and their values.

use abide_kernel::id::TaskId;
use abide_kernel::message::Subject;
use abide_kernel::vocabulary::ProviderError;
use serde_json::{Value, json};

use crate::stage::{Stage, json_message, message};

fn script(input: &Value) -> String {
    json!({ "rounds": [{ "text": "before" }, { "tools": [{ "name": "Any", "input": input }] }] }).to_string()
}

/// An agent that has called tools and now plays a round with this input.
fn stage(input: &Value) -> Stage {
    let mut stage = Stage::of(&script(input));
    stage.say(&message("m0", "begin"));
    stage.past.0 = vec![json!({ "n": 1, "only_first": true }), json!({ "n": 2, "list": [10, { "a/b": "slash" }] })];
    stage
}

#[test]
fn results_are_filled_in() {
    let cases = [
        (json!({ "x": { "$result": "/n" } }), json!({ "x": 2 })),
        (json!({ "x": { "$result": "/n", "back": 1 } }), json!({ "x": 2 })),
        (json!({ "x": { "$result": "/n", "back": 2 } }), json!({ "x": 1 })),
        (json!({ "x": { "$result": "/list/0" } }), json!({ "x": 10 })),
        (json!({ "x": { "$result": "/list/1/a~1b" } }), json!({ "x": "slash" })),
        (json!({ "x": { "$result": "", "back": 2 } }), json!({ "x": { "n": 1, "only_first": true } })),
        (
            json!({ "deep": [1, { "in": [{ "$result": "/n" }, { "$result": "/only_first", "back": 2 }] }], "back": 7 }),
            json!({ "deep": [1, { "in": [2, true] }], "back": 7 }),
        ),
        (json!({ "$result": "", "back": 2 }), json!({ "n": 1, "only_first": true })),
        (json!({ "x": "$result", "y": { "result": "/n" } }), json!({ "x": "$result", "y": { "result": "/n" } })),
    ];
    for (input, filled) in cases {
        let reply = stage(&input).call(&message("m1", "go")).unwrap();
        assert_eq!(reply.calls[0].input, filled, "{input}");
    }
}

#[test]
fn the_turns_message_is_filled_in() {
    let mut told = message("m1", "build it");
    told.subject = Subject::TaskResult { task_id: TaskId::new("task_7"), work_item_id: None };
    told.json = Some(
        json!({ "run_id": "run_1", "step_id": "s2", "kind": "theirs", "text": "theirs", "nested": { "a": [5] } })
            .into(),
    );
    let cases = [
        ("/text", json!("build it")),
        ("/message_id", json!("m1")),
        ("/task_id", json!("task_7")),
        ("/kind", json!("task_result")),
        ("/origin/kind", json!("operator")),
        ("/run_id", json!("run_1")),
        ("/step_id", json!("s2")),
        ("/nested/a/0", json!(5)),
        ("/json/kind", json!("theirs")),
    ];
    for (pointer, value) in cases {
        let reply = stage(&json!({ "x": { "$input": pointer } })).call(&told).unwrap();
        assert_eq!(reply.calls[0].input, json!({ "x": value }), "{pointer}");
    }
}

#[test]
fn a_json_message_has_a_text_too() {
    let input = json!({ "x": { "$input": "/text" }, "y": { "$input": "/a" } });
    let reply = stage(&input).call(&json_message("m1", json!({ "a": 1 }))).unwrap();
    assert_eq!(reply.calls[0].input, json!({ "x": "{\"a\":1}", "y": 1 }));
    let reply = stage(&json!({ "x": { "$input": "/json/1" } })).call(&json_message("m1", json!([1, 2]))).unwrap();
    assert_eq!(reply.calls[0].input, json!({ "x": 2 }));
}

#[test]
fn what_was_filled_in_is_not_filled_in_again() {
    let input = json!({ "x": { "$input": "/y" } });
    let told = json_message("m1", json!({ "y": { "$result": "/n" } }));
    assert_eq!(stage(&input).call(&told).unwrap().calls[0].input, json!({ "x": { "$result": "/n" } }));
}

#[test]
fn a_pointer_that_leads_nowhere_is_named_and_the_place_stays() {
    let cases = [
        (json!({ "x": { "$result": "/m" } }), r#"{"$result": "/m"} leads nowhere in an object with list, n"#),
        (json!({ "x": { "$result": "/n/0" } }), r#"{"$result": "/n/0"} leads nowhere"#),
        (json!({ "x": { "$result": "/n", "back": 3 } }), r#"{"$result": "/n", "back": 3} leads nowhere: 2 are there"#),
        (
            json!({ "x": [{ "$input": "/run_id" }] }),
            r#"{"$input": "/run_id"} leads nowhere in an object with kind, message_id"#,
        ),
    ];
    for (input, says) in cases {
        let mut stage = stage(&input);
        let place = stage.carry.clone();
        let failure = stage.call(&message("m1", "go")).unwrap_err();
        assert_eq!((failure.error, failure.retry_after_ms), (ProviderError::Invalid, None));
        assert!(failure.message.contains(says), "{input}: {failure}");
        assert!(failure.message.contains(&stage.path("play.json").display().to_string()), "{failure}");
        assert_eq!(stage.carry, place);
        // Mended, the same round plays.
        stage.write("play.json", &script(&json!({ "x": 1 })));
        assert_eq!(stage.say(&message("m2", "go")), r#" Any{"x":1}"#);
    }
}

#[test]
fn a_round_is_filled_in_with_so_much_and_no_more() {
    let input = |times| json!({ "all": vec![json!({ "$result": "" }); times] });
    let past = vec![json!("x".repeat(1 << 20))];
    let mut stage = stage(&input(8));
    stage.past.0 = past;
    let failure = stage.call(&message("m1", "go")).unwrap_err();
    assert!(failure.message.contains(r#"{"$result": ""} is too much"#), "{failure}");
    stage.write("play.json", &script(&input(7)));
    assert!(stage.call(&message("m1", "go")).is_ok());
}
