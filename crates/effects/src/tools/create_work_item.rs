//! `CreateWorkItem`: a goal that outlasts the turn.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{RecordCall, ToolCall};
use abide_kernel::vocabulary::PlanStatus;
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object, todo};

pub(super) const TOOL: Tool = Tool {
    name: "CreateWorkItem",
    description: "Write down a goal that takes more than this turn, with a plan and a todo list if there are some.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(
        &["objective"],
        json!({
            "objective": { "type": "string", "description": "What is to be reached, in one line." },
            "plan": { "type": "string", "description": "How, as text." },
            "plan_status": {
                "type": "string", "enum": PlanStatus::ALL,
                "description": "ready: it can be worked on; needs_input: the operator has to say something first. Left out: draft.",
            },
            "todo": todo::schema(),
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let objective = fields.get_text("objective")?;
    let plan = fields.optional_text("plan")?;
    let plan_status = fields.parse_word("plan_status", PlanStatus::ALL, PlanStatus::as_str)?;
    let todo = todo::read(fields)?.unwrap_or_default();
    Ok(ToolCall::Record(RecordCall::CreateWorkItem { objective, plan, plan_status, todo, budget: None }))
}
