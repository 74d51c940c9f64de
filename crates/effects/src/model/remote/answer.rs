//! An answer while it arrives, the same for every protocol: blocks in the order in which the model made them. Nothing of
//! it is a reply before all of it is there; the text alone is heard as it comes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use abide_kernel::budget::Usage;
use abide_kernel::id::ExecId;
use abide_kernel::input::{Refusal, Reply};
use abide_kernel::open_json::ProviderState;
use abide_kernel::refusal::ErrorCode;
use abide_kernel::tool::{Call, ToolCall};
use abide_kernel::vocabulary::ProviderError;
use serde_json::{Map, Value, json};

use super::order::{self, Piece};
use super::redaction::KeyRedaction;
use super::usage_so_far::{Progress, UsageSoFar};
use super::{Remote, fault};
use crate::limits;
use crate::model::{ProviderFailure, call_id, tokens_in};
use crate::tools::ToolSet;

/// One part of an answer.
#[derive(Debug)]
pub(super) enum Block {
    Text(String),
    Call {
        /// Empty where the model names none: then it is refused, like one of a tool that there is not.
        tool: String,
        /// JSON, as far as it has come.
        arguments: String,
    },
    /// Reasoning in its provider's own shape.
    Thought(Value),
    /// Nothing that was asked for. It keeps its place, so that its pieces are not taken for those of another.
    Other,
}

#[derive(Debug)]
struct OpenBlock {
    block: Block,
    open: bool,
    /// A value that the provider wants to see beside it.
    aside: Option<Value>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// It was done, or wants its calls answered.
    Usual,
    /// It has written as much as it may.
    Full,
    /// It, or its provider, would not say it.
    Refused,
    Other(String),
}

impl Stop {
    /// The providers' words for it, which do not contradict each other.
    pub(super) fn read(word: &str) -> Stop {
        let word: String = word.chars().take(limits::QUOTED_CHARS).collect();
        match word.as_str() {
            "end_turn" | "tool_use" | "stop" | "tool_calls" | "function_call" => Stop::Usual,
            "max_tokens" | "length" | "max_output_tokens" | "model_context_window_exceeded" => Stop::Full,
            "refusal" | "content_filter" => Stop::Refused,
            _ => Stop::Other(word),
        }
    }
}

/// Tokens as the provider counted them, as far as it did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TokenCounts {
    /// All of the input: what came from the cache and what went into it as well.
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cached: u64,
    pub(super) cache_write: u64,
    /// That was its last count. One that came earlier is of a beginning.
    pub(super) last: bool,
}

pub(super) struct Answer<'h> {
    hear: &'h mut (dyn FnMut(&str) + Send),
    hide: KeyRedaction<'h>,
    /// Text that was received and not passed on yet. Many events come together, and passing text on wakes the
    /// listeners.
    untold: String,
    blocks: BTreeMap<u64, OpenBlock>,
    text_bytes: usize,
    thought_bytes: usize,
    arguments_bytes: usize,
    calls: usize,
    /// The words of a refusal, where the provider keeps them apart from an answer's. There may be none in it.
    refusal: Option<String>,
    pub(super) counted: TokenCounts,
    /// None until the model has stopped.
    pub(super) stop: Option<Stop>,
}

