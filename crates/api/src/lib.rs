//! What goes over the wire, in one place: the shapes, the table of operations, the OpenAPI document made from both, and
//! the client that speaks it. The server serves exactly this table, and no surface has another door.

pub mod client;
pub mod openapi;
pub mod operations;
pub mod problem;
pub mod sse;
pub mod types;

pub use client::{Client, ClientError};
pub use problem::{ErrorCode, Problem};
