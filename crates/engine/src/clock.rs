//! The only clock of the engine, and the only source of chance. Everything below it is handed both.
//!
//! A simulated clock runs on the runtime's own time, which a test may pause: then an hour passes in no time, and the
//! same seed draws the same numbers.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use abide_kernel::limits;
use abide_kernel::time::Time;
use tokio::time::Instant;

/// No sleep is longer: a wall clock may be set, and a machine may have slept, while we did.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// A time of the clock, together with the time of a monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct ClockReading {
    pub at: Time,
    since: Instant,
}

impl ClockReading {
    /// Whether the clock shows less than what it showed here and the time that has passed since.
    #[must_use]
    pub fn is_ahead_of(&self, now: Time) -> bool {
        let passed = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.at.plus_ms(passed).since_ms(now) > limits::CLOCK_SLACK_MS
    }
}

/// The latest time of any fact that was recorded since the last look. A clock that shows less was set back, however short
/// it was ahead.
#[derive(Debug)]
pub struct LatestRecorded(AtomicI64);

impl Default for LatestRecorded {
    fn default() -> LatestRecorded {
        LatestRecorded(AtomicI64::new(i64::MIN))
    }
}

impl LatestRecorded {
    /// Facts of this time are durable. To be called after their commit: a look in between would not find them.
    pub fn note(&self, at: Time) {
        self.0.fetch_max(at.as_ms(), Ordering::SeqCst);
    }

    /// Whether something was recorded later than the clock shows. Said once.
    pub fn is_ahead_of(&self, now: Time) -> bool {
        let latest = self.0.swap(i64::MIN, Ordering::SeqCst);
        latest != i64::MIN && Time::from_ms(latest).since_ms(now) > limits::CLOCK_SLACK_MS
    }
}

#[derive(Debug)]
pub enum Clock {
    System,
    Simulated { from: Time, since: Instant, set_by_ms: AtomicI64, drawn: AtomicU64 },
}

impl Clock {
    /// Must be called inside a runtime.
    #[must_use]
    pub fn simulated(from: Time, seed: u64) -> Clock {
        Clock::Simulated { from, since: Instant::now(), set_by_ms: AtomicI64::new(0), drawn: AtomicU64::new(seed) }
    }

    #[must_use]
    pub fn is_simulated(&self) -> bool {
        matches!(self, Clock::Simulated { .. })
    }

    #[must_use]
    pub fn now(&self) -> Time {
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        match self {
            Clock::System => Time::EPOCH.plus_ms(ms(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())),
            Clock::Simulated { from, since, set_by_ms, .. } => {
                let then = from.plus_ms(ms(since.elapsed())).as_ms();
                Time::from_ms(then.saturating_add(set_by_ms.load(Ordering::Relaxed)))
            }
        }
    }

    /// Sets a simulated clock forward or back, as a person does, or a machine that slept. The system's is not ours to set.
    pub fn set_by_ms(&self, ms: i64) {
        match self {
            Clock::System => {}
            Clock::Simulated { set_by_ms, .. } => {
                set_by_ms.fetch_add(ms, Ordering::Relaxed);
            }
        }
    }

    /// Unpredictable enough to tell ids apart: the standard library seeds its hashers from the system's randomness.
    #[must_use]
    pub fn entropy(&self) -> u64 {
        match self {
            Clock::System => std::hash::RandomState::new().build_hasher().finish(),
            Clock::Simulated { drawn, .. } => drawn.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed),
        }
    }

    /// A look at the clock, by which it is known later whether it was set back.
    #[must_use]
    pub fn look(&self) -> ClockReading {
        ClockReading { at: self.now(), since: Instant::now() }
    }

    /// Sleeps until then, or for a while if that is far off: the caller looks again.
    pub async fn sleep_towards(&self, due: Time) {
        let left = Duration::from_millis(due.since_ms(self.now()));
        tokio::time::sleep(left.min(LOOK_AGAIN)).await;
    }
}
