//! The scripted model, sentence by sentence of what is promised about it. Where it is in its file: `place`. What it
//! fills in: `substitution`.

use std::time::Duration;

use abide_effects::model::Providers;
use abide_effects::tools::ToolSet;
use abide_effects::{Model, PastResults, ProviderFailure};
use abide_kernel::effect::ModelCall;
use abide_kernel::id::ExecId;
use abide_kernel::refusal::ErrorCode;
use abide_kernel::tool::{RecordCall, ToolCall};
use abide_kernel::vocabulary::ProviderError;
use serde_json::{Value, json};

use crate::stage::{Stage, message};

/// The example that the project documents.
const EXAMPLE: &str = r#"
{ "rounds": [
    { "text": "Running it.", "tools": [ { "name": "ExecCommand", "input": { "cmd": "sleep 5; echo hi", "yield_time_ms": 100 } } ] },
    { "tools": [ { "name": "WaitFor", "input": { "wake": "task_result", "resource": { "$result": "/task_handle/task_id" }, "reason": "build" } } ] },
    { "text": "It said hi." } ],
  "when": [ { "contains": "deploy", "rounds": [ { "text": "Deploying.", "delay_ms": 50 } ] } ],
  "loop": false }
"#;

#[test]
fn the_documented_example_plays() {
    let mut stage = Stage::of(EXAMPLE);
    let first = stage.call(&message("m1", "build it")).unwrap();
    assert_eq!(first.text, "Running it.");
    assert_eq!(first.calls[0].tool, "ExecCommand");
    assert_eq!(first.calls[0].input, json!({ "cmd": "sleep 5; echo hi", "yield_time_ms": 100 }));

    stage.past.0.push(json!({ "disposition": "promoted_to_task", "task_handle": { "task_id": "task_7" } }));
    let second = stage.call(&message("m1", "build it")).unwrap();
    assert_eq!(second.text, "");
    let ToolCall::Record(RecordCall::WaitFor { resource, reason, .. }) = &second.calls[0].parsed else {
        panic!("{:?}", second.calls)
    };
    assert_eq!((resource.as_deref(), reason.as_str()), (Some("task_7"), "build"));

    assert_eq!(stage.say(&message("m2", "please deploy it")), "Deploying.");
    assert_eq!(stage.say(&message("m3", "and the build?")), "It said hi.");
    assert_eq!(stage.say(&message("m4", "and now?")), "Done.");
}

