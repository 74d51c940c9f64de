//! The host through its front door, in simulated time: an hour passes in no time, and nothing depends on a clock.

mod asleep;
mod broken;
mod keys;
mod shutdown;
mod world;
