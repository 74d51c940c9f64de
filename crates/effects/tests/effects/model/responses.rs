//! OpenAI's Responses.

use abide_effects::model::remote::Speaks;
use abide_kernel::budget::Usage;
use abide_kernel::tool::ToolCall;
use abide_kernel::vocabulary::ProviderError;
use serde_json::{Value, json};

use super::anthropic::conversation;
use super::provider::*;

const SPEAKS: Speaks = Speaks::Responses;

pub fn added(index: u64, item: Value) -> Value {
    json!({ "type": "response.output_item.added", "output_index": index, "item": item })
}

pub fn done(index: u64, item: Value) -> Value {
    json!({ "type": "response.output_item.done", "output_index": index, "item": item })
}

pub fn text(index: u64, piece: &str) -> Value {
    json!({ "type": "response.output_text.delta", "item_id": "msg_1", "output_index": index, "content_index": 0,
        "delta": piece })
}

pub fn arguments(index: u64, piece: &str) -> Value {
    json!({ "type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": index, "delta": piece })
}

pub fn message(text: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
    json!({ "id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": content })
}

pub fn function(tool: &str, arguments: &str) -> Value {
    json!({ "id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_abc", "name": tool,
        "arguments": arguments })
}

pub fn usage() -> Value {
    json!({ "input_tokens": 120, "input_tokens_details": { "cached_tokens": 100 }, "output_tokens": 30,
        "output_tokens_details": { "reasoning_tokens": 10 }, "total_tokens": 150 })
}

pub fn completed(output: Value) -> Value {
    json!({ "type": "response.completed", "response": { "id": "resp_1", "status": "completed", "output": output,
        "error": null, "incomplete_details": null, "usage": usage() } })
}

fn reasoning(id: &str) -> Value {
    json!({ "id": id, "type": "reasoning", "encrypted_content": format!("gAAAA-{id}"), "summary": [] })
}

/// Reasoning, text, reasoning, and two calls.
pub fn everything() -> String {
    named(&[
        json!({ "type": "response.created", "response": { "id": "resp_1", "status": "in_progress", "output": [] } }),
        added(0, json!({ "id": "rs_1", "type": "reasoning", "summary": [] })),
        done(0, reasoning("rs_1")),
        added(
            1,
            json!({ "id": "msg_1", "type": "message", "status": "in_progress", "content": [], "role": "assistant" }),
        ),
        json!({ "type": "response.content_part.added", "output_index": 1, "content_index": 0,
            "part": { "type": "output_text", "text": "", "annotations": [] } }),
        text(1, "I'll look"),
        text(1, " at é."),
        json!({ "type": "response.output_text.done", "output_index": 1, "content_index": 0, "text": "I'll look at é." }),
        done(1, message("I'll look at é.")),
        added(2, json!({ "id": "rs_2", "type": "reasoning", "summary": [] })),
        done(2, reasoning("rs_2")),
        added(3, function("ReadFile", "")),
        arguments(3, "{\"path\":"),
        arguments(3, "\"é.txt\"}"),
        json!({ "type": "response.function_call_arguments.done", "output_index": 3, "arguments": "{\"path\":\"é.txt\"}" }),
        done(3, function("ReadFile", "{\"path\":\"é.txt\"}")),
        added(4, function("TaskList", "")),
        arguments(4, "{}"),
        done(4, function("TaskList", "{}")),
        completed(json!([])),
    ])
}

fn answer(events: &[Value]) -> Answer {
    Answer::stream(named(events))
}

#[tokio::test]
async fn text_is_heard_as_it_comes_and_paid_for() {
    let provider = Loopback::new(vec![answer(&[
        added(0, json!({ "type": "message", "content": [] })),
        text(0, "Hel"),
        text(0, "lo"),
        done(0, message("Hello")),
        completed(json!([message("Hello")])),
    ])]);
    let (reply, pieces) = heard(&provider.remote(SPEAKS), &hello()).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), pieces.concat().as_str()), ("Hello", "Hello"));
    assert_eq!((reply.model.as_deref(), &reply.stop, &reply.sealed), (Some("openai/m-1"), &None, &None));
    let usage = Usage {
        input_tokens: 120,
        output_tokens: 30,
        cached_tokens: 100,
        cache_write_tokens: 0,
        cost_micro_usd: 20 + 2 * 30 + 3 * 100,
    };
    assert_eq!(reply.usage, usage);
    let asked = &provider.asked()[0];
    assert!(asked.head.starts_with("post /v1/responses http/1.1"), "{}", asked.head);
    assert!(asked.head.contains(&format!("authorization: bearer {KEY}")), "{}", asked.head);
}

