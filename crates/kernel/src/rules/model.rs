//! The models of an agent: which it has, and what becomes of a message whose model failed.

use crate::config::{Config, ConfigChange, DefaultModels};
use crate::fact::{AgentConfigured, MessageRequeued, ProviderRoundFailed};
use crate::id::MessageId;
use crate::input::{Answer, Refusal};
use crate::limits;
use crate::provider::{self, NO_JITTER, Tells, backoff_ms};
use crate::refusal::ErrorCode;
use crate::rules::transaction::Transaction;
use crate::state::queue::Entry;
use crate::state::turn::{Phase, Turn};
use crate::time::Time;
use crate::vocabulary::{BriefKind, HoldCause, ProviderError, RequeueReason, Role, TerminalKind};

use super::hold;
use super::turn::{emit_terminal, fail_message, record_brief, stale, turn_of};

pub(super) fn configure(tx: &mut Transaction<'_>, change: ConfigChange) -> Result<Answer, Refusal> {
    if change.budget.is_some()
        && let Some(supervisor) = &tx.state.definition.identity.supervisor
    {
        let detail = "a child spends what its supervisor granted it when it was made";
        return Err(Refusal::new(ErrorCode::GrantedBudget, detail).fill("agent", &supervisor.top));
    }
    let role = change.role.filter(|role| *role != tx.state.definition.identity.role);
    let config = tx.state.definition.config.with(change);
    Ok(set_config(tx, config, role))
}

/// An agent without models of its own has those of the settings, as they are now.
pub(super) fn follow(tx: &mut Transaction<'_>, models: &DefaultModels) {
    let config = tx.state.definition.config.following(models);
    set_config(tx, config, None);
}

fn set_config(tx: &mut Transaction<'_>, config: Config, role: Option<Role>) -> Answer {
    if tx.state.definition.config == config && role.is_none() {
        return Answer::Unchanged;
    }
    let others = !tx.state.definition.config.models().eq(config.models());
    tx.emit(AgentConfigured { config, role });
    if others {
        release(tx);
        hold::release_cause(tx, HoldCause::ModelKey, "models_changed");
    }
    Answer::Done
}

/// Messages that waited for a model go on as soon as one of those that there are now can be asked.
fn release(tx: &mut Transaction<'_>) {
    let not_before = tx.state.held_until(tx.now);
    reschedule_messages(tx, RequeueReason::ModelChanged, not_before, |entry| entry.not_before != not_before);
}

/// A model that rested has answered: what waited for it need not wait. But where a message failed again after that, it
/// is the message, and its own wait stands.
pub(super) fn release_waiting_messages(tx: &mut Transaction<'_>) {
    reschedule_messages(tx, RequeueReason::ModelBack, None, |entry| entry.provider_failures <= 1);
}

/// Gives those that wait for a time another one, or none.
fn reschedule_messages(
    tx: &mut Transaction<'_>,
    reason: RequeueReason,
    not_before: Option<Time>,
    which: impl Fn(&Entry) -> bool,
) {
    let waiting = tx.state.planes.queue.delayed().filter(|entry| which(entry));
    let waiting: Vec<MessageId> = waiting.map(|entry| entry.message.message_id.clone()).collect();
    for message_id in waiting {
        tx.emit(MessageRequeued { message_id, reason, not_before });
    }
}

/// The model was asked, and failed.
pub(super) fn fail_round(tx: &mut Transaction<'_>, failed: ProviderRoundFailed, jitter: u16, announce: bool) -> Answer {
    let (round, error) = (failed.round, failed.error);
    let expected =
        turn_of(tx, &failed.exec_id).filter(|turn| turn.phase == Phase::Model && turn.round == round).cloned();
    let Some(turn) = expected else {
        return stale(tx, &failed.exec_id, &format!("round {round} is over"));
    };
    settle_failure(tx, &turn, failed, jitter, provider::rule(error).falls_back, announce);
    Answer::Done
}

