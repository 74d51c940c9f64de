//! A trigger: a URL that wakes an agent or brings it messages.

use serde::{Deserialize, Serialize};

use crate::id::{TriggerId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::{DeliveryMode, TriggerStatus};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Trigger))]
pub struct TriggerView {
    pub trigger_id: TriggerId,
    pub name: String,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub delivery_mode: DeliveryMode,
    pub work_item_id: Option<WorkItemId>,
    /// Where to post. Said once, when it is made; whoever knows it can use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether deliveries must be signed.
    #[serde(default)]
    pub signed: bool,
    pub status: TriggerStatus,
    #[serde(default)]
    pub delivery_count: u64,
    pub last_delivered_at: Option<Time>,
}
