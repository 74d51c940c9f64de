//! `RequestApproval`: a question that only a person may answer. The turn ends; the decision starts the next one.

use abide_kernel::input::Refusal;
use abide_kernel::limits::TIMER_AHEAD_MAX_MS;
use abide_kernel::tool::{RecordCall, ToolCall};
use abide_kernel::vocabulary::ApprovalDefault;
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "RequestApproval",
    description: "End this turn and ask the operator to grant or deny something; the decision comes back as a message.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse,
};

/// A deadline that grants would let a model say yes to itself. An operator's policy may have such a rule.
const OFFERED: [ApprovalDefault; 1] = [ApprovalDefault::Deny];

fn schema() -> Value {
    object(
        &["summary"],
        json!({
            "summary": { "type": "string", "description": "What is to be approved, so that a person can decide it." },
            "deadline_ms": {
                "type": "integer", "minimum": 0, "maximum": TIMER_AHEAD_MAX_MS,
                "description": "Decide by default after so long. Left out: wait for ever.",
            },
            "default": {
                "type": "string", "enum": OFFERED,
                "description": "The decision once the deadline has passed. Left out: deny, the only one there is.",
            },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let summary = fields.get_text("summary")?;
    let deadline_ms = fields.duration_ms("deadline_ms", 0..=TIMER_AHEAD_MAX_MS)?;
    if fields.optional_text("default")?.as_deref() == Some(ApprovalDefault::Grant.as_str()) {
        let hint = "leave default out: only a person can grant it, and until one does it is not granted";
        return Err(invalid("an agent can't have its own request granted by default", hint));
    }
    let default = fields.parse_word("default", &OFFERED, ApprovalDefault::as_str)?.unwrap_or(ApprovalDefault::Deny);
    Ok(ToolCall::Record(RecordCall::RequestApproval { summary, tool: None, deadline_ms, default }))
}
