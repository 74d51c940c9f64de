//! Anthropic's Messages.

use abide_effects::model::remote::Protocol;
use abide_effects::tools::ToolSet;
use abide_kernel::budget::Usage;
use abide_kernel::fact::CallRecord;
use abide_kernel::input::Spent;
use abide_kernel::prompt::{CallResult, Item, Part, Prompt, SealedReasoning};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::tool::ToolCall;
use abide_kernel::vocabulary::{ProviderError, SideEffect};
use serde_json::{Value, json};

use super::provider::*;

const SPEAKS: Protocol = Protocol::Anthropic;

pub fn start() -> Value {
    json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant",
        "model": "m-1", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": 25, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 10,
            "output_tokens": 1 } } })
}

pub fn begin(index: u64, block: Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

pub fn delta(index: u64, delta: Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

pub fn text(index: u64, piece: &str) -> Value {
    delta(index, json!({ "type": "text_delta", "text": piece }))
}

pub fn arguments(index: u64, piece: &str) -> Value {
    delta(index, json!({ "type": "input_json_delta", "partial_json": piece }))
}

pub fn stop(index: u64) -> Value {
    json!({ "type": "content_block_stop", "index": index })
}

pub fn end(reason: &str) -> [Value; 2] {
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    [
        json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 15 } }),
        json!({ "type": "message_stop" }),
    ]
}

pub fn tool_use(index: u64, tool: &str) -> Value {
    begin(index, json!({ "type": "tool_use", "id": format!("toolu_{index}"), "name": tool, "input": {} }))
}

/// Reasoning, text, reasoning that is hidden, and two calls.
pub fn everything() -> String {
    let events = [
        start(),
        begin(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        json!({ "type": "ping" }),
        delta(0, json!({ "type": "thinking_delta", "thinking": "Two files: " })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "é and b." })),
        delta(0, json!({ "type": "signature_delta", "signature": "EqQBCg==" })),
        stop(0),
        begin(1, json!({ "type": "text", "text": "" })),
        text(1, "I'll look"),
        text(1, " at é."),
        stop(1),
        begin(2, json!({ "type": "redacted_thinking", "data": "hidden==" })),
        stop(2),
        tool_use(3, "ReadFile"),
        arguments(3, ""),
        arguments(3, "{\"path\": \"é"),
        arguments(3, ".txt\"}"),
        stop(3),
        tool_use(4, "TaskList"),
        stop(4),
    ];
    named(&events) + &named(&end("tool_use"))
}

fn answer(blocks: &[Value], reason: &str) -> Answer {
    Answer::stream(named(&[start()]) + &named(blocks) + &named(&end(reason)))
}

#[tokio::test]
async fn text_is_heard_as_it_comes_and_paid_for() {
    let blocks = [begin(0, json!({ "type": "text", "text": "" })), text(0, "Hel"), text(0, "lo"), stop(0)];
    let provider = Loopback::new(vec![answer(&blocks, "end_turn")]);
    let (reply, pieces) = heard(&provider.remote(SPEAKS), &hello()).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), pieces.concat().as_str()), ("Hello", "Hello"));
    assert_eq!((reply.calls.len(), &reply.stop, &reply.sealed), (0, &None, &None));
    assert_eq!(reply.model.as_deref(), Some("anthropic/m-1"));
    let usage = Usage {
        input_tokens: 135,
        output_tokens: 15,
        cached_tokens: 100,
        cache_write_tokens: 10,
        cost_micro_usd: 25 + 2 * 15 + 3 * 100 + 4 * 10,
    };
    assert_eq!(reply.usage, usage);
    let asked = &provider.asked()[0];
    assert!(asked.head.starts_with("post /v1/messages http/1.1"), "{}", asked.head);
    for header in ["anthropic-version: 2023-06-01", &format!("x-api-key: {KEY}"), "content-type: application/json"] {
        assert!(asked.head.contains(header), "{header} is not in {}", asked.head);
    }
    assert!(!asked.head.contains("authorization"), "{}", asked.head);
}

