//! Refusals on the wire: `application/problem+json`, RFC 9457, with a code for programs and a hint for people.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub const MEDIA_TYPE: &str = "application/problem+json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// What happened, in a sentence.
    pub detail: String,
    /// Stable, for programs.
    pub code: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The field that is wrong, as a JSON pointer into the request's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
}

impl Problem {
    #[must_use]
    pub fn new(status: u16, code: &str, detail: impl Into<String>) -> Problem {
        Problem {
            kind: "about:blank".to_owned(),
            title: title(status).to_owned(),
            status,
            detail: detail.into(),
            code: code.to_owned(),
            hint: None,
            pointer: None,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn pointer(mut self, pointer: impl Into<String>) -> Problem {
        self.pointer = Some(pointer.into());
        self
    }
}

/// The title of a status, as RFC 9457 asks for it where the type is `about:blank`.
fn title(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Problem")
}
