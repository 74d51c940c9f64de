//! What a refusal looks like on the wire: `application/problem+json`, RFC 9457, with a code for programs and a hint for
//! people.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use abide_views::error_code::{ErrorCode, exit_code};

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
    /// With the status and the usual hint of the code.
    #[must_use]
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Problem {
        let row = code.row();
        Problem {
            kind: "about:blank".to_owned(),
            title: title(row.status).to_owned(),
            status: row.status,
            detail: detail.into(),
            code: row.word.to_owned(),
            hint: Some(row.hint.to_owned()).filter(|hint| !hint.is_empty()),
            pointer: None,
        }
    }

    /// With another status than the code's, where the request and not the state is to blame.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Problem {
        self.status = status;
        title(status).clone_into(&mut self.title);
        self
    }

    /// Whether it has the word of this code.
    #[must_use]
    pub fn is(&self, code: ErrorCode) -> bool {
        self.code == code.word()
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
pub(crate) fn title(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Problem")
}
