//! The model of an agent's turns: its first, or the next in order while the first fails.

use serde::{Deserialize, Serialize};

use super::AgentState;
use super::queue::ModelAttempt;
use super::token_calibration::TokenCalibration;
use crate::fact::ProviderRoundFailed;
use crate::id::MessageId;
use crate::limits;
use crate::open_json::ProviderState;
use crate::time::Time;
use crate::vocabulary::ProviderError;

/// The last failure of a model that has not answered since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFailure {
    pub model: String,
    pub error: ProviderError,
    pub message: String,
    pub at: Time,
}

/// A model with a transient failure. It is not asked until then while another model can be; a message that has no other
/// model waits until then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backoff {
    pub model: String,
    pub error: ProviderError,
    pub until: Time,
    /// How often it failed since it last answered.
    pub failures: u32,
}

/// The agent's models as its calls found them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Models {
    /// The last failure of each model that has not answered since, the newest last.
    pub failures: Vec<ModelFailure>,
    /// Models that failed lately, and until when they are not asked.
    pub backoffs: Vec<Backoff>,
    /// The error of our token estimates.
    pub calibration: TokenCalibration,
    /// State that the provider wants back with the next call.
    pub carry: Option<ProviderState>,
}

impl AgentState {
    /// The model for a turn about this message: the first that neither failed under it nor rests. Where all of them do,
    /// the one whose rest is over first.
    #[must_use]
    pub fn model_for(&self, message: &MessageId, now: Time) -> &str {
        let soonest = || self.untried_models(message).min_by_key(|model| self.backoff_until(model, now));
        self.available_model_for(message, now).or_else(soonest).unwrap_or(&self.definition.config.model)
    }

    /// The next model that neither failed under this message nor rests.
    #[must_use]
    pub fn available_model_for(&self, message: &MessageId, now: Time) -> Option<&str> {
        self.untried_models(message).find(|model| self.backoff_until(model, now).is_none())
    }

    fn untried_models(&self, message: &MessageId) -> impl Iterator<Item = &str> {
        let tried = self.planes.queue.get(message).map(|entry| entry.tried.as_slice()).unwrap_or_default();
        self.definition.config.models().filter(|model| tried.iter().all(|tried| tried.model != *model))
    }

    /// The model of the running turn, or of the next one.
    #[must_use]
    pub fn model_in_use(&self, now: Time) -> &str {
        let free = || self.definition.config.models().find(|model| self.backoff_until(model, now).is_none());
        self.turns
            .current
            .as_ref()
            .map(|turn| turn.model.as_str())
            .or_else(free)
            .unwrap_or(&self.definition.config.model)
    }

    /// Until when a model rests.
    #[must_use]
    pub fn backoff_until(&self, model: &str, now: Time) -> Option<Time> {
        self.models.backoffs.iter().find(|rest| rest.model == model).map(|rest| rest.until).filter(|until| *until > now)
    }

    /// When the first of the models that rest can be asked again.
    #[must_use]
    pub fn first_rested(&self, now: Time) -> Option<Time> {
        self.definition.config.models().filter_map(|model| self.backoff_until(model, now)).min()
    }

    /// The time before which a message that waits for a model is not taken. None as soon as one can be asked.
    #[must_use]
    pub fn held_until(&self, now: Time) -> Option<Time> {
        let all_rest = self.definition.config.models().all(|model| self.backoff_until(model, now).is_some());
        self.first_rested(now).filter(|_| all_rest)
    }

    /// The last failure of a model that has not answered since.
    #[must_use]
    pub fn last_model_failure(&self) -> Option<&ModelFailure> {
        self.models.failures.last()
    }

    /// How often this model failed since it last answered.
    #[must_use]
    pub fn failures_of(&self, model: &str) -> u32 {
        self.models.backoffs.iter().find(|rest| rest.model == model).map_or(0, |rest| rest.failures)
    }

    pub(super) fn record_model_failure(&mut self, fact: &ProviderRoundFailed, at: Time) {
        let Some((message, model)) =
            self.turns.current.as_ref().map(|turn| (turn.message_id.clone(), turn.model.clone()))
        else {
            return;
        };
        let text = limits::clip(&fact.message, limits::MODEL_ERROR_BYTES).to_owned();
        self.models.failures.retain(|known| known.model != model);
        self.models.failures.push(ModelFailure { model: model.clone(), error: fact.error, message: text, at });
        if let Some(until) = fact.not_before {
            let failures = self.failures_of(&model) + 1;
            self.models.backoffs.retain(|rest| rest.model != model);
            if self.models.backoffs.len() > limits::FALLBACK_MAX {
                self.models.backoffs.remove(0);
            }
            self.models.backoffs.push(Backoff { model: model.clone(), error: fact.error, until, failures });
        }
        self.planes.queue.edit(&message, |entry| {
            // More than there can be names a list that changed meanwhile: the oldest gives way.
            if entry.tried.len() > limits::FALLBACK_MAX {
                entry.tried.remove(0);
            }
            entry.tried.push(ModelAttempt { model, error: fact.error });
        });
    }

    pub(super) fn clear_model_failures(&mut self) {
        let Some(model) = self.turns.current.as_ref().map(|turn| turn.model.as_str()) else { return };
        self.models.backoffs.retain(|rest| rest.model != model);
        self.models.failures.retain(|known| known.model != model);
    }
}
