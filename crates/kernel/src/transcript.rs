//! The transcript: what was said and done, as a person reads it. A pure view of facts; nothing reads it back.

use serde::Serialize;
use serde_json::Value;

use crate::fact::Fact;
use crate::id::Seq;
use crate::limits;
use crate::message::Origin;
use crate::prompt::image::images_in;
use crate::time::Time;
use crate::vocabulary::{MessageKind, TerminalKind};

/// What is shown of one tool result; the ledger has all of it.
const RESULT_BYTES: usize = 16 * 1024;

/// What is said of an answer that the model could not end.
const CUT: &str = "the answer is cut: the model had written as much as it may (max_output_tokens)";

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    pub seq: Seq,
    pub at: Time,
    pub role: &'static str,
    /// What kind of message an input is, and whose: not every one is the operator's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<MessageKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// The entries that a fact makes: mostly none.
#[must_use]
#[allow(clippy::wildcard_enum_match_arm, reason = "most facts are not about what was said or done")]
pub fn entries(seq: Seq, at: Time, fact: &Fact) -> Vec<Entry> {
    let blank = |role| Entry {
        seq,
        at,
        role,
        kind: None,
        origin: None,
        text: None,
        json: None,
        message_id: None,
        exec_id: None,
        call_id: None,
        tool: None,
        status: None,
    };
    let note = |text: String, exec: &crate::id::ExecId| {
        vec![Entry { text: Some(text), exec_id: Some(exec.to_string()), ..blank("note") }]
    };
    match fact {
        Fact::MessageQueued(queued) => {
            let message = &queued.message;
            vec![Entry {
                kind: Some(message.kind),
                origin: Some(message.origin.clone()),
                text: message.text.clone(),
                json: message.json.as_ref().map(|json| images_in(json).1),
                message_id: Some(message.message_id.to_string()),
                ..blank("input")
            }]
        }
        Fact::AssistantRoundRecorded(round) => {
            let exec_id = Some(round.exec_id.to_string());
            let said = Entry { text: Some(round.text.clone()), exec_id: exec_id.clone(), ..blank("assistant") };
            let calls = round.calls.iter().map(|call| Entry {
                json: Some(call.input.clone()),
                exec_id: exec_id.clone(),
                call_id: Some(call.call_id.to_string()),
                tool: Some(call.tool.clone()),
                ..blank("tool_call")
            });
            let spoke = !round.text.is_empty() || round.calls.is_empty();
            let cut = round.cut.then(|| note(CUT.to_owned(), &round.exec_id)).into_iter().flatten();
            spoke.then_some(said).into_iter().chain(calls).chain(cut).collect()
        }
        Fact::ToolFinished(finished) => {
            // Nobody reads an image as text; what stands in its place is not long.
            let result = images_in(&finished.result).1;
            let whole = result.to_string();
            let fits = whole.len() <= RESULT_BYTES;
            vec![Entry {
                text: (!fits).then(|| format!("{}…", limits::clip(&whole, RESULT_BYTES))),
                json: fits.then_some(result),
                exec_id: Some(finished.exec_id.to_string()),
                call_id: Some(finished.call_id.to_string()),
                tool: Some(finished.tool.clone()),
                status: Some(finished.status.to_string()),
                ..blank("tool_result")
            }]
        }
        Fact::TurnAborted(aborted) => note(format!("the turn was cut short: {}", aborted.reason), &aborted.exec_id),
        Fact::ProviderRoundFailed(failed) => {
            let model = failed.model.as_ref().map(|model| format!("{model} failed: ")).unwrap_or_default();
            note(format!("{model}{}: {}", failed.error, failed.message), &failed.exec_id)
        }
        Fact::TurnTerminal(ended) if ended.terminal_kind == TerminalKind::DeferredToFallback => {
            note(ended.error.clone().unwrap_or_default(), &ended.exec_id)
        }
        Fact::ContextCompacted(compacted) => {
            let text = format!("{} messages were summarised", compacted.compacted_messages);
            vec![Entry { text: Some(text), ..blank("note") }]
        }
        _ => Vec::new(),
    }
}
