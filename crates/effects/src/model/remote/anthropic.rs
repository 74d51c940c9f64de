//! Anthropic's Messages.

use std::borrow::Cow;

use abide_kernel::prompt::{CallResult, Image, Item, Part, Prompt};
use serde_json::{Value, json};

use super::answer::{Answer, Block, Stop};
use super::order::Shown;
use super::spelling::Body;
use super::written::{Fragment, FragmentPlace, WrittenItem, WrittenItems};
use super::{Remote, fault, spelling};
use crate::model::ProviderFailure;
use crate::tools::{Tool, ToolSet};

/// How far back from a mark the provider looks for something it has in its cache: 20 blocks, less than that for safety.
const CACHE_REACH: usize = 18;

static TOOLS: spelling::Tools = spelling::Tools::spelled(tool);

pub(super) fn body(remote: &Remote, prompt: &Prompt, tools: &ToolSet, written: &mut WrittenItems) -> String {
    let mut body = Body::new(written.bytes());
    body.field("max_tokens", &remote.card.max_output_tokens);
    let items = written.update(remote, &prompt.items, |item| fragments(remote, item));
    write_messages(body.value("messages"), items, prompt.stable);
    body.field("model", &remote.model);
    body.field("stream", &true);
    if !prompt.system.trim().is_empty() {
        body.list("system", [marked(&said(&prompt.system).to_string())]);
    }
    if let Some((last, others)) = tools.as_slice().split_last() {
        let others = others.iter().map(|tool| Cow::Borrowed(TOOLS.write(tool)));
        body.list("tools", others.chain([marked(TOOLS.write(last)).into()]));
    }
    body.end()
}

fn tool(tool: &Tool) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema() })
}

