//! Models that somebody serves over HTTP: where they are, what they can take, what they cost, and how they are called.
//!
//! A call is one request and one streamed answer. Each protocol has a file that makes the request's body of a prompt
//! and takes the events of the answer; everything else is the same for all of them. Nothing is retried here: the
//! component that records the failure knows when to.

mod answer;
mod anthropic;
mod catalogue;
mod chat;
mod details;
mod fault;
mod http;
mod order;
mod redaction;
mod responses;
mod retry_after;
mod spelling;
pub mod sse;
mod usage_so_far;
mod written;

use std::fmt;
use std::sync::Arc;

use abide_kernel::budget::Usage;
use abide_kernel::fact::CallRecord;
use abide_kernel::id::ExecId;
use abide_kernel::input::Reply;
use abide_kernel::prompt::{Prompt, SealedReasoning};
use abide_kernel::vocabulary::ProviderError;
use reqwest::Response;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::ProviderFailure;
use crate::limits;
use crate::tools::ToolSet;
use answer::{Answer, CallContext};
use order::Shown;
use redaction::KeyRedaction;
pub use usage_so_far::UsageSoFar;
pub use written::WrittenItems;

/// A model at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// As its operator wrote it: `PROVIDER/MODEL`.
    pub name: String,
    /// The provider's name for the model.
    pub model: String,
    pub provider: Arc<Provider>,
    pub card: Card,
}

/// Where a provider is, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// The part of a model's name before the slash.
    pub name: String,
    pub protocol: Protocol,
    /// Without a slash at its end: `https://api.anthropic.com`, `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// None where it takes none, or where none is set.
    pub key: Option<Key>,
    /// The variable of the environment that its key is looked for in, where it wants one.
    pub key_env: Option<String>,
}

/// The protocols that providers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, which many others serve too.
    Chat,
}

/// The context window and prices of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card {
    /// The tokens of its input and output together.
    pub window_tokens: u64,
    /// The most tokens of one answer.
    pub max_output_tokens: u64,
    /// How much of the window a prompt may fill.
    pub context_tokens: u64,
    pub prices: Option<Prices>,
    /// It can look at pictures.
    pub images: bool,
}

/// Millionths of a dollar for a million tokens: a price list's dollars, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// The question to a model.
#[derive(Debug)]
pub struct Question<'a> {
    pub prompt: &'a Prompt,
    pub tools: &'a ToolSet,
    /// The items that the request before this one had written of the same conversation.
    pub written: &'a mut WrittenItems,
}

