//! Models: whatever answers a call with text and tool calls. A closed set, chosen by name (`PROVIDER/MODEL`).
//!
//! A call has no memory of its own. What a provider must know at its next call travels in the *carry*, which the
//! caller records with the outcome; so a restart between two calls changes nothing. Dropping a call's future ends it.

pub mod cards;
mod echo;
pub mod providers;
pub mod remote;
mod script;

use std::fmt;
use std::path::{Path, PathBuf};

use abide_kernel::budget::Usage;
use abide_kernel::effect::ModelCall;
use abide_kernel::id::{CallId, ExecId};
use abide_kernel::input::{Reply, Spent};
use abide_kernel::message::Message;
use abide_kernel::open_json::ProviderState;
use abide_kernel::prompt::image::images_in;
use abide_kernel::vocabulary::ProviderError;
use serde_json::Value;

use crate::tools::ToolSet;
pub use providers::Providers;
use remote::{Card, Remote};

/// A model that can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Model {
    /// `script/echo`: answers with its input's text.
    Echo,
    /// `script/FILE`: plays a file. The path is absolute, so that it means the same to every reader.
    Script { file: PathBuf },
    /// `PROVIDER/MODEL`: somebody serves it.
    Remote(Remote),
}

/// The name does not name a model that can be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadModel {
    #[error("{name:?} names no model: a model is PROVIDER/MODEL, such as script/echo")]
    NotAName { name: String },
    #[error("there is no provider {provider:?}; {instead}, or [providers.NAME] in config.toml makes one")]
    UnknownProvider { provider: String, instead: String },
    #[error("{name:?} names no model: no name of one has blanks in it")]
    Blank { name: String },
    #[error(
        "{provider} is not built in, and nobody says where it is: `abide config set providers.{provider}.base_url \
         https://HOST/v1`"
    )]
    NoAddress { provider: String },
    #[error("the script {file:?} has no absolute path; say where it is, as in script//path/to/{file}")]
    RelativeScript { file: String },
}

/// The results of earlier tool calls of the agent. Read only when a model asks for them: most calls never do.
pub trait PastResults: Send + Sync {
    /// The newest `count` results, newest first; fewer where there are no more.
    fn tool_results(&self, count: usize) -> Result<Vec<Value>, ProviderFailure>;
}

/// A call that came to nothing, as the ledger records it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}: {message}")]
pub struct ProviderFailure {
    pub error: ProviderError,
    /// When the provider says to come again.
    pub retry_after_ms: Option<u64>,
    pub message: String,
    /// The value that the provider wants back with its next call. None: the previous one.
    pub carry: Option<ProviderState>,
    /// The usage that is charged all the same.
    pub spent: Option<Box<Spent>>,
    /// Of an `auth` failure: the key may not use this model, and may work for others of its provider.
    pub model_only: bool,
}

impl ProviderFailure {
    /// The call makes no sense, and won't until somebody changes something.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> ProviderFailure {
        let (error, message) = (ProviderError::Invalid, message.into());
        ProviderFailure { error, retry_after_ms: None, message, carry: None, spent: None, model_only: false }
    }

    /// This machine could not do its part of the call for the moment: it is retried.
    #[must_use]
    pub fn system(message: impl Into<String>) -> ProviderFailure {
        ProviderFailure { error: ProviderError::System, ..ProviderFailure::invalid(message) }
    }
}

impl Model {
    /// Refuses a model with unknown prices where money is limited: no limit would ever be reached. A script costs
    /// nothing.
    pub fn check_price(&self) -> Result<(), String> {
        let name = match self {
            Model::Remote(Remote { name, card: Card { prices: None, .. }, .. }) => name,
            Model::Remote(_) | Model::Echo | Model::Script { .. } => return Ok(()),
        };
        Err(format!(
            "{name} has no price, so a limit in dollars would never be reached: set models.{name:?}.input_usd and \
             output_usd (0 where it costs nothing), or limit tokens instead of dollars"
        ))
    }

    /// One call: the answer to `round` of the execution, which also name the tool calls it asks for.
    pub async fn call(
        &self,
        call: &ModelCall,
        tools: &ToolSet,
        exec_id: &ExecId,
        round: u32,
        past: &dyn PastResults,
    ) -> Result<Reply, ProviderFailure> {
        match self {
            Model::Echo => Ok(echo::echo_reply(call)),
            Model::Script { file } => script::play_call(file, call, tools, exec_id, round, past).await,
            // The caller assembles the prompt: see `Remote`.
            Model::Remote(remote) => Err(ProviderFailure::invalid(format!("{} is called with a prompt", remote.name))),
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Model::Echo => f.write_str("script/echo"),
            Model::Script { file } => write!(f, "script/{}", file.display()),
            Model::Remote(remote) => f.write_str(&remote.name),
        }
    }
}

/// `name` with a script's relative file taken from `folder`; every other name as it is. For callers that know the
/// folder of the person who typed the name. A file called `echo` is `script/./echo`.
#[must_use]
pub fn absolute(name: &str, folder: &Path) -> String {
    match name.split_once('/') {
        Some(("script", file)) if !file.is_empty() && file != "echo" && Path::new(file).is_relative() => {
            // Through components, so that `./` leaves no trace and one file has one name.
            let path: PathBuf = folder.join(file).components().collect();
            format!("script/{}", path.display())
        }
        Some(_) | None => name.to_owned(),
    }
}

/// The text of a message as a model reads it that sees no images: what was written, else its JSON on one line.
fn text_of(message: &Message) -> String {
    match (&message.text, &message.json) {
        (Some(text), _) => text.clone(),
        (None, Some(json)) => match (images_in(json), json["text"].as_str()) {
            // Written, with images beside it.
            ((images, _), Some(text)) if !images.is_empty() => text.to_owned(),
            ((_, json), _) => json.to_string(),
        },
        (None, None) => String::new(),
    }
}

/// All that a turn gives a model to read: its message, then what joined it.
fn input_text(call: &ModelCall) -> String {
    let messages = std::iter::once(&call.message).chain(&call.interjections);
    messages.map(|message| text_of(message)).collect::<Vec<_>>().join("\n")
}

/// Usage where nobody counts tokens. It costs nothing.
fn estimate(input: &str, output: &str) -> Usage {
    Usage { input_tokens: tokens_in(input), output_tokens: tokens_in(output), ..Usage::default() }
}

/// Four characters are about one.
fn tokens_in(text: &str) -> u64 {
    u64::try_from(text.chars().count().div_ceil(4)).unwrap_or(u64::MAX)
}

/// An execution and its rounds are never used again, so neither is this id.
fn call_id(exec_id: &ExecId, round: u32, index: usize) -> CallId {
    let exec = exec_id.as_str();
    CallId::new(format!("call_{}-{round}-{index}", exec.strip_prefix("exec_").unwrap_or(exec)))
}
