//! The transcript: what was said and done, as a person reads it. A pure view of facts; nothing reads it back.

use abide_views::message::TranscriptEntry;

use crate::fact::Fact;
use crate::id::Seq;
use crate::limits;
use crate::prompt::image::images_in;
use crate::time::Time;
use crate::vocabulary::{TerminalKind, TranscriptRole};

/// The part of one tool result that is shown; the ledger has all of it.
const RESULT_BYTES: usize = 16 * 1024;

/// The note on an answer that the model could not end.
const CUT: &str = "the answer is cut: the model had written as much as it may (max_output_tokens)";

/// The entries that a fact makes: mostly none.
#[must_use]
#[allow(clippy::wildcard_enum_match_arm, reason = "most facts are not about what was said or done")]
pub fn entries(seq: Seq, at: Time, fact: &Fact) -> Vec<TranscriptEntry> {
    let blank = |role| TranscriptEntry {
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
        vec![TranscriptEntry { text: Some(text), exec_id: Some(exec.clone()), ..blank(TranscriptRole::Note) }]
    };
    match fact {
        Fact::MessageQueued(queued) => {
            let message = &queued.message;
            vec![TranscriptEntry {
                kind: Some(message.kind()),
                origin: Some((&message.origin).into()),
                text: message.text.clone(),
                json: message.json.as_ref().map(|json| images_in(json).1),
                message_id: Some(message.message_id.clone()),
                ..blank(TranscriptRole::Input)
            }]
        }
        Fact::AssistantRoundRecorded(round) => {
            let exec_id = Some(round.exec_id.clone());
            let said = TranscriptEntry {
                text: Some(round.text.clone()),
                exec_id: exec_id.clone(),
                ..blank(TranscriptRole::Assistant)
            };
            let calls = round.calls.iter().map(|call| TranscriptEntry {
                json: Some(call.input.0.clone()),
                exec_id: exec_id.clone(),
                call_id: Some(call.call_id.clone()),
                tool: Some(call.tool.clone()),
                ..blank(TranscriptRole::ToolCall)
            });
            let spoke = !round.text.is_empty() || round.calls.is_empty();
            let cut = round.cut.then(|| note(CUT.to_owned(), &round.exec_id)).into_iter().flatten();
            spoke.then_some(said).into_iter().chain(calls).chain(cut).collect()
        }
        Fact::ToolFinished(finished) => {
            // Images are not readable as text; the text in their place is not long.
            let result = images_in(&finished.result).1;
            let whole = result.to_string();
            let fits = whole.len() <= RESULT_BYTES;
            vec![TranscriptEntry {
                text: (!fits).then(|| format!("{}…", limits::clip(&whole, RESULT_BYTES))),
                json: fits.then_some(result),
                exec_id: Some(finished.exec_id.clone()),
                call_id: Some(finished.call_id.clone()),
                tool: Some(finished.tool.clone()),
                status: Some(finished.status),
                ..blank(TranscriptRole::ToolResult)
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
            vec![TranscriptEntry { text: Some(text), ..blank(TranscriptRole::Note) }]
        }
        _ => Vec::new(),
    }
}
