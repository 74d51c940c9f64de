//! Classifies the error of a provider: a class that says whether it is transient, and the provider's own message.

use abide_kernel::vocabulary::ProviderError;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::retry_after;
use crate::model::ProviderFailure;

/// The codes and words of a request that is longer than the model's window. Each provider has its own.
const TOO_LONG: &[&str] = &[
    // OpenAI and compatible providers.
    "context_length_exceeded",
    "maximum context length",
    "exceeds the context window",
    "exceeds the model's context",
    "string_above_max_length",
    // Anthropic.
    "prompt is too long",
    "exceed context limit",
    "request_too_large",
    // llama.cpp and Ollama.
    "exceed_context_size",
    "exceeds the available context size",
    "exceeds context length",
    "exceeds the context length",
    "exceeds maximum context length",
    "exceeded max context length",
    // Gemini, Mistral, xAI, GitHub, Bedrock.
    "exceeds the maximum number of tokens",
    "too large for model",
    "maximum prompt length",
    "tokens_limit_reached",
    "input is too long",
    "reduce the length of the messages",
];

/// A 429 that no waiting mends: one request is more than a minute's tokens.
const TOO_LARGE_FOR_A_MINUTE: &[&str] = &["must be reduced", "request too large"];

/// The account has no credit. It reads like a rate limit with some providers, and is none.
const UNPAID: &[&str] = &[
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "credit balance is too low",
];

/// The request itself was found unfit.
const FLAGGED: &[&str] =
    &["content_filter", "content_policy_violation", "responsibleaipolicy", "flagged", "invalid_prompt"];

/// The key is known, and may not do this.
const FORBIDDEN: u16 = 403;
const PERMISSION: &str = "permission";

/// An answer with a status that is none of success.
pub(super) fn of_status(status: u16, headers: &HeaderMap, body: &[u8]) -> ProviderFailure {
    let said = ErrorBody::read(body);
    let error = classify(status, &said);
    let waits = matches!(error, ProviderError::RateLimited | ProviderError::Overloaded);
    let retry_after_ms = if waits {
        retry_after::from_headers(headers).or_else(|| retry_after::from_words(&said.message))
    } else {
        None
    };
    let hint = match (error, status) {
        (ProviderError::Auth, _) if said.contains_any(UNPAID) => {
            "; nothing is left to spend there, and waiting changes nothing"
        }
        (_, 404) => "; the model's name or the provider's base URL is wrong",
        (_, 300..=399) => "; redirects are not followed, so the provider's base URL has to be the place itself",
        _ => "",
    };
    let message = format!("status {status}: {}{hint}", said.sentence());
    let model_only = status == FORBIDDEN && said.is_of_model(error);
    ProviderFailure { error, retry_after_ms, model_only, ..ProviderFailure::invalid(message) }
}

/// An answer that promised success and is a page, or one JSON document: an error all the same, or no stream.
pub(super) fn of_page(status: u16, typed: bool, body: &[u8]) -> ProviderFailure {
    let page = match serde_json::from_slice::<Value>(body) {
        Ok(value) if !value["error"].is_null() => return of_event(&value),
        Ok(_) => "a document".to_owned(),
        Err(_) if body.trim_ascii().is_empty() => "nothing".to_owned(),
        Err(_) => page_title(&String::from_utf8_lossy(body)),
    };
    let status = if status == 200 { String::new() } else { format!("status {status}: ") };
    let kind = if typed { "" } else { " and no content type" };
    ProviderFailure::invalid(format!(
        "{status}it answers with {page}{kind}, not with a stream; its base URL may be wrong"
    ))
}

/// An error that comes in the middle of a stream, after a head that promised success.
pub(super) fn of_event(error: &Value) -> ProviderFailure {
    let said = ErrorBody::from_value(error);
    let class = match said.status {
        Some(status) => classify(status, &said),
        None => classify_by_words(&said),
    };
    let retry_after_ms =
        if class == ProviderError::RateLimited { retry_after::from_words(&said.message) } else { None };
    let forbidden = said.status.map_or_else(|| said.contains_any(&[PERMISSION]), |status| status == FORBIDDEN);
    let model_only = forbidden && said.is_of_model(class);
    ProviderFailure { error: class, retry_after_ms, model_only, ..ProviderFailure::invalid(said.sentence()) }
}

/// The stream ended before its end, or makes no sense: the same request may well do better.
pub(super) fn disconnect_failure(message: impl Into<String>) -> ProviderFailure {
    ProviderFailure { error: ProviderError::Disconnect, ..ProviderFailure::invalid(message) }
}

