//! `NotifyOperator`: something the operator should know now. The turn goes on.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{RecordCall, ToolCall};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "NotifyOperator",
    description: "Tell the operator something now, and go on.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(&["text"], json!({ "text": { "type": "string" } }))
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let text = fields.get_text("text")?;
    Ok(ToolCall::Record(RecordCall::NotifyOperator { text }))
}
