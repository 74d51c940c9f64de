//! Why an agent does what it does.

use serde::{Deserialize, Serialize};

use crate::decision::DecisionView;
use crate::time::Time;
use crate::vocabulary::{Posture, Status};

/// Why an agent does what it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Why {
    pub agent_id: String,
    pub at_seq: u64,
    pub status: Status,
    pub scheduling_posture: Posture,
    pub decision: DecisionView,
    pub waiting_on: Vec<WaitingOn>,
    pub would_wake: Vec<String>,
    /// Where it works, what could not be done, what was cut off.
    #[serde(default)]
    pub notes: Vec<String>,
    pub sentence: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WaitingOn {
    pub what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    pub seq: u64,
}
