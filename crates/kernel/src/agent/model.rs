//! Which model thinks for an agent: its own, or the next in order while that one fails.

use serde::{Deserialize, Serialize};

use super::AgentState;
use super::queue::Tried;
use crate::fact::ProviderRoundFailed;
use crate::id::MessageId;
use crate::limits;
use crate::time::Time;
use crate::vocabulary::ProviderError;

/// The last failure of a model, until the agent's own works again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trouble {
    pub model: String,
    pub error: ProviderError,
    pub message: String,
    pub at: Time,
}

impl AgentState {
    /// The model for a turn about this message: the first that did not fail under it.
    #[must_use]
    pub fn model_for(&self, message: &MessageId) -> &str {
        self.untried(message).unwrap_or(&self.config.model)
    }

    /// The next model that did not fail under this message.
    #[must_use]
    pub fn untried(&self, message: &MessageId) -> Option<&str> {
        let tried = self.queue.get(message).map(|entry| entry.tried.as_slice()).unwrap_or_default();
        self.config.models().find(|model| tried.iter().all(|tried| tried.model != *model))
    }

    /// The model of the running turn, or of the next one.
    #[must_use]
    pub fn model_in_use(&self) -> &str {
        self.turn.as_ref().map_or(self.config.model.as_str(), |turn| self.model_for(&turn.message_id))
    }

    pub(super) fn model_failed(&mut self, fact: &ProviderRoundFailed, at: Time) {
        let Some(message) = self.turn.as_ref().map(|turn| turn.message_id.clone()) else { return };
        let model = self.model_for(&message).to_owned();
        let text = limits::clip(&fact.message, limits::TROUBLE_BYTES).to_owned();
        self.trouble = Some(Trouble { model: model.clone(), error: fact.error, message: text, at });
        let retry_at = fact.retry_after_ms.map(|ms| at.plus_ms(ms.min(limits::PROVIDER_RETRY_MAX_MS)));
        self.queue.edit(&message, |entry| {
            // More than there can be names a list that changed meanwhile: the oldest gives way.
            if entry.tried.len() > limits::FALLBACK_MAX {
                entry.tried.remove(0);
            }
            entry.tried.push(Tried { model, error: fact.error, retry_at });
        });
    }

    pub(super) fn model_answered(&mut self) {
        if self.model_in_use() == self.config.model {
            self.trouble = None;
        }
    }
}
