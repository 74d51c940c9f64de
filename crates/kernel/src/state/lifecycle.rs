//! Whether the agent may run at all, and its status.
//!
//! The status is not stored: it is computed from the control, the running turn, and whether the last decision put the agent
//! to rest. It therefore cannot contradict them.

use serde::{Deserialize, Serialize};

use super::AgentState;
use super::child::Departure;
use crate::fact::{DiskShort, TurnsHeld};
use crate::vocabulary::Status;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lifecycle {
    pub control: Control,
    /// The daemon shuts down: the agent starts nothing.
    pub shutdown: bool,
    /// The last decision put the agent to rest, and nothing has come since.
    pub resting: bool,
    pub runtime_error: Option<String>,
    /// No turn starts: a disk has less room than its reserve.
    pub disk_short: Option<DiskShort>,
    /// No turn starts: the home's budget is spent, or no model has a key that works.
    pub turns_held: Option<TurnsHeld>,
    pub archived: bool,
    /// A child whose work is over. It releases what it holds, reports, and is archived.
    pub leaving: Option<Departure>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Created or recovered, not yet handed to the scheduler.
    #[default]
    Booting,
    Runnable,
    Stopped,
    /// Its records are damaged; `start` tries again.
    Quarantined {
        reason: String,
    },
}

impl AgentState {
    #[must_use]
    pub fn status(&self) -> Status {
        match (&self.lifecycle.control, &self.turns.current) {
            (Control::Stopped | Control::Quarantined { .. }, _) => Status::Stopped,
            (Control::Booting, _) => Status::Booting,
            (Control::Runnable, Some(_)) => Status::AwakeRunning,
            (Control::Runnable, None) if self.lifecycle.resting => Status::Asleep,
            (Control::Runnable, None) => Status::AwakeIdle,
        }
    }
}

impl Lifecycle {
    /// Whether the scheduler may act for this agent.
    #[must_use]
    pub fn is_runnable(&self) -> bool {
        self.control == Control::Runnable && !self.shutdown
    }

    /// Whether no turn may start, whatever there is to do: for a full disk, a spent home budget or a missing key.
    #[must_use]
    pub fn holds_turns(&self) -> bool {
        self.disk_short.is_some() || self.turns_held.is_some()
    }
}