#[tokio::test]
async fn calls_are_read_in_their_order() {
    let provider = Loopback::new(vec![Answer::stream(everything())]);
    let reply = provider.call(SPEAKS).await.unwrap();
    assert_eq!(reply.text, "I'll look at é.");
    assert_eq!(calls(&reply), [("ReadFile", &json!({ "path": "é.txt" })), ("TaskList", &json!({}))]);
    assert_eq!(reply.calls[0].call_id, call_id(0));
    assert_eq!(reply.calls[1].call_id, call_id(1));
    assert_eq!(reply.calls[0].parsed.side_effect(), Some(SideEffect::ReadOnly));
    assert!(matches!(reply.calls[1].parsed, ToolCall::Record(_)));
    assert_eq!(reply.stop, None);
}

#[tokio::test]
async fn reasoning_goes_back_word_for_word_where_it_stood() {
    let provider = Loopback::new(vec![Answer::stream(everything())]);
    let reply = provider.call(SPEAKS).await.unwrap();
    call(&provider.remote(SPEAKS), &after(&reply)).await.unwrap();
    let content = json!([
        { "type": "thinking", "thinking": "Two files: é and b.", "signature": "EqQBCg==" },
        { "type": "text", "text": "I'll look at é." },
        { "type": "redacted_thinking", "data": "hidden==" },
        { "type": "tool_use", "id": call_id(0), "name": "ReadFile", "input": { "path": "é.txt" } },
        { "type": "tool_use", "id": call_id(1), "name": "TaskList", "input": {} },
    ]);
    assert_eq!(provider.last_body()["messages"][1], json!({ "role": "assistant", "content": content }));
}

#[tokio::test]
async fn reasoning_of_another_model_stays_away_and_the_rest_does_not() {
    let provider = Loopback::new(vec![Answer::stream(everything())]);
    let reply = provider.call(SPEAKS).await.unwrap();
    let mut other = provider.remote(SPEAKS);
    other.name = "anthropic/m-2".to_owned();
    call(&other, &after(&reply)).await.unwrap();
    let content = provider.last_body()["messages"][1]["content"].take();
    let kinds: Vec<&str> = content.as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "tool_use", "tool_use"]);
}

#[tokio::test]
async fn several_texts_become_one_and_are_taken_apart_again() {
    let blocks = [
        begin(0, json!({ "type": "text", "text": "One." })),
        stop(0),
        begin(1, json!({ "type": "thinking", "thinking": "hm", "signature": "s" })),
        stop(1),
        begin(2, json!({ "type": "text", "text": "" })),
        text(2, "Two."),
        stop(2),
        begin(3, json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} })),
        arguments(3, "{}"),
        stop(3),
    ];
    let provider = Loopback::new(vec![answer(&blocks, "end_turn")]);
    let (reply, pieces) = heard(&provider.remote(SPEAKS), &hello()).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), pieces.concat().as_str()), ("One.\n\nTwo.", "One.\n\nTwo."));
    call(&provider.remote(SPEAKS), &after(&reply)).await.unwrap();
    let content = json!([
        { "type": "text", "text": "One." },
        { "type": "thinking", "thinking": "hm", "signature": "s" },
        { "type": "text", "text": "Two." },
    ]);
    assert_eq!(provider.last_body()["messages"][1]["content"], content);
}

/// A text that was shortened since has no places for the reasoning any more: it goes first.
#[tokio::test]
async fn reasoning_goes_first_where_its_places_are_gone() {
    let provider = Loopback::new(vec![Answer::stream(everything())]);
    let mut reply = provider.call(SPEAKS).await.unwrap();
    reply.text = "I'll".to_owned();
    call(&provider.remote(SPEAKS), &after(&reply)).await.unwrap();
    let content = provider.last_body()["messages"][1]["content"].take();
    let kinds: Vec<&str> = content.as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thinking", "redacted_thinking", "text", "tool_use", "tool_use"]);
}

