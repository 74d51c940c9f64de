//! `CompleteWorkItem`: the goal is reached, and here is what came of it.

use abide_kernel::id::WorkItemId;
use abide_kernel::input::{Act, Does, Refusal};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "CompleteWorkItem",
    description: "Say that a work item's objective is reached, and report what came of it. It can't be reopened.",
    schema,
    instead: &[],
    read,
};

fn schema() -> Value {
    object(
        &["work_item_id", "report"],
        json!({
            "work_item_id": { "type": "string" },
            "report": { "type": "string", "description": "What was done and how you know that it works." },
        }),
    )
}

fn read(fields: &Fields<'_>) -> Result<Does, Refusal> {
    let work_item_id = WorkItemId::new(fields.text("work_item_id")?);
    let report = fields.text("report")?;
    Ok(Does::Act(Act::CompleteWorkItem { work_item_id, report }))
}
