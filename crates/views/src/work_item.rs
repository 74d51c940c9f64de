//! A work item.

use serde::{Deserialize, Serialize};

use crate::budget::{LimitsView, UsedView};
use crate::id::WorkItemId;
use crate::time::Time;
use crate::vocabulary::{PlanStatus, Standing, TodoState, WorkItemState};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = WorkItem))]
pub struct WorkItemView {
    pub work_item_id: WorkItemId,
    pub revision: u64,
    pub objective: String,
    /// open or completed
    pub state: WorkItemState,
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub plan_status: Option<PlanStatus>,
    pub plan: Option<String>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub todo: Vec<TodoView>,
    pub blocked_by: Option<String>,
    /// When the agent is reminded of the blocker.
    pub recheck_at: Option<Time>,
    /// Whether it can be worked on, and what it waits for otherwise.
    #[serde(default = "forgotten")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub readiness: Standing,
    /// It has the agent's focus.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub current: bool,
    pub report: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<LimitsView>,
    /// By turns about it, and by children that worked on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<UsedView>,
}

/// A row does not say where its item stands, and of an item that the state has forgotten there is nothing but the row: it
/// was completed.
fn forgotten() -> Standing {
    Standing::Completed
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Todo))]
#[serde(deny_unknown_fields)]
pub struct TodoView {
    pub text: String,
    #[serde(default)]
    pub state: TodoState,
}
