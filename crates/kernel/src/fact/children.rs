//! How a supervised child ends: it lets go of everything, tells its supervisor, and is gone.

use serde::{Deserialize, Serialize};

use crate::vocabulary::TaskStatus;

/// Its work is over, or nobody wants it any more. From here on it only lets go of what it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildLeaving {
    /// How its supervisor's task ends.
    pub status: TaskStatus,
    /// The child's last words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    pub evidence: Vec<String>,
}

/// Nothing of it is left in the world: its supervisor is to be told, until it has heard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildReporting {}
