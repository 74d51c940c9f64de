//! Chat Completions, as OpenAI has them and as others do.

use abide_effects::model::remote::Protocol;
use abide_kernel::budget::Usage;
use abide_kernel::tool::ToolCall;
use abide_kernel::vocabulary::ProviderError;
use serde_json::{Value, json};

use super::anthropic::conversation;
use super::provider::*;

const SPEAKS: Protocol = Protocol::Chat;

pub fn says(text: &str) -> Value {
    chunk(json!({ "content": text }), None)
}

pub fn piece(index: u64, id: Option<&str>, tool: Option<&str>, arguments: &str) -> Value {
    let mut call = json!({ "index": index, "function": { "arguments": arguments } });
    if let Some(id) = id {
        call["id"] = json!(id);
        call["type"] = json!("function");
    }
    if let Some(tool) = tool {
        call["function"]["name"] = json!(tool);
    }
    chunk(json!({ "tool_calls": [call] }), None)
}

pub fn finish(reason: &str) -> Value {
    chunk(json!({}), Some(reason))
}

pub fn usage() -> Value {
    json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [],
        "usage": { "prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150,
            "prompt_tokens_details": { "cached_tokens": 100 } } })
}

/// Text and two calls.
pub fn everything() -> String {
    chunks(&[
        chunk(json!({ "role": "assistant", "content": "" }), None),
        says("I'll look"),
        says(" at é."),
        piece(0, Some("call_a"), Some("ReadFile"), ""),
        piece(0, None, None, "{\"path\":"),
        piece(0, None, None, "\"é.txt\"}"),
        piece(1, Some("call_b"), Some("TaskList"), "{}"),
        finish("tool_calls"),
        usage(),
    ])
}

fn answer(events: &[Value]) -> Answer {
    Answer::stream(chunks(events))
}

#[tokio::test]
async fn text_is_heard_as_it_comes_and_paid_for() {
    let provider = Loopback::new(vec![answer(&[says("Hel"), says("lo"), finish("stop"), usage()])]);
    let (reply, pieces) = heard(&provider.remote(SPEAKS), &hello()).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), pieces.concat().as_str()), ("Hello", "Hello"));
    assert_eq!((reply.model.as_deref(), &reply.stop, &reply.sealed), (Some("openai-chat/m-1"), &None, &None));
    let usage = Usage {
        input_tokens: 120,
        output_tokens: 30,
        cached_tokens: 100,
        cache_write_tokens: 0,
        cost_micro_usd: 20 + 2 * 30 + 3 * 100,
    };
    assert_eq!(reply.usage, usage);
    let asked = &provider.asked()[0];
    assert!(asked.head.starts_with("post /v1/chat/completions http/1.1"), "{}", asked.head);
    assert!(asked.head.contains(&format!("authorization: bearer {KEY}")), "{}", asked.head);
}

#[tokio::test]
async fn calls_are_read_in_their_order() {
    let provider = Loopback::new(vec![Answer::stream(everything())]);
    let reply = provider.call(SPEAKS).await.unwrap();
    assert_eq!(reply.text, "I'll look at é.");
    assert_eq!(calls(&reply), [("ReadFile", &json!({ "path": "é.txt" })), ("TaskList", &json!({}))]);
    assert_eq!((&reply.calls[0].call_id, &reply.calls[1].call_id), (&call_id(0), &call_id(1)));
}

