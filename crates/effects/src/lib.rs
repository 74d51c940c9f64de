//! Performs effects in the world, and parses the calls of models. Each part takes an effect, or a piece of one, and
//! returns its results; no code here decides what happens next, and none knows the ledger.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files as users do"))]

mod durable_file;
mod environment;
pub mod executor;
mod file_identity;
pub mod files;
mod git_dir;
pub mod limits;
mod mask_inputs;
pub mod model;
mod nearest;
pub mod policy;
pub mod process;
pub mod programs;
pub mod sandbox;
pub mod secrets;
pub mod surroundings;
pub mod tools;
pub mod transient;
pub mod web;
pub mod webhook;
pub mod workspace;

pub use executor::Executor;
pub use file_identity::FileIdentity;
pub use model::{Model, PastResults, ProviderFailure};
