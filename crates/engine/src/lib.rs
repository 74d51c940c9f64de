//! The engine: the loop around the pure kernel, and recovery, which is the only way to start.
//!
//! What is here so far is the loop's synchronous core. It never waits and never reads a clock: whoever drives it hands
//! in time and entropy, commits what it asks to have committed, and performs the effects it gives back.

pub mod core;
pub mod fold;
pub mod fork;
#[cfg(feature = "planted")]
pub mod planted;

pub use core::{Asked, Core, Outputs};
pub use fold::{Damage, fold, fold_until};