impl<'h> Answer<'h> {
    pub(super) fn new(hear: &'h mut (dyn FnMut(&str) + Send), hide: KeyRedaction<'h>) -> Answer<'h> {
        Answer {
            hear,
            hide,
            untold: String::new(),
            blocks: BTreeMap::new(),
            text_bytes: 0,
            thought_bytes: 0,
            arguments_bytes: 0,
            calls: 0,
            refusal: None,
            counted: TokenCounts::default(),
            stop: None,
        }
    }

    /// The progress before its end.
    pub(super) fn so_far(&self) -> Progress {
        let written = self.text_bytes + self.thought_bytes + self.arguments_bytes;
        Progress { counted: self.counted, written }
    }

    /// A block begins at a place where there was none.
    pub(super) fn open(&mut self, at: u64, block: Block) -> Result<(), ProviderFailure> {
        if self.stop.is_some() {
            return Err(fault::disconnect_failure("its answer goes on after its end"));
        }
        if self.blocks.len() >= limits::ANSWER_BLOCKS {
            return Err(too_large_failure("parts", limits::ANSWER_BLOCKS));
        }
        let begun = match &block {
            Block::Text(text) => text.clone(),
            Block::Call { .. } => {
                self.calls += 1;
                String::new()
            }
            Block::Thought(thought) => {
                self.count_thought(size_of(thought))?;
                String::new()
            }
            Block::Other => String::new(),
        };
        if self.calls > limits::ANSWER_CALLS {
            return Err(too_large_failure("tool calls", limits::ANSWER_CALLS));
        }
        let block = if let Block::Text(_) = block { Block::Text(String::new()) } else { block };
        if self.blocks.insert(at, OpenBlock { block, open: true, aside: None }).is_some() {
            return Err(fault::disconnect_failure(format!("part {at} of the answer begins twice")));
        }
        self.text(at, &begun)
    }

    pub(super) fn is_at(&self, at: u64) -> bool {
        self.blocks.contains_key(&at)
    }

    pub(super) fn is_over(&self, at: u64) -> bool {
        self.blocks.get(&at).is_some_and(|part| !part.open)
    }

    /// A block that was begun and has not ended.
    pub(super) fn block(&mut self, at: u64) -> Result<&mut Block, ProviderFailure> {
        match self.blocks.get_mut(&at) {
            Some(part) if part.open => Ok(&mut part.block),
            Some(_) => Err(fault::disconnect_failure(format!("part {at} of the answer goes on after its end"))),
            None => Err(fault::disconnect_failure(format!("part {at} of the answer goes on before it began"))),
        }
    }

    pub(super) fn text(&mut self, at: u64, piece: &str) -> Result<(), ProviderFailure> {
        if piece.is_empty() {
            return Ok(());
        }
        self.text_bytes += piece.len();
        if self.text_bytes > limits::ANSWER_TEXT_BYTES {
            return Err(too_large_failure("bytes of text", limits::ANSWER_TEXT_BYTES));
        }
        let Block::Text(text) = self.block(at)? else {
            return Err(fault::disconnect_failure(format!(
                "part {at} of the answer is no text, but text comes for it"
            )));
        };
        let first = text.is_empty();
        text.push_str(piece);
        let earlier = |(other, part): (&u64, &OpenBlock)| {
            *other != at && matches!(&part.block, Block::Text(text) if !text.is_empty())
        };
        if first && self.blocks.iter().any(earlier) {
            self.untold.push_str(order::BETWEEN_TEXTS);
        }
        self.untold.push_str(piece);
        if self.untold.len() > limits::TOLD_AT_ONCE_BYTES {
            self.tell_text();
        }
        Ok(())
    }

    /// Tells the text that has come since it was last told, but for an end of it that may become what is to be hidden.
    pub(super) fn tell_text(&mut self) {
        // First what is whole of it: a key may end as it begins.
        if let Cow::Owned(hidden) = self.hide.from(&self.untold) {
            self.untold = hidden;
        }
        self.tell_first(self.untold.len() - self.hide.may_begin(&self.untold));
    }

    /// All of the text has come.
    pub(super) fn tell_rest(&mut self) {
        self.tell_text();
        self.tell_first(self.untold.len());
    }

    fn tell_first(&mut self, bytes: usize) {
        if bytes > 0 {
            (self.hear)(&self.untold[..bytes]);
            self.untold.drain(..bytes);
        }
    }

    /// The tool of a call that came without one.
    pub(super) fn name(&mut self, at: u64, name: &str) -> Result<(), ProviderFailure> {
        if let Block::Call { tool, .. } = self.block(at)?
            && tool.is_empty()
        {
            name.clone_into(tool);
        }
        Ok(())
    }

    pub(super) fn arguments(&mut self, at: u64, piece: &str) -> Result<(), ProviderFailure> {
        let Block::Call { arguments, .. } = self.block(at)? else {
            return Err(fault::disconnect_failure(format!(
                "part {at} of the answer is no call, but arguments come for it"
            )));
        };
        if arguments.len() + piece.len() > limits::ARGUMENTS_BYTES {
            return Err(too_large_failure("bytes of arguments for one call", limits::ARGUMENTS_BYTES));
        }
        arguments.push_str(piece);
        self.arguments_bytes += piece.len();
        Ok(())
    }

    /// More of one field of a thought.
    pub(super) fn thought(&mut self, at: u64, field: &str, piece: &str) -> Result<(), ProviderFailure> {
        let thought = self.thinking(at, piece.len())?;
        if let Some(Value::String(text)) = thought.get_mut(field) {
            text.push_str(piece);
        } else {
            thought.insert(field.to_owned(), piece.into());
        }
        Ok(())
    }

    /// The fields of a thought that has begun, to take so many bytes more.
    pub(super) fn thinking(&mut self, at: u64, bytes: usize) -> Result<&mut Map<String, Value>, ProviderFailure> {
        self.count_thought(bytes)?;
        match self.block(at)? {
            Block::Thought(Value::Object(thought)) => Ok(thought),
            Block::Thought(_) | Block::Text(_) | Block::Call { .. } | Block::Other => {
                Err(fault::disconnect_failure(format!("part {at} of the answer is no thought, but one comes for it")))
            }
        }
    }

    /// The block that seemed to be empty is a thought.
    pub(super) fn think(&mut self, at: u64, thought: Value) -> Result<(), ProviderFailure> {
        self.count_thought(size_of(&thought))?;
        *self.block(at)? = Block::Thought(thought);
        Ok(())
    }

    /// Something that belongs to a block, and goes back with it.
    pub(super) fn aside(&mut self, at: u64, aside: Value) -> Result<(), ProviderFailure> {
        self.count_thought(size_of(&aside))?;
        self.block(at)?;
        self.blocks.entry(at).and_modify(|part| part.aside = Some(aside));
        Ok(())
    }

    /// This field of a thought is not wanted back after all; if nothing else is in it, all of it.
    pub(super) fn forget(&mut self, at: u64, field: &str) {
        self.blocks.entry(at).and_modify(|part| {
            if let Block::Thought(Value::Object(thought)) = &mut part.block {
                thought.remove(field);
                if thought.is_empty() {
                    part.block = Block::Other;
                }
            }
        });
    }

    pub(super) fn refused(&mut self, piece: &str) {
        let words = self.refusal.get_or_insert_default();
        if words.len() < limits::PROVIDER_WORDS_CHARS {
            words.push_str(piece);
        }
    }

    /// The same, for words that may have come in pieces before.
    pub(super) fn refused_with(&mut self, words: &str) {
        if self.refusal.as_deref().unwrap_or_default().is_empty() {
            self.refused(words);
        }
    }

    pub(super) fn close(&mut self, at: u64) -> Result<(), ProviderFailure> {
        self.block(at)?;
        self.blocks.entry(at).and_modify(|part| part.open = false);
        Ok(())
    }

    pub(super) fn close_all(&mut self) {
        for part in self.blocks.values_mut() {
            part.open = false;
        }
    }

    fn count_thought(&mut self, bytes: usize) -> Result<(), ProviderFailure> {
        self.thought_bytes += bytes;
        if self.thought_bytes > limits::SEALED_BYTES {
            return Err(too_large_failure("bytes of reasoning", limits::SEALED_BYTES));
        }
        Ok(())
    }

    /// All of it has come. `sent_chars` is how much was asked, for providers that do not count.
    pub(super) fn reply(self, of: &CallContext<'_>, sent_chars: usize) -> Result<Reply, ProviderFailure> {
        let stop = self.stop.unwrap_or(Stop::Usual);
        // A refusal discards the text before it: an incomplete answer is no answer, and its calls were not meant.
        if self.refusal.is_some() || stop == Stop::Refused {
            return Err(refusal_failure(&self.refusal.unwrap_or_default()));
        }
        let cut = self.blocks.values().any(|part| part.open && matches!(part.block, Block::Call { .. }));
        if cut && stop == Stop::Usual {
            return Err(fault::disconnect_failure("its stream ended inside a tool call"));
        }
        let mut pieces = Vec::new();
        let (mut text, mut calls, mut written) = (String::new(), Vec::new(), 0);
        for part in self.blocks.into_values() {
            pieces.extend(part.aside.map(Piece::Thought));
            match part.block {
                Block::Text(more) if more.is_empty() => {}
                Block::Text(more) => {
                    let more = self.hide.from(&more);
                    if !text.is_empty() {
                        text.push_str(order::BETWEEN_TEXTS);
                    }
                    text.push_str(&more);
                    pieces.push(Piece::Text(more.len()));
                }
                Block::Call { tool, arguments } => {
                    written += tool.len() + arguments.len();
                    let arguments = self.hide.from(&arguments);
                    pieces.push(Piece::Call);
                    calls.push(of.make_call(calls.len(), tool, &arguments, &stop));
                }
                Block::Thought(thought) => pieces.push(Piece::Thought(thought)),
                Block::Other => {}
            }
        }
        let mut usage = Usage {
            input_tokens: self.counted.input.unwrap_or_else(|| sent_chars.div_ceil(4) as u64),
            output_tokens: self.counted.output.unwrap_or_else(|| tokens_in(&text) + written.div_ceil(4) as u64),
            cached_tokens: self.counted.cached,
            cache_write_tokens: self.counted.cache_write,
            cost_micro_usd: 0,
        };
        usage.cost_micro_usd = of.remote.card.prices.map_or(0, |prices| prices.cost_micro_usd(&usage));
        let sealed = order::seal(of.remote.provider.protocol, pieces);
        if sealed.as_ref().is_some_and(|sealed| size_of(sealed) > limits::SEALED_BYTES) {
            return Err(too_large_failure("bytes of reasoning", limits::SEALED_BYTES));
        }
        let stop = match stop {
            Stop::Usual | Stop::Refused => None,
            Stop::Full => Some(Reply::FULL.to_owned()),
            Stop::Other(word) => Some(word),
        };
        Ok(Reply {
            text,
            calls,
            usage,
            model: Some(of.remote.name.clone()),
            sealed: sealed.map(ProviderState),
            stop,
            ..Reply::default()
        })
    }
}

