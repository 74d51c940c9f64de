//! Turns that are held: the home has spent its budget for the day, or the keys of an agent's models do not work. Nothing
//! is lost meanwhile: messages stay queued, in order, and go on when the cause is gone or is to be looked at again.

use crate::fact::{MessageRequeued, TurnsHeld, TurnsReleased};
use crate::id::MessageId;
use crate::input::Answer;
use crate::limits;
use crate::rules::transaction::Transaction;
use crate::state::queue::ModelAttempt;
use crate::state::spending::Spending;
use crate::state::turn::Turn;
use crate::time::Time;
use crate::vocabulary::{BriefKind, HoldCause, ProviderError, RequeueReason, TerminalKind};

use super::turn::{emit_terminal, record_brief};

/// Why a message whose last model failed is held, and not failed: the cause, and what was said of it.
pub(super) fn cause(
    tx: &Transaction<'_>,
    message_id: &MessageId,
    error: ProviderError,
    text: &str,
) -> Option<(HoldCause, String)> {
    if error == ProviderError::HomeBudgetSpent {
        return Some((HoldCause::HomeBudget, text.to_owned()));
    }
    // A model that was reached and could not do it has a key that works: others of its messages may go on. One without
    // a price was not asked, and waits for a person like one without a key.
    let tried = &tx.state.planes.queue.get(message_id)?.tried;
    let of_key = |tried: &ModelAttempt| tried.error == ProviderError::Auth;
    let for_a_person = |tried: &ModelAttempt| of_key(tried) || tried.error == ProviderError::Unpriced;
    if !tried.iter().all(for_a_person) || !tried.iter().any(of_key) {
        return None;
    }
    let model = tried.last().map(|tried| tried.model.as_str()).filter(|model| !model.is_empty());
    let said = model.map_or_else(|| text.to_owned(), |model| format!("{model}: {text}"));
    Some((HoldCause::ModelKey, said))
}

/// Ends the turn, gives its message back, and starts no other turn for now.
pub(super) fn hold_turns(
    tx: &mut Transaction<'_>,
    turn: &Turn,
    cause: HoldCause,
    text: &str,
    retry_after_ms: Option<u64>,
    announce: bool,
) {
    let until = match (cause, retry_after_ms) {
        (_, Some(ms)) => tx.now.plus_ms(ms.min(limits::PROVIDER_RETRY_MAX_MS)),
        (HoldCause::HomeBudget, None) => Spending::next_day(tx.now),
        (HoldCause::ModelKey, None) => tx.now.plus_ms(limits::KEY_RETRY_MS),
    };
    emit_terminal(tx, turn, TerminalKind::ProviderFailed, None, Some(text.to_owned()), true);
    let (message_id, reason) = (turn.message_id.clone(), RequeueReason::TurnsHeld);
    tx.emit(MessageRequeued { message_id, reason, not_before: None });
    tx.emit(TurnsHeld { cause, until, evidence: text.to_owned() });
    if announce {
        let told = match cause {
            HoldCause::HomeBudget => format!("No model is asked until {until}: {text}."),
            HoldCause::ModelKey => {
                format!("No model of this agent has a key that works: {text}. Nothing is lost: its messages wait.")
            }
        };
        record_brief(tx, BriefKind::Failure, told, None);
    }
}

/// The cause is gone, or time to look at it again has come.
pub(super) fn release(tx: &mut Transaction<'_>, evidence: &str) -> Answer {
    let Some(cause) = tx.state.lifecycle.turns_held.as_ref().map(|held| held.cause) else { return Answer::Unchanged };
    tx.emit(TurnsReleased { cause, evidence: evidence.to_owned() });
    Answer::Done
}

pub(super) fn release_cause(tx: &mut Transaction<'_>, cause: HoldCause, evidence: &str) -> Answer {
    match &tx.state.lifecycle.turns_held {
        Some(held) if held.cause == cause => release(tx, evidence),
        Some(_) | None => Answer::Unchanged,
    }
}

/// At the instant that was recorded with the hold.
pub(super) fn release_due(tx: &mut Transaction<'_>, now: Time) {
    if tx.state.lifecycle.turns_held.as_ref().is_some_and(|held| held.until <= now) {
        release(tx, "due");
    }
}
