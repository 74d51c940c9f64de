//! OpenAI's Chat Completions, as many others serve them too. They differ in small ways, and what is unambiguous is taken.

use std::borrow::Cow;

use abide_kernel::prompt::{CallResult, Image, Item, Part, Prompt};
use serde_json::{Map, Value, json};

use super::answer::{Answer, Block, Stop};
use super::order::Shown;
use super::spelling::{Body, push_joined};
use super::written::{Fragment, FragmentPlace, WrittenItem, WrittenItems};
use super::{Remote, details, fault, spelling};
use crate::model::ProviderFailure;
use crate::tools::{Tool, ToolSet};

static TOOLS: spelling::Tools = spelling::Tools::spelled(tool);

pub(super) fn body(remote: &Remote, prompt: &Prompt, tools: &ToolSet, written: &mut WrittenItems) -> String {
    let mut body = Body::new(written.bytes());
    let max_tokens = max_tokens(&remote.provider.base_url);
    body.field(max_tokens, &remote.card.max_output_tokens);
    let items = written.update(remote, &prompt.items, |item| fragments(remote, item));
    write_messages(body.value("messages"), &prompt.system, items);
    body.field("model", &remote.model);
    body.field("stream", &true);
    body.field("stream_options", &json!({ "include_usage": true }));
    if !tools.as_slice().is_empty() {
        body.list("tools", tools.iter().map(|tool| TOOLS.write(tool)));
    }
    body.end()
}

/// OpenAI itself takes the new name only; the others know the old one, and few the new.
fn max_tokens(base_url: &str) -> &'static str {
    let new = ["://api.openai.com", ".openai.azure.com"].iter().any(|host| base_url.contains(host));
    if new { "max_completion_tokens" } else { "max_tokens" }
}

fn tool(tool: &Tool) -> Value {
    let function = json!({ "name": tool.name, "description": tool.description, "parameters": tool.schema() });
    json!({ "type": "function", "function": function })
}

/// Adjacent messages to the model are joined into one: many chat templates require it.
fn write_messages(text: &mut String, system: &str, items: &[WrittenItem]) {
    text.push('[');
    if !system.trim().is_empty() {
        text.push_str(&json!({ "role": "system", "content": system }).to_string());
    }
    // Adjacent messages to the model are joined into one: many chat templates require it.
    let fragments: Vec<&Fragment> = items.iter().flat_map(|item| &item.fragments).collect();
    for fragments in fragments.chunk_by(|one, next| one.place.is_of_user() && next.place.is_of_user()) {
        if let [Fragment { place: FragmentPlace::Gap, .. }] = fragments {
            continue;
        }
        if !text.ends_with('[') {
            text.push(',');
        }
        match fragments {
            [Fragment { place: FragmentPlace::Message, json }] => text.push_str(json),
            said => write_user_message(text, said),
        }
    }
    text.push(']');
}

