//! OpenAI's Responses. Nothing is stored at the provider: the whole conversation goes with every request, reasoning in
//! its encrypted form.

use abide_kernel::prompt::{CallResult, Image, Item, Part, Prompt};
use serde_json::{Value, json};

use super::answer::{Answer, Block, Stop};
use super::order::Shown;
use super::spelling::Body;
use super::written::{Fragment, FragmentPlace, WrittenItems};
use super::{Remote, fault, spelling};
use crate::model::ProviderFailure;
use crate::tools::{Tool, ToolSet};

/// Whether a text is the answer or said on the way to it: a model that loses this takes the one for the other.
const PHASE: &str = "phase";

static TOOLS: spelling::Tools = spelling::Tools::spelled(tool);

pub(super) fn body(remote: &Remote, prompt: &Prompt, tools: &ToolSet, written: &mut WrittenItems) -> String {
    let mut body = Body::new(written.bytes());
    if reasons(&remote.model) {
        body.field("include", &["reasoning.encrypted_content"]);
    }
    let write = |item: &Item| items(remote, item).into_iter().map(Fragment::at(FragmentPlace::Message)).collect();
    let items = written.update(remote, &prompt.items, write);
    body.list("input", items.iter().flat_map(|item| &item.fragments).map(|fragment| &fragment.json));
    if !prompt.system.trim().is_empty() {
        body.field("instructions", &prompt.system);
    }
    body.field("max_output_tokens", &remote.card.max_output_tokens);
    body.field("model", &remote.model);
    body.field("prompt_cache_key", &cache_key(prompt));
    body.field("store", &false);
    body.field("stream", &true);
    if !tools.as_slice().is_empty() {
        body.list("tools", tools.iter().map(|tool| TOOLS.write(tool)));
    }
    body.end()
}

/// Those that do not refuse to be asked for their reasoning. Of others nobody knows, and they do not mind.
fn reasons(model: &str) -> bool {
    !["gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"].iter().any(|name| model.starts_with(name))
}

fn tool(tool: &Tool) -> Value {
    // Strict schemas would have every field required; ours say what is optional.
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema(),
        "strict": false,
    })
}

/// Requests that begin alike go to the same cache.
fn cache_key(prompt: &Prompt) -> String {
    blake3::hash(prompt.system.as_bytes()).to_hex()[..32].to_owned()
}

fn items(remote: &Remote, item: &Item) -> Vec<Value> {
    match item {
        Item::User { parts } => {
            let content: Vec<Value> = parts.iter().filter_map(|part| said(remote, part)).collect();
            if content.is_empty() { Vec::new() } else { vec![message("user", content)] }
        }
        Item::Assistant { text, calls, thought } => answered(remote.parts(text, calls, thought.as_ref())),
        Item::Results { results } => results.iter().map(|result| came(remote, result)).collect(),
    }
}

fn message(role: &str, content: Vec<Value>) -> Value {
    json!({ "type": "message", "role": role, "content": content })
}

fn said(remote: &Remote, part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => (!text.is_empty()).then(|| json!({ "type": "input_text", "text": text })),
        Part::Image(image) => Some(picture(remote, image)),
    }
}

fn picture(remote: &Remote, image: &Image) -> Value {
    if !remote.card.images {
        return json!({ "type": "input_text", "text": spelling::unseen(image) });
    }
    json!({ "type": "input_image", "image_url": spelling::data_url(image) })
}

fn answered(parts: Vec<Shown<'_>>) -> Vec<Value> {
    let mut items = Vec::new();
    let mut phase = None;
    for part in parts {
        items.push(match part {
            Shown::Thought(aside) if aside.get(PHASE).is_some() => {
                phase = aside.get(PHASE);
                continue;
            }
            Shown::Thought(thought) => thought.clone(),
            Shown::Text(text) => {
                let mut said = message("assistant", vec![json!({ "type": "output_text", "text": text })]);
                if let Some(phase) = phase.take() {
                    said[PHASE] = phase.clone();
                }
                said
            }
            Shown::Call(call) => json!({
                "type": "function_call",
                "call_id": spelling::call_id(&call.call_id),
                "name": spelling::tool_name(&call.tool),
                "arguments": spelling::input(&call.input).to_string(),
            }),
        });
    }
    items
}

fn came(remote: &Remote, result: &CallResult) -> Value {
    let mut output = json!(result.content);
    if !result.images.is_empty() {
        let text = said(remote, &Part::Text(result.content.clone()));
        output = text.into_iter().chain(result.images.iter().map(|image| picture(remote, image))).collect();
    }
    json!({ "type": "function_call_output", "call_id": spelling::call_id(&result.call_id), "output": output })
}

