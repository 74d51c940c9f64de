//! The prompt that a model is shown, before any provider's spelling of it. Pure: its parts arrive as values, and the
//! same values make the same prompt.

pub mod assemble;
pub mod counted;
pub mod image;
pub mod measure;
mod quote;
mod recap;
mod refused;
pub mod situation;
pub mod talk;
mod words;

use std::sync::Arc;

pub use words::HOUSE;

use crate::fact::CallRecord;
use crate::id::CallId;
use crate::open_json::ProviderState;

/// One request to a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt {
    /// Who it is and what its operator wants of it.
    pub system: String,
    /// The conversation, oldest first. Requests share the items that they have in common.
    pub items: Vec<Arc<Item>>,
    /// How many of the items, from the first, will stand unchanged in the next request too: as far as a provider's cache
    /// can reach.
    pub stable: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Said to the model: messages of people and events, and what the runtime tells it.
    User { parts: Vec<Part> },
    /// The model's answer in one round.
    Assistant { text: String, calls: Vec<CallRecord>, thought: Option<SealedReasoning> },
    /// The results of the calls of the round before, in the order of the calls.
    Results { results: Vec<CallResult> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Text(String),
    Image(Image),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    /// In base64.
    pub data: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    pub call_id: CallId,
    /// The result as JSON, as far as there was room for it.
    pub content: String,
    pub failed: bool,
    pub images: Vec<Image>,
}

/// Reasoning that a provider wants to be given back word for word with the round it came in, sealed. It means something
/// to the models of one provider only.
#[derive(Debug, Clone, PartialEq)]
pub struct SealedReasoning {
    /// The model that thought it, as `PROVIDER/MODEL`.
    pub model: String,
    pub sealed: ProviderState,
}
