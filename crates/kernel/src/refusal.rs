//! Refusals: why a request can't be met.

use std::fmt::Display;

use crate::act_result::{CallFailed, ErrorTold, told};
use crate::open_json::ToolOutput;

pub use abide_views::ErrorCode;

/// The request can't be met where the state is. Nothing was recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
    /// The next step for the caller.
    pub hint: String,
}

impl Refusal {
    /// With the usual hint of the code.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), hint: code.row().hint.to_owned() }
    }

    /// With a hint of its own, where the next step depends on what was refused.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = hint.into();
        self
    }

    /// Fills in a name that the usual hint has in braces.
    #[must_use]
    pub fn fill(mut self, name: &str, value: impl Display) -> Refusal {
        let place = format!("{{{name}}}");
        debug_assert!(self.hint.contains(&place), "the hint of {} has no {place}", self.code);
        self.hint = self.hint.replace(&place, &value.to_string());
        self
    }

    /// As a tool's result: what a model reads of it.
    #[must_use]
    pub fn into_result(self) -> ToolOutput {
        told(&CallFailed { error: ErrorTold { code: self.code, message: self.message, hint: self.hint } })
    }
}
