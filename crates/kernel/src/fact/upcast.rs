//! Old shapes of stored facts, and how they read today.
//!
//! A kind whose payload changes gets a new spelling (`kind/2`), and a row here that turns the old payload into the new.
//! Rows are never removed: ledgers live longer than versions.

use serde_json::Value;

use super::{DecodeError, Fact};

struct Upcast {
    from: &'static str,
    to: &'static str,
    convert: fn(Value) -> Value,
}

/// Spellings that exports of older systems use for facts that we have under another name.
const UPCASTS: &[Upcast] = &[
    Upcast { from: "scheduler_decision", to: "scheduler.decision", convert: decision_in_data },
    Upcast { from: "runtime_error", to: "runtime.error", convert: error_in_data },
];

pub(super) fn decode(kind: &str, payload: &[u8]) -> Result<Fact, DecodeError> {
    let Some(upcast) = UPCASTS.iter().find(|upcast| upcast.from == kind) else {
        return Err(DecodeError::UnknownKind { kind: kind.to_owned() });
    };
    let old: Value = super::decode(kind, payload)?;
    let new = super::encode(&(upcast.convert)(old));
    Fact::decode(upcast.to, &new)
}

/// The kinds that are only ever read.
pub fn old_kinds() -> impl Iterator<Item = &'static str> {
    UPCASTS.iter().map(|upcast| upcast.from)
}

/// `{"decision": KIND, "reason": …}` named the kind `decision`, and left out what was false or empty.
fn decision_in_data(mut old: Value) -> Value {
    if let Some(fields) = old.as_object_mut() {
        if let Some(kind) = fields.remove("decision") {
            fields.insert("kind".to_owned(), kind);
        }
        fields.retain(|_, value| !value.is_null());
    }
    old
}

/// The error was free text under any of several names.
fn error_in_data(old: Value) -> Value {
    let text = match &old {
        Value::String(text) => text.clone(),
        Value::Object(fields) => ["error", "message", "reason"]
            .iter()
            .find_map(|name| fields.get(*name).and_then(Value::as_str))
            .map_or_else(|| old.to_string(), str::to_owned),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => old.to_string(),
    };
    serde_json::json!({ "error": text })
}