#[tokio::test]
async fn the_body_of_a_request() {
    let provider = Loopback::new(vec![answer(&[finish("stop")])]);
    call(&provider.remote(SPEAKS), &conversation()).await.unwrap();
    let function = |name: &str| {
        let function = json!({ "name": name, "description": description(name), "parameters": schema(name) });
        json!({ "type": "function", "function": function })
    };
    let called = |index: usize, name: &str, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "id": call_id(index), "type": "function", "function": function })
    };
    let picture = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,aGk=" } });
    let expected = json!({
        "model": "m-1",
        "max_tokens": 4_000,
        "stream": true,
        "stream_options": { "include_usage": true },
        "tools": [function("TaskList"), function("ReadFile")],
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "Look at this." }, picture] },
            { "role": "assistant", "content": "I look.",
                "tool_calls": [called(0, "ReadFile", "{\"path\":\"a\"}"), called(1, "not_a_tool_", "{}")] },
            { "role": "tool", "tool_call_id": call_id(0), "content": "{\"content\":\"a\"}" },
            { "role": "tool", "tool_call_id": call_id(1), "content": "{\"error\":{}}" },
            { "role": "user", "content": [
                { "type": "text", "text": format!("The pictures that {} returned:", call_id(0)) },
                picture,
                { "type": "text", "text": "And now?" },
            ] },
        ],
    });
    assert_eq!(provider.last_body(), expected);

    // Plain text where there is nothing else, and one message where several follow each other.
    let mut prompt = hello();
    prompt.items.extend(shared([user("And more.")]));
    call(&provider.remote(SPEAKS), &prompt).await.unwrap();
    let messages = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Hello\n\nAnd more." },
    ]);
    assert_eq!(provider.last_body()["messages"], messages);
}

#[tokio::test]
async fn a_server_at_home_needs_no_key_and_may_count_nothing() {
    let provider = Loopback::new(vec![answer(&[says("Hello there"), finish("stop")])]);
    let mut remote = provider.remote(SPEAKS);
    let home = abide_effects::model::remote::Provider { key: None, key_env: None, ..(*remote.provider).clone() };
    remote.provider = home.into();
    remote.card.prices = None;
    let reply = call(&remote, &hello()).await.unwrap();
    assert!(!provider.asked()[0].head.contains("authorization"), "{}", provider.asked()[0].head);
    let sent = provider.last_body().to_string().chars().count();
    let usage = Usage { input_tokens: sent.div_ceil(4) as u64, output_tokens: 3, ..Usage::default() };
    assert_eq!(reply.usage, usage);
}

/// Deviations of other servers that can't be misunderstood.
#[tokio::test]
async fn calls_in_other_shapes() {
    let whole = |call: Value| chunk(json!({ "content": null, "tool_calls": [call] }), None);
    let function = json!({ "name": "TaskList", "arguments": "{}" });
    for (what, events) in [
        (
            "in one chunk, with its reason",
            vec![chunk(
                json!({ "tool_calls": [
            { "index": 0, "id": "a", "type": "function", "function": function },
            { "index": 1, "id": "b", "type": "function", "function": function } ] }),
                Some("tool_calls"),
            )],
        ),
        (
            "without number and id",
            vec![whole(json!({ "function": function })), whole(json!({ "function": function })), finish("stop")],
        ),
        (
            "with one number for all",
            vec![
                whole(json!({ "index": 0, "id": "a", "function": function })),
                whole(json!({ "index": 0, "id": "b", "function": function })),
                finish("tool_calls"),
            ],
        ),
        (
            "with its name in every piece",
            vec![
                piece(0, Some("a"), Some("TaskList"), "{"),
                piece(0, Some("a"), Some("TaskList"), "}"),
                piece(1, Some("b"), Some("TaskList"), "{}"),
                finish("tool_calls"),
            ],
        ),
        (
            "with empty ids",
            vec![
                piece(0, Some(""), Some("TaskList"), "{}"),
                piece(1, Some(""), Some("TaskList"), ""),
                piece(1, Some(""), Some(""), "{}"),
                finish("tool_calls"),
            ],
        ),
        (
            "with arguments that are no text",
            vec![
                whole(json!({ "index": 0, "function": { "name": "TaskList", "arguments": {} } })),
                whole(json!({ "index": 1, "function": { "name": "TaskList", "arguments": null } })),
                finish("stop"),
            ],
        ),
        (
            "all in a message",
            vec![json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "tool_calls": [{ "id": "a", "function": function }, { "id": "b", "function": function }] } }] })],
        ),
    ] {
        let provider = Loopback::new(vec![answer(&events)]);
        let reply = provider.call(SPEAKS).await.unwrap_or_else(|failure| panic!("{what}: {failure:?}"));
        assert_eq!(calls(&reply), [("TaskList", &json!({})), ("TaskList", &json!({}))], "{what}");
        assert!(reply.calls.iter().all(|call| matches!(call.parsed, ToolCall::Record(_))), "{what}");
    }
}

