//! `CancelWait`: what was awaited no longer matters.

use abide_kernel::id::WaitId;
use abide_kernel::input::{Act, Does, Refusal};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{Tool, object};

pub(super) const TOOL: Tool =
    Tool { name: "CancelWait", description: "End a wait that no longer matters.", schema, instead: &[], read };

fn schema() -> Value {
    object(
        &["waiting_intent_id"],
        json!({ "waiting_intent_id": { "type": "string", "description": "The wait, as WaitFor returned it." } }),
    )
}

fn read(fields: &Fields<'_>) -> Result<Does, Refusal> {
    let waiting_intent_id = WaitId::new(fields.text("waiting_intent_id")?);
    Ok(Does::Act(Act::CancelWait { waiting_intent_id }))
}
