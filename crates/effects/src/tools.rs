//! Tools: what a model may ask for, and how its calls are read. Reading changes nothing and touches nothing; a call that
//! makes no sense becomes a refusal that the model can act on.

use abide_kernel::input::{Does, Refusal};
use serde_json::Value;

/// What a model's call means.
#[must_use]
pub fn read(name: &str, input: &Value) -> Does {
    let _ = input;
    Does::Refused(Refusal::new("unknown_tool", format!("there is no tool {name:?}"), "use one of the tools there are"))
}
