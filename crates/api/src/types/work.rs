//! Work items and approvals: what is to be done, and what a person is asked.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::agent::{Limits, Used};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkItem {
    pub work_item_id: String,
    pub revision: u64,
    pub objective: String,
    /// open or completed
    pub state: String,
    pub plan_status: Option<String>,
    pub plan: Option<String>,
    pub todo: Vec<Todo>,
    pub blocked_by: Option<String>,
    /// When the agent is reminded of the blocker.
    pub recheck_at: Option<String>,
    /// Whether it can be worked on, and what it waits for otherwise.
    pub readiness: String,
    /// It has the agent's focus.
    pub current: bool,
    pub report: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Limits>,
    /// By turns about it, and by children that worked on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Used>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Todo {
    pub text: String,
    #[serde(default)]
    pub state: TodoState,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    #[default]
    Pending,
    InProgress,
    Completed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    Draft,
    Ready,
    /// The operator has to say something first.
    NeedsInput,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkItemCreate {
    /// What is to be reached, in one line.
    #[schema(min_length = 1)]
    pub objective: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_status: Option<PlanStatus>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todo: Vec<Todo>,
    /// What turns about it may use.
    #[serde(default, deserialize_with = "super::object", skip_serializing_if = "Option::is_none")]
    pub budget: Option<Limits>,
}

/// What changes; what is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkItemUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_status: Option<PlanStatus>,
    /// The whole list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<Vec<Todo>>,
    /// What keeps it from going on; null: nothing any more.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub blocked_by: Option<Option<String>>,
    /// Have the agent reminded of the blocker after so long.
    #[serde(default, deserialize_with = "super::within_int64", skip_serializing_if = "Option::is_none")]
    pub recheck_after_ms: Option<u64>,
    /// Replaces all of its limits; one that is left out is none.
    #[serde(default, deserialize_with = "super::object", skip_serializing_if = "Option::is_none")]
    pub budget: Option<Limits>,
}

/// A field whose null says something.
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkItemBlock {
    #[schema(min_length = 1)]
    pub blocked_by: String,
    /// Have the agent reminded of it after so long.
    #[serde(default, deserialize_with = "super::within_int64", skip_serializing_if = "Option::is_none")]
    pub recheck_after_ms: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkItemComplete {
    /// What was done, and how one knows that it works.
    #[schema(min_length = 1)]
    pub report: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Approval {
    pub approval_id: String,
    pub tool: Option<String>,
    pub summary: String,
    /// pending, granted, denied or expired
    pub status: String,
    pub deadline: Option<String>,
    /// What holds when the deadline passes: deny or grant.
    pub default: String,
    pub decided_by: Option<String>,
    pub decided_at: Option<String>,
    /// When the call that it let run was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<String>,
}
