//! Briefs: reports to the operator.

use serde::{Deserialize, Serialize};

use crate::id::{BriefId, MessageId, WorkItemId};
use crate::vocabulary::BriefKind;

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
