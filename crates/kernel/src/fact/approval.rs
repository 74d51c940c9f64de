//! Approvals: questions to a person about a call or anything else.

use serde::{Deserialize, Serialize};

use crate::id::{ApprovalId, CallId, ExecId, WaitId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::{ApprovalDefault, ApprovalStatus};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequested {
    pub approval_id: ApprovalId,
    pub waiting_intent_id: WaitId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    pub default: ApprovalDefault,
    /// The digest of the one call that it is about, where the policy asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}

/// Decided once, by a person or by the deadline, whichever was first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalDecided {
    pub approval_id: ApprovalId,
    pub status: ApprovalStatus,
    pub decided_by: String,
    /// The call that it was about may be made, once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lets_call: bool,
}

/// The call that a person let run is being made. It is in the same commit as the call's start, so it is made once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalUsed {
    pub approval_id: ApprovalId,
    pub exec_id: ExecId,
    pub call_id: CallId,
}
