//! Placeholders in a script's tool input: `{"$result": POINTER, "back": N}` and `{"$input": POINTER}`, anywhere in it,
//! each replaced whole by the value that the pointer (RFC 6901) leads to.

use std::fmt;

use abide_kernel::message::Message;
use serde_json::{Map, Value};

use super::file::Tool;
use crate::limits;
use crate::model::{PastResults, ProviderFailure, text_of};

/// One thing to be filled in.
enum Placeholder<'a> {
    /// From an earlier tool result: the latest is 1.
    Result { pointer: &'a str, back: usize },
    /// From the turn's message.
    Input { pointer: &'a str },
}

/// Whether what is to be filled in is said right. An object with one of our two keys is never taken literally.
pub(super) fn validate_placeholders(value: &Value) -> Result<(), String> {
    farthest(value).map(|_| ())
}

/// The inputs of a round's tools, filled in. The past is looked at once, as far back as the round needs.
pub(super) fn fill_inputs(
    tools: &[Tool],
    message: &Message,
    past: &dyn PastResults,
) -> Result<Vec<Value>, ProviderFailure> {
    let back = farthest_of(tools.iter().map(|tool| &tool.input)).map_err(ProviderFailure::invalid)?;
    let results = if back == 0 { Vec::new() } else { past.tool_results(back)? };
    let input = message_object(message).map_err(ProviderFailure::invalid)?;
    let mut from = Sources { results, input, room: limits::FILLED_IN_BYTES };
    let filled: Result<_, String> = tools.iter().map(|tool| fill_value(&tool.input, &mut from)).collect();
    filled.map_err(ProviderFailure::invalid)
}

/// The sources of values, and the room left for them.
struct Sources {
    /// The latest first.
    results: Vec<Value>,
    input: Value,
    room: usize,
}

/// How far back it looks for tool results; 0 is not at all.
fn farthest(value: &Value) -> Result<usize, String> {
    match value {
        Value::Object(fields) => match Placeholder::parse(fields)? {
            Some(Placeholder::Result { back, .. }) => Ok(back),
            Some(Placeholder::Input { .. }) => Ok(0),
            None => farthest_of(fields.values()),
        },
        Value::Array(items) => farthest_of(items.iter()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(0),
    }
}

fn farthest_of<'a>(mut values: impl Iterator<Item = &'a Value>) -> Result<usize, String> {
    values.try_fold(0, |back, value| Ok(farthest(value)?.max(back)))
}

fn fill_value(value: &Value, from: &mut Sources) -> Result<Value, String> {
    match value {
        Value::Object(fields) => match Placeholder::parse(fields)? {
            Some(open) => open.resolve(from),
            None => {
                let filled = fields.iter().map(|(key, value)| Ok((key.clone(), fill_value(value, from)?)));
                filled.collect::<Result<Map<_, _>, String>>().map(Value::Object)
            }
        },
        Value::Array(items) => {
            items.iter().map(|item| fill_value(item, from)).collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value.clone()),
    }
}

impl Placeholder<'_> {
    fn parse(fields: &Map<String, Value>) -> Result<Option<Placeholder<'_>>, String> {
        let key = match (fields.contains_key("$result"), fields.contains_key("$input")) {
            (false, false) => return Ok(None),
            (true, _) => "$result",
            (false, true) => "$input",
        };
        let belongs = |other: &str| other == key || (key == "$result" && other == "back");
        if !fields.keys().all(|other| belongs(other)) {
            return Err(format!("another field can't stand beside `{key}`"));
        }
        let pointer = fields.get(key).and_then(Value::as_str);
        let Some(pointer) = pointer.filter(|pointer| pointer.is_empty() || pointer.starts_with('/')) else {
            return Err(format!("`{key}` takes a JSON pointer: \"\" for all of it, or one that begins with \"/\""));
        };
        if key == "$input" {
            return Ok(Some(Placeholder::Input { pointer }));
        }
        let back = fields.get("back").map_or(Some(1), Value::as_u64);
        let back = back.filter(|back| (1..=limits::RESULT_BACK_MAX).contains(back));
        let Some(back) = back.and_then(|back| usize::try_from(back).ok()) else {
            return Err(format!("`back` takes a number from 1 (the latest) to {}", limits::RESULT_BACK_MAX));
        };
        Ok(Some(Placeholder::Result { pointer, back }))
    }

    fn resolve(&self, from: &mut Sources) -> Result<Value, String> {
        let (pointer, place) = match self {
            Placeholder::Result { pointer, back } => {
                let place = from.results.get(back - 1);
                (pointer, place.ok_or_else(|| format!("{self} leads nowhere: {} are there", from.results.len()))?)
            }
            Placeholder::Input { pointer } => (pointer, &from.input),
        };
        let found =
            place.pointer(pointer).ok_or_else(|| format!("{self} leads nowhere in {}", describe_value(place)))?;
        let room = from.room.checked_sub(found.to_string().len());
        let most = limits::FILLED_IN_BYTES;
        from.room =
            room.ok_or_else(|| format!("{self} is too much: one round is filled in with {most} bytes at most"))?;
        Ok(found.clone())
    }
}

impl fmt::Display for Placeholder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placeholder::Result { pointer, back: 1 } => write!(f, "{{\"$result\": {pointer:?}}}"),
            Placeholder::Result { pointer, back } => write!(f, "{{\"$result\": {pointer:?}, \"back\": {back}}}"),
            Placeholder::Input { pointer } => write!(f, "{{\"$input\": {pointer:?}}}"),
        }
    }
}

/// The turn's message as `$input` sees it: its own fields, its text as a model reads it, and the keys of its JSON where
/// no field of ours has that name.
fn message_object(message: &Message) -> Result<Value, String> {
    let mut object = match serde_json::to_value(message) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err("the message is no object".to_owned()),
        Err(error) => return Err(format!("the message can't be shown: {error}")),
    };
    object.entry("text").or_insert_with(|| Value::String(text_of(message)));
    if let Some(Value::Object(json)) = message.json.as_deref() {
        for (key, value) in json {
            object.entry(key.as_str()).or_insert_with(|| value.clone());
        }
    }
    Ok(Value::Object(object))
}

/// A short description of the value that is there instead.
fn describe_value(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "an empty object".to_owned(),
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().take(24).map(|key| key.chars().take(40).collect()).collect();
            format!("an object with {}", keys.join(", "))
        }
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::String(_) => "a text".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Null => "null".to_owned(),
    }
}
