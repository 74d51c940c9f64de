//! Work items and approvals: what is to be done, and what a person is asked.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::{LimitsView, PlanStatus, TodoView};

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
    pub todo: Vec<TodoView>,
    /// What turns about it may use.
    #[serde(default, deserialize_with = "abide_views::strict::object", skip_serializing_if = "Option::is_none")]
    pub budget: Option<LimitsView>,
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
    pub todo: Option<Vec<TodoView>>,
    /// What keeps it from going on; null: nothing any more.
    #[serde(default, deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub blocked_by: Option<Option<String>>,
    /// Have the agent reminded of the blocker after so long.
    #[serde(default, deserialize_with = "abide_views::strict::within_int64", skip_serializing_if = "Option::is_none")]
    pub recheck_after_ms: Option<u64>,
    /// Replaces all of its limits; one that is left out is none.
    #[serde(default, deserialize_with = "abide_views::strict::object", skip_serializing_if = "Option::is_none")]
    pub budget: Option<LimitsView>,
}

/// A field whose null says something.
fn present_field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkItemBlock {
    #[schema(min_length = 1)]
    pub blocked_by: String,
    /// Have the agent reminded of it after so long.
    #[serde(default, deserialize_with = "abide_views::strict::within_int64", skip_serializing_if = "Option::is_none")]
    pub recheck_after_ms: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkItemComplete {
    /// What was done, and how one knows that it works.
    #[schema(min_length = 1)]
    pub report: String,
}
