//! What is done in the world, and how what a model says is read. Each part takes an effect, or a piece of one, and
//! gives back what came of it; nothing here decides what happens next, and nothing here knows the ledger.

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
