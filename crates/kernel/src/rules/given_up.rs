//! Messages that are given up: those that keep taking the process down, and results whose turn failed for good. Each
//! becomes a question to the operator, which quotes the message and says how to send it again.

use crate::fact::{MessageAborted, MessageRequeued};
use crate::id::MessageId;
use crate::limits;
use crate::rules::transaction::Transaction;
use crate::state::AgentState;
use crate::state::queue::Entry;
use crate::visible::{is_hidden, one_line};
use crate::vocabulary::{MessageKind, RequeueReason};

use super::control::ask_operator;
use super::turn::still_asked;
use super::waits::return_interjections;

/// How much of a message the question quotes. A command with a text of at most this length can be typed again as it is.
const QUOTED_BYTES: usize = 200;

/// A message that keeps taking the process down with it is given up.
pub(super) fn replay_or_give_up(tx: &mut Transaction<'_>, message_id: &MessageId) {
    let Some(entry) = tx.state.planes.queue.get(message_id) else { return };
    let (since_round, in_all) = (entry.crashes_since_round + 1, entry.crashes + 1);
    let few = since_round < limits::CRASHES_WITHOUT_ROUND && in_all < limits::CRASHES_MAX;
    if few {
        let reason = RequeueReason::Crash;
        return tx.emit(MessageRequeued { message_id: message_id.clone(), reason, not_before: None });
    }
    let evidence = vec![format!("crashes {in_all}"), format!("crashes_since_round {since_round}")];
    let text = format!(
        "{} was given up: the process ended {in_all} times while it was being worked on. {}",
        named(entry),
        again(tx.state, entry)
    );
    give_up(tx, message_id, evidence, text);
}

pub(super) fn give_up(tx: &mut Transaction<'_>, message_id: &MessageId, evidence: Vec<String>, text: String) {
    let asked = tx.state.planes.queue.get(message_id).and_then(|entry| entry.answers.as_ref());
    let answers = still_asked(tx.state, asked, message_id);
    tx.emit(MessageAborted { message_id: message_id.clone(), given_up: true, evidence, answers });
    return_interjections(tx, message_id);
    ask_operator(tx, text, Some(message_id.clone()));
}

/// The message by its kind and its words.
fn named(entry: &Entry) -> String {
    let message = &entry.message;
    let kind = if message.kind() == MessageKind::OperatorPrompt {
        "Your message".to_owned()
    } else {
        format!("A message ({})", message.kind())
    };
    let words = message.text.clone().or_else(|| message.json.as_ref().map(|json| json.to_string()));
    let Some(words) = words.filter(|words| !words.is_empty()) else { return kind };
    let kept = limits::clip(&words, QUOTED_BYTES);
    let more = if kept.len() < words.len() || entry.is_excerpt() { " …" } else { "" };
    format!("{kind} \"{}{more}\"", one_line(kept))
}

/// How the operator gets it worked on after all.
fn again(state: &AgentState, entry: &Entry) -> String {
    let (id, message) = (state.id(), &entry.message);
    let owed = message.task_id().filter(|task| state.planes.tasks.owed().contains_key(*task));
    if let Some(task) = owed {
        return format!("The result of {task} is kept; your next message brings it: abide send {id} TEXT");
    }
    match (message.kind(), message.text.as_deref().filter(|text| can_be_typed(text))) {
        (MessageKind::OperatorPrompt, Some(text)) if !entry.is_excerpt() => {
            format!("To send it again: abide send {id} '{}'", text.replace('\'', r"'\''"))
        }
        (_, _) => {
            let seq = entry.seq;
            format!("`abide transcript {id}` has all of it (seq {seq}). To send it again: abide send {id} TEXT")
        }
    }
}

fn can_be_typed(text: &str) -> bool {
    text.len() <= QUOTED_BYTES && !text.starts_with('-') && !text.chars().any(is_hidden)
}
