//! Shapes of requests and answers. Requests refuse fields they do not know; answers may grow.

mod agent;
mod planes;
mod rest;

pub use agent::*;
pub use planes::*;
pub use rest::*;

use serde::{Deserialize, Serialize};

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where the next page begins; none on the last.
    pub next: Option<String>,
}