/// Takes one event. True: that was the last.
pub(super) fn take(event: &Value, answer: &mut Answer<'_>) -> Result<bool, ProviderFailure> {
    match event["type"].as_str().unwrap_or_default() {
        "response.output_item.added" => answer.open(index(event)?, begun(&event["item"])?)?,
        "response.output_text.delta" => answer.text(index(event)?, piece(event)?)?,
        "response.refusal.delta" => answer.refused(piece(event)?),
        "response.function_call_arguments.delta" => answer.arguments(index(event)?, piece(event)?)?,
        "response.output_item.done" => settle(index(event)?, &event["item"], answer)?,
        kind @ ("response.completed" | "response.incomplete") => {
            end(&event["response"], answer)?;
            let why = event["response"]["incomplete_details"]["reason"].as_str();
            answer.stop = Some(match why {
                Some(why) => Stop::read(why),
                None if kind == "response.completed" => Stop::Usual,
                None => Stop::Other("incomplete".to_owned()),
            });
            return Ok(true);
        }
        "response.failed" => {
            count(&event["response"]["usage"], answer);
            return Err(fault::of_event(&event["response"]["error"]));
        }
        "error" => return Err(fault::of_event(event)),
        // Events that repeat the pieces, report progress, or were added later.
        _ => {}
    }
    Ok(false)
}

fn index(event: &Value) -> Result<u64, ProviderFailure> {
    event["output_index"].as_u64().ok_or_else(|| fault::disconnect_failure("a part of its answer has no number"))
}

fn piece(event: &Value) -> Result<&str, ProviderFailure> {
    event["delta"].as_str().ok_or_else(|| fault::disconnect_failure("a piece of its answer has nothing in it"))
}

fn begun(item: &Value) -> Result<Block, ProviderFailure> {
    Ok(match item["type"].as_str().unwrap_or_default() {
        "message" => Block::Text(String::new()),
        "function_call" => {
            let tool = item["name"].as_str().unwrap_or_default().to_owned();
            Block::Call { tool, arguments: String::new() }
        }
        "" => return Err(fault::disconnect_failure("a part of its answer has no kind")),
        // Reasoning comes whole, at its end.
        _ => Block::Other,
    })
}

/// An item at its end, whole. The pieces that came before have to agree with it.
fn settle(at: u64, item: &Value, answer: &mut Answer<'_>) -> Result<(), ProviderFailure> {
    if !answer.is_at(at) {
        answer.open(at, begun(item)?)?;
    }
    if item["type"] == "message" && item[PHASE].is_string() {
        answer.aside(at, json!({ PHASE: item[PHASE] }))?;
    }
    let parts = |kind: &'static str| {
        let parts = item["content"].as_array().into_iter().flatten();
        parts.filter(move |part| part["type"] == kind)
    };
    for part in parts("refusal") {
        answer.refused_with(part["refusal"].as_str().unwrap_or_default());
    }
    if let (Block::Call { .. }, Some(name)) = (answer.block(at)?, item["name"].as_str()) {
        answer.name(at, name)?;
    }
    match answer.block(at)? {
        Block::Text(text) if text.is_empty() => {
            let texts: String = parts("output_text").filter_map(|part| part["text"].as_str()).collect();
            answer.text(at, &texts)?;
        }
        Block::Text(_) | Block::Thought(_) => {}
        Block::Call { tool, arguments } => {
            let whole = item["arguments"].as_str().unwrap_or_default();
            if item["name"].as_str().is_some_and(|name| name != tool) || !agree(arguments, whole) {
                return Err(fault::disconnect_failure(format!("its call of {tool} ends otherwise than it came")));
            }
            if arguments.is_empty() {
                answer.arguments(at, whole)?;
            }
        }
        // Without this field it could not be read by anybody.
        Block::Other if item["type"] == "reasoning" && item["encrypted_content"].is_string() => {
            answer.think(at, item.clone())?;
        }
        Block::Other => {}
    }
    answer.close(at)
}

/// Spaces do not count; servers differ in whether they repeat them.
fn agree(pieces: &str, whole: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    pieces.is_empty() || whole.is_empty() || pieces == whole || (read(pieces).is_some() && read(pieces) == read(whole))
}

/// The whole response comes once more. Servers that leave the ends of the items out have them here.
fn end(response: &Value, answer: &mut Answer<'_>) -> Result<(), ProviderFailure> {
    // First: it is paid for, whatever comes of it.
    count(&response["usage"], answer);
    for (at, item) in (0..).zip(response["output"].as_array().into_iter().flatten()) {
        if !answer.is_over(at) {
            settle(at, item, answer)?;
        }
    }
    Ok(())
}

/// It is counted once, at its end.
fn count(usage: &Value, answer: &mut Answer<'_>) {
    let counted = &mut answer.counted;
    counted.input = usage["input_tokens"].as_u64();
    counted.output = usage["output_tokens"].as_u64();
    counted.cached = usage["input_tokens_details"]["cached_tokens"].as_u64().unwrap_or_default();
    counted.last = counted.output.is_some();
}