/// A key. It is shown to its provider and to nobody else: not to logs, errors, ledgers or programs that are started.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    #[must_use]
    pub fn new(key: String) -> Key {
        Key(key)
    }

    /// For the header of a request, and nothing else.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Remote {
    /// One call: the answer to `round` of the execution, which also name the tool calls it asks for. With no `tools`, none
    /// are offered. `hear` is told the answer's text as it arrives: what is there at once, at once.
    ///
    /// Dropping the future ends the connection.
    pub async fn call(
        &self,
        prompt: &Prompt,
        tools: &ToolSet,
        exec_id: &ExecId,
        round: u32,
        hear: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Reply, ProviderFailure> {
        let question = Question { prompt, tools, written: &mut WrittenItems::default() };
        self.call_on(&UsageSoFar::default(), question, exec_id, round, hear).await
    }

    /// The same, for a caller that may end the call early and has to know its usage then.
    pub async fn call_on(
        &self,
        usage: &UsageSoFar,
        question: Question<'_>,
        exec_id: &ExecId,
        round: u32,
        hear: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Reply, ProviderFailure> {
        let Question { prompt, tools, written } = question;
        let asked = CallContext { remote: self, tools, exec_id, round, usage };
        let body = self.request_body(Question { prompt, tools, written });
        let exchange = tokio::time::timeout(limits::MODEL_TOTAL, self.exchange(body, &asked, hear));
        let late =
            |_| Err(fault::timeout_failure(format!("its answer took more than {} s", limits::MODEL_TOTAL.as_secs())));
        exchange.await.unwrap_or_else(late).map_err(|failure| {
            let spent = usage.spent(|| prompt.tokens() + tools.tokens(), self.card.prices);
            self.told(ProviderFailure { spent: spent.map(Box::new), ..failure })
        })
    }

    /// The body of a request.
    #[must_use]
    pub fn request_body(&self, question: Question<'_>) -> String {
        let Question { prompt, tools, written } = question;
        match self.provider.protocol {
            Protocol::Anthropic => anthropic::body(self, prompt, tools, written),
            Protocol::Responses => responses::body(self, prompt, tools, written),
            Protocol::Chat => chat::body(self, prompt, tools, written),
        }
    }

    async fn exchange(
        &self,
        body: String,
        asked: &CallContext<'_>,
        hear: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Reply, ProviderFailure> {
        let headers = self.headers()?;
        let path = match self.provider.protocol {
            Protocol::Anthropic => "/v1/messages",
            Protocol::Responses => "/responses",
            Protocol::Chat => "/chat/completions",
        };
        let sent_chars = body.chars().count();
        let url = format!("{}{path}", self.provider.base_url);
        let mut response = http::post(&url, headers, body.into_bytes()).await?;
        let begun = expect_stream(&mut response).await?;
        let mut answer = Answer::new(hear, KeyRedaction::new(self.provider.key.as_ref()));
        asked.usage.set_progress(answer.so_far());
        let listened = self.listen(begun, &mut response, &mut answer, asked.usage).await;
        answer.tell_text();
        listened?;
        answer.tell_rest();
        http::drain_body(response).await;
        answer.reply(asked, sent_chars)
    }

    fn headers(&self) -> Result<HeaderMap, ProviderFailure> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.provider.protocol == Protocol::Anthropic {
            headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
        }
        match (&self.provider.key, &self.provider.key_env) {
            (Some(key), _) => {
                let (name, value) = match self.provider.protocol {
                    Protocol::Anthropic => (HeaderName::from_static("x-api-key"), key.reveal().to_owned()),
                    Protocol::Responses | Protocol::Chat => (AUTHORIZATION, format!("Bearer {}", key.reveal())),
                };
                let unusable = |_| fault::auth_failure(format!("{} has letters that no key has", self.key_place()));
                let mut value = HeaderValue::from_str(&value).map_err(unusable)?;
                value.set_sensitive(true);
                headers.insert(name, value);
            }
            (None, Some(variable)) => return Err(fault::auth_failure(format!("no key is set; set {variable} to one"))),
            (None, None) => {}
        }
        Ok(headers)
    }

    fn key_place(&self) -> &str {
        self.provider.key_env.as_deref().unwrap_or("its key")
    }

    /// Takes the answer's events until the one that ends it. `begun` has been read of it.
    async fn listen(
        &self,
        begun: Vec<u8>,
        response: &mut Response,
        answer: &mut Answer<'_>,
        usage: &UsageSoFar,
    ) -> Result<(), ProviderFailure> {
        let mut events = sse::Events::default();
        let mut reading = Reading::of(self.provider.protocol);
        let mut bytes = 0;
        let mut begun = (!begun.is_empty()).then(|| Ok(Some(begun.into())));
        loop {
            let piece = match begun.take().or_else(|| http::poll_chunk(response)) {
                Some(piece) => piece?,
                None => {
                    answer.tell_text();
                    http::next_chunk(response).await?
                }
            };
            let Some(piece) = piece else { break };
            bytes += piece.len();
            if bytes > limits::ANSWER_STREAM_BYTES {
                let limit = limits::ANSWER_STREAM_BYTES >> 20;
                return Err(ProviderFailure::invalid(format!("its answer is too large: more than {limit} MiB")));
            }
            let events = events.push_bytes(&piece).map_err(|error| ProviderFailure::invalid(error.to_string()))?;
            for event in events {
                let taken = reading.take(&event, answer);
                usage.set_progress(answer.so_far());
                if taken? {
                    return Ok(());
                }
            }
        }
        if reading.may_end_here(answer) {
            Ok(())
        } else {
            Err(fault::disconnect_failure("its answer ended before its end"))
        }
    }

    /// An earlier answer in its parts, with its reasoning where this very model thought it.
    fn parts<'a>(
        &self,
        text: &'a str,
        calls: &'a [CallRecord],
        thought: Option<&'a SealedReasoning>,
    ) -> Vec<Shown<'a>> {
        let own = thought.filter(|thought| thought.model == self.name).map(|thought| &thought.sealed);
        let own = own.filter(|sealed| sealed["speaks"] == self.provider.protocol.as_str());
        order::parts(text, calls, own.and_then(|sealed| sealed["order"].as_array()).map(Vec::as_slice))
    }

    /// A failure as people are told it: who failed, on one line, without the key, whatever the provider repeats.
    fn told(&self, failure: ProviderFailure) -> ProviderFailure {
        let mut said = failure.message;
        if let Some(key) = self.provider.key.as_ref().map(Key::reveal).filter(|key| !key.is_empty()) {
            said = said.replace(key, redaction::INSTEAD);
        }
        if failure.error == ProviderError::Auth && self.provider.key.is_some() {
            said = format!("{said}; the key is that of {}", self.key_place());
        }
        let line = format!("{}: {}", self.name, said.split_whitespace().collect::<Vec<_>>().join(" "));
        let message = line.chars().filter(|c| !c.is_control()).take(limits::PROVIDER_WORDS_CHARS).collect();
        ProviderFailure { message, ..failure }
    }
}

