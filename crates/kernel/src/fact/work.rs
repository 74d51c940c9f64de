//! Facts about work items.

use serde::{Deserialize, Serialize};

use crate::budget::Limits;
use crate::id::{MessageId, TaskId, WorkItemId};
use crate::time::Time;
use crate::todo::Todo;
use crate::vocabulary::{Maker, PlanStatus, TaskStatus};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkItemCreated {
    pub work_item_id: WorkItemId,
    pub objective: String,
    pub plan_status: PlanStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todo: Vec<Todo>,
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub budget: Limits,
    /// Left out of older records; such an item counts as a person's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<Maker>,
}

/// The focus moved; nothing else ever moves it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkItemPicked {
    pub work_item_id: WorkItemId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<WorkItemId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkItemUpdated {
    pub work_item_id: WorkItemId,
    pub revision: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_status: Option<PlanStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<Vec<Todo>>,
    /// Replaces all of its limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Limits>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkItemBlocked {
    pub work_item_id: WorkItemId,
    pub revision: u64,
    pub blocked_by: String,
    /// When to be reminded; a reminder unblocks nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recheck_at: Option<Time>,
    /// Who wants to be reminded. Left out of older records; such a recheck counts as a person's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<Maker>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkItemUnblocked {
    pub work_item_id: WorkItemId,
    pub revision: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkItemCompleted {
    pub work_item_id: WorkItemId,
    pub revision: u64,
    pub report: String,
}

/// Part of the item was handed to a child, which works on it as this task. The parent is not blocked by that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkItemDelegated {
    pub work_item_id: WorkItemId,
    pub task_id: TaskId,
    pub child_agent_id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkItemDelegationCompleted {
    pub work_item_id: WorkItemId,
    pub task_id: TaskId,
    pub task_status: TaskStatus,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecheckFired {
    pub work_item_id: WorkItemId,
    pub due: Time,
    pub message_id: MessageId,
}
