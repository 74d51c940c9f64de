//! `CancelTimer`: a timer that should not fire any more.

use abide_kernel::id::TimerId;
use abide_kernel::input::{Act, Does, Refusal};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{Tool, object};

pub(super) const TOOL: Tool =
    Tool { name: "CancelTimer", description: "End a timer; waits for it end with it.", schema, instead: &[], read };

fn schema() -> Value {
    object(
        &["timer_id"],
        json!({ "timer_id": { "type": "string", "description": "The timer, as CreateTimer returned it." } }),
    )
}

fn read(fields: &Fields<'_>) -> Result<Does, Refusal> {
    let timer_id = TimerId::new(fields.text("timer_id")?);
    Ok(Does::Act(Act::CancelTimer { timer_id }))
}