#[test]
fn one_round_per_call_in_order_and_then_done() {
    let mut stage = Stage::of(r#"{"rounds": [{"text": "one"}, {"text": "two"}]}"#);
    let said: Vec<String> = (0..4).map(|n| stage.say(&message(&format!("m{n}"), "go on"))).collect();
    assert_eq!(said, ["one", "two", "Done.", "Done."]);
}

#[test]
fn with_loop_it_starts_again() {
    let mut stage = Stage::of(r#"{"rounds": [{"text": "one"}, {"text": "two"}], "loop": true}"#);
    let said: Vec<String> = (0..5).map(|n| stage.say(&message(&format!("m{n}"), "go on"))).collect();
    assert_eq!(said, ["one", "two", "one", "two", "one"]);
    assert_eq!(Stage::of(r#"{"loop": true}"#).say(&message("m1", "hello")), "Done.");
}

#[test]
fn a_round_may_ask_for_several_tools_and_each_call_has_an_id_of_its_own() {
    let script =
        r#"{"rounds": [{"tools": [{"name": "Sleep"}, {"name": "Sleep", "input": {"duration_ms": 5}}]}], "loop": true}"#;
    let mut stage = Stage::of(script);
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..3 {
        let reply = stage.call(&message("m1", "rest")).unwrap();
        assert_eq!(reply.calls[0].parsed, ToolCall::Record(RecordCall::Sleep { reason: None, duration_ms: None }));
        assert_eq!(reply.calls[1].parsed, ToolCall::Record(RecordCall::Sleep { reason: None, duration_ms: Some(5) }));
        ids.extend(reply.calls.iter().map(|call| call.call_id.to_string()));
    }
    assert_eq!(ids[0], "call_1-1-0");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 6);
}

#[test]
fn a_tool_there_is_none_of_is_told_to_the_model() {
    let mut stage = Stage::of(r#"{"rounds": [{"tools": [{"name": "Sleeep"}]}]}"#);
    let reply = stage.call(&message("m1", "rest")).unwrap();
    let ToolCall::Refused(refusal) = &reply.calls[0].parsed else { panic!("{:?}", reply.calls) };
    assert_eq!(refusal.code, ErrorCode::UnknownTool);
}

#[test]
fn every_error_can_stand_in_place_of_a_round_and_the_next_call_gets_the_next_round() {
    for error in ["rate_limited", "overloaded", "timeout", "disconnect", "context_length", "refusal", "auth", "invalid"]
    {
        let script = format!(
            r#"{{"rounds": [{{"error": "{error}", "retry_after_ms": 70}}, {{"error": "{error}"}}, {{"text": "at last"}}]}}"#
        );
        let mut stage = Stage::of(&script);
        assert_eq!(stage.say(&message("m1", "go")), format!("{error} retry Some(70)"));
        assert_eq!(stage.say(&message("m1", "go")), format!("{error} retry None"));
        assert_eq!(stage.say(&message("m1", "go")), "at last");
    }
}

#[test]
fn a_delayed_round_takes_its_time_and_ends_when_it_is_dropped() {
    for script in [
        r#"{"rounds": [{"text": "late", "delay_ms": 50}]}"#,
        r#"{"when": [{"contains": "go", "rounds": [{"text": "late", "delay_ms": 50}]}]}"#,
    ] {
        let mut stage = Stage::of(script);
        assert_eq!(stage.say_within(&message("m1", "go"), Duration::from_millis(49)), None);
        // The place moves with the carry of an answer, and there was none: the round plays again.
        assert_eq!(stage.say_within(&message("m1", "go"), Duration::from_millis(51)).unwrap().text, "late");
    }
}

#[test]
fn an_error_may_take_its_time_too() {
    let mut stage = Stage::of(r#"{"rounds": [{"error": "timeout", "delay_ms": 86400000}]}"#);
    assert_eq!(stage.say_within(&message("m1", "go"), Duration::from_secs(86_399)), None);
    assert_eq!(stage.say(&message("m1", "go")), "timeout retry None");
}

#[test]
fn usage_is_an_estimate_that_costs_nothing() {
    let mut stage = Stage::of(r#"{"rounds": [{"text": "12345678"}, {}]}"#);
    let usage = stage.call(&message("m1", "four")).unwrap().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_micro_usd), (1, 2, 0));
    let usage = stage.call(&message("m2", "täglich")).unwrap().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (2, 0));
}

#[test]
fn a_call_can_move_between_threads() {
    fn sends<T: Send>(_: T) {}
    #[allow(dead_code, reason = "only its type matters")]
    fn of(model: &Model, call: &ModelCall, tools: &ToolSet, exec: &ExecId, past: &dyn PastResults) {
        sends(model.call(call, tools, exec, 1, past));
    }
}

#[test]
fn the_past_is_read_only_when_a_round_needs_it() {
    struct Closed;
    impl PastResults for Closed {
        fn tool_results(&self, _: usize) -> Result<Vec<Value>, ProviderFailure> {
            panic!("nobody asked for it")
        }
    }
    let stage = Stage::of(r#"{"rounds": [{"tools": [{"name": "Sleep", "input": {"reason": {"$input": "/text"}}}]}]}"#);
    let call = stage.model_call(&message("m1", "tired"));
    let reply = stage.run(Providers::default().model(&stage.model).unwrap().call(
        &call,
        &ToolSet::every(),
        &ExecId::new("exec_1"),
        1,
        &Closed,
    ));
    assert_eq!(reply.unwrap().calls[0].input, json!({ "reason": "tired" }));
}

/// The system answers a read of this file with EIO, as a disk that fails for a moment does.
#[test]
fn a_file_that_can_t_be_read_for_the_moment_is_retried() {
    let mut stage = Stage::of("{}");
    stage.model = "script//proc/self/mem".to_owned();
    let failure = stage.call(&message("m1", "hi")).unwrap_err();
    assert_eq!(failure.error, ProviderError::System, "{failure}");
    assert!(failure.message.contains("can't be read: "), "{failure}");
    // One that is not there stays so until somebody makes it.
    stage.model = stage.name("missing.json");
    assert_eq!(stage.call(&message("m1", "hi")).unwrap_err().error, ProviderError::Invalid);
}

#[test]
fn records_that_can_t_be_read_for_the_moment_are_no_fault_of_the_script() {
    struct Unreadable;
    impl PastResults for Unreadable {
        fn tool_results(&self, _: usize) -> Result<Vec<Value>, ProviderFailure> {
            Err(ProviderFailure::system("the records can't be read"))
        }
    }
    let stage = Stage::of(r#"{"rounds": [{"tools": [{"name": "Sleep", "input": {"reason": {"$result": "/x"}}}]}]}"#);
    let call = stage.model_call(&message("m1", "tired"));
    let model = Providers::default().model(&stage.model).unwrap();
    let failure = stage.run(model.call(&call, &ToolSet::every(), &ExecId::new("exec_1"), 1, &Unreadable)).unwrap_err();
    assert_eq!((failure.error, failure.carry), (ProviderError::System, None));
}