#[tokio::test]
async fn calls_are_read_and_reasoning_goes_back_word_for_word() {
    let provider = Loopback::new(vec![Answer::stream(everything())]);
    let reply = provider.call(SPEAKS).await.unwrap();
    assert_eq!(reply.text, "I'll look at é.");
    assert_eq!(calls(&reply), [("ReadFile", &json!({ "path": "é.txt" })), ("TaskList", &json!({}))]);
    assert_eq!((&reply.calls[0].call_id, &reply.calls[1].call_id), (&call_id(0), &call_id(1)));

    call(&provider.remote(SPEAKS), &after(&reply)).await.unwrap();
    let input = json!([
        { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Hello" }] },
        reasoning("rs_1"),
        { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I'll look at é." }] },
        reasoning("rs_2"),
        { "type": "function_call", "call_id": call_id(0), "name": "ReadFile", "arguments": "{\"path\":\"é.txt\"}" },
        { "type": "function_call", "call_id": call_id(1), "name": "TaskList", "arguments": "{}" },
        { "type": "function_call_output", "call_id": call_id(0), "output": "{}" },
        { "type": "function_call_output", "call_id": call_id(1), "output": "{}" },
    ]);
    assert_eq!(provider.last_body()["input"], input);

    let mut other = provider.remote(SPEAKS);
    other.name = "openai/m-2".to_owned();
    call(&other, &after(&reply)).await.unwrap();
    assert!(!provider.last_body().to_string().contains("gAAAA"), "{}", provider.last_body());
}

/// The provider refuses reasoning that nothing follows, and reasoning that it can't read.
#[tokio::test]
async fn reasoning_that_led_to_nothing_stays_away() {
    let provider = Loopback::new(vec![answer(&[
        done(0, reasoning("rs_1")),
        done(1, message("So.")),
        done(2, reasoning("rs_2")),
        completed(json!([])),
    ])]);
    let reply = provider.call(SPEAKS).await.unwrap();
    call(&provider.remote(SPEAKS), &after(&reply)).await.unwrap();
    let input = provider.last_body()["input"].to_string();
    assert!(input.contains("gAAAA-rs_1") && !input.contains("gAAAA-rs_2"), "{input}");

    let unreadable = json!({ "id": "rs_1", "type": "reasoning", "summary": [] });
    let provider = Loopback::new(vec![answer(&[done(0, unreadable), done(1, message("So.")), completed(json!([]))])]);
    assert_eq!(provider.call(SPEAKS).await.unwrap().sealed, None);
}

#[tokio::test]
async fn the_body_of_a_request() {
    let provider = Loopback::new(vec![answer(&[completed(json!([]))])]);
    call(&provider.remote(SPEAKS), &conversation()).await.unwrap();
    let mut body = provider.last_body();
    let key = body["prompt_cache_key"].take();
    assert!(key.as_str().is_some_and(|key| key.len() == 32), "{key}");
    let picture = json!({ "type": "input_image", "image_url": "data:image/png;base64,aGk=" });
    let function = |name: &str| {
        json!({ "type": "function", "name": name, "description": description(name), "parameters": schema(name),
            "strict": false })
    };
    let expected = json!({
        "model": "m-1",
        "max_output_tokens": 4_000,
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": null,
        "instructions": "Be brief.",
        "tools": [function("TaskList"), function("ReadFile")],
        "input": [
            { "type": "message", "role": "user",
                "content": [{ "type": "input_text", "text": "Look at this." }, picture] },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] },
            { "type": "function_call", "call_id": call_id(0), "name": "ReadFile", "arguments": "{\"path\":\"a\"}" },
            { "type": "function_call", "call_id": call_id(1), "name": "not_a_tool_", "arguments": "{}" },
            { "type": "function_call_output", "call_id": call_id(0),
                "output": [{ "type": "input_text", "text": "{\"content\":\"a\"}" }, picture] },
            { "type": "function_call_output", "call_id": call_id(1), "output": "{\"error\":{}}" },
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "And now?" }] },
        ],
    });
    assert_eq!(body, expected);

    // The same beginning goes to the same cache.
    call(&provider.remote(SPEAKS), &hello()).await.unwrap();
    assert_eq!(provider.last_body()["prompt_cache_key"], key);
}