/// A server that answers without a stream did not understand the request, or is another program. An answer that is not
/// declared as a stream is looked into, and the bytes read are returned.
async fn expect_stream(response: &mut Response) -> Result<Vec<u8>, ProviderFailure> {
    let status = response.status();
    if !status.is_success() {
        let headers = response.headers().clone();
        return Err(fault::of_status(status.as_u16(), &headers, &http::read_beginning(response, Vec::new()).await));
    }
    let kind = response.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase());
    let mut begun = Vec::new();
    if kind.as_ref().is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
        return Ok(begun);
    }
    while sse::is_stream(&begun).is_none()
        && begun.len() < limits::ERROR_BODY_BYTES
        && let Some(piece) = http::next_chunk(response).await?
    {
        begun.extend_from_slice(&piece);
    }
    if sse::is_stream(&begun) == Some(true) {
        return Ok(begun);
    }
    Err(fault::of_page(status.as_u16(), kind.is_some(), &http::read_beginning(response, begun).await))
}

/// How far a stream has been read.
enum Reading {
    Anthropic(anthropic::Reading),
    Responses,
    Chat(chat::Reading),
}

impl Reading {
    fn of(protocol: Protocol) -> Reading {
        match protocol {
            Protocol::Anthropic => Reading::Anthropic(anthropic::Reading::default()),
            Protocol::Responses => Reading::Responses,
            Protocol::Chat => Reading::Chat(chat::Reading::default()),
        }
    }

    /// Takes one event. True: that was the last.
    fn take(&mut self, event: &[u8], answer: &mut Answer<'_>) -> Result<bool, ProviderFailure> {
        let event = event.trim_ascii();
        if event.is_empty() {
            return Ok(false);
        }
        if event == b"[DONE]" {
            return Ok(matches!(self, Reading::Chat(_)));
        }
        let event: Value = serde_json::from_slice(event)
            .map_err(|error| fault::disconnect_failure(format!("an event of its answer is no JSON ({error})")))?;
        match self {
            Reading::Anthropic(reading) => reading.take(&event, answer),
            Reading::Responses => responses::take(&event, answer),
            Reading::Chat(reading) => reading.take(&event, answer).map(|()| false),
        }
    }

    /// Whether an answer is complete that ends without saying so. Some servers leave `[DONE]` out.
    fn may_end_here(&self, answer: &Answer<'_>) -> bool {
        match self {
            Reading::Anthropic(_) | Reading::Responses => false,
            Reading::Chat(_) => answer.stop.is_some(),
        }
    }
}

impl Protocol {
    /// As what is sealed names it.
    fn as_str(self) -> &'static str {
        match self {
            Protocol::Anthropic => "anthropic",
            Protocol::Responses => "responses",
            Protocol::Chat => "chat",
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(a key)")
    }
}

impl Prices {
    /// The cost of this usage, rounded up. Tokens from the cache and into it are part of the input.
    #[must_use]
    pub fn cost_micro_usd(&self, usage: &Usage) -> u64 {
        let fresh = usage.input_tokens.saturating_sub(usage.cached_tokens).saturating_sub(usage.cache_write_tokens);
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let sum = of(fresh, self.input)
            + of(usage.output_tokens, self.output)
            + of(usage.cached_tokens, self.cache_read)
            + of(usage.cache_write_tokens, self.cache_write);
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}
