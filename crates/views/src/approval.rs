//! A question to a person.

use serde::{Deserialize, Serialize};

use crate::id::ApprovalId;
use crate::time::Time;
use crate::vocabulary::{ApprovalDefault, ApprovalStatus};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Approval))]
pub struct ApprovalView {
    pub approval_id: ApprovalId,
    pub tool: Option<String>,
    pub summary: String,
    /// pending, granted, denied or expired
    pub status: ApprovalStatus,
    pub deadline: Option<Time>,
    /// What holds when the deadline passes: deny or grant.
    pub default: ApprovalDefault,
    pub decided_by: Option<String>,
    pub decided_at: Option<Time>,
    /// When the call that it let run was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Time>,
}
