//! Anthropic's Messages.

use abide_kernel::prompt::{CallResult, Image, Item, Part, Prompt};
use serde_json::{Value, json};

use super::answer::{Answer, Block, Stop};
use super::order::Shown;
use super::{Remote, fault, spelling};
use crate::model::ProviderFailure;
use crate::tools::{Tool, ToolSet};

/// How far back from a mark the provider looks for something it has in its cache: 20 blocks, less than that for safety.
const CACHE_REACH: usize = 18;

static TOOLS: spelling::Tools = spelling::Tools::spelled(tool);

pub(super) fn body(remote: &Remote, prompt: &Prompt, tools: &ToolSet) -> String {
    let mut body = json!({
        "model": remote.model,
        "max_tokens": remote.card.max_output_tokens,
        "stream": true,
        "messages": messages(remote, prompt),
    });
    if !prompt.system.trim().is_empty() {
        body["system"] = json!([marked(json!({ "type": "text", "text": prompt.system }))]);
    }
    let tools = tools.as_slice();
    let (last, others) = match tools.split_last() {
        Some((last, others)) => (Some(marked(tool(last)).to_string()), others),
        None => (None, tools),
    };
    spelling::request(&body, others.iter().map(|tool| TOOLS.write(tool).into()).chain(last.map(Into::into)))
}

fn tool(tool: &Tool) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema() })
}

/// Up to here the provider is to keep what it has read. Four marks count in one request.
fn marked(mut block: Value) -> Value {
    block["cache_control"] = json!({ "type": "ephemeral" });
    block
}

fn messages(remote: &Remote, prompt: &Prompt) -> Vec<Value> {
    let mut talk: Vec<(&str, Vec<Value>)> = Vec::new();
    // Where each stable item ends: its message, its block, and how many blocks there are until then.
    let mut ends: Vec<(usize, usize, usize)> = Vec::new();
    let mut count = 0;
    for (index, item) in prompt.items.iter().enumerate() {
        let (role, blocks) = blocks(remote, item);
        if blocks.is_empty() {
            continue;
        }
        count += blocks.len();
        // Results have to stand in the message after their calls, whatever else is in it.
        match talk.last_mut() {
            Some((last, said)) if *last == role => said.extend(blocks),
            Some(_) | None => talk.push((role, blocks)),
        }
        if index < prompt.stable {
            ends.push((talk.len() - 1, talk[talk.len() - 1].1.len() - 1, count));
        }
    }
    let last = ends.last().copied();
    let before = last.and_then(|(.., at)| ends.iter().rev().find(|(.., end)| end + CACHE_REACH <= at).copied());
    for (message, block, _) in before.into_iter().chain(last) {
        let block = &mut talk[message].1[block];
        *block = marked(block.take());
    }
    talk.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn blocks(remote: &Remote, item: &Item) -> (&'static str, Vec<Value>) {
    match item {
        Item::User { parts } => ("user", parts.iter().filter_map(|part| said(remote, part)).collect()),
        Item::Assistant { text, calls, thought } => {
            let parts = remote.parts(text, calls, thought.as_ref());
            ("assistant", parts.into_iter().map(answered).collect())
        }
        Item::Results { results } => ("user", results.iter().map(|result| came(remote, result)).collect()),
    }
}

fn said(remote: &Remote, part: &Part) -> Option<Value> {
    match part {
        // The provider takes no empty text.
        Part::Text(text) => (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text })),
        Part::Image(image) => Some(picture(remote, image)),
    }
}

fn picture(remote: &Remote, image: &Image) -> Value {
    if !remote.card.images {
        return json!({ "type": "text", "text": spelling::unseen(image) });
    }
    let source = json!({ "type": "base64", "media_type": image.media_type, "data": image.data });
    json!({ "type": "image", "source": source })
}

fn answered(part: Shown<'_>) -> Value {
    match part {
        Shown::Text(text) => json!({ "type": "text", "text": text }),
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
        let text = said(remote, &Part::Text(result.content.clone()));
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
