//! The models of an agent: which it has, and what becomes of a message whose model failed.

use crate::config::{Config, ConfigChange, DefaultModels};
use crate::fact::{AgentConfigured, MessageRequeued, ProviderRoundFailed};
use crate::id::MessageId;
use crate::input::{Answer, Refusal};
use crate::limits;
use crate::provider::{self, NO_JITTER, Tells, backoff_ms};
use crate::rules::step::Step;
use crate::state::queue::Entry;
use crate::state::turn::{Phase, Turn};
use crate::time::Time;
use crate::vocabulary::{BriefKind, HoldCause, ProviderError, RequeueReason, Role, TerminalKind};

use super::hold;
use super::turn::{emit_terminal, fail_message, stale, tell, turn_of};

pub(super) fn configure(step: &mut Step<'_>, change: ConfigChange) -> Result<Answer, Refusal> {
    if change.budget.is_some()
        && let Some(supervisor) = &step.state.definition.identity.supervisor
    {
        let detail = "a child spends what its supervisor granted it when it was made";
        let hint = format!("raise the budget of {}; what it makes next is granted more", supervisor.top);
        return Err(Refusal::new("granted_budget", detail, hint));
    }
    let role = change.role.filter(|role| *role != step.state.definition.identity.role);
    let config = step.state.definition.config.with(change);
    Ok(set(step, config, role))
}

/// An agent without models of its own has those of the settings, as they are now.
pub(super) fn follow(step: &mut Step<'_>, models: &DefaultModels) {
    let config = step.state.definition.config.following(models);
    set(step, config, None);
}

fn set(step: &mut Step<'_>, config: Config, role: Option<Role>) -> Answer {
    if step.state.definition.config == config && role.is_none() {
        return Answer::Unchanged;
    }
    let others = !step.state.definition.config.models().eq(config.models());
    step.emit(AgentConfigured { config, role });
    if others {
        release(step);
        hold::release_cause(step, HoldCause::ModelKey, "models_changed");
    }
    Answer::Done
}

/// What waited for a model goes on as soon as one of those that there are now can be asked.
fn release(step: &mut Step<'_>) {
    let not_before = step.state.held_until(step.now);
    let_go(step, RequeueReason::ModelChanged, not_before, |entry| entry.not_before != not_before);
}

/// A model that rested has answered: what waited for it need not wait. But where a message failed again after that, it
/// is the message, and its own wait stands.
pub(super) fn back(step: &mut Step<'_>) {
    let_go(step, RequeueReason::ModelBack, None, |entry| entry.provider_failures <= 1);
}

/// Gives those that wait for a time another one, or none.
fn let_go(step: &mut Step<'_>, reason: RequeueReason, not_before: Option<Time>, which: impl Fn(&Entry) -> bool) {
    let waiting = step.state.planes.queue.delayed().filter(|entry| which(entry));
    let waiting: Vec<MessageId> = waiting.map(|entry| entry.message.message_id.clone()).collect();
    for message_id in waiting {
        step.emit(MessageRequeued { message_id, reason, not_before });
    }
}

/// The model was asked, and failed.
pub(super) fn fail_round(step: &mut Step<'_>, failed: ProviderRoundFailed, jitter: u16, announce: bool) -> Answer {
    let (round, error) = (failed.round, failed.error);
    let expected =
        turn_of(step, &failed.exec_id).filter(|turn| turn.phase == Phase::Model && turn.round == round).cloned();
    let Some(turn) = expected else {
        return stale(step, &failed.exec_id, &format!("round {round} is over"));
    };
    settle_failure(step, &turn, failed, jitter, provider::rule(error).falls_back, announce);
    Answer::Done
}

/// The model has too little room for what must be shown. Another may have more, also one that rests.
pub(super) fn overflow(step: &mut Step<'_>, turn: &Turn, message: String) {
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
    settle_failure(step, turn, failed, NO_JITTER, true, true);
}

/// What becomes of a message whose model failed: the next model, a later try, or a visible end.
fn settle_failure(
    step: &mut Step<'_>,
    turn: &Turn,
    failed: ProviderRoundFailed,
    jitter: u16,
    falls_back: bool,
    announce: bool,
) {
    let (error, retry_after_ms) = (failed.error, failed.retry_after_ms);
    let text = provider::failure_text(error, &failed.message);
    let (model, message_id) = (turn.model.clone(), turn.message_id.clone());
    let known = step.state.models.failures.iter().any(|known| known.model == model && known.error == error);
    let not_before = next_try(step, &message_id, &model, &failed, jitter);
    let several = step.state.definition.config.models().nth(1).is_some();
    step.emit(ProviderRoundFailed { not_before, model: several.then(|| model.clone()), ..failed });
    let next = step.state.free_for(&message_id, step.now).filter(|_| falls_back).map(str::to_owned);
    if let Some(next) = next {
        let text = format!("{text}; it goes on with {next}");
        if provider::rule(error).tells == Tells::Operator && !known {
            tell(step, BriefKind::Failure, format!("{model} failed: {text}."), None);
        }
        emit_terminal(step, turn, TerminalKind::DeferredToFallback, None, Some(text), true);
        return step.emit(MessageRequeued { message_id, reason: RequeueReason::Fallback, not_before: None });
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
    let not_before = step.state.first_rested(step.now).filter(|_| waits);
    if not_before.is_none()
        && let Some((cause, said)) = hold::cause(step, &message_id, error, &text)
    {
        return hold::hold(step, turn, cause, &said, retry_after_ms, announce);
    }
    emit_terminal(step, turn, kind, None, Some(text.clone()), not_before.is_some());
    if not_before.is_some() {
        step.emit(MessageRequeued { message_id, reason: RequeueReason::ProviderBackoff, not_before });
    } else {
        fail_message(step, &message_id, turn.answers().cloned(), text);
    }
}

/// When a model that failed may be asked again: not before its provider said, and later the more often it failed, also
/// under one message while others succeed. None where time mends nothing.
fn next_try(
    step: &Step<'_>,
    message_id: &MessageId,
    model: &str,
    failed: &ProviderRoundFailed,
    jitter: u16,
) -> Option<Time> {
    if !provider::rule(failed.error).passes_with_time {
        return None;
    }
    let under_it = step.state.planes.queue.get(message_id).map_or(0, |entry| entry.provider_failures);
    let failures = step.state.failures_of(model).max(under_it);
    let backoff = step.now.plus_ms(backoff_ms(failures, jitter));
    let said = failed.retry_after_ms.map(|ms| step.now.plus_ms(ms.min(limits::PROVIDER_RETRY_MAX_MS)));
    Some(said.map_or(backoff, |said| said.max(backoff)))
}
