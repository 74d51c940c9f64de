//! The ledger through its front door: one contract on every store, then what only a disk can do wrong.

#![allow(clippy::disallowed_methods, reason = "tests make files as users do")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod child;
mod contract;
mod crash;
mod damage;
mod disk;
#[path = "../../../../tests/fixtures/homes/fixture.rs"]
mod fixture;
mod memory;
mod model;
mod power;
mod transfer;
mod upkeep;
mod versions;
mod world;
