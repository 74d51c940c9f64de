//! `reasoning_details`: how OpenRouter hands over the reasoning of whichever model it asked, in Chat Completions. It wants
//! them back with the same answer, whole and in their order; signatures are over whole blocks. They come in pieces, and
//! the number that each bears says nothing while they are streamed, so a piece belongs to the one before it as long as
//! it is of the same kind.

use serde_json::{Map, Value};

pub(super) const FIELD: &str = "reasoning_details";

/// Kinds that come in pieces, and the field that grows. Encrypted ones come whole.
const GROWING: [(&str, &str); 2] = [("reasoning.text", "text"), ("reasoning.summary", "summary")];

/// Takes a piece into the list of what has come.
pub(super) fn merge_piece(list: &mut Vec<Value>, piece: &Map<String, Value>) {
    let growing = GROWING.iter().find(|(kind, _)| piece.get("type").and_then(Value::as_str) == Some(kind));
    match (growing, list.last_mut().and_then(Value::as_object_mut)) {
        (Some((_, field)), Some(last)) if continues(last, piece, field) => append_field(last, piece, field),
        (Some(_) | None, Some(_) | None) => list.push(Value::Object(piece.clone())),
    }
}

fn continues(last: &Map<String, Value>, piece: &Map<String, Value>, field: &str) -> bool {
    let given = |map: &Map<String, Value>, name: &str| map.get(name).filter(|value| !value.is_null()).cloned();
    let agree = |name: &str| match (given(last, name), given(piece, name)) {
        (Some(before), Some(now)) => before == now,
        (Some(_) | None, Some(_) | None) => true,
    };
    // A signed piece is complete.
    let begins = given(last, "signature").is_some() && given(piece, field).is_some_and(|text| text != "");
    last.get("type") == piece.get("type") && agree("id") && agree("index") && !begins
}

fn append_field(last: &mut Map<String, Value>, piece: &Map<String, Value>, field: &str) {
    for (name, value) in piece {
        match (last.get_mut(name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(before)), Value::String(more)) if name == field => before.push_str(more),
            (Some(_) | None, value) => _ = last.insert(name.clone(), value.clone()),
        }
    }
}
