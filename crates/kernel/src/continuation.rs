//! Continuation: how a message re-entered the model, or why it did not. The rules are in `scheduler/continuation.rs`.

use serde::{Deserialize, Serialize};

use crate::vocabulary::{ContinuationClass, TriggerKind};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Continuation {
    pub trigger_kind: TriggerKind,
    pub class: ContinuationClass,
    pub model_reentry: bool,
    pub matched_waiting_reason: bool,
    #[serde(default)]
    pub evidence: Vec<String>,
}
