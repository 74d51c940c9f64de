//! Approvals and briefs.

use serde::{Deserialize, Serialize};

use crate::id::{ApprovalId, BriefId, CallId, ExecId, MessageId, WaitId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::{ApprovalDefault, ApprovalStatus, BriefKind};

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

/// Something told to the operator: an answer, an acknowledgement, or a reason why not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BriefRecorded {
    pub brief_id: BriefId,
    pub kind: BriefKind,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// Set where the operator is told that nothing will wake this item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    /// There is more that was not said: the model had written as much as it may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}
