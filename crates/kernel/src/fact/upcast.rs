//! Old shapes of stored facts, and how they read today.
//!
//! A kind whose payload changes gets a new spelling (`kind/2`), and a row here that turns the old payload into the new.
//! Rows are never removed: ledgers live longer than versions.

use serde_json::Value;

use super::{DecodeError, Fact};

struct Upcast {
    from: &'static str,
    to: &'static str,
    convert: fn(&mut Value),
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
    let mut stored = super::decode(kind, payload)?;
    (upcast.convert)(&mut stored);
    Fact::decode(upcast.to, &super::encode(&stored))
}

/// The kinds that are only ever read.
pub fn old_kinds() -> impl Iterator<Item = &'static str> {
    UPCASTS.iter().map(|upcast| upcast.from)
}

/// `{"decision": KIND, "reason": …}` named the kind `decision`, and left out what was false or empty.
fn decision_in_data(stored: &mut Value) {
    if let Some(fields) = stored.as_object_mut() {
        if let Some(kind) = fields.remove("decision") {
            fields.insert("kind".to_owned(), kind);
        }
        fields.retain(|_, value| !value.is_null());
    }
}

/// The error was free text under any of several names.
fn error_in_data(stored: &mut Value) {
    let named = ["error", "message", "reason"].iter().find_map(|name| stored.get(name)?.as_str());
    let text = stored.as_str().or(named).map_or_else(|| stored.to_string(), str::to_owned);
    *stored = serde_json::json!({ "error": text });
}