/// The model has too little room for what must be shown. Another may have more, also one that rests.
pub(super) fn overflow(tx: &mut Transaction<'_>, turn: &Turn, message: String) {
    let (exec_id, round, error) = (turn.exec_id.clone(), turn.round, ProviderError::ContextLength);
    let failed = ProviderRoundFailed {
        exec_id,
        round,
        error,
        message,
        retry_after_ms: None,
        not_before: None,
        carry: None,
        model: None,
        usage: None,
        estimated: false,
    };
    settle_failure(tx, turn, failed, NO_JITTER, true, true);
}

/// The next step of a message whose model failed: the next model, a later try, or a visible end.
fn settle_failure(
    tx: &mut Transaction<'_>,
    turn: &Turn,
    failed: ProviderRoundFailed,
    jitter: u16,
    falls_back: bool,
    announce: bool,
) {
    let (error, retry_after_ms) = (failed.error, failed.retry_after_ms);
    let text = provider::failure_text(error, &failed.message);
    let (model, message_id) = (turn.model.clone(), turn.message_id.clone());
    let known = tx.state.models.failures.iter().any(|known| known.model == model && known.error == error);
    let not_before = next_try(tx, &message_id, &model, &failed, jitter);
    let several = tx.state.definition.config.models().nth(1).is_some();
    tx.emit(ProviderRoundFailed { not_before, model: several.then(|| model.clone()), ..failed });
    let next = tx.state.available_model_for(&message_id, tx.now).filter(|_| falls_back).map(str::to_owned);
    if let Some(next) = next {
        let text = format!("{text}; it goes on with {next}");
        if provider::rule(error).tells == Tells::Operator && !known {
            record_brief(tx, BriefKind::Failure, format!("{model} failed: {text}."), None);
        }
        emit_terminal(tx, turn, TerminalKind::DeferredToFallback, None, Some(text), true);
        return tx.emit(MessageRequeued { message_id, reason: RequeueReason::Fallback, not_before: None });
    }
    let kind = match error {
        ProviderError::ContextLength => TerminalKind::BaselineOverBudget,
        ProviderError::RateLimited
        | ProviderError::Overloaded
        | ProviderError::Timeout
        | ProviderError::Disconnect
        | ProviderError::Refusal
        | ProviderError::Auth
        | ProviderError::Invalid
        | ProviderError::System
        | ProviderError::Unpriced
        | ProviderError::HomeBudgetSpent => TerminalKind::ProviderFailed,
    };
    // Another model may do what this one can't, once it has rested; or this one, which then rests itself.
    let waits = provider::rule(error).passes_with_time || falls_back;
    let not_before = tx.state.first_rested(tx.now).filter(|_| waits);
    if not_before.is_none()
        && let Some((cause, said)) = hold::cause(tx, &message_id, error, &text)
    {
        return hold::hold_turns(tx, turn, cause, &said, retry_after_ms, announce);
    }
    emit_terminal(tx, turn, kind, None, Some(text.clone()), not_before.is_some());
    if not_before.is_some() {
        tx.emit(MessageRequeued { message_id, reason: RequeueReason::ProviderBackoff, not_before });
    } else {
        fail_message(tx, &message_id, turn.answers().cloned(), text);
    }
}

/// When a model that failed may be asked again: not before its provider said, and later the more often it failed, also
/// under one message while others succeed. None where time mends nothing.
fn next_try(
    tx: &Transaction<'_>,
    message_id: &MessageId,
    model: &str,
    failed: &ProviderRoundFailed,
    jitter: u16,
) -> Option<Time> {
    if !provider::rule(failed.error).passes_with_time {
        return None;
    }
    let under_it = tx.state.planes.queue.get(message_id).map_or(0, |entry| entry.provider_failures);
    let failures = tx.state.failures_of(model).max(under_it);
    let backoff = tx.now.plus_ms(backoff_ms(failures, jitter));
    let said = failed.retry_after_ms.map(|ms| tx.now.plus_ms(ms.min(limits::PROVIDER_RETRY_MAX_MS)));
    Some(said.map_or(backoff, |said| said.max(backoff)))
}
