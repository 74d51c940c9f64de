//! The engine: the loop around the pure kernel, and recovery, which is the only way to start.
//!
//! The loop's synchronous core never waits and never reads a clock: whoever drives it hands in time and entropy, commits
//! what it asks to have committed, and performs the effects it gives back. The host drives it for live agents.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files as users do"))]

pub mod clock;
pub mod core;
pub mod deltas;
pub mod export;
pub mod fold;
pub mod fork;
pub mod host;
pub mod meter;
#[cfg(feature = "planted")]
pub mod planted;
mod program;
pub mod upkeep;

pub use clock::Clock;
pub use core::{Answered, Asked, Claim, Core, Forked, Met, Outputs, Told};
pub use deltas::Deltas;
pub use fold::{Damage, fold, fold_until};
pub use host::{AskError, Claimed, Host, HostOptions, Perform, TREE_AGENTS};
pub use program::PROGRAM;
