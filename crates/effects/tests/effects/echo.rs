//! `script/echo`, and how models are named.

use std::path::Path;
use std::sync::Arc;

use abide_effects::model::{Providers, absolute};
use abide_kernel::id::MessageId;
use abide_kernel::message::Message;
use abide_kernel::vocabulary::MessageKind;
use serde_json::json;

use crate::stage::{Stage, json_message, message};

fn echo() -> Stage {
    let mut stage = Stage::of("{}");
    stage.model = "script/echo".to_owned();
    stage
}

#[test]
fn it_answers_with_its_inputs_text() {
    let reply = echo().call(&message("m1", "hello there")).unwrap();
    assert_eq!((reply.text.as_str(), reply.calls.len(), reply.carry), ("hello there", 0, None));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost_micro_usd), (3, 3, 0));
}

#[test]
fn it_shows_json_on_one_line_and_nothing_for_nothing() {
    assert_eq!(echo().say(&json_message("m1", json!({"a": [1, 2]}))), r#"{"a":[1,2]}"#);
    assert_eq!(echo().say(&Message::new(MessageId::new("m1"), MessageKind::SystemTick)), "");
}

#[test]
fn it_reads_what_was_written_beside_an_image_and_no_base64() {
    let image =
        json!({ "media_type": "image/gif", "data": "R0lGODdhAgABAIEAAP8AAAAAAAAAAAAAACwAAAAAAgABAAAIBQABAAgIADs=" });
    assert_eq!(echo().say(&json_message("m1", json!({ "text": "look", "images": [image] }))), "look");
    assert_eq!(echo().say(&json_message("m2", json!({ "shot": image }))), r#"{"shot":"(image 1)"}"#);
    assert_eq!(echo().say(&json_message("m3", json!({ "text": "x", "a": 1 }))), r#"{"a":1,"text":"x"}"#);
}

#[test]
fn what_joined_the_turn_follows_on_lines_of_its_own() {
    let mut stage = echo();
    stage.joined = vec![Arc::new(message("m2", "faster")), Arc::new(json_message("m3", json!({"b": 1})))];
    assert_eq!(stage.say(&message("m1", "hello")), "hello\nfaster\n{\"b\":1}");
}

#[test]
fn names_that_are_models_come_back_as_they_were() {
    let names = ["script/echo", "script//tmp/play.json", "script//tmp/a dir/x", "ollama/qwen3:8b", "openai/a/b"];
    for name in names {
        assert_eq!(Providers::default().model(name).unwrap().to_string(), name);
    }
}

#[test]
fn names_that_are_none_say_what_would_be() {
    let cases = [
        ("", "PROVIDER/MODEL"),
        ("echo", "PROVIDER/MODEL"),
        ("/echo", "PROVIDER/MODEL"),
        ("script/", "PROVIDER/MODEL"),
        (
            "acme/large",
            "no provider \"acme\"; there are anthropic, ollama, openai, openai-chat, script, or [providers.NAME]",
        ),
        ("Script/echo", "did you mean \"script\"?"),
        ("antropic/x", "did you mean \"anthropic\"?"),
        ("script/play.json", "no absolute path"),
    ];
    for (name, says) in cases {
        let error = Providers::default().model(name).unwrap_err().to_string();
        assert!(error.contains(says), "{name}: {error}");
    }
}

#[test]
fn a_relative_script_is_taken_from_the_callers_folder() {
    let folder = Path::new("/home/ada");
    let cases = [
        ("script/play.json", "script//home/ada/play.json"),
        ("script/./echo", "script//home/ada/echo"),
        ("script//tmp/play.json", "script//tmp/play.json"),
        ("script/echo", "script/echo"),
        ("acme/large", "acme/large"),
        ("echo", "echo"),
    ];
    for (name, kept) in cases {
        assert_eq!(absolute(name, folder), kept);
    }
}