#[tokio::test]
async fn a_text_on_the_way_stays_one() {
    let mut aside = message("Looking.");
    aside["phase"] = json!("commentary");
    let provider = Loopback::new(vec![answer(&[
        added(0, message("")),
        text(0, "Looking."),
        done(0, aside),
        done(1, function("TaskList", "{}")),
        completed(json!([])),
    ])]);
    let reply = provider.call(SPEAKS).await.unwrap();
    call(&provider.remote(SPEAKS), &after(&reply)).await.unwrap();
    let said = json!({ "type": "message", "role": "assistant", "phase": "commentary",
        "content": [{ "type": "output_text", "text": "Looking." }] });
    assert_eq!(provider.last_body()["input"][1], said);
}

/// Older models refuse to be asked for reasoning that they do not do.
#[tokio::test]
async fn models_that_do_not_reason_are_not_asked_to() {
    let provider = Loopback::new(vec![answer(&[completed(json!([]))])]);
    for (model, asked) in [("gpt-4.1-mini", false), ("gpt-5-chat-latest", false), ("gpt-5.2", true), ("o4-mini", true)]
    {
        let mut remote = provider.remote(SPEAKS);
        remote.model = model.to_owned();
        call(&remote, &hello()).await.unwrap();
        assert_eq!(provider.last_body().get("include").is_some(), asked, "{model}");
    }
}

/// Some servers send no pieces, or no items, and everything at the end.
#[tokio::test]
async fn what_comes_only_once_counts_as_well() {
    let output = json!([message("Hello"), function("TaskList", "{}")]);
    for events in [
        vec![done(0, message("Hello")), done(1, function("TaskList", "{}")), completed(json!([]))],
        vec![completed(output.clone())],
        vec![added(0, message("")), text(0, "Hello"), added(1, function("TaskList", "")), completed(output)],
    ] {
        let provider = Loopback::new(vec![answer(&events)]);
        let (reply, pieces) = heard(&provider.remote(SPEAKS), &hello()).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), pieces.concat().as_str()), ("Hello", "Hello"));
        assert_eq!(calls(&reply), [("TaskList", &json!({}))]);
    }
}

fn incomplete(reason: &str) -> Value {
    json!({ "type": "response.incomplete", "response": { "status": "incomplete", "output": [],
        "incomplete_details": { "reason": reason }, "usage": usage() } })
}

#[tokio::test]
async fn reasons_to_stop() {
    for (reason, stop) in [("max_output_tokens", "max_tokens"), ("something_new", "something_new")] {
        let provider = Loopback::new(vec![answer(&[added(0, message("")), text(0, "So"), incomplete(reason)])]);
        let reply = provider.call(SPEAKS).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.stop.as_deref()), ("So", Some(stop)));
    }
    let cut = [added(0, function("ReadFile", "")), arguments(0, "{\"path\""), incomplete("max_output_tokens")];
    let provider = Loopback::new(vec![answer(&cut)]);
    let reply = provider.call(SPEAKS).await.unwrap();
    assert!(matches!(&reply.calls[0].parsed, ToolCall::Refused(refusal) if refusal.hint.contains("smaller parts")));

    // Some say that it is not whole in an event that says it is.
    let mut cut = incomplete("max_output_tokens");
    cut["type"] = json!("response.completed");
    let provider = Loopback::new(vec![answer(&[added(0, message("")), text(0, "So"), cut])]);
    assert_eq!(provider.call(SPEAKS).await.unwrap().stop.as_deref(), Some("max_tokens"));
}

