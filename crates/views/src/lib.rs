//! What the kernel and the API say alike: words, ids, times, and the views of records that every surface shows. Each is
//! declared here and nowhere else, so that a client compiles without the kernel, and a record without a second shape.
//!
//! As pure as the kernel: no clock, no environment, no randomness.

pub mod agent;
pub mod approval;
pub mod budget;
pub mod decision;
pub mod duration;
pub mod error_code;
pub mod id;
pub mod message;
pub mod outcome;
#[cfg(feature = "schema")]
pub mod schema;
pub mod strict;
pub mod task;
pub mod time;
pub mod timer;
pub mod trigger;
pub mod vocabulary;
pub mod wait;
pub mod why;
pub mod with_nulls;
pub mod work_item;
pub mod workspace;

pub use error_code::ErrorCode;
pub use with_nulls::WithNulls;