pub(super) fn timeout_failure(message: impl Into<String>) -> ProviderFailure {
    ProviderFailure { error: ProviderError::Timeout, ..ProviderFailure::invalid(message) }
}

pub(super) fn auth_failure(message: impl Into<String>) -> ProviderFailure {
    ProviderFailure { error: ProviderError::Auth, ..ProviderFailure::invalid(message) }
}

fn classify(status: u16, said: &ErrorBody) -> ProviderError {
    if said.contains_any(UNPAID) {
        return ProviderError::Auth;
    }
    match status {
        429 if said.contains_any(TOO_LARGE_FOR_A_MINUTE) => ProviderError::ContextLength,
        429 => ProviderError::RateLimited,
        408 => ProviderError::Timeout,
        // Some servers at home answer with 500 here.
        400 | 413 | 422 | 500 if said.contains_any(TOO_LONG) => ProviderError::ContextLength,
        413 => ProviderError::ContextLength,
        400 | 403 if said.contains_any(FLAGGED) => ProviderError::Refusal,
        401..=403 => ProviderError::Auth,
        500.. => ProviderError::Overloaded,
        _ => ProviderError::Invalid,
    }
}

fn classify_by_words(said: &ErrorBody) -> ProviderError {
    let classes: [(&[&str], ProviderError); 8] = [
        (UNPAID, ProviderError::Auth),
        (TOO_LONG, ProviderError::ContextLength),
        (FLAGGED, ProviderError::Refusal),
        (&["rate_limit", "too_many_requests", "resource_exhausted"], ProviderError::RateLimited),
        (&["overloaded", "server_error", "api_error", "internal", "unavailable"], ProviderError::Overloaded),
        (&["timeout", "timed out"], ProviderError::Timeout),
        (&["authentication", PERMISSION, "invalid_api_key"], ProviderError::Auth),
        (&["not_found", "invalid_request"], ProviderError::Invalid),
    ];
    // An unknown error came up while the provider worked, and is transient like its other failures.
    classes.iter().find(|(words, _)| said.contains_any(words)).map_or(ProviderError::Overloaded, |(_, class)| *class)
}

/// The error in the body of a provider's answer.
struct ErrorBody {
    /// Its codes for it.
    codes: Vec<String>,
    message: String,
    /// A status in place of a code, as where one provider reports for another.
    status: Option<u16>,
}

impl ErrorBody {
    fn read(body: &[u8]) -> ErrorBody {
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Array(list)) => ErrorBody::from_value(list.first().unwrap_or(&Value::Null)),
            Ok(value) => ErrorBody::from_value(&value),
            Err(_) => {
                ErrorBody { codes: Vec::new(), message: page_title(&String::from_utf8_lossy(body)), status: None }
            }
        }
    }

    /// Of an object that is an error, or has one.
    fn from_value(value: &Value) -> ErrorBody {
        let error = if value["error"].is_null() { value } else { &value["error"] };
        let text = |value: &Value| value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let detail = || (!value["detail"].is_null()).then(|| value["detail"].to_string());
        let message =
            text(error).or_else(|| text(&error["message"])).or_else(|| text(&value["detail"])).or_else(detail);
        let mut message = message.unwrap_or_default();
        // The message of another provider that this one asked.
        if let Some(raw) = text(&error["metadata"]["raw"]) {
            message = format!("{message}: {raw}");
        }
        let codes = ["type", "code", "status"].iter().filter_map(|field| text(&error[*field]));
        let codes = codes.filter(|code| code != "error").collect();
        let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        ErrorBody { codes, message, status: status.filter(|status| (400..600).contains(status)) }
    }

    fn contains_any(&self, words: &[&str]) -> bool {
        let said = format!("{} {}", self.codes.join(" "), self.message).to_lowercase();
        words.iter().any(|word| said.contains(word))
    }

    /// Whether a key that was forbidden something may work for other models: not where nobody has paid.
    fn is_of_model(&self, error: ProviderError) -> bool {
        error == ProviderError::Auth && !self.contains_any(UNPAID)
    }

    fn sentence(&self) -> String {
        match (self.codes.is_empty(), self.message.is_empty()) {
            (false, false) => format!("{} ({})", self.message, self.codes.join(", ")),
            (false, true) => self.codes.join(", "),
            (true, false) => self.message.clone(),
            (true, true) => "it says nothing more".to_owned(),
        }
    }
}

/// The text of a page that is not JSON: its title if it is a web page, as proxies send them.
fn page_title(text: &str) -> String {
    let title = text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")).map(|(title, _)| title);
    match title {
        Some(title) => format!("a web page, {:?}", title.trim()),
        None if text.trim_start().starts_with('<') => "a web page".to_owned(),
        None => text.trim().to_owned(),
    }
}
