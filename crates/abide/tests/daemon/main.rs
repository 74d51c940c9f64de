//! The daemon, as a machine treats it: the real program, killed, stopped, damaged, crowded and started again. Every test
//! has a home and a port of its own, and ends only what it started.

#![allow(clippy::disallowed_methods, reason = "tests make files as users do")]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test that can't go on has failed")]

mod boundary;
mod bounds;
mod children;
mod continuation;
mod crowd;
mod cut;
mod damaged_rows;
mod elsewhere;
mod fell_short;
#[path = "../../../../tests/fixtures/homes/fixture.rs"]
mod fixture;
mod folders;
mod full_disk;
mod hands;
mod holds;
mod home_budget;
mod hooks;
mod interject;
mod kill;
mod memory;
mod models;
mod notify;
mod odd_answers;
mod open_files;
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
#[path = "../cli/place.rs"]
mod place;
mod policy;
mod push;
mod quarantine;
mod refused;
mod results;
mod roots;
mod runaway;
mod sandbox;
mod secrets;
mod served;
mod shutdown;
mod soak;
mod status;
mod stream;
mod tasks;
mod thinking;
mod timers;
mod trees;
mod upgrade;
mod waits;
mod wire;
mod work;
mod worktrees;
