//! The engine: the loop around a pure state machine, and recovery, which is the only way to start. It runs streams of any
//! kind (`machine`, `streams::kind`); agents are one.
//!
//! The loop's synchronous core never waits and never reads a clock: its driver hands in time and entropy, commits what it
//! asks to have committed, and performs the effects that it returns. Actors drive it for streams that are awake.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files as users do"))]

mod agents;
pub mod clock;
pub mod core;
pub mod deltas;
mod engine;
pub mod export;
pub mod fold;
pub mod fork;
pub mod host;
pub mod idempotency;
pub mod machine;
pub mod meter;
#[cfg(feature = "planted")]
pub mod planted;
mod program;
pub mod streams;
pub mod upkeep;

pub use agents::{Agents, Perform, RequestSummary, TREE_AGENTS};
pub use clock::Clock;
pub use core::{Core, Outputs, Request};
pub use deltas::Deltas;
pub use engine::{Engine, Wakeable};
pub use fold::{LoadError, fold, fold_until};
pub use host::{Host, HostOptions};
pub use idempotency::{Claim, ClaimOutcome, Response};
pub use machine::Machine;
pub use program::{PROGRAM, rows_of_stored};
pub use streams::kind::StreamKind;
pub use streams::{Actor, AskError, Streams};
