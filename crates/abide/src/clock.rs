//! The only place of the command line that asks for the time or for chance.

use std::hash::{BuildHasher, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

use abide_kernel::time::Time;

pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Unpredictable enough to tell ids apart: the standard library seeds its hashers from the system's randomness.
pub fn entropy() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}
