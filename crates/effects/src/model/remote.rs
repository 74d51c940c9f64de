//! Models that somebody serves over HTTP: where they are, what they can take, what they cost.

use std::fmt;
use std::sync::Arc;

use abide_kernel::fact::Usage;

/// A model at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// As its operator wrote it: `PROVIDER/MODEL`.
    pub name: String,
    /// What its provider calls it.
    pub model: String,
    pub provider: Arc<Provider>,
    pub card: Card,
}

/// Where a provider is, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// The part of a model's name before the slash.
    pub name: String,
    pub speaks: Speaks,
    /// Without a slash at its end: `https://api.anthropic.com`, `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// None where it takes none, or where none is set.
    pub key: Option<Key>,
    /// The variable of the environment that its key is looked for in, where it wants one.
    pub key_env: Option<String>,
}

/// The protocols that providers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, which many others serve too.
    Chat,
}

/// What is known of a model before it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card {
    /// What it takes in all: what it reads and what it writes.
    pub window_tokens: u64,
    /// What it writes in one answer, at most.
    pub max_output_tokens: u64,
    /// How much of the window a prompt may fill.
    pub context_tokens: u64,
    pub prices: Option<Prices>,
    /// It can look at pictures.
    pub images: bool,
}

/// Millionths of a dollar for a million tokens: a price list's dollars, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// A key. It is shown to its provider and to nobody else: not to logs, errors, ledgers or programs that are started.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    #[must_use]
    pub fn new(key: String) -> Key {
        Key(key)
    }

    /// For the header of a request, and nothing else.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(a key)")
    }
}

impl Prices {
    /// What a use of the model costs, rounded up. What came from the cache, and what went into it, is part of the input.
    #[must_use]
    pub fn cost_micro_usd(&self, usage: &Usage) -> u64 {
        let fresh = usage.input_tokens.saturating_sub(usage.cached_tokens).saturating_sub(usage.cache_write_tokens);
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let sum = of(fresh, self.input)
            + of(usage.output_tokens, self.output)
            + of(usage.cached_tokens, self.cache_read)
            + of(usage.cache_write_tokens, self.cache_write);
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}
