//! Whether the agent may run at all, and its status.
//!
//! The status is not stored anywhere: it is computed from what was decided by control, whether a turn runs, and
//! whether the last decision put the agent to rest. So it has one writer by construction, and cannot drift.

use serde::{Deserialize, Serialize};

use super::AgentState;
use crate::vocabulary::Status;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Created or recovered, not yet handed to the scheduler.
    Booting,
    Runnable,
    Stopped,
    /// Its own records could not be trusted; `start` tries again.
    Quarantined {
        reason: String,
    },
}

impl AgentState {
    #[must_use]
    pub fn status(&self) -> Status {
        match (&self.control, &self.turn) {
            (Control::Stopped | Control::Quarantined { .. }, _) => Status::Stopped,
            (Control::Booting, _) => Status::Booting,
            (Control::Runnable, Some(_)) => Status::AwakeRunning,
            (Control::Runnable, None) if self.resting => Status::Asleep,
            (Control::Runnable, None) => Status::AwakeIdle,
        }
    }

    /// Whether the scheduler may act for this agent.
    #[must_use]
    pub fn is_runnable(&self) -> bool {
        self.control == Control::Runnable && !self.shutdown
    }
}
