//! Models that can be named, who serves them, and whether they answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::UsageView;

/// Every model that is on a list, in the settings or in use. Other names of a provider's are models, too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModelList {
    pub items: Vec<ModelItem>,
    pub next: Option<String>,
    pub default: DefaultModel,
    pub providers: Vec<ProviderItem>,
}

/// What agents think with unless they say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DefaultModel {
    pub name: String,
    /// Where it was chosen.
    pub origin: String,
    /// What is to be known about it where nobody chose it.
    pub note: Option<String>,
    /// What is asked instead, in this order, where a model can't answer.
    pub fallback: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModelItem {
    pub name: String,
    pub provider: String,
    pub default: bool,
    /// Why it can't be called.
    pub problem: Option<String>,
    /// What it reads and writes in all; none of a script.
    pub window_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    /// How much of the window a prompt may fill.
    pub context_tokens: Option<u64>,
    pub images: bool,
    /// Its provider was asked what it has, and has it; none where it was not asked, or did not say.
    pub found: Option<bool>,
    pub prices: Option<ModelPrices>,
    /// Agents that think with it: the first of them.
    pub agents: Vec<String>,
    pub agents_total: u64,
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModelPrices {
    pub input_usd: f64,
    pub output_usd: f64,
    pub cache_read_usd: f64,
    pub cache_write_usd: f64,
    /// When they were on the provider's list; none where the settings say them.
    pub date: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderItem {
    pub name: String,
    /// anthropic, openai, openai-chat or ollama
    pub kind: String,
    pub base_url: String,
    /// The variable of the daemon's environment that its key is looked for in.
    pub key_env: Option<String>,
    pub key: KeyState,
    /// What is sent there can be read on its way.
    pub exposed: bool,
    /// How many models it says that it has, where it was asked.
    pub found: Option<u64>,
    /// Why it did not say which models it has, where it was asked.
    pub unheard: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    Set,
    Missing,
    NotNeeded,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelTest {
    /// The default one where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What came of one small call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModelTested {
    pub model: String,
    pub ok: bool,
    pub elapsed_ms: u64,
    pub usage: Option<UsageView>,
    /// Somebody knows what it costs, or it costs nothing; else the cost is 0 because nobody can say it.
    #[serde(default)]
    pub priced: bool,
    pub error: Option<ModelError>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ModelError {
    /// rate_limited, overloaded, timeout, disconnect, context_length, refusal, auth, invalid or system
    pub class: String,
    pub message: String,
    /// What to do next.
    pub hint: String,
    pub retry_after_ms: Option<u64>,
}