#[tokio::test]
async fn the_body_of_a_request() {
    let provider = Loopback::new(vec![answer(&[], "end_turn")]);
    let prompt = conversation();
    call(&provider.remote(SPEAKS), &prompt).await.unwrap();
    let cached = json!({ "type": "ephemeral" });
    let picture = json!({ "type": "image",
        "source": { "type": "base64", "media_type": "image/png", "data": "aGk=" } });
    let expected = json!({
        "model": "m-1",
        "max_tokens": 4_000,
        "stream": true,
        "system": [{ "type": "text", "text": "Be brief.", "cache_control": cached }],
        "tools": [
            { "name": "TaskList", "description": description("TaskList"), "input_schema": schema("TaskList") },
            { "name": "ReadFile", "description": description("ReadFile"), "input_schema": schema("ReadFile"),
                "cache_control": cached },
        ],
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "Look at this." }, picture] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": call_id(0), "name": "ReadFile", "input": { "path": "a" } },
                { "type": "tool_use", "id": call_id(1), "name": "not_a_tool_", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": call_id(0),
                    "content": [{ "type": "text", "text": "{\"content\":\"a\"}" }, picture] },
                { "type": "tool_result", "tool_use_id": call_id(1), "content": "{\"error\":{}}", "is_error": true,
                    "cache_control": cached },
                { "type": "text", "text": "And now?" },
            ] },
        ],
    });
    assert_eq!(provider.last_body(), expected);
}

/// The prompt with which every protocol's body is tested.
pub fn conversation() -> Prompt {
    let call = |index: usize, tool: &str, input: Value| CallRecord {
        call_id: call_id(index),
        tool: tool.to_owned(),
        input: input.into(),
    };
    let calls = vec![call(0, "ReadFile", json!({ "path": "a" })), call(1, "not.a tool?", Value::Null)];
    let results = vec![
        CallResult { images: vec![image()], ..result(0, "{\"content\":\"a\"}") },
        CallResult { failed: true, ..result(1, "{\"error\":{}}") },
    ];
    let foreign = SealedReasoning {
        model: "elsewhere/x".to_owned(),
        sealed: json!({ "speaks": "anthropic", "order": [] }).into(),
    };
    let parts = vec![Part::Text("Look at this.".to_owned()), Part::Text(String::new()), Part::Image(image())];
    let items = vec![
        Item::User { parts },
        Item::Assistant { text: "I look.".to_owned(), calls, thought: Some(foreign) },
        Item::Results { results },
        user("And now?"),
    ];
    Prompt { system: "Be brief.".to_owned(), items: shared(items), stable: 3 }
}

#[tokio::test]
async fn without_tools_none_are_offered_and_none_is_called() {
    let blocks = [tool_use(0, "TaskList"), stop(0)];
    let provider = Loopback::new(vec![answer(&blocks, "tool_use")]);
    let remote = provider.remote(SPEAKS);
    let reply = remote.call(&hello(), &ToolSet::empty(), &exec_id(), 1, &mut |_| {}).await.unwrap();
    assert_eq!(provider.last_body().get("tools"), None);
    let ToolCall::Refused(refusal) = &reply.calls[0].parsed else { panic!("{:?}", reply.calls[0]) };
    assert_eq!((refusal.code.word(), refusal.hint.as_str()), ("tool_not_offered", "answer with text"));
}

#[tokio::test]
async fn a_model_that_sees_nothing_is_told_of_pictures() {
    let provider = Loopback::new(vec![answer(&[], "end_turn")]);
    let mut remote = provider.remote(SPEAKS);
    remote.card.images = false;
    let prompt = Prompt { items: shared([Item::User { parts: vec![Part::Image(image())] }]), ..hello() };
    call(&remote, &prompt).await.unwrap();
    let told = "(a picture, image/png, which this model can't look at)";
    assert_eq!(provider.last_body()["messages"][0]["content"], json!([{ "type": "text", "text": told }]));
}

