//! Decisions of the scheduler, and the closure of a turn.

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, TaskId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::{
    Boundary, ClosureOutcome, ContinuationClass, DecisionKind, Reason, RuntimePosture, TriggerKind, WaitingReason,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Decision))]
pub struct DecisionView {
    pub kind: DecisionKind,
    pub reason: Reason,
    pub boundary: Boundary,
    pub model_reentry: bool,
    pub liveness_only: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    pub ignored: Vec<String>,
    pub evidence: Vec<String>,
}

/// A decision, and when it was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DecisionEntry {
    pub seq: u64,
    pub at: Time,
    pub decision: DecisionView,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Closure {
    pub outcome: Option<ClosureOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_reason: Option<WaitingReason>,
    pub runtime_posture: RuntimePosture,
    pub evidence: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Continuation))]
pub struct ContinuationView {
    pub trigger_kind: TriggerKind,
    pub class: ContinuationClass,
    pub model_reentry: bool,
    pub matched_waiting_reason: bool,
    pub evidence: Vec<String>,
}
