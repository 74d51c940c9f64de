//! The consequences of a call to a model that failed: one rule for each class of error, and how long to wait.

use crate::limits;
use crate::vocabulary::ProviderError;

/// The rule for a class of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The same request may succeed later without anybody changing anything.
    pub passes_with_time: bool,
    /// Another model may succeed at once.
    pub falls_back: bool,
    /// Who hears of it when the message goes on all the same, with another model or later.
    pub tells: Tells,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// `why` says it to a caller who asks.
    Nobody,
    /// Once, until the model works again: nobody else can mend it.
    Operator,
}

/// Whether a message that fails like this, with every model of its agent, stays queued and is taken again.
#[must_use]
pub fn keeps_message(error: ProviderError) -> bool {
    rule(error).passes_with_time || matches!(error, ProviderError::Auth | ProviderError::HomeBudgetSpent)
}

/// The table. A failure that neither passes nor falls back ends its message, and the asker hears of it.
#[must_use]
pub fn rule(error: ProviderError) -> Rule {
    let row = |passes_with_time, falls_back, tells| Rule { passes_with_time, falls_back, tells };
    match error {
        ProviderError::RateLimited => row(true, true, Tells::Nobody),
        ProviderError::Overloaded => row(true, true, Tells::Nobody),
        ProviderError::Timeout => row(true, true, Tells::Nobody),
        ProviderError::Disconnect => row(true, true, Tells::Nobody),
        // Another model has another window, but what is too long here is our own doing.
        ProviderError::ContextLength => row(false, false, Tells::Nobody),
        ProviderError::Refusal => row(false, true, Tells::Nobody),
        ProviderError::Auth => row(false, true, Tells::Operator),
        ProviderError::Invalid => row(false, false, Tells::Nobody),
        // Another model needs the same file descriptors and the same disk.
        ProviderError::System => row(true, false, Tells::Nobody),
        // Another model may have a price; only a person gives this one its.
        ProviderError::Unpriced => row(false, true, Tells::Operator),
        // Every model of the home costs from the same budget.
        ProviderError::HomeBudgetSpent => row(false, false, Tells::Nobody),
    }
}

/// A failure as it is recorded: its class and the provider's words.
#[must_use]
pub fn failure_text(error: ProviderError, message: &str) -> String {
    format!("{error}: {message}")
}

/// The class of a failure that was recorded as text.
#[must_use]
pub fn class_of(text: &str) -> Option<ProviderError> {
    ProviderError::parse(text.split_once(':')?.0)
}

/// In the middle of what a draw may be: the wait is as long as the table says.
pub const NO_JITTER: u16 = 1 << 15;

/// How long to wait after so many failures: between 75 % and 125 % of the table, by the draw, so that agents that failed
/// together do not come back together.
#[must_use]
pub fn backoff_ms(failures: u32, jitter: u16) -> u64 {
    let waits = limits::PROVIDER_BACKOFF_MS;
    let step = usize::try_from(failures).unwrap_or(usize::MAX).min(waits.len() - 1);
    let wait = waits[step];
    wait - wait / 4 + wait * u64::from(jitter) / (2 * (1 << 16))
}
