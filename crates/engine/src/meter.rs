//! Counters of the engine, for measurements. No decision depends on them.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Meter {
    pub commits: Count,
    pub commits_refused: Count,
    pub facts: Count,
    pub turns: Count,
    pub loads: Count,
    pub crashes: Count,
    pub quarantined: Count,
    /// Notices that reached the operator, and those that were given up.
    pub notified: Count,
    pub notify_failed: Count,
}

#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
