//! The host through its front door, in simulated time: an hour passes in no time, and nothing depends on a clock.

#![allow(clippy::disallowed_methods, reason = "tests make files as users do")]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test that unwraps fails with a line number")]

mod asleep;
mod broken;
mod clock;
mod deltas;
#[allow(dead_code, reason = "shared with other crates, which use more of it")]
#[path = "../../../../tests/fixtures/homes/fixture.rs"]
mod fixture;
mod held;
mod ids;
mod keys;
mod log_panics;
mod second_kind;
mod shutdown;
mod trees;
mod versions;
mod world;