/// The model is told so, as of a tool that there is not; to ask it again would not help.
#[tokio::test]
async fn a_call_that_names_no_tool_is_refused() {
    for (first, arguments) in [(piece(0, Some("a"), None, "{}"), "{}"), (piece(0, None, Some(""), "{"), "{")] {
        let events = [first, piece(1, Some("b"), Some("TaskList"), "{}"), finish("tool_calls")];
        let reply = Loopback::new(vec![answer(&events)]).call(SPEAKS).await.unwrap();
        assert_eq!(calls(&reply), [("", &json!({})), ("TaskList", &json!({}))], "{arguments}");
        let ToolCall::Refused(refusal) = &reply.calls[0].parsed else { panic!("{:?}", reply.calls[0]) };
        assert_eq!((refusal.code.word(), refusal.message.as_str()), ("unknown_tool", "the call names no tool"));
        assert!(matches!(reply.calls[1].parsed, ToolCall::Record(_)), "{:?}", reply.calls[1]);
    }
    // It comes late.
    let events = [
        piece(0, Some("a"), None, ""),
        piece(0, None, Some("ReadFile"), "{\"path\":"),
        piece(0, None, None, "\"a\"}"),
        finish("tool_calls"),
    ];
    let reply = Loopback::new(vec![answer(&events)]).call(SPEAKS).await.unwrap();
    assert_eq!(calls(&reply), [("ReadFile", &json!({ "path": "a" }))]);
    assert!(!matches!(reply.calls[0].parsed, ToolCall::Refused(_)), "{:?}", reply.calls[0]);
}

/// Several servers want what led to a call back with it; without calls nobody does.
#[tokio::test]
async fn what_led_to_a_call_goes_back_with_it() {
    let thinks = |piece: &str| chunk(json!({ "reasoning_content": piece }), None);
    let extra = json!({ "google": { "thought_signature": "c2ln" } });
    let signed = json!({ "index": 0, "id": "a", "extra_content": extra, "type": "function",
        "function": { "name": "TaskList", "arguments": "{}" } });
    let provider = Loopback::new(vec![
        answer(&[
            thinks("First "),
            thinks("this."),
            says("So."),
            chunk(json!({ "tool_calls": [signed] }), None),
            piece(1, Some("b"), Some("TaskList"), "{}"),
            finish("tool_calls"),
        ]),
        answer(&[thinks("Hm."), says("So."), finish("stop")]),
    ]);
    let remote = provider.remote(SPEAKS);
    let reply = call(&remote, &hello()).await.unwrap();
    assert_eq!(reply.text, "So.");
    assert_eq!(call(&remote, &after(&reply)).await.unwrap().sealed, None);
    let said = provider.last_body()["messages"][2].take();
    let called = |index: usize| {
        let function = json!({ "name": "TaskList", "arguments": "{}" });
        json!({ "id": call_id(index), "type": "function", "function": function })
    };
    let mut first = called(0);
    first["extra_content"] = extra;
    let expected = json!({ "role": "assistant", "content": "So.", "reasoning_content": "First this.",
        "tool_calls": [first, called(1)] });
    assert_eq!(said, expected);

    let mut other = remote;
    other.name = "openai-chat/m-2".to_owned();
    call(&other, &after(&reply)).await.unwrap();
    let said = provider.last_body()["messages"][2].take();
    let expected = json!({ "role": "assistant", "content": "So.", "tool_calls": [called(0), called(1)] });
    assert_eq!(said, expected);
}

