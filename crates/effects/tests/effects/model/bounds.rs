//! Answers that are larger than anybody has use for.

use abide_effects::model::remote::Protocol;
use abide_kernel::vocabulary::ProviderError;
use serde_json::{Value, json};

use super::provider::*;
use super::{anthropic, chat, responses};

const MIB: usize = 1 << 20;

async fn said(protocol: Protocol, stream: String) -> String {
    let failure = Loopback::new(vec![Answer::stream(stream)]).call(protocol).await.unwrap_err();
    assert_eq!(failure.error, ProviderError::Invalid, "{failure:?}");
    failure.message
}

#[tokio::test]
async fn an_answer_of_ten_megabytes() {
    let piece = "x".repeat(100_000);
    let pieces = |event: &dyn Fn(&str) -> Value| -> Vec<Value> { (0..100).map(|_| event(&piece)).collect() };
    let begin = named(&[anthropic::start(), anthropic::begin(0, json!({ "type": "text", "text": "" }))]);
    for (protocol, stream) in [
        (Protocol::Anthropic, begin + &named(&pieces(&|piece| anthropic::text(0, piece)))),
        (
            Protocol::Responses,
            named(&[responses::added(0, responses::message(""))]) + &named(&pieces(&|piece| responses::text(0, piece))),
        ),
        (Protocol::Chat, chunks(&pieces(&chat::says))),
    ] {
        let said = said(protocol, stream).await;
        assert!(said.ends_with("its answer is too large: more than 1048576 bytes of text"), "{said}");
    }
    // In one event, and in one that never ends.
    let whole = said(Protocol::Chat, chunks(&[chat::says(&"x".repeat(9 * MIB))])).await;
    assert!(whole.contains("one event of its stream is larger than 8 MiB"), "{whole}");
    let lines = said(Protocol::Chat, format!("data: {}\n", "x".repeat(MIB)).repeat(9)).await;
    assert!(lines.contains("one event of its stream is larger than 8 MiB"), "{lines}");
}

#[tokio::test]
async fn as_large_as_may_be() {
    let text = "x".repeat(MIB);
    let provider = Loopback::new(vec![Answer::stream(chunks(&[chat::says(&text), chat::finish("stop")]))]);
    assert_eq!(provider.call(Protocol::Chat).await.unwrap().text, text);
}

#[tokio::test]
async fn calls_and_their_arguments() {
    let long = format!("{{\"path\": \"{}\"}}", "x".repeat(MIB));
    let said_of = said(Protocol::Chat, chunks(&[chat::piece(0, Some("a"), Some("ReadFile"), &long)])).await;
    assert!(said_of.contains("more than 1048576 bytes of arguments for one call"), "{said_of}");

    let call = |index| chat::piece(index, Some(&format!("id-{index}")), Some("TaskList"), "{}");
    let many = |count| chunks(&(0..count).map(call).chain([chat::finish("tool_calls")]).collect::<Vec<_>>());
    let said_of = said(Protocol::Chat, many(129)).await;
    assert!(said_of.contains("more than 128 tool calls"), "{said_of}");
    let reply = Loopback::new(vec![Answer::stream(many(128))]).call(Protocol::Chat).await.unwrap();
    assert_eq!(reply.calls.len(), 128);
}

#[tokio::test]
async fn reasoning() {
    let thinking = anthropic::begin(0, json!({ "type": "thinking", "thinking": "", "signature": "" }));
    let piece = anthropic::delta(0, json!({ "type": "thinking_delta", "thinking": "x".repeat(MIB / 2) }));
    let stream = named(&[anthropic::start(), thinking, piece.clone(), piece.clone(), piece]);
    let of_anthropic = said(Protocol::Anthropic, stream).await;
    let item = json!({ "type": "reasoning", "summary": [], "encrypted_content": "x".repeat(MIB) });
    let of_openai = said(Protocol::Responses, named(&[responses::done(0, item)])).await;
    for said in [of_anthropic, of_openai] {
        assert!(said.ends_with("its answer is too large: more than 1048576 bytes of reasoning"), "{said}");
    }
}

#[tokio::test]
async fn parts_of_no_use() {
    let parts: Vec<Value> = (0..1_025).map(|index| anthropic::begin(index, json!({ "type": "new" }))).collect();
    let said = said(Protocol::Anthropic, named(&[anthropic::start()]) + &named(&parts)).await;
    assert!(said.ends_with("its answer is too large: more than 1024 parts"), "{said}");
}