/// The JSON of a block up to which the provider is to keep what it has read. Four marks count in one request.
fn marked(block: &str) -> String {
    let fields = block.strip_prefix('{').unwrap_or(block);
    format!(r#"{{"cache_control":{{"type":"ephemeral"}},{fields}"#)
}

fn write_messages(text: &mut String, items: &[WrittenItem], stable: usize) {
    let marks = marks(items, stable);
    let mut before = None;
    text.push('[');
    for (index, item) in items.iter().enumerate() {
        for (at, Fragment { place, json }) in item.fragments.iter().enumerate() {
            // Results have to stand in the message after their calls, whatever else is in it.
            match before.replace(*place) {
                Some(before) if before == *place => text.push(','),
                Some(before) => {
                    end_message(text, before);
                    text.push_str(r#",{"content":["#);
                }
                None => text.push_str(r#"{"content":["#),
            }
            if at + 1 == item.fragments.len() && marks.contains(&Some(index)) {
                text.push_str(&marked(json));
            } else {
                text.push_str(json);
            }
        }
    }
    if let Some(before) = before {
        end_message(text, before);
    }
    text.push(']');
}

fn end_message(text: &mut String, place: FragmentPlace) {
    let role = if place == FragmentPlace::AssistantBlock { "assistant" } else { "user" };
    text.push_str(&format!(r#"],"role":"{role}"}}"#));
}

/// The items whose last blocks are marked: the last of those that stay, and one that the provider still finds from there.
fn marks(items: &[WrittenItem], stable: usize) -> [Option<usize>; 2] {
    // Where each of them ends, in blocks from the first.
    let mut count = 0;
    let ends = items.iter().take(stable).enumerate().filter(|(_, item)| !item.fragments.is_empty());
    let ends: Vec<(usize, usize)> = ends
        .map(|(index, item)| {
            count += item.fragments.len();
            (index, count)
        })
        .collect();
    let before = ends.iter().rev().find(|(_, end)| end + CACHE_REACH <= count);
    [before, ends.last()].map(|end| end.map(|(index, _)| *index))
}

fn fragments(remote: &Remote, item: &Item) -> Vec<Fragment> {
    match item {
        Item::User { parts } => {
            parts.iter().filter_map(|part| shown(remote, part)).map(Fragment::at(FragmentPlace::UserBlock)).collect()
        }
        Item::Assistant { text, calls, thought } => {
            let parts = remote.parts(text, calls, thought.as_ref());
            parts.into_iter().map(answered).map(Fragment::at(FragmentPlace::AssistantBlock)).collect()
        }
        Item::Results { results } => {
            results.iter().map(|result| came(remote, result)).map(Fragment::at(FragmentPlace::UserBlock)).collect()
        }
    }
}

fn shown(remote: &Remote, part: &Part) -> Option<Value> {
    match part {
        // The provider takes no empty text.
        Part::Text(text) => (!text.trim().is_empty()).then(|| said(text)),
        Part::Image(image) => Some(picture(remote, image)),
    }
}

fn said(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn picture(remote: &Remote, image: &Image) -> Value {
    if !remote.card.images {
        return said(&spelling::unseen(image));
    }
    let source = json!({ "type": "base64", "media_type": image.media_type, "data": image.data });
    json!({ "type": "image", "source": source })
}

fn answered(part: Shown<'_>) -> Value {
    match part {
        Shown::Text(text) => said(text),
        Shown::Call(call) => json!({
            "type": "tool_use",
            "id": spelling::call_id(&call.call_id),
            "name": spelling::tool_name(&call.tool),
            "input": spelling::input(&call.input),
        }),
        Shown::Thought(thought) => thought.clone(),
    }
}

fn came(remote: &Remote, result: &CallResult) -> Value {
    let mut content = json!(result.content);
    if !result.images.is_empty() {
        let text = shown(remote, &Part::Text(result.content.clone()));
        content = text.into_iter().chain(result.images.iter().map(|image| picture(remote, image))).collect();
    }
    let mut block =
        json!({ "type": "tool_result", "tool_use_id": spelling::call_id(&result.call_id), "content": content });
    if result.failed {
        block["is_error"] = json!(true);
    }
    block
}

/// The state of reading a stream.
#[derive(Debug, Default)]
pub(super) struct Reading {
    started: bool,
    /// TokenCounts apart by this provider: neither is in the other.
    fresh: u64,
}

impl Reading {
    /// Takes one event. True: that was the last.
    pub(super) fn take(&mut self, event: &Value, answer: &mut Answer<'_>) -> Result<bool, ProviderFailure> {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" if self.started => return Err(fault::disconnect_failure("its answer begins twice")),
            "message_start" => {
                self.started = true;
                self.count(&event["message"]["usage"], answer);
            }
            "content_block_start" => answer.open(index(event)?, begun(&event["content_block"])?)?,
            "content_block_delta" => more(index(event)?, &event["delta"], answer)?,
            "content_block_stop" => answer.close(index(event)?)?,
            "message_delta" => {
                self.count(&event["usage"], answer);
                if let Some(word) = event["delta"]["stop_reason"].as_str() {
                    answer.stop = Some(Stop::read(word));
                }
                answer.counted.last |= answer.stop.is_some() && event["usage"]["output_tokens"].is_u64();
            }
            "message_stop" if answer.stop.is_none() => {
                return Err(fault::disconnect_failure("its answer ends without a reason"));
            }
            "message_stop" => return Ok(true),
            "error" => return Err(fault::of_event(&event["error"])),
            // `ping`, and what is added to the protocol later.
            _ => {}
        }
        Ok(false)
    }

    /// Counts are of everything so far; one that is left out stays as it was.
    fn count(&mut self, usage: &Value, answer: &mut Answer<'_>) {
        let counted = &mut answer.counted;
        let number = |name: &str| usage[name].as_u64();
        self.fresh = number("input_tokens").unwrap_or(self.fresh);
        counted.cached = number("cache_read_input_tokens").unwrap_or(counted.cached);
        counted.cache_write = number("cache_creation_input_tokens").unwrap_or(counted.cache_write);
        counted.output = number("output_tokens").or(counted.output);
        if usage.is_object() {
            let sum = self.fresh.saturating_add(counted.cached).saturating_add(counted.cache_write);
            counted.input = Some(sum).filter(|sum| *sum > 0);
        }
    }
}

fn index(event: &Value) -> Result<u64, ProviderFailure> {
    event["index"].as_u64().ok_or_else(|| fault::disconnect_failure("a part of its answer has no number"))
}

fn begun(block: &Value) -> Result<Block, ProviderFailure> {
    Ok(match block["type"].as_str().unwrap_or_default() {
        "text" => Block::Text(block["text"].as_str().unwrap_or_default().to_owned()),
        "tool_use" => {
            // The arguments follow; only servers that do not stream them have them here.
            let given = block["input"].as_object().filter(|input| !input.is_empty());
            let arguments = given.map(|_| block["input"].to_string()).unwrap_or_default();
            Block::Call { tool: block["name"].as_str().unwrap_or_default().to_owned(), arguments }
        }
        "thinking" | "redacted_thinking" => Block::Thought(block.clone()),
        "" => return Err(fault::disconnect_failure("a part of its answer has no kind")),
        _ => Block::Other,
    })
}

fn more(at: u64, delta: &Value, answer: &mut Answer<'_>) -> Result<(), ProviderFailure> {
    let piece = |name: &str| {
        delta[name].as_str().ok_or_else(|| fault::disconnect_failure(format!("a piece of its answer has no `{name}`")))
    };
    if let Block::Other = answer.block(at)? {
        return Ok(());
    }
    match delta["type"].as_str().unwrap_or_default() {
        "text_delta" => answer.text(at, piece("text")?),
        "input_json_delta" => answer.arguments(at, piece("partial_json")?),
        "thinking_delta" => answer.thought(at, "thinking", piece("thinking")?),
        "signature_delta" => answer.thought(at, "signature", piece("signature")?),
        "" => Err(fault::disconnect_failure("a piece of its answer has no kind")),
        // Citations, and what is added later.
        _ => Ok(()),
    }
}
