//! The daemon: what `abide up` starts. It boots a home, performs the effects of its agents (the prompt loop for models,
//! `effects` for the rest), answers what the server asks about the machine, and tells the operator. The command line and
//! its settings are the binary's: everything that an operator chooses arrives here as [`Options`].

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files as users do"))]

mod address;
mod announcement;
mod boot;
mod disk_shortage;
mod error;
mod home_budget;
mod key_holds;
pub mod logs;
mod memory;
mod mirror_upkeep;
pub mod models;
pub mod notify;
pub mod open_files;
mod options;
mod perform;
pub mod policy_file;
mod prompt_loop;
mod row_rebuild;
mod serve;
mod services;
pub mod text;
mod trigger_secrets;
pub mod workspace_roots;

pub use boot::{FIRST_AGENT, count_agent_folders};
pub use error::StartError;
pub use options::Options;
pub use serve::{End, Event, run};
pub use services::{counted_by, memory_bounded_by};
