//! `UpdateWorkItem`: what changed about a work item. What is left out stays.

use abide_kernel::id::WorkItemId;
use abide_kernel::input::Refusal;
use abide_kernel::limits::TIMER_AHEAD_MAX_MS;
use abide_kernel::tool::{RecordCall, ToolCall, WorkItemChange};
use abide_kernel::vocabulary::PlanStatus;
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object, todo};

pub(super) const TOOL: Tool = Tool {
    name: "UpdateWorkItem",
    description: "Change a work item: its objective, plan, todo list, or what blocks it. What is left out stays.",
    schema,
    instead: &[("state", "an item is completed with CompleteWorkItem, and blocked with `blocked_by`.")],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(
        &["work_item_id"],
        json!({
            "work_item_id": { "type": "string" },
            "objective": { "type": "string" },
            "plan": { "type": "string" },
            "plan_status": { "type": "string", "enum": PlanStatus::ALL },
            "todo": todo::schema(),
            "blocked_by": { "type": ["string", "null"], "description": "What keeps it from going on; null: nothing any more." },
            "recheck_after_ms": {
                "type": "integer", "minimum": 0, "maximum": TIMER_AHEAD_MAX_MS,
                "description": "Be reminded of the blocker after so long.",
            },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let work_item_id = WorkItemId::new(fields.get_text("work_item_id")?);
    let blocker = fields.optional_text("blocked_by")?;
    let change = WorkItemChange {
        objective: fields.optional_text("objective")?,
        plan: fields.optional_text("plan")?,
        plan_status: fields.parse_word("plan_status", PlanStatus::ALL, PlanStatus::as_str)?,
        todo: todo::read(fields)?,
        // The one field whose null says something: the blocker is gone.
        blocked_by: fields.has("blocked_by").then_some(blocker),
        recheck_after_ms: fields.duration_ms("recheck_after_ms", 0..=TIMER_AHEAD_MAX_MS)?,
        // An agent that spends a budget does not set it.
        budget: None,
    };
    Ok(ToolCall::Record(RecordCall::UpdateWorkItem { work_item_id, change: Box::new(change) }))
}
