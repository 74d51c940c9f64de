//! `NotifyOperator`: something the operator should know now. The turn goes on.

use abide_kernel::input::{Act, Does, Refusal};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "NotifyOperator",
    description: "Tell the operator something now, and go on.",
    schema,
    instead: &[],
    read,
};

fn schema() -> Value {
    object(&["text"], json!({ "text": { "type": "string" } }))
}

fn read(fields: &Fields<'_>) -> Result<Does, Refusal> {
    let text = fields.text("text")?;
    Ok(Does::Act(Act::NotifyOperator { text }))
}
