//! The commands, one per file.

pub mod agent;
pub mod approval;
pub mod briefs;
pub mod completions;
pub mod config;
pub mod daemon;
pub mod doctor;
pub mod ledger;
pub mod model;
pub mod plane;
pub mod secret;
pub mod send;
pub mod task;
pub mod timer;
pub mod token;
pub mod transcript;
pub mod trigger;
pub mod up;
pub mod wait;
pub mod watch;
pub mod why;
pub mod work;
pub mod workspace;
