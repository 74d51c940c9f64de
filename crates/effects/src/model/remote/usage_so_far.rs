//! The tokens that a call has used so far. A call that is ended or breaks off is charged for: a provider that has begun to
//! answer has read the prompt.

use std::sync::{Mutex, MutexGuard, PoisonError};

use abide_kernel::budget::Usage;
use abide_kernel::input::Spent;

use super::Prices;
use super::answer::TokenCounts;

/// Usage of one call; none before the provider has begun to answer.
#[derive(Debug, Default)]
pub struct UsageSoFar(Mutex<Option<Progress>>);

#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    pub(super) counted: TokenCounts,
    /// The received part of the answer, in bytes.
    pub(super) written: usize,
}

impl UsageSoFar {
    pub(super) fn set_progress(&self, progress: Progress) {
        *self.lock() = Some(progress);
    }

    /// As its provider counted it; what it did not come to count is guessed. `sent_tokens` is what the prompt is thought
    /// to have.
    #[must_use]
    pub fn spent(&self, sent_tokens: impl FnOnce() -> u64, prices: Option<Prices>) -> Option<Spent> {
        let Progress { counted, written } = (*self.lock())?;
        let mut usage = Usage {
            input_tokens: counted.input.unwrap_or_else(sent_tokens),
            // A count from the beginning is less than what has been received since.
            output_tokens: counted.output.unwrap_or(0).max(if counted.last { 0 } else { written.div_ceil(4) as u64 }),
            cached_tokens: counted.cached,
            cache_write_tokens: counted.cache_write,
            cost_micro_usd: 0,
        };
        usage.cost_micro_usd = prices.map_or(0, |prices| prices.cost_micro_usd(&usage));
        Some(Spent { usage, estimated: counted.input.is_none() || !counted.last })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Progress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