#[tokio::test]
async fn a_refusal_is_one_whatever_was_said_before() {
    let words = "I can't help with that.";
    let refused = json!({ "type": "message", "content": [{ "type": "refusal", "refusal": words }] });
    let mut both = message("So");
    both["content"].as_array_mut().unwrap().push(refused["content"][0].clone());
    let piece = || json!({ "type": "response.refusal.delta", "output_index": 0, "delta": words });
    let begun = || vec![added(0, message("")), text(0, "So")];
    let over = || completed(json!([]));
    for (said, events) in [
        (words, vec![done(0, refused.clone()), over()]),
        (words, vec![added(0, message("")), piece(), over()]),
        (words, vec![added(0, message("")), piece(), done(0, refused), over()]),
        (words, [begun(), vec![piece(), over()]].concat()),
        (words, [begun(), vec![done(0, both.clone()), over()]].concat()),
        (words, vec![done(0, function("TaskList", "{}")), completed(json!([function("TaskList", "{}"), both]))]),
        ("refuses to answer", vec![incomplete("content_filter")]),
        ("refuses to answer", [begun(), vec![incomplete("content_filter")]].concat()),
    ] {
        let provider = Loopback::new(vec![answer(&events)]);
        let failure = provider.call(SPEAKS).await.unwrap_err();
        assert_eq!(failure.error, ProviderError::Refusal, "{events:?}");
        assert_eq!(failure.message.matches(said).count(), 1, "{failure:?}");
        let spent = failure.spent.unwrap();
        assert_eq!((spent.usage.input_tokens, spent.usage.output_tokens, spent.estimated), (120, 30, false));
    }
}

/// The model is told so, as of a tool that there is not; to ask it again would not help.
#[tokio::test]
async fn a_call_that_names_no_tool_is_refused() {
    let mut unnamed = function("", "{}");
    for events in [
        vec![added(0, unnamed.clone()), done(0, unnamed.clone()), completed(json!([]))],
        vec![done(0, unnamed.clone()), completed(json!([]))],
        vec![completed(json!([{ "type": "function_call", "arguments": "{}" }]))],
    ] {
        let reply = Loopback::new(vec![answer(&events)]).call(SPEAKS).await.unwrap();
        assert_eq!(calls(&reply), [("", &json!({}))]);
        let ToolCall::Refused(refusal) = &reply.calls[0].parsed else { panic!("{:?}", reply.calls[0]) };
        assert_eq!((refusal.code.word(), refusal.message.as_str()), ("unknown_tool", "the call names no tool"));
    }
    // It comes late.
    unnamed["name"].take();
    let events = [added(0, unnamed), arguments(0, "{}"), done(0, function("TaskList", "{}")), completed(json!([]))];
    let reply = Loopback::new(vec![answer(&events)]).call(SPEAKS).await.unwrap();
    assert_eq!(calls(&reply), [("TaskList", &json!({}))]);
}

#[tokio::test]
async fn streams_that_contradict_themselves_are_broken() {
    for (events, said) in [
        (vec![added(0, message("")), added(0, message(""))], "begins twice"),
        (vec![added(0, function("ReadFile", "")), completed(json!([]))], "ended inside a tool call"),
        (vec![arguments(2, "{}")], "part 2 of the answer goes on before it began"),
        (
            vec![
                added(0, function("ReadFile", "")),
                arguments(0, "{\"path\":\"a\"}"),
                done(0, function("ReadFile", "{}")),
            ],
            "ends otherwise than it came",
        ),
        (vec![added(0, function("ReadFile", "")), done(0, function("TaskList", ""))], "ends otherwise than it came"),
        (vec![done(0, message("a")), done(0, message("a"))], "goes on after its end"),
    ] {
        let provider = Loopback::new(vec![answer(&events)]);
        let failure = provider.call(SPEAKS).await.unwrap_err();
        assert_eq!(failure.error, ProviderError::Disconnect, "{failure:?}");
        assert!(failure.message.contains(said), "{said:?} is not in {:?}", failure.message);
    }
}