/// As plain text where it is nothing else: not every server takes parts.
fn write_user_message(text: &mut String, said: &[&Fragment]) {
    text.push_str(r#"{"content":"#);
    if said.iter().all(|fragment| fragment.place == FragmentPlace::UserText) {
        text.push('"');
        push_joined(text, r"\n\n", said.iter().map(|fragment| fragment.unquoted()));
        text.push('"');
    } else {
        text.push('[');
        push_joined(text, ",", said.iter().map(|fragment| block(fragment)));
        text.push(']');
    }
    text.push_str(r#","role":"user"}"#);
}

fn block(fragment: &Fragment) -> Cow<'_, str> {
    match fragment.place {
        FragmentPlace::UserText => format!(r#"{{"text":{},"type":"text"}}"#, fragment.json).into(),
        FragmentPlace::UserBlock | FragmentPlace::AssistantBlock | FragmentPlace::Message | FragmentPlace::Gap => {
            fragment.json.as_str().into()
        }
    }
}

fn fragments(remote: &Remote, item: &Item) -> Vec<Fragment> {
    match item {
        Item::User { parts } => parts.iter().filter_map(|part| said(remote, part)).collect(),
        Item::Assistant { text, calls, thought } => {
            let message = answered(remote.parts(text, calls, thought.as_ref()));
            vec![message.map_or_else(Fragment::gap, Fragment::at(FragmentPlace::Message))]
        }
        Item::Results { results } if results.is_empty() => vec![Fragment::gap()],
        Item::Results { results } => {
            let messages = results.iter().map(came).map(Fragment::at(FragmentPlace::Message));
            let pictures = results.iter().flat_map(pictures);
            messages.chain(pictures.filter_map(|part| said(remote, &part))).collect()
        }
    }
}

/// The image, if the model can look at it.
fn said(remote: &Remote, part: &Part) -> Option<Fragment> {
    let text = |text: &str| Fragment::at(FragmentPlace::UserText)(text.into());
    match part {
        Part::Text(said) => (!said.is_empty()).then(|| text(said)),
        Part::Image(image) if remote.card.images => Some(Fragment::at(FragmentPlace::UserBlock)(picture(image))),
        Part::Image(image) => Some(text(&spelling::unseen(image))),
    }
}

fn picture(image: &Image) -> Value {
    json!({ "type": "image_url", "image_url": { "url": spelling::data_url(image) } })
}

fn answered(parts: Vec<Shown<'_>>) -> Option<Value> {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    let (mut reasoning, mut details, mut extra) = (None, None, None);
    for part in parts {
        match part {
            Shown::Text(text) => texts.push(text),
            Shown::Thought(thought) => {
                reasoning = thought.get(REASONING_FIELD).or(reasoning);
                details = thought.get(details::FIELD).or(details);
                extra = thought.get(EXTRA_FIELD).or(extra);
            }
            Shown::Call(call) => {
                let name = spelling::tool_name(&call.tool);
                let function = json!({ "name": name, "arguments": spelling::input(&call.input).to_string() });
                let mut call =
                    json!({ "id": spelling::call_id(&call.call_id), "type": "function", "function": function });
                if let Some(extra) = extra.take() {
                    call[EXTRA_FIELD] = extra.clone();
                }
                calls.push(call);
            }
        }
    }
    if texts.is_empty() && calls.is_empty() {
        return None;
    }
    let content = if texts.is_empty() { Value::Null } else { texts.join("\n\n").into() };
    let mut message = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    // Who gives details has the same in them, and more.
    match (details, reasoning) {
        (Some(details), _) => message[details::FIELD] = details.clone(),
        (None, Some(reasoning)) => message[REASONING_FIELD] = reasoning.clone(),
        (None, None) => {}
    }
    Some(message)
}

fn came(result: &CallResult) -> Value {
    json!({ "role": "tool", "tool_call_id": spelling::call_id(&result.call_id), "content": result.content })
}

/// A result is text here; its pictures follow as if they were said.
fn pictures(result: &CallResult) -> Vec<Part> {
    if result.images.is_empty() {
        return Vec::new();
    }
    let title = format!("The pictures that {} returned:", spelling::call_id(&result.call_id));
    std::iter::once(Part::Text(title)).chain(result.images.iter().cloned().map(Part::Image)).collect()
}

/// Where several servers put what a model thinks. They want it back beside the calls that it led to, and some refuse it
/// anywhere else.
const REASONING_FIELD: &str = "reasoning_content";
/// Where Gemini puts the signature of what led to a call.
const EXTRA_FIELD: &str = "extra_content";

/// The places of reasoning and text; the calls come after them.
const REASONING: u64 = 0;
const TEXT: u64 = 1;
const CALLS: u64 = 2;

/// The state of reading a stream.
#[derive(Debug, Default)]
pub(super) struct Reading {
    calls: Vec<Begun>,
}

/// A call whose beginning has come.
#[derive(Debug)]
struct Begun {
    index: Option<u64>,
    id: Option<String>,
    /// Empty as long as none is named.
    tool: String,
}

impl Reading {
    /// Takes one event. The last is not one of these: it is `[DONE]`.
    pub(super) fn take(&mut self, event: &Value, answer: &mut Answer<'_>) -> Result<(), ProviderFailure> {
        let failed = !event["error"].is_null();
        let taken = if failed { Err(fault::of_event(event)) } else { self.choices(event, answer) };
        count(&event["usage"], answer);
        // Some count as it grows.
        answer.counted.last |= event["usage"]["completion_tokens"].is_u64() && (failed || answer.stop.is_some());
        taken
    }

    fn choices(&mut self, event: &Value, answer: &mut Answer<'_>) -> Result<(), ProviderFailure> {
        let choices = event["choices"].as_array().into_iter().flatten();
        for choice in choices.filter(|choice| choice["index"].as_u64().unwrap_or(0) == 0) {
            // Some that have all of it at once say it as if nothing was streamed.
            let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
            self.more(delta, answer)?;
            if let Some(word) = choice["finish_reason"].as_str().filter(|word| !word.is_empty()) {
                answer.stop = Some(Stop::read(word));
                answer.close_all();
                if self.calls.is_empty() {
                    answer.forget(REASONING, REASONING_FIELD);
                }
            }
        }
        Ok(())
    }

    fn more(&mut self, delta: &Value, answer: &mut Answer<'_>) -> Result<(), ProviderFailure> {
        if let Some(piece) = delta[REASONING_FIELD].as_str().filter(|piece| !piece.is_empty()) {
            if !answer.is_at(REASONING) {
                answer.open(REASONING, Block::Thought(json!({})))?;
            }
            answer.thought(REASONING, REASONING_FIELD, piece)?;
        }
        for piece in delta[details::FIELD].as_array().into_iter().flatten().filter_map(Value::as_object) {
            if !answer.is_at(REASONING) {
                answer.open(REASONING, Block::Thought(json!({})))?;
            }
            let bytes = serde_json::to_vec(piece).map_or(usize::MAX, |bytes| bytes.len());
            let list = answer.thinking(REASONING, bytes)?.entry(details::FIELD).or_insert_with(|| json!([]));
            if let Value::Array(list) = list {
                details::merge_piece(list, piece);
            }
        }
        let text = text(&delta["content"]);
        if !text.is_empty() {
            if !answer.is_at(TEXT) {
                answer.open(TEXT, Block::Text(String::new()))?;
            }
            answer.text(TEXT, &text)?;
        }
        if let Some(piece) = delta["refusal"].as_str().filter(|piece| !piece.is_empty()) {
            answer.refused(piece);
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let at = self.place(piece, answer)?;
            if piece[EXTRA_FIELD].is_object() {
                answer.aside(at, json!({ EXTRA_FIELD: piece[EXTRA_FIELD] }))?;
            }
            match &piece["function"]["arguments"] {
                Value::String(arguments) => answer.arguments(at, arguments)?,
                // Not yet a text, with some.
                whole @ Value::Object(_) => answer.arguments(at, &whole.to_string())?,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
            }
        }
        Ok(())
    }

    /// Where a piece of a call belongs: to one that has begun, or to a new one.
    fn place(&mut self, piece: &Value, answer: &mut Answer<'_>) -> Result<u64, ProviderFailure> {
        let given = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let (index, id, tool) = (piece["index"].as_u64(), given(&piece["id"]), given(&piece["function"]["name"]));
        let before = self.calls.iter().rposition(|call| index.is_none() || call.index == index);
        if let Some(before) = before {
            let at = CALLS + before as u64;
            let call = &self.calls[before];
            let same_id = id.is_none() || call.id.is_none() || call.id == id;
            let same_tool = tool.as_ref().is_none_or(|tool| call.tool.is_empty() || *tool == call.tool);
            let goes_on = if index.is_none() { tool.is_none() || (id.is_some() && call.id == id) } else { same_id };
            if goes_on && same_tool {
                if let Some(tool) = tool {
                    answer.name(at, &tool)?;
                    self.calls[before].tool = tool;
                }
                return Ok(at);
            }
            // Two under one number: only servers that send each call whole do that, and then the ids tell them apart.
            if index.is_some() && (same_id || !is_whole(answer.block(at)?)) {
                return Err(fault::disconnect_failure("two calls in its answer have the same number"));
            }
        }
        let tool = tool.unwrap_or_default();
        let at = CALLS + self.calls.len() as u64;
        self.calls.push(Begun { index, id, tool: tool.clone() });
        answer.open(at, Block::Call { tool, arguments: String::new() })?;
        Ok(at)
    }
}

fn is_whole(block: &Block) -> bool {
    match block {
        Block::Call { arguments, .. } => serde_json::from_str::<Map<String, Value>>(arguments).is_ok(),
        Block::Text(_) | Block::Thought(_) | Block::Other => false,
    }
}

/// A text, or the texts among parts of several kinds.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str()).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn count(usage: &Value, answer: &mut Answer<'_>) {
    let counted = &mut answer.counted;
    counted.input = usage["prompt_tokens"].as_u64().or(counted.input);
    counted.output = usage["completion_tokens"].as_u64().or(counted.output);
    let details = &usage["prompt_tokens_details"];
    counted.cached = details["cached_tokens"].as_u64().unwrap_or(counted.cached);
    counted.cache_write = details["cache_write_tokens"].as_u64().unwrap_or(counted.cache_write);
}
