//! Pictures in what was said.

use serde_json::Value;

use super::Image;

/// The pictures in it, and the rest of it.
#[must_use]
pub fn images_in(value: &Value) -> (Vec<Image>, Value) {
    (Vec::new(), value.clone())
}