/// Who was asked, for what, and what it may ask for in turn.
pub(super) struct CallContext<'a> {
    pub(super) remote: &'a Remote,
    pub(super) tools: &'a ToolSet,
    pub(super) exec_id: &'a ExecId,
    pub(super) round: u32,
    pub(super) usage: &'a UsageSoFar,
}

impl CallContext<'_> {
    fn make_call(&self, index: usize, tool: String, arguments: &str, stop: &Stop) -> Call {
        let tool: String = tool.chars().take(limits::QUOTED_CHARS).collect();
        let call_id = call_id(self.exec_id, self.round, index);
        let input = parse_arguments(arguments);
        let parsed = match &input {
            Ok(_) | Err(_) if tool.is_empty() => ToolCall::Refused(
                Refusal::new(ErrorCode::UnknownTool, "the call names no tool").with_hint(self.tools.instead()),
            ),
            Ok(input) => self.tools.parse(&tool, input),
            Err(why) => ToolCall::Refused(unreadable_arguments(&tool, why, stop)),
        };
        Call { call_id, tool, input: input.unwrap_or_else(|_| json!({})).into(), parsed }
    }
}

/// The arguments of a call. None at all are an empty object, as for tools that take nothing.
fn parse_arguments(arguments: &str) -> Result<Value, String> {
    if arguments.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(Value::Object(fields)) => Ok(Value::Object(fields)),
        Ok(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => Err("not an object".to_owned()),
        Err(error) => Err(format!("not valid JSON ({error})")),
    }
}

fn unreadable_arguments(tool: &str, why: &str, stop: &Stop) -> Refusal {
    if *stop == Stop::Full {
        let message = format!("the answer reached its longest before the arguments of {tool} were complete");
        return Refusal::new(ErrorCode::CallCutOff, message);
    }
    let message = format!("the arguments of {tool} are {why}");
    Refusal::new(ErrorCode::InvalidInput, message).with_hint("call it again with one JSON object, as its schema has it")
}

fn refusal_failure(words: &str) -> ProviderFailure {
    let message = if words.trim().is_empty() { "it refuses to answer this" } else { words };
    ProviderFailure { error: ProviderError::Refusal, ..ProviderFailure::invalid(message) }
}

fn too_large_failure(of_what: &str, limit: usize) -> ProviderFailure {
    ProviderFailure::invalid(format!("its answer is too large: more than {limit} {of_what}"))
}

fn size_of(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}
