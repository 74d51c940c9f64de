//! What a call has taken so far: for whoever ends it, and for when it breaks off. A provider that has begun to answer
//! has read the prompt, and charges for it whether or not anybody hears the end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use abide_kernel::fact::Usage;
use abide_kernel::input::Spent;

use super::Prices;
use super::answer::Counted;

/// Of one call. Nothing is on it before the provider has begun to answer.
#[derive(Debug, Default)]
pub struct Tab(Mutex<Option<SoFar>>);

#[derive(Debug, Clone, Copy)]
pub(super) struct SoFar {
    pub(super) counted: Counted,
    /// What has come of the answer, in bytes.
    pub(super) written: usize,
}

impl Tab {
    pub(super) fn put(&self, so_far: SoFar) {
        *self.lock() = Some(so_far);
    }

    /// As its provider counted it; what it did not come to count is guessed. `sent_tokens` is what the prompt is thought
    /// to have.
    #[must_use]
    pub fn spent(&self, sent_tokens: impl FnOnce() -> u64, prices: Option<Prices>) -> Option<Spent> {
        let SoFar { counted, written } = (*self.lock())?;
        let mut usage = Usage {
            input_tokens: counted.input.unwrap_or_else(sent_tokens),
            // What was counted at the beginning is less than what has come since.
            output_tokens: counted.output.unwrap_or(0).max(if counted.last { 0 } else { written.div_ceil(4) as u64 }),
            cached_tokens: counted.cached,
            cache_write_tokens: counted.cache_write,
            cost_micro_usd: 0,
        };
        usage.cost_micro_usd = prices.map_or(0, |prices| prices.cost_micro_usd(&usage));
        Some(Spent { usage, estimated: counted.input.is_none() || !counted.last })
    }

    fn lock(&self) -> MutexGuard<'_, Option<SoFar>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
