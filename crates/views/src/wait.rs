//! A wait: what is awaited, and what would end it.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::id::{MessageId, WaitId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::{DeliveryMode, Scope, WaitKind, WaitSource, WaitStatus};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Wait))]
pub struct WaitView {
    pub waiting_intent_id: WaitId,
    pub scope: Scope,
    pub kind: WaitKind,
    pub work_item_id: Option<WorkItemId>,
    pub source: WaitSource,
    #[serde(default, deserialize_with = "resource_name")]
    pub resource: Option<String>,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub delivery_mode: DeliveryMode,
    pub status: WaitStatus,
    pub trigger_count: u64,
    pub reason: String,
    pub created_at: Time,
    /// The fact that registered it.
    #[serde(default)]
    pub seq: u64,
    /// The message that is still unanswered because of it.
    pub answers: Option<MessageId>,
}

/// Rows keep a resource as it is recorded, under its kind; a reader wants the name.
fn resource_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Resource {
        Name(String),
        Recorded(BTreeMap<String, String>),
    }

    Ok(Option::deserialize(deserializer)?.and_then(|resource| match resource {
        Resource::Name(name) => Some(name),
        Resource::Recorded(recorded) => recorded.into_values().next(),
    }))
}
