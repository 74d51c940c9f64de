//! The errors of providers, by class.

use abide_effects::ProviderFailure;
use abide_effects::model::remote::{Key, Protocol, Provider, Question, UsageSoFar, WrittenItems};
use abide_effects::tools::ToolSet;
use abide_kernel::vocabulary::ProviderError;
use serde_json::{Value, json};

use super::provider::*;
use super::{anthropic, chat, responses};

const EVERY: [Protocol; 3] = [Protocol::Anthropic, Protocol::Responses, Protocol::Chat];

async fn failure(protocol: Protocol, answer: Answer) -> ProviderFailure {
    Loopback::new(vec![answer]).call(protocol).await.unwrap_err()
}

fn anthropic_error(kind: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_1" })
}

fn openai_error(kind: &str, code: Value, message: &str) -> Value {
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

#[tokio::test]
async fn by_status() {
    use ProviderError::*;
    for (status, class) in [
        (400, Invalid),
        (401, Auth),
        (402, Auth),
        (403, Auth),
        (404, Invalid),
        (408, Timeout),
        (409, Invalid),
        (413, ContextLength),
        (422, Invalid),
        (429, RateLimited),
        (500, Overloaded),
        (502, Overloaded),
        (503, Overloaded),
        (504, Overloaded),
        (529, Overloaded),
    ] {
        for protocol in EVERY {
            let body = openai_error("some_error", Value::Null, "That did not work.");
            let failure = failure(protocol, Answer::json(status, &body)).await;
            assert_eq!((failure.error, failure.retry_after_ms), (class, None), "{status}");
            assert_eq!(failure.model_only, status == 403, "{status}: only this says that the key itself is known");
            let said = format!("status {status}: That did not work. (some_error)");
            assert!(failure.message.contains(&said), "{}", failure.message);
        }
    }
}

#[tokio::test]
async fn by_what_is_said() {
    use ProviderError::*;
    let invalid = "invalid_request_error";
    for (class, status, body) in [
        (ContextLength, 400, anthropic_error(invalid, "prompt is too long: 210000 tokens > 200000 maximum")),
        (
            ContextLength,
            400,
            anthropic_error(invalid, "input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000"),
        ),
        (ContextLength, 413, anthropic_error("request_too_large", "Request exceeds the maximum size")),
        (
            ContextLength,
            400,
            openai_error(
                invalid,
                json!("context_length_exceeded"),
                "Your input exceeds the context window of this model.",
            ),
        ),
        (
            ContextLength,
            400,
            openai_error(
                invalid,
                Value::Null,
                "This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens.",
            ),
        ),
        (
            ContextLength,
            400,
            json!({ "object": "error", "message": "This model's maximum context length is 4096 tokens.", "type": "BadRequestError", "code": 400 }),
        ),
        (
            ContextLength,
            400,
            json!({ "error": { "code": 400, "message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 4096 } }),
        ),
        (ContextLength, 500, json!({ "error": "the input length exceeds the context length" })),
        (
            ContextLength,
            429,
            openai_error(
                "tokens",
                json!("rate_limit_exceeded"),
                "Request too large for m-1 on tokens per min (TPM): Limit 10000, Requested 15000. The input or output tokens must be reduced.",
            ),
        ),
        (
            Auth,
            429,
            openai_error(
                "insufficient_quota",
                json!("insufficient_quota"),
                "You exceeded your current quota, please check your plan and billing details.",
            ),
        ),
        (Auth, 400, anthropic_error(invalid, "Your credit balance is too low to access the Anthropic API.")),
        (Refusal, 400, openai_error(invalid, json!("content_filter"), "The response was filtered.")),
        (Overloaded, 529, anthropic_error("overloaded_error", "Overloaded")),
        (Invalid, 400, openai_error(invalid, Value::Null, "Unknown parameter: 'context'.")),
    ] {
        let failure = failure(Protocol::Chat, Answer::json(status, &body)).await;
        assert_eq!(failure.error, class, "{body}");
        assert_eq!(failure.retry_after_ms, None, "{body}");
    }
}

#[tokio::test]
async fn what_to_do_is_said() {
    let quota = openai_error("insufficient_quota", json!("insufficient_quota"), "You exceeded your current quota.");
    let said = failure(Protocol::Responses, Answer::json(429, &quota)).await.message;
    assert_eq!(
        said,
        "openai/m-1: status 429: You exceeded your current quota. (insufficient_quota, insufficient_quota); nothing is \
         left to spend there, and waiting changes nothing; the key is that of A_KEY"
    );
    let missing = json!({ "error": { "message": "model 'm-1' not found", "type": "api_error" } });
    let said = failure(Protocol::Chat, Answer::json(404, &missing)).await.message;
    assert!(said.ends_with("(api_error); the model's name or the provider's base URL is wrong"), "{said}");
    let elsewhere = Answer::of(307, "text/plain", "").with("location: https://example.com/");
    let failure = failure(Protocol::Chat, elsewhere).await;
    assert_eq!(failure.error, ProviderError::Invalid);
    assert!(failure.message.contains("redirects are not followed"), "{}", failure.message);
}

#[tokio::test]
async fn words_that_are_no_json() {
    for (body, said) in [
        ("upstream connect error", "status 503: upstream connect error"),
        ("", "status 503: it says nothing more"),
        ("<html><head><title>503 Back soon</title></head></html>", "status 503: a web page, \"503 Back soon\""),
        ("{\"detail\":\"Not now\"}", "status 503: Not now"),
        ("{\"detail\":[{\"loc\":[\"body\"]}]}", "status 503: [{\"loc\":[\"body\"]}]"),
        ("[{\"error\":{\"message\":\"Not now\",\"status\":\"UNAVAILABLE\"}}]", "status 503: Not now (UNAVAILABLE)"),
        ("{\"error\":{\"message\":\"Not now\",\"metadata\":{\"raw\":\"busy\"}}}", "status 503: Not now: busy"),
    ] {
        let failure = failure(Protocol::Chat, Answer::of(503, "text/plain", body)).await;
        assert_eq!(failure.message, format!("openai-chat/m-1: {said}"));
    }
    let long = format!("a\nb\u{7}{}", "é ".repeat(5_000));
    let failure = failure(Protocol::Chat, Answer::of(503, "text/plain", &long)).await;
    assert_eq!(failure.message.chars().count(), 600);
    assert!(!failure.message.contains(|c: char| c.is_control()), "{}", failure.message);
}

/// A head that promises success, and a body that is an error or somebody else's.
#[tokio::test]
async fn a_body_that_is_no_stream() {
    let page = Answer::of(200, "text/html; charset=utf-8", "<html><title>Welcome</title>");
    let failed = failure(Protocol::Responses, page).await;
    assert_eq!(failed.error, ProviderError::Invalid);
    assert!(
        failed.message.contains("a web page, \"Welcome\", not with a stream; its base URL may be wrong"),
        "{failed}"
    );
    let document = failure(Protocol::Chat, Answer::json(200, &json!({ "choices": [] }))).await;
    assert_eq!(document.error, ProviderError::Invalid);
    let limited = json!({ "error": { "code": 429, "message": "Slow down" } });
    assert_eq!(failure(Protocol::Chat, Answer::json(200, &limited)).await.error, ProviderError::RateLimited);
    let words = Answer::of(200, "text/plain", "It works!");
    for (answer, said) in [
        (Answer::of(204, "application/json", ""), "status 204: it answers with nothing, not with a stream"),
        (Answer::of(204, "text/plain", ""), "status 204: it answers with nothing, not with a stream"),
        (Answer::untyped(204, ""), "status 204: it answers with nothing and no content type, not with a stream"),
        (Answer::of(200, "text/html", " \n"), "m-1: it answers with nothing, not with a stream"),
        (Answer::untyped(200, "It works!"), "m-1: it answers with It works! and no content type, not with a stream"),
        (Answer::untyped(200, "{}"), "m-1: it answers with a document and no content type, not with a stream"),
        (words.clone(), "m-1: it answers with It works!, not with a stream"),
        (words.in_pieces_of(1), "m-1: it answers with It works!, not with a stream"),
    ] {
        for protocol in EVERY {
            let failure = failure(protocol, answer.clone()).await;
            assert_eq!((failure.error, failure.spent), (ProviderError::Invalid, None), "{}", failure.message);
            assert!(failure.message.contains(said), "{said:?} is not in {:?}", failure.message);
        }
    }
}

/// Under any content type, a body that begins as a stream is one.
#[tokio::test]
async fn a_stream_that_is_called_something_else() {
    for (protocol, stream) in [
        (Protocol::Anthropic, anthropic::everything()),
        (Protocol::Responses, responses::everything()),
        (Protocol::Chat, chat::everything()),
    ] {
        let whole = Loopback::new(vec![Answer::stream(stream.clone())]).call(protocol).await.unwrap();
        for begins in ["", "\u{feff}", ": hello\n\n", "\n\n", "id: 1\n", "retry: 5\n"] {
            let stream = format!("{begins}{stream}");
            let json = Answer::of(200, "application/json", &stream);
            let untyped = Answer::untyped(200, &stream);
            for answer in [json.clone(), json.in_pieces_of(1), untyped, Answer::of(200, "Text/Event-Stream", &stream)] {
                assert_eq!(Loopback::new(vec![answer]).call(protocol).await.unwrap(), whole, "{begins:?}");
            }
        }
        let cut = Answer::of(200, "application/json", &stream[..stream.len() / 2]).cut();
        let failure = failure(protocol, cut).await;
        assert_eq!((failure.error, failure.spent.is_some()), (ProviderError::Disconnect, true), "{failure:?}");
    }
}

#[tokio::test]
async fn in_the_middle_of_a_stream() {
    use ProviderError::*;
    let anthropic = |error: Value| (Protocol::Anthropic, named(&[anthropic::start(), error]));
    let failed = |code: &str, message: &str| {
        let error = json!({ "code": code, "message": message });
        let event = json!({ "type": "response.failed", "response": { "status": "failed", "error": error } });
        (Protocol::Responses, named(&[responses::added(0, responses::message("")), event]))
    };
    let chat = |error: Value| (Protocol::Chat, chunks(&[chunk(json!({ "content": "So" }), None), error]));
    for (class, wait, (protocol, stream)) in [
        (Overloaded, None, anthropic(anthropic_error("overloaded_error", "Overloaded"))),
        (Overloaded, None, anthropic(anthropic_error("api_error", "Internal server error"))),
        (RateLimited, None, anthropic(anthropic_error("rate_limit_error", "Slow down"))),
        (Invalid, None, anthropic(anthropic_error("invalid_request_error", "No"))),
        (Overloaded, None, failed("server_error", "The server had an error")),
        (
            RateLimited,
            Some(11_054),
            failed("rate_limit_exceeded", "Rate limit reached. Please try again in 11.054s. Visit us."),
        ),
        (ContextLength, None, failed("context_length_exceeded", "Too long")),
        (Refusal, None, failed("invalid_prompt", "Your prompt was flagged")),
        (Auth, None, failed("insufficient_quota", "No money")),
        (
            Overloaded,
            None,
            (Protocol::Responses, named(&[json!({ "type": "error", "code": "server_error", "message": "x" })])),
        ),
        (Overloaded, None, chat(json!({ "error": { "code": 502, "message": "Upstream" }, "choices": [] }))),
        (RateLimited, None, chat(json!({ "error": { "code": 429, "message": "Slow down" } }))),
        (Overloaded, None, chat(json!({ "error": { "message": "Something new" } }))),
        (Overloaded, None, chat(json!({ "error": "out of memory" }))),
    ] {
        let failure = failure(protocol, Answer::stream(stream.clone())).await;
        assert_eq!((failure.error, failure.retry_after_ms), (class, wait), "{stream}");
    }
}

#[tokio::test]
async fn no_key_no_request() {
    let provider = Loopback::new(vec![Answer::stream("")]);
    let mut remote = provider.remote(Protocol::Anthropic);
    let with =
        |key: Option<&str>, base: &Provider| Provider { key: key.map(|key| Key::new(key.to_owned())), ..base.clone() };
    remote.provider = with(None, &remote.provider).into();
    let failure = call(&remote, &hello()).await.unwrap_err();
    assert_eq!(failure.error, ProviderError::Auth);
    assert_eq!(failure.message, "anthropic/m-1: no key is set; set A_KEY to one");

    remote.provider = with(Some("two\nlines"), &remote.provider).into();
    let failure = call(&remote, &hello()).await.unwrap_err();
    assert_eq!(failure.error, ProviderError::Auth);
    assert!(failure.message.contains("A_KEY has letters that no key has"), "{}", failure.message);
    assert_eq!(provider.asked().len(), 0);
}

#[tokio::test]
async fn a_key_that_is_repeated_is_not_passed_on() {
    let body =
        openai_error("invalid_request_error", json!("invalid_api_key"), &format!("Incorrect API key provided: {KEY}."));
    let provider = Loopback::new(vec![Answer::json(401, &body)]);
    let failure = provider.call(Protocol::Chat).await.unwrap_err();
    assert!(!format!("{failure:?}").contains(KEY), "{failure:?}");
    assert!(failure.message.contains("Incorrect API key provided: (the key)."), "{failure:?}");
    assert!(!format!("{:?}", provider.remote(Protocol::Chat)).contains(KEY));
}

/// Nor is one that the model says itself, in whatever pieces. Words of a few letters, as servers at home take them for a
/// key, are no secret.
#[tokio::test]
async fn a_key_that_a_model_says_is_not_passed_on() {
    let (first, second) = KEY.split_at(9);
    // So long that it is told before the rest of the key is there.
    let padding = "x".repeat(20_000);
    let texts = [format!("{padding}{first}"), format!("{second} and {first}")];
    let arguments = json!({ "path": KEY }).to_string();
    let of_anthropic = [
        anthropic::start(),
        anthropic::begin(0, json!({ "type": "text", "text": "" })),
        anthropic::text(0, &texts[0]),
        anthropic::text(0, &texts[1]),
        anthropic::stop(0),
        anthropic::tool_use(1, "ReadFile"),
        anthropic::arguments(1, &arguments),
        anthropic::stop(1),
    ];
    let of_responses = [
        responses::added(0, responses::message("")),
        responses::text(0, &texts[0]),
        responses::text(0, &texts[1]),
        responses::done(1, responses::function("ReadFile", &arguments)),
        responses::completed(json!([])),
    ];
    let called = chat::piece(0, Some("a"), Some("ReadFile"), &arguments);
    let of_chat = [chat::says(&texts[0]), chat::says(&texts[1]), called, chat::finish("tool_calls")];
    for (protocol, stream) in [
        (Protocol::Anthropic, named(&of_anthropic) + &named(&anthropic::end("tool_use"))),
        (Protocol::Responses, named(&of_responses)),
        (Protocol::Chat, chunks(&of_chat)),
    ] {
        let provider = Loopback::new(vec![Answer::stream(stream)]);
        let mut remote = provider.remote(protocol);
        let (reply, pieces) = heard(&remote, &hello()).await;
        let reply = reply.unwrap();
        assert!(pieces.len() > 1, "{pieces:?}");
        let expected = format!("{padding}(the key) and {first}");
        assert!(reply.text == expected && pieces.concat() == expected, "{}", &pieces.concat()[padding.len()..]);
        assert_eq!(calls(&reply), [("ReadFile", &json!({ "path": "(the key)" }))]);

        let short = Provider { key: Some(Key::new(first.to_owned())), ..(*remote.provider).clone() };
        remote.provider = short.into();
        assert!(call(&remote, &hello()).await.unwrap().text.ends_with(first));
    }
    // One that ends as it begins, and is told at its end.
    let key = "sk-0123456789abcdef-sk";
    let provider = Loopback::new(vec![Answer::stream(chunks(&[
        chat::says(&format!("{padding}{key}")),
        chat::says("-0123"),
        chat::finish("stop"),
    ]))]);
    let mut remote = provider.remote(Protocol::Chat);
    remote.provider = Provider { key: Some(Key::new(key.to_owned())), ..(*remote.provider).clone() }.into();
    let (reply, pieces) = heard(&remote, &hello()).await;
    assert_eq!(pieces, [format!("{padding}(the key)"), "-0123".to_owned()]);
    assert_eq!(reply.unwrap().text, pieces.concat());
}

#[tokio::test]
async fn addresses_where_nobody_is() {
    let provider = Loopback::new(vec![Answer::stream("")]);
    let at = |base_url: &str| {
        let mut remote = provider.remote(Protocol::Chat);
        remote.provider = Provider { base_url: base_url.to_owned(), ..(*remote.provider).clone() }.into();
        remote
    };
    // A port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let failure = call(&at(&format!("http://user:pass-word@{free}")), &hello()).await.unwrap_err();
    assert_eq!(failure.error, ProviderError::Disconnect);
    assert!(
        failure.message.contains("could not be reached: ") && !failure.message.contains("pass-word"),
        "{failure:?}"
    );
    let failure = call(&at("not a URL"), &hello()).await.unwrap_err();
    assert_eq!(failure.error, ProviderError::Invalid);
    assert!(failure.message.contains("its base URL is no URL"), "{failure:?}");
}

#[tokio::test]
async fn what_was_read_is_counted_and_what_was_refused_is_not() {
    let begun = format!("data: {}\n\n", chat::says("Hel"));
    let spent = failure(Protocol::Chat, Answer::stream(begun)).await.spent.unwrap();
    assert!(spent.estimated && spent.usage.input_tokens > 100, "the prompt and its tools: {spent:?}");
    assert_eq!(spent.usage.output_tokens, 1);
    for refused in [Answer::json(400, &json!({})), Answer::json(429, &json!({})), Answer::json(529, &json!({}))] {
        assert_eq!(failure(Protocol::Chat, refused).await.spent, None);
    }
}

/// The provider's usage of a failed call outranks our estimate.
#[tokio::test]
async fn what_a_provider_counts_with_its_failure_is_counted() {
    let error = json!({ "code": "server_error", "message": "No" });
    let failed = |usage: Value| {
        let response = json!({ "status": "failed", "error": error, "usage": usage });
        let begun = [responses::added(0, responses::message("")), responses::text(0, "Twelve bytes")];
        let failed = json!({ "type": "response.failed", "response": response });
        (Protocol::Responses, named(&begun) + &named(&[failed]))
    };
    let counted = json!({ "input_tokens": 11, "input_tokens_details": { "cached_tokens": 1 }, "output_tokens": 2 });
    // An answer whose end makes no sense is paid for.
    let twice = json!([responses::function("ReadFile", "{}"), responses::function("TaskList", "")]);
    let begun = [responses::added(0, responses::function("TaskList", "{}"))];
    let mut ends = responses::completed(twice);
    ends["response"]["usage"] = counted.clone();
    let broken = (Protocol::Responses, named(&begun) + &named(&[ends]));
    let of_chat = json!({ "error": error, "usage": { "prompt_tokens": 11, "completion_tokens": 2,
        "prompt_tokens_details": { "cached_tokens": 1 } } });
    let chat = (Protocol::Chat, chunks(&[chat::says("Twelve bytes"), of_chat]));
    for (protocol, stream) in [failed(counted), broken, chat] {
        let failure = failure(protocol, Answer::stream(stream)).await;
        let spent = failure.spent.clone().unwrap();
        assert_eq!((spent.usage.input_tokens, spent.usage.output_tokens), (11, 2), "{failure:?}");
        assert_eq!((spent.usage.cached_tokens, spent.estimated), (1, false), "{failure:?}");
    }
    let (protocol, stream) = failed(Value::Null);
    let spent = failure(protocol, Answer::stream(stream)).await.spent.unwrap();
    assert!(spent.estimated && spent.usage.input_tokens > 100, "{spent:?}");
    assert_eq!(spent.usage.output_tokens, 3);
    let (protocol, stream) = failed(json!({ "output_tokens": 2 }));
    let spent = failure(protocol, Answer::stream(stream)).await.spent.unwrap();
    assert!(spent.estimated && spent.usage.input_tokens > 100, "half of it is a guess: {spent:?}");
    assert_eq!(spent.usage.output_tokens, 2);
}

/// It is charged for from the moment it begins, and for its thoughts and calls as well as for its text.
#[tokio::test]
async fn all_that_has_come_is_guessed() {
    let thinks = chunk(json!({ "reasoning_content": "x".repeat(38) }), None);
    let calls = chat::piece(0, Some("a"), Some("ReadFile"), &"x".repeat(40));
    for (events, output_tokens) in [
        (vec![], 0),
        (vec![thinks.clone()], 10),
        (vec![calls.clone()], 10),
        (vec![thinks, chat::says(&"x".repeat(40)), calls], 30),
    ] {
        let broken = Answer::stream(chunks(&events).replace("data: [DONE]\n\n", "")).cut();
        let spent = failure(Protocol::Chat, broken).await.spent.unwrap();
        assert!(spent.estimated && spent.usage.input_tokens > 100, "{spent:?}");
        assert_eq!(spent.usage.output_tokens, output_tokens, "{events:?}");
        assert_eq!(spent.usage.cost_micro_usd, spent.usage.input_tokens + 2 * output_tokens);
    }
}

/// A caller that ends a call knows its usage.
#[tokio::test]
async fn a_call_that_is_dropped_leaves_its_tab() {
    let begun = format!("data: {}\n\n", chat::says("Hello, world"));
    let provider = Loopback::new(vec![Answer::stream(begun).silent()]);
    let (remote, tab, (heard, hears)) =
        (provider.remote(Protocol::Chat), UsageSoFar::default(), tokio::sync::oneshot::channel());
    assert_eq!(tab.spent(|| 7, None), None, "nobody was asked");
    let (prompt, tools, mut heard) = (hello(), ToolSet::empty(), Some(heard));
    let exec_id = exec_id();
    let question = Question { prompt: &prompt, tools: &tools, written: &mut WrittenItems::default() };
    let mut hear = |_: &str| heard.take().into_iter().for_each(|heard| heard.send(()).unwrap());
    tokio::select! {
        _ = remote.call_on(&tab, question, &exec_id, 1, &mut hear) => panic!("it does not end"),
        _ = hears => {}
    }
    let spent = tab.spent(|| 7, None).unwrap();
    assert_eq!((spent.usage.input_tokens, spent.usage.output_tokens, spent.estimated), (7, 3, true));
}
