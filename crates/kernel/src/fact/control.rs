//! Facts about the agent as a whole.

use serde::{Deserialize, Serialize};

use crate::config::{AgentLimits, Config, Identity};
use crate::decision::Decision;
use crate::id::{AgentId, ExecId, Seq, TaskId};
use crate::time::Time;
use crate::vocabulary::{Boundary, ControlAction, Role, Status};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentCreated {
    pub identity: Identity,
    pub config: Config,
    /// Whether it was started with its creation.
    pub start: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfigured {
    pub config: Config,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

/// This agent begins with the past of another. What the parent owned in the world stays the parent's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentForked {
    pub agent_id: AgentId,
    pub parent: AgentId,
    pub at_seq: Seq,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentQuarantined {
    pub reason: String,
}

/// Its operator deleted it. What it was stays in the ledger, and its id is taken for good.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentArchived {}

/// A request for control was accepted. The documents call the four actions StartRequested, StopRequested,
/// ShutdownRequested and RuntimeRestarted.
///
/// `control.admitted`, `control.applied`, `posture.changed`, `exec.aborted` and `workspace.released` have the same
/// members, so that each of them can be read by itself. Facts of older versions lack some.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlAdmitted {
    pub action: ControlAction,
    pub boundary: Boundary,
    pub previous_status: Status,
    /// The status that the action leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_status: Option<Status>,
    /// The execution that will be aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_id: Option<ExecId>,
    /// The tasks that will be ended.
    #[serde(default)]
    pub task_ids: Vec<TaskId>,
    /// The workspace whose occupancy will be released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// A request for control took effect in the ledger. What is left to do in the world follows as effects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlApplied {
    pub action: ControlAction,
    pub boundary: Boundary,
    pub previous_status: Status,
    pub next_status: Status,
    /// The execution that was aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_id: Option<ExecId>,
    /// The tasks that must be ended.
    #[serde(default)]
    pub task_ids: Vec<TaskId>,
    /// The workspace whose occupancy must be released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// The status changed at a boundary. The status itself is computed; this is its trail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostureChanged {
    /// The action that changed it; none where the scheduler did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ControlAction>,
    pub boundary: Boundary,
    pub previous_status: Status,
    pub next_status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_id: Option<ExecId>,
    #[serde(default)]
    pub task_ids: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(default)]
    pub evidence: Vec<String>,
}

impl PostureChanged {
    /// A change that no action of control caused.
    #[must_use]
    pub fn by_scheduler(boundary: Boundary, from: Status, to: Status, evidence: Vec<String>) -> PostureChanged {
        PostureChanged {
            action: None,
            boundary,
            previous_status: from,
            next_status: to,
            exec_id: None,
            task_ids: Vec::new(),
            workspace: None,
            evidence,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SchedulerDecided {
    pub decision: Decision,
}

/// Stands until a turn completes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeErrorRecorded {
    pub error: String,
}

/// The outcome of an effect whose execution is over: kept as evidence, changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaleOutcomeIgnored {
    pub exec_id: ExecId,
    pub evidence: Vec<String>,
}

/// The settings allow the agent something else than before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LimitsChanged {
    pub limits: AgentLimits,
}

/// Turns that the agent causes itself wait, and the operator was told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfTurnsPaced {
    pub per_hour: u32,
    /// When the next one is taken.
    pub not_before: Time,
}

/// The agent was offered its work too often in a row without having fewer open items than before: its work waits for the
/// operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkTicksSpent {
    pub ticks: u32,
    pub open_items: u64,
}
