//! What the kernel and the API say alike: words, ids, times, and the views of records that every surface shows. Each is
//! declared here and nowhere else, so that a client compiles without the kernel, and a record without a second shape.
//!
//! As pure as the kernel: no clock, no environment, no randomness.

pub mod id;
#[cfg(feature = "schema")]
mod schema;
pub mod time;
pub mod vocabulary;