/// OpenRouter's way to hand over reasoning: in pieces that belong together as long as they are of one kind, to be given
/// back whole, in order, to the model that thought it. Its numbers say nothing while they are streamed.
#[tokio::test]
async fn reasoning_details_are_put_together_and_go_back() {
    let detail = |piece: Value| chunk(json!({ "reasoning": "…", "reasoning_details": [piece] }), None);
    let text = |fields: Value| {
        let mut piece = json!({ "type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0 });
        piece.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        detail(piece)
    };
    let summary =
        |words: &str| detail(json!({ "type": "reasoning.summary", "summary": words, "id": null, "index": 0 }));
    let sealed = json!({ "type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "index": 0 });
    let events = [
        text(json!({ "text": "First " })),
        text(json!({ "text": "this.", "signature": null })),
        says("So."),
        text(json!({ "signature": "c2ln" })),
        text(json!({ "text": "Then that." })),
        text(json!({ "text": "", "signature": "bW9yZQ==" })),
        summary("In "),
        summary("short."),
        detail(sealed.clone()),
        detail(sealed.clone()),
    ];
    let expected = json!([
        { "type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "text": "First this.", "signature": "c2ln" },
        { "type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "text": "Then that.", "signature": "bW9yZQ==" },
        { "type": "reasoning.summary", "summary": "In short.", "id": null, "index": 0 },
        sealed,
        sealed,
    ]);
    let calls = [piece(0, Some("a"), Some("TaskList"), "{}"), finish("tool_calls")];
    let ends = [finish("stop")];
    for (end, with_calls) in [(&calls[..], true), (&ends[..], false)] {
        let provider =
            Loopback::new(vec![answer(&[&events[..], end].concat()), answer(&[says("Yes."), finish("stop")])]);
        let remote = provider.remote(SPEAKS);
        let reply = call(&remote, &hello()).await.unwrap();
        call(&remote, &after(&reply)).await.unwrap();
        let said = provider.last_body()["messages"][2].take();
        assert_eq!((&said["content"], said["tool_calls"].is_array()), (&json!("So."), with_calls));
        assert_eq!(said["reasoning_details"], expected);
        assert_eq!(said.get("reasoning_content"), None);
        let mut other = remote;
        other.name = "openai-chat/m-2".to_owned();
        call(&other, &after(&reply)).await.unwrap();
        assert_eq!(provider.last_body()["messages"][2].get("reasoning_details"), None, "another model can't read it");
    }
}

#[tokio::test]
async fn reasoning_details_have_a_bound() {
    let one = json!({ "type": "reasoning.encrypted", "data": "x".repeat(100_000) });
    let events = vec![chunk(json!({ "reasoning_details": [one] }), None); 400];
    let failure = Loopback::new(vec![answer(&events)]).call(SPEAKS).await.unwrap_err();
    assert!(failure.message.contains("bytes of reasoning"), "{failure}");
}

#[tokio::test]
async fn an_end_that_is_not_marked() {
    // The last event is `[DONE]` by the document; the reason is enough where the body ends as HTTP wants it.
    let events = [says("Hello"), finish("stop")];
    let unmarked = chunks(&events).replace("data: [DONE]\n\n", "");
    let provider = Loopback::new(vec![Answer::stream(unmarked.clone()), Answer::stream(unmarked).cut()]);
    assert_eq!(provider.call(SPEAKS).await.unwrap().text, "Hello");
    assert_eq!(provider.call(SPEAKS).await.unwrap_err().error, ProviderError::Disconnect);

    // The mark alone is enough for text, and not for calls.
    let provider = Loopback::new(vec![
        answer(&[says("Hello")]),
        answer(&[piece(0, Some("a"), Some("TaskList"), "{}")]),
        Answer::stream("data: {\"choices\": []}\n\n"),
    ]);
    assert_eq!(provider.call(SPEAKS).await.unwrap().text, "Hello");
    assert_eq!(provider.call(SPEAKS).await.unwrap_err().error, ProviderError::Disconnect);
    assert_eq!(provider.call(SPEAKS).await.unwrap_err().error, ProviderError::Disconnect);
}

#[tokio::test]
async fn reasons_to_stop() {
    for (reason, expected) in
        [("stop", None), ("tool_calls", None), ("length", Some("max_tokens")), ("something_new", Some("something_new"))]
    {
        let provider = Loopback::new(vec![answer(&[says("So"), finish(reason)])]);
        let reply = provider.call(SPEAKS).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.stop.as_deref()), ("So", expected), "{reason}");
    }
    let cut = [piece(0, Some("a"), Some("ReadFile"), "{\"path\": \"a"), finish("length")];
    let reply = Loopback::new(vec![answer(&cut)]).call(SPEAKS).await.unwrap();
    assert!(matches!(&reply.calls[0].parsed, ToolCall::Refused(refusal) if refusal.hint.contains("smaller parts")));
}

#[tokio::test]
async fn a_refusal_is_one_whatever_was_said_before() {
    let call = piece(0, Some("a"), Some("TaskList"), "{}");
    for before in [vec![], vec![says("So")], vec![call]] {
        let filtered = answer(&[before.clone(), vec![finish("content_filter"), usage()]].concat());
        let failure = Loopback::new(vec![filtered]).call(SPEAKS).await.unwrap_err();
        assert_eq!(failure.error, ProviderError::Refusal, "{before:?}");
        let spent = failure.spent.unwrap();
        assert_eq!((spent.usage.input_tokens, spent.usage.output_tokens, spent.estimated), (120, 30, false));

        let refusal = chunk(json!({ "refusal": "No, thank you." }), Some("stop"));
        let refused = answer(&[before, vec![refusal]].concat());
        let failure = Loopback::new(vec![refused]).call(SPEAKS).await.unwrap_err();
        assert_eq!(failure.error, ProviderError::Refusal);
        assert!(failure.message.contains("No, thank you."), "{failure:?}");
    }
    // Some have the field in every piece, with nothing in it.
    let said = chunk(json!({ "content": "So", "refusal": "" }), Some("stop"));
    assert_eq!(Loopback::new(vec![answer(&[said])]).call(SPEAKS).await.unwrap().text, "So");
}

/// The usage before the first count is estimated, up to its last byte.
#[tokio::test]
async fn an_answer_that_breaks_off_before_it_is_counted_is_guessed() {
    let events = [says(&"x".repeat(320)), finish("stop"), usage()];
    let mut each = says("xx");
    each["usage"] = json!({ "prompt_tokens": 120, "completion_tokens": 1 });
    let mut all = finish("stop");
    all["usage"] = json!({ "prompt_tokens": 120, "completion_tokens": 90 });
    for (events, output_tokens, estimated) in [
        (&events[..1], 80, true),
        (&events[..2], 80, true),
        (&events[..3], 30, false),
        // Counted as it grows.
        (&[each.clone(), says(&"x".repeat(318)), finish("stop")][..], 80, true),
        (&[each, says(&"x".repeat(318)), all][..], 90, false),
    ] {
        let broken = Answer::stream(chunks(events).replace("data: [DONE]\n\n", "")).cut();
        let failure = Loopback::new(vec![broken]).call(SPEAKS).await.unwrap_err();
        assert_eq!(failure.error, ProviderError::Disconnect);
        let spent = failure.spent.unwrap();
        assert_eq!((spent.usage.output_tokens, spent.estimated), (output_tokens, estimated), "{events:?}");
    }
}

#[tokio::test]
async fn streams_that_contradict_themselves_are_broken() {
    for (events, said) in [
        (
            vec![piece(0, Some("a"), Some("ReadFile"), "{\"pa"), piece(0, Some("b"), Some("TaskList"), "{}")],
            "the same number",
        ),
        (vec![piece(0, Some("a"), Some("ReadFile"), "{}"), piece(0, None, Some("TaskList"), "{}")], "the same number"),
        (vec![finish("stop"), says("more")], "goes on after its end"),
    ] {
        let events: Vec<Value> = events.into_iter().chain([finish("stop")]).collect();
        let provider = Loopback::new(vec![answer(&events)]);
        let failure = provider.call(SPEAKS).await.unwrap_err();
        assert_eq!(failure.error, ProviderError::Disconnect, "{failure:?}");
        assert!(failure.message.contains(said), "{said:?} is not in {:?}", failure.message);
    }
}
