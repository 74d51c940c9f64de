//! The wire protocol, in one place: the shapes, the table of operations, the OpenAPI document made from both, and the typed
//! client. The server serves exactly this table, and every surface goes through it.

pub mod client;
pub mod openapi;
pub mod operations;
pub mod problem;
pub mod sse;
pub mod types;

pub use client::{Client, ClientError};
pub use problem::{ErrorCode, Problem};
