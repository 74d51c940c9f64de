//! The bytes of requests: what is kept of a request changes none of the next one.

use std::sync::Arc;

use abide_effects::model::remote::{Protocol, Question, Remote, WrittenItems};
use abide_effects::tools::ToolSet;
use abide_kernel::fact::CallRecord;
use abide_kernel::prompt::{CallResult, Image, Item, Part, Prompt, SealedReasoning};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::provider::*;

/// No request is sent.
const NOWHERE: &str = "http://127.0.0.1:9";

fn text() -> impl Strategy<Value = String> {
    let texts = ["", " ", "\"", "\\", "a\"b\nc", "é\u{2028}", "plain words", "{\"a\": 1}"].map(str::to_owned);
    prop_oneof![prop::sample::select(texts.to_vec()), "\\PC{0,12}"]
}

fn picture() -> impl Strategy<Value = Image> {
    Just(image())
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![3 => text().prop_map(Part::Text), 1 => picture().prop_map(Part::Image)]
}

fn call() -> impl Strategy<Value = CallRecord> {
    let input = prop_oneof![Just(json!({})), Just(json!("no object")), text().prop_map(|text| json!({ "path": text }))];
    (0..4_usize, prop_oneof![Just("TaskList".to_owned()), text()], input).prop_map(|(index, tool, input)| CallRecord {
        call_id: call_id(index),
        tool,
        input: input.into(),
    })
}

/// Reasoning as one of the protocols has it, of the model itself or of another.
fn thought() -> impl Strategy<Value = SealedReasoning> {
    let models = ["anthropic/m-1", "openai/m-1", "openai-chat/m-1", "elsewhere/x"];
    let pieces = [
        json!({ "thought": { "type": "thinking", "thinking": "So." } }),
        json!({ "thought": { "reasoning_content": "So.", "extra_content": { "a": 1 } } }),
        json!({ "thought": { "phase": "commentary" } }),
        json!({ "text": 2 }),
        json!("call"),
    ];
    let order = prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..4);
    let protocol = prop::sample::select(vec!["anthropic", "responses", "chat"]);
    (prop::sample::select(models.to_vec()), protocol, order).prop_map(|(model, protocol, order)| SealedReasoning {
        model: model.to_owned(),
        sealed: json!({ "speaks": protocol, "order": order }).into(),
    })
}

fn call_result() -> impl Strategy<Value = CallResult> {
    (0..4_usize, text(), any::<bool>(), prop::collection::vec(picture(), 0..2))
        .prop_map(|(index, content, failed, images)| CallResult { failed, images, ..result(index, &content) })
}

fn item() -> impl Strategy<Value = Item> {
    let calls = prop::collection::vec(call(), 0..3);
    prop_oneof![
        prop::collection::vec(part(), 0..3).prop_map(|parts| Item::User { parts }),
        (text(), calls, prop::option::of(thought())).prop_map(|(text, calls, thought)| Item::Assistant {
            text,
            calls,
            thought
        }),
        prop::collection::vec(call_result(), 0..3).prop_map(|results| Item::Results { results }),
    ]
}

/// A request of a conversation, as it follows from the one before it.
#[derive(Debug, Clone)]
struct Step {
    /// So many of the first items are replaced by a summary.
    summarised: usize,
    new: Vec<Item>,
    /// The items that are there anew with each request.
    records: String,
    protocol: Protocol,
    images: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let protocol = prop::sample::select(vec![Protocol::Anthropic, Protocol::Responses, Protocol::Chat]);
    let summarised = prop_oneof![8 => Just(0), 1 => 1..10_usize];
    let (new, images) = (prop::collection::vec(item(), 0..12), prop::bool::weighted(0.8));
    (summarised, new, text(), protocol, images).prop_map(|(summarised, new, records, protocol, images)| Step {
        summarised,
        new,
        records,
        protocol,
        images,
    })
}

fn remote(step: &Step) -> Remote {
    let mut remote = remote_at(NOWHERE, step.protocol);
    remote.card.images = step.images;
    remote
}

/// Fields and names in order, and the tools at the end: it is what a provider's cache compares.
fn canonical(body: &str) -> String {
    let mut fields: Value = serde_json::from_str(body).unwrap();
    let tools = fields.as_object_mut().unwrap().remove("tools");
    let fields = fields.to_string();
    let fields = fields.strip_suffix('}').unwrap();
    tools.map_or(format!("{fields}}}"), |tools| format!("{fields},\"tools\":{tools}}}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_of_a_request_changes_no_byte_of_the_next(steps in prop::collection::vec(step(), 1..8)) {
        let (mut stable, mut written) = (Vec::new(), WrittenItems::default());
        for step in steps {
            if step.summarised > 0 {
                stable.splice(..step.summarised.min(stable.len()), shared([user("A summary.")]));
            }
            stable.extend(shared(step.new.clone()));
            // Equal items are as good as the same ones.
            if let Some(first) = stable.first_mut() {
                *first = Arc::new(Item::clone(first));
            }
            let items = stable.iter().cloned().chain(shared([user(&step.records)])).collect();
            let prompt = Prompt { system: "Be brief.".to_owned(), items, stable: stable.len() };
            let (remote, tools) = (remote(&step), some_tools());
            let body = |written: &mut WrittenItems| {
                remote.request_body(Question { prompt: &prompt, tools: &tools, written })
            };
            let anew = body(&mut WrittenItems::default());
            prop_assert_eq!(&body(&mut written), &anew);
            prop_assert_eq!(&body(&mut written), &anew);
            prop_assert_eq!(&canonical(&anew), &anew);
        }
    }
}

#[test]
fn a_request_without_tools_has_no_list_of_them() {
    for protocol in [Protocol::Anthropic, Protocol::Responses, Protocol::Chat] {
        let (remote, tools, mut written) = (remote_at(NOWHERE, protocol), ToolSet::empty(), WrittenItems::default());
        let body = remote.request_body(Question { prompt: &hello(), tools: &tools, written: &mut written });
        assert_eq!(canonical(&body), body);
        assert!(!body.contains("\"tools\""), "{body}");
    }
}