/// The provider looks 20 blocks back from a mark; a round of many calls is longer.
#[tokio::test]
async fn a_long_round_gets_a_mark_before_it() {
    let provider = Loopback::new(vec![answer(&[], "end_turn")]);
    let mut items = vec![user("0")];
    for round in 0..4 {
        let call = |index| CallRecord {
            call_id: call_id(round * 10 + index),
            tool: "TaskList".to_owned(),
            input: json!({}).into(),
        };
        items.push(Item::Assistant { text: String::new(), calls: (0..10).map(call).collect(), thought: None });
        items.push(Item::Results { results: (0..10).map(|index| result(round * 10 + index, "{}")).collect() });
    }
    let prompt = Prompt { system: String::new(), stable: items.len(), items: shared(items) };
    call(&provider.remote(SPEAKS), &prompt).await.unwrap();
    let body = provider.last_body();
    let blocks = body["messages"].as_array().unwrap().iter().flat_map(|message| message["content"].as_array().unwrap());
    let marks: Vec<usize> =
        (0..).zip(blocks).filter(|(_, block)| block.get("cache_control").is_some()).map(|(at, _)| at).collect();
    assert_eq!(marks, [60, 80]);
    assert_eq!(body.get("system"), None);
}

#[tokio::test]
async fn reasons_to_stop() {
    let said = [begin(0, json!({ "type": "text", "text": "So" })), stop(0)];
    for (reason, expected) in [
        ("end_turn", None),
        ("max_tokens", Some("max_tokens")),
        ("stop_sequence", Some("stop_sequence")),
        ("pause_turn", Some("pause_turn")),
        ("model_context_window_exceeded", Some("max_tokens")),
        ("something_new", Some("something_new")),
    ] {
        let provider = Loopback::new(vec![answer(&said, reason)]);
        let reply = provider.call(SPEAKS).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.stop.as_deref()), ("So", expected), "{reason}");
    }
}

/// Half of what it would not say is no answer, and another model is asked. What was said is paid for.
#[tokio::test]
async fn a_refusal_is_one_whatever_was_said_before() {
    let said = [begin(0, json!({ "type": "text", "text": "So" })), stop(0)];
    let called = [tool_use(0, "TaskList"), stop(0)];
    let begun = [tool_use(0, "ReadFile"), arguments(0, "{\"pa")];
    for blocks in [&[][..], &said, &called, &begun] {
        let failure = Loopback::new(vec![answer(blocks, "refusal")]).call(SPEAKS).await.unwrap_err();
        assert_eq!(failure.error, ProviderError::Refusal, "{blocks:?}");
        let spent = failure.spent.unwrap();
        assert_eq!((spent.usage.input_tokens, spent.usage.output_tokens, spent.estimated), (135, 15, false));
    }
}

#[tokio::test]
async fn a_call_that_is_cut_by_the_longest_answer_is_refused() {
    for blocks in [
        vec![tool_use(0, "ReadFile"), arguments(0, "{\"path\": \"a"), stop(0)],
        vec![tool_use(0, "ReadFile"), arguments(0, "{\"path\": \"a")],
    ] {
        let provider = Loopback::new(vec![answer(&blocks, "max_tokens")]);
        let reply = provider.call(SPEAKS).await.unwrap();
        assert_eq!(reply.stop.as_deref(), Some("max_tokens"));
        let ToolCall::Refused(refusal) = &reply.calls[0].parsed else { panic!("{:?}", reply.calls[0]) };
        assert_eq!(refusal.code, ErrorCode::CallCutOff);
        assert!(refusal.hint.contains("smaller parts"), "{refusal:?}");
    }
}

