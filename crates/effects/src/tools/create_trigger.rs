//! `CreateTrigger`: a URL that somebody outside can post to.

use abide_kernel::id::WorkItemId;
use abide_kernel::input::{Act, Does, Refusal};
use abide_kernel::vocabulary::DeliveryMode;
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "CreateTrigger",
    description: "Make a URL that somebody outside can post to: what they post reaches you, or wakes you. Whoever knows the URL can use it.",
    schema,
    instead: &[("url", "the URL is made for you, and is in the result.")],
    read,
};

/// A shorter one could be guessed.
const SECRET_MIN_BYTES: usize = 8;
const SECRET_MAX_BYTES: usize = 512;

fn schema() -> Value {
    object(
        &["name"],
        json!({
            "name": { "type": "string", "description": "What will come in by it." },
            "delivery_mode": {
                "type": "string", "enum": DeliveryMode::ALL,
                "description": "enqueue_message (the default): each delivery is a message; wake_hint: it only wakes you.",
            },
            "work_item_id": { "type": "string", "description": "The work item that it is about." },
            "secret": {
                "type": "string", "minLength": SECRET_MIN_BYTES, "maxLength": SECRET_MAX_BYTES,
                "description": "Deliveries must be signed with it (Standard Webhooks or GitHub). It is kept outside of all records.",
            },
        }),
    )
}

fn read(fields: &Fields<'_>) -> Result<Does, Refusal> {
    let name = fields.text("name")?;
    let mode = fields.word("delivery_mode", DeliveryMode::ALL, DeliveryMode::as_str)?;
    let work_item_id = fields.optional_text("work_item_id")?.map(WorkItemId::new);
    let secret = fields.optional_text("secret")?;
    if let Some(secret) = &secret
        && !(SECRET_MIN_BYTES..=SECRET_MAX_BYTES).contains(&secret.len())
    {
        // Not with `wrong`, which would quote it.
        let hint = format!("give {SECRET_MIN_BYTES} to {SECRET_MAX_BYTES} bytes");
        return Err(invalid("`secret` of CreateTrigger is too short or too long", hint));
    }
    let delivery_mode = mode.unwrap_or(DeliveryMode::EnqueueMessage);
    Ok(Does::Act(Act::CreateTrigger { name, delivery_mode, work_item_id, signed: secret.is_some(), address: None }))
}
