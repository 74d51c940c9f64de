//! Facts about budgets. The use is in the facts of the rounds and turns that used it.

use serde::{Deserialize, Serialize};

use crate::id::WorkItemId;
use crate::time::Time;
use crate::vocabulary::Measure;

/// A hard limit is reached, and the operator is told, once: nothing of what it limits begins until a person raises it,
/// or the day is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetReached {
    /// The item whose limit it is; else it is the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    pub measure: Measure,
    pub used: u64,
    pub max: u64,
    /// When the day ends that it limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// A new day has begun for a budget that was spent for the last one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetRenewed {
    /// When it began.
    pub since: Time,
}
