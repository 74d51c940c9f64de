//! The order of the parts of an answer. A provider wants its reasoning back between the same texts and calls; these are
//! recorded apart from it, so the sealed value says how they alternate.

use abide_kernel::fact::CallRecord;
use serde_json::{Value, json};

use super::Protocol;

/// Stands between the texts of one answer where they become one.
pub(super) const BETWEEN_TEXTS: &str = "\n\n";

/// A part of an answer as it is sealed: texts by their length in bytes, calls by their turn, reasoning as it is.
pub(super) enum Piece {
    Text(usize),
    Call,
    Thought(Value),
}

/// A part of an earlier answer, to be shown to its model again.
#[derive(Debug)]
pub(super) enum Shown<'a> {
    Text(&'a str),
    Call(&'a CallRecord),
    Thought(&'a Value),
}

/// Nothing where there was no reasoning: text and calls can be shown without.
pub(super) fn seal(protocol: Protocol, pieces: Vec<Piece>) -> Option<Value> {
    if !pieces.iter().any(|piece| matches!(piece, Piece::Thought(_))) {
        return None;
    }
    let order = pieces.into_iter().map(|piece| match piece {
        Piece::Text(bytes) => json!({ "text": bytes }),
        Piece::Call => json!("call"),
        Piece::Thought(thought) => json!({ "thought": thought }),
    });
    Some(json!({ "speaks": protocol.as_str(), "order": order.collect::<Vec<_>>() }))
}

/// An answer in its parts. `sealed` is what was sealed of it, if its provider may see that again.
pub(super) fn parts<'a>(text: &'a str, calls: &'a [CallRecord], sealed: Option<&'a [Value]>) -> Vec<Shown<'a>> {
    let sealed = sealed.unwrap_or_default();
    let mut parts = as_sealed(text, calls, sealed).unwrap_or_else(|| {
        let thoughts = sealed.iter().filter_map(|piece| piece.get("thought")).map(Shown::Thought);
        thoughts.chain([Shown::Text(text)]).chain(calls.iter().map(Shown::Call)).collect()
    });
    parts.retain(|part| !matches!(part, Shown::Text(text) if text.trim().is_empty()));
    // No provider takes reasoning that led to nothing.
    while let Some(Shown::Thought(_)) = parts.last() {
        parts.pop();
    }
    parts
}

/// None where the order is not that of this text and these calls.
fn as_sealed<'a>(text: &'a str, calls: &'a [CallRecord], sealed: &'a [Value]) -> Option<Vec<Shown<'a>>> {
    let (mut rest, mut calls, mut parts) = (text, calls.iter(), Vec::new());
    for piece in sealed {
        if let Some(thought) = piece.get("thought") {
            parts.push(Shown::Thought(thought));
        } else if let Some(bytes) = piece.get("text").and_then(Value::as_u64) {
            if rest.len() < text.len() {
                rest = rest.strip_prefix(BETWEEN_TEXTS)?;
            }
            let (this, after) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
            parts.push(Shown::Text(this));
            rest = after;
        } else {
            parts.push(Shown::Call(calls.next()?));
        }
    }
    (rest.is_empty() && calls.next().is_none()).then_some(parts)
}
