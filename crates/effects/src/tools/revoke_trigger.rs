//! `RevokeTrigger`: a URL that should open nothing any more.

use abide_kernel::id::TriggerId;
use abide_kernel::input::{Act, Does, Refusal};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "RevokeTrigger",
    description: "End a trigger: its URL opens nothing any more, and waits for it end with it.",
    schema,
    instead: &[],
    read,
};

fn schema() -> Value {
    object(
        &["trigger_id"],
        json!({ "trigger_id": { "type": "string", "description": "The trigger, as CreateTrigger returned it." } }),
    )
}

fn read(fields: &Fields<'_>) -> Result<Does, Refusal> {
    let trigger_id = TriggerId::new(fields.text("trigger_id")?);
    Ok(Does::Act(Act::RevokeTrigger { trigger_id }))
}