/// The input is paid for when it begins to answer.
#[tokio::test]
async fn an_answer_that_breaks_off_has_cost_what_its_provider_said() {
    let said = [start(), begin(0, json!({ "type": "text", "text": "" })), text(0, "Twelve bytes")];
    let provider = Loopback::new(vec![Answer::stream(named(&said))]);
    let failure = provider.call(SPEAKS).await.unwrap_err();
    let Spent { usage, estimated } = *failure.spent.unwrap();
    assert_eq!((usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens), (135, 100, 10));
    assert_eq!((usage.output_tokens, estimated), (3, true), "of its own words there is no count yet");
    assert_eq!(usage.cost_micro_usd, provider.remote(SPEAKS).card.prices.unwrap().cost_micro_usd(&usage));

    // It has stopped, and not every server counts what it said.
    for (counted, expected) in [(json!({}), (3, true)), (json!({ "output_tokens": 15 }), (15, false))] {
        let stopped = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": counted });
        let broken = Answer::stream(named(&said) + &named(&[stop(0), stopped])).cut();
        let spent = Loopback::new(vec![broken]).call(SPEAKS).await.unwrap_err().spent.unwrap();
        assert_eq!((spent.usage.output_tokens, spent.estimated), expected);
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_are_refused() {
    for given in ["{\"path\": ", "[1]", "\"a\"", "{\"path\": \"a\"}{}"] {
        let blocks = [tool_use(0, "ReadFile"), arguments(0, given), stop(0)];
        let provider = Loopback::new(vec![answer(&blocks, "tool_use")]);
        let reply = provider.call(SPEAKS).await.unwrap();
        let ToolCall::Refused(refusal) = &reply.calls[0].parsed else { panic!("{given}: {:?}", reply.calls[0]) };
        assert_eq!((refusal.code.word(), &*reply.calls[0].input), ("invalid_input", &json!({})), "{given}");
        assert!(refusal.message.contains("ReadFile") && refusal.hint.contains("one JSON object"), "{refusal:?}");
    }
}

/// The model is told so, as of a tool that there is not; to ask it again would not help.
#[tokio::test]
async fn a_call_that_names_no_tool_is_refused() {
    for block in [json!({ "type": "tool_use", "id": "a", "input": {} }), json!({ "type": "tool_use", "name": "" })] {
        let blocks = [begin(0, block), arguments(0, "{\"path\": \"a\"}"), stop(0)];
        let provider = Loopback::new(vec![answer(&blocks, "tool_use")]);
        let reply = provider.call(SPEAKS).await.unwrap();
        assert_eq!(calls(&reply), [("", &json!({ "path": "a" }))]);
        let ToolCall::Refused(refusal) = &reply.calls[0].parsed else { panic!("{:?}", reply.calls[0]) };
        assert_eq!((refusal.code.word(), refusal.message.as_str()), ("unknown_tool", "the call names no tool"));
        assert_eq!(refusal.hint, "the tools here are: TaskList, ReadFile");

        // Shown again, it has a name that every provider takes.
        call(&provider.remote(SPEAKS), &after(&reply)).await.unwrap();
        assert_eq!(provider.last_body()["messages"][1]["content"][0]["name"], "_");

        let reply =
            provider.remote(SPEAKS).call(&hello(), &ToolSet::empty(), &exec_id(), 1, &mut |_| {}).await.unwrap();
        let ToolCall::Refused(refusal) = &reply.calls[0].parsed else { panic!("{:?}", reply.calls[0]) };
        assert_eq!(refusal.hint, "answer with text");
    }
}

#[tokio::test]
async fn streams_that_contradict_themselves_are_broken() {
    let one = || begin(0, json!({ "type": "text", "text": "a" }));
    for (blocks, said) in [
        (vec![one(), one()], "part 0 of the answer begins twice"),
        (vec![one(), stop(0), text(0, "b")], "part 0 of the answer goes on after its end"),
        (vec![text(3, "b")], "part 3 of the answer goes on before it began"),
        (vec![tool_use(0, "TaskList"), text(0, "b")], "part 0 of the answer is no text"),
        (vec![one(), arguments(0, "{}")], "part 0 of the answer is no call"),
        (vec![tool_use(0, "TaskList")], "ended inside a tool call"),
        (vec![start()], "begins twice"),
        (vec![json!({ "type": "message_stop" })], "ends without a reason"),
    ] {
        let provider = Loopback::new(vec![answer(&blocks, "end_turn")]);
        let failure = provider.call(SPEAKS).await.unwrap_err();
        assert_eq!(failure.error, ProviderError::Disconnect, "{failure:?}");
        assert!(failure.message.contains(said), "{said:?} is not in {:?}", failure.message);
    }
}
