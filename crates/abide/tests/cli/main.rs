//! The command line, as a person or a script meets it: the real binary, on folders and homes of its own.

#![allow(clippy::disallowed_methods, reason = "tests make files as users do")]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test that can't go on has failed")]

mod budget;
mod compact;
mod config;
mod daemon;
mod doctor;
mod export;
mod fixtures;
mod fork;
mod hands;
mod home;
mod import;
mod live;
mod models;
#[allow(dead_code, reason = "shared with the tests of the daemon, which use more of it")]
mod place;
mod private;
mod settings;
mod several_agents;
mod shown;
mod special_files;
mod streams;
mod verify;
mod words;
mod work;
mod workspace_settings;
