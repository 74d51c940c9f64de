//! A timer.

use serde::{Deserialize, Serialize};

use crate::id::TimerId;
use crate::time::Time;
use crate::vocabulary::{CatchUp, Maker, TimerStatus};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Timer))]
pub struct TimerView {
    pub timer_id: TimerId,
    pub summary: String,
    pub next_fire_at: Option<Time>,
    pub every_ms: Option<u64>,
    /// Five fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    pub status: TimerStatus,
    /// Occurrences that became a message.
    pub fire_count: u64,
    /// Occurrences that did not: told with another, skipped, or held back by the check.
    pub missed_count: u64,
    pub last_fired_at: Option<Time>,
    /// latest, none or all
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub catch_up: Option<CatchUp>,
    /// A command that says whether an occurrence is worth a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The occurrence whose check runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checking: Option<Time>,
    /// model or person: what a model's timer causes is paced
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<Maker>,
    /// The next five, where one timer is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upcoming: Vec<Time>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimerCreated {
    pub timer_id: TimerId,
    pub next_fire_at: Option<Time>,
    /// The next five.
    pub upcoming: Vec<Time>,
}
