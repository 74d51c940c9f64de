//! The time and chance of a command that needs no engine: the engine's own clock, so that there is one.

use abide_engine::Clock;
use abide_kernel::time::Time;

pub fn now() -> Time {
    Clock::System.now()
}

pub fn entropy() -> u64 {
    Clock::System.entropy()
}
