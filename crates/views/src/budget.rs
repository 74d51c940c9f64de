//! Limits and usage, as people read them: money in dollars.

use serde::{Deserialize, Serialize};

/// Hard limits on what an agent may use in all, and on one day.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Budget))]
#[serde(deny_unknown_fields)]
pub struct BudgetView {
    #[serde(default, deserialize_with = "crate::strict::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    #[serde(default, deserialize_with = "crate::strict::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 0, maximum = 1_000_000_000))]
    pub max_usd: Option<f64>,
    /// Time spent in turns.
    #[serde(default, deserialize_with = "crate::strict::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_wall_ms: Option<u64>,
    /// The same on one day, from midnight to midnight UTC.
    #[serde(default, deserialize_with = "crate::strict::object", skip_serializing_if = "Option::is_none")]
    pub daily: Option<LimitsView>,
}

/// Hard limits. One that is left out is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Limits))]
#[serde(deny_unknown_fields)]
pub struct LimitsView {
    #[serde(default, deserialize_with = "crate::strict::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    #[serde(default, deserialize_with = "crate::strict::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 0, maximum = 1_000_000_000))]
    pub max_usd: Option<f64>,
    /// Time spent in turns.
    #[serde(default, deserialize_with = "crate::strict::within_int64", skip_serializing_if = "Option::is_none")]
    pub max_wall_ms: Option<u64>,
}

/// What was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Used))]
pub struct UsedView {
    pub turns: u64,
    /// Time spent in turns.
    pub wall_ms: u64,
    pub usage: UsageView,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Usage))]
pub struct UsageView {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    pub cost_usd: f64,
}
