//! `PickWorkItem`: which work item has the focus.

use abide_kernel::id::WorkItemId;
use abide_kernel::input::{Act, Does, Refusal};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{Tool, object};

pub(super) const TOOL: Tool =
    Tool { name: "PickWorkItem", description: "Make a work item the current one.", schema, instead: &[], read };

fn schema() -> Value {
    object(&["work_item_id"], json!({ "work_item_id": { "type": "string" } }))
}

fn read(fields: &Fields<'_>) -> Result<Does, Refusal> {
    let work_item_id = WorkItemId::new(fields.text("work_item_id")?);
    Ok(Does::Act(Act::PickWorkItem { work_item_id }))
}
