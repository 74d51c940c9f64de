//! `CreateTrigger`: a URL that somebody outside can post to.

use abide_kernel::id::WorkItemId;
use abide_kernel::input::Refusal;
use abide_kernel::tool::{Call, RecordCall, ToolCall};
use abide_kernel::vocabulary::DeliveryMode;
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "CreateTrigger",
    description: "Make a URL that somebody outside can post to: what they post reaches you, or wakes you. Whoever knows the URL can use it.",
    schema,
    instead: &[("url", "the URL is made for you, and is in the result.")],
    rules: RulesOn::Name,
    parse,
};

/// A shorter one could be guessed.
const SECRET_MIN_BYTES: usize = 8;
const SECRET_MAX_BYTES: usize = 512;
/// The text in the records in its place.
const SECRET_KEPT: &str = "(kept outside of the records)";

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

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let name = fields.get_text("name")?;
    let mode = fields.parse_word("delivery_mode", DeliveryMode::ALL, DeliveryMode::as_str)?;
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
    Ok(ToolCall::Record(RecordCall::CreateTrigger {
        name,
        delivery_mode,
        work_item_id,
        signed: secret.is_some(),
        address: None,
    }))
}

/// Takes the secret out of a call's input, which is recorded. Of a refused call, too: what is wrong with it may be the
/// secret.
pub fn take_secret(call: &mut Call) -> Option<String> {
    let secret = Some(&mut call.input).filter(|_| call.tool == TOOL.name)?.get_mut("secret")?;
    match secret.is_null() {
        true => None,
        false => std::mem::replace(secret, Value::from(SECRET_KEPT)).as_str().map(str::to_owned),
    }
}
