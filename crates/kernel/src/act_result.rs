//! Results of acts: the results of a model's calls, and the answers to people. They are recorded, so no field of them is
//! renamed, and what is not there is null, as it has always been.

use abide_views::task::TaskView;
use abide_views::workspace::WorkspaceView;
use abide_views::{ErrorCode, WithNulls};
use serde::{Deserialize, Serialize};

use crate::id::{AgentId, ApprovalId, BriefId, TaskId, TimerId, TriggerId, WaitId};
use crate::open_json::ToolOutput;
use crate::vocabulary::{ApprovalStatus, TaskStatus, TimerStatus};

/// As it is recorded.
#[must_use]
pub fn told(result: &impl Serialize) -> ToolOutput {
    // Our own types all have a JSON form.
    ToolOutput(serde_json::to_value(WithNulls(result)).unwrap_or_default())
}

/// A folder that is bound has no patch: only lists, which show those that are gone too, have the field.
#[must_use]
pub fn told_workspace(view: &WorkspaceView) -> ToolOutput {
    let mut told = told(view);
    if let Some(fields) = told.as_object_mut() {
        fields.remove("patch");
    }
    told
}

/// A list as a model gets it.
#[derive(Debug, Serialize)]
pub struct Listed<T> {
    pub items: Vec<T>,
    pub truncated: bool,
}

#[derive(Debug, Serialize)]
pub struct WaitRegistered {
    pub waiting_intent_id: WaitId,
    /// The timer that ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_id: Option<TimerId>,
}

#[derive(Debug, Serialize)]
pub struct WaitEnded {
    pub ended: WaitId,
}

/// A result that was owed already.
#[derive(Debug, Serialize)]
pub struct ResultDelivered {
    pub delivered: TaskResult,
}

#[derive(Debug, Serialize)]
pub struct TaskResult {
    pub task_id: TaskId,
    pub status: TaskStatus,
    pub summary: String,
    pub exit_code: Option<i32>,
    pub output_tail: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct TaskStop {
    pub task: Option<TaskView>,
    /// It was asked before; now it is made to.
    pub forced: bool,
}

#[derive(Debug, Serialize)]
pub struct OperatorNotified {
    pub brief_id: Option<BriefId>,
}

#[derive(Debug, Serialize)]
pub struct ApprovalAsked {
    pub approval_id: ApprovalId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_intent_id: Option<WaitId>,
    /// Why a call was not made that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorTold>,
}

#[derive(Debug, Serialize)]
pub struct ApprovalAnswered {
    pub approval_id: ApprovalId,
    pub status: ApprovalStatus,
}

#[derive(Debug, Serialize)]
pub struct ChildSpawned {
    pub agent_id: AgentId,
    pub task_handle: TaskHandle,
}

#[derive(Debug, Serialize)]
pub struct TaskHandle {
    pub task_id: TaskId,
}

#[derive(Debug, Serialize)]
pub struct TimerEnded {
    pub timer_id: TimerId,
    pub status: TimerStatus,
    pub ended_waits: Vec<WaitId>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct TriggerMade {
    pub trigger_id: TriggerId,
    /// Told to a model that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct TriggerRotated {
    pub trigger_id: TriggerId,
    pub generation: u32,
}

#[derive(Debug, Serialize)]
pub struct TriggerEnded {
    pub trigger_id: TriggerId,
    pub ended_waits: Vec<WaitId>,
}

#[derive(Debug, Serialize)]
pub struct WorkspaceDetached {
    pub root: String,
    pub removing: bool,
    pub workspace: Option<ToolOutput>,
}

/// A call that was not made, or failed.
#[derive(Debug, Serialize)]
pub struct CallFailed {
    pub error: ErrorTold,
}

#[derive(Debug, Serialize)]
pub struct ErrorTold {
    pub code: ErrorCode,
    pub message: String,
    pub hint: String,
}
