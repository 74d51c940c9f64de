//! The `todo` field of work items: a list of what is to be done and how far it is.

use abide_kernel::input::Refusal;
use abide_kernel::limits::TODO_MAX;
use abide_kernel::todo::Todo;
use abide_kernel::vocabulary::TodoState;
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::object;

pub(super) fn schema() -> Value {
    json!({ "type": "array", "maxItems": TODO_MAX, "items": entry(), "description": "The whole list, in order." })
}

fn entry() -> Value {
    object(
        &["text"],
        json!({
            "text": { "type": "string" },
            "state": { "type": "string", "enum": TodoState::ALL, "description": "Left out: pending." },
        }),
    )
}

pub(super) fn read(fields: &Fields<'_>) -> Result<Option<Vec<Todo>>, Refusal> {
    let Some(entries) =
        fields.get_list("todo", "give a list of entries such as {\"text\": \"…\", \"state\": \"pending\"}")?
    else {
        return Ok(None);
    };
    // Before each entry is looked at: a refusal should not cost more than the longest list that is taken.
    if entries.len() > TODO_MAX {
        return Err(invalid(format!("`todo` has {} entries", entries.len()), format!("give at most {TODO_MAX}")));
    }
    let schema = entry();
    let read = |(at, entry): (usize, &Value)| {
        let what = format!("todo[{at}]");
        let fields = Fields::from_input(&what, entry, &schema, &[])?;
        let state = fields.parse_word("state", TodoState::ALL, TodoState::as_str)?.unwrap_or(TodoState::Pending);
        Ok(Todo { text: fields.get_text("text")?, state })
    };
    entries.iter().enumerate().map(read).collect::<Result<_, _>>().map(Some)
}
