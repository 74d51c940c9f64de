//! A decision: what comes next, why, and which facts say so.

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, TaskId, WorkItemId};
use crate::vocabulary::{Boundary, DecisionKind, Reason};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    pub kind: DecisionKind,
    pub reason: Reason,
    #[serde(default = "idle")]
    pub boundary: Boundary,
    #[serde(default)]
    pub model_reentry: bool,
    #[serde(default)]
    pub liveness_only: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Candidates that were there and did not count: suppressed duplicates, held-back work.
    #[serde(default)]
    pub ignored: Vec<String>,
    #[serde(default)]
    pub evidence: Vec<String>,
}

fn idle() -> Boundary {
    Boundary::Idle
}

impl Decision {
    #[must_use]
    pub fn new(kind: DecisionKind, reason: Reason) -> Decision {
        Decision {
            kind,
            reason,
            boundary: Boundary::Idle,
            model_reentry: false,
            liveness_only: false,
            message_id: None,
            work_item_id: None,
            task_id: None,
            ignored: Vec::new(),
            evidence: Vec::new(),
        }
    }

    #[must_use]
    pub fn because(mut self, evidence: impl Into<String>) -> Decision {
        if self.evidence.len() < crate::limits::EVIDENCE_MAX {
            self.evidence.push(evidence.into());
        }
        self
    }
}
