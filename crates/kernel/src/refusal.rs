//! Refusals: why a request can't be met.

use serde_json::Value;

use crate::act_result::{CallFailed, ErrorTold, told};

/// The request can't be met where the state is. Nothing was recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: &'static str,
    pub message: String,
    /// The next step for the caller.
    pub hint: String,
}

impl Refusal {
    /// The code of a call whose answer reached its longest before the call was complete. Nobody knows what it was to be.
    pub const CUT_OFF: &'static str = "cut_off";

    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), hint: hint.into() }
    }

    /// As a tool's result: what a model reads of it.
    #[must_use]
    pub fn into_result(self) -> Value {
        told(&CallFailed { error: ErrorTold { code: self.code, message: self.message, hint: self.hint } })
    }
}
