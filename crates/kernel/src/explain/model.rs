//! The part of `why` about the model: which one thinks, why not the one that was chosen, and which are left alone until
//! when.

use super::shorten;
use crate::decision::Decision;
use crate::fact::TurnsHeld;
use crate::state::AgentState;
use crate::state::model::ModelFailure;
use crate::state::turn::{Phase, Turn};
use crate::time::Time;
use crate::vocabulary::HoldCause;

pub(super) fn notes(state: &AgentState) -> Vec<String> {
    let mut notes: Vec<String> = describe_cut(state).into_iter().collect();
    if let Some(trouble) = state.last_model_failure() {
        let how = describe_failure(trouble);
        notes.push(match &state.turns.current {
            Some(turn) if turn.model != state.definition.config.model => {
                format!("this turn thinks with {}; {how}", turn.model)
            }
            Some(_) | None => how,
        });
    }
    // Where there is but one, the time is what its message waits for.
    let several = state.definition.config.models().nth(1).is_some();
    let resting = state.models.backoffs.iter().filter(|rest| several && rest.until > state.at);
    notes.extend(resting.map(|rest| format!("{} is left alone until {} ({})", rest.model, rest.until, rest.error)));
    notes
}

/// The last answer is cut: it is not all that the model had to say.
fn describe_cut(state: &AgentState) -> Option<String> {
    let last = state.turns.last_terminal.as_ref().filter(|last| last.is_truncated)?;
    let (turn, model) = (last.turn_index, &state.definition.config.model);
    let raise = format!("raise max_output_tokens for {model} in config.toml");
    Some(format!("the answer of turn {turn} is cut: the model had written as much as it may; {raise}"))
}

/// `openai/gpt failed at 10:00, overloaded: no`.
fn describe_failure(trouble: &ModelFailure) -> String {
    let ModelFailure { model, error, message, at } = trouble;
    let who = if model.is_empty() { String::new() } else { format!("{model} ") };
    format!("{who}failed at {at}, {error}: {}", shorten(message))
}

/// The sentence about a turn whose model is being asked.
pub(super) fn until_it_answers(state: &AgentState) -> Option<String> {
    let turn = state.turns.current.as_ref().filter(|turn| turn.phase == Phase::Model && !turn.model.is_empty())?;
    let (id, Turn { model, round, started_at, .. }) = (state.id(), turn);
    Some(format!("{id} is running a turn since {started_at}, and waits for {model} (round {round})."))
}

/// The sentence about an agent whose turns are held.
pub(super) fn until_released(state: &AgentState) -> Option<String> {
    let TurnsHeld { cause, until, evidence } = state.lifecycle.turns_held.as_ref()?;
    let (id, evidence) = (state.id(), shorten(evidence));
    let waiting = match state.planes.queue.queued() {
        1 => "1 message waits".to_owned(),
        count => format!("{count} messages wait"),
    };
    Some(match cause {
        HoldCause::HomeBudget => format!(
            "{id} may ask no model until {until}, because the home has spent its budget of the day ({evidence}); {waiting}. \
             Raise it to go on: `abide config set budget.daily_usd N`, then `abide daemon restart`."
        ),
        HoldCause::ModelKey => format!(
            "{id} has no model with a key that works ({evidence}); {waiting}, and nothing is lost. Set the key, then \
             `abide daemon restart`, or `abide model test` if it works by now; it is tried again at {until}."
        ),
    })
}

pub(super) fn would_wake(held: &TurnsHeld) -> Vec<String> {
    let person = match held.cause {
        HoldCause::HomeBudget => "a person who raises the home's budget",
        HoldCause::ModelKey => "a key that works",
    };
    vec![format!("the clock, at {}", held.until), person.to_owned()]
}

/// The sentence about a message that is tried again later: which model failed, and how.
pub(super) fn until_tried_again(state: &AgentState, decision: &Decision) -> Option<String> {
    let entry = decision.message_id.as_ref().and_then(|id| state.planes.queue.get(id))?;
    until_asked_again(state, entry.not_before?)
}

/// The sentence about a model that failed and is asked again at `until`.
pub(crate) fn until_asked_again(state: &AgentState, until: Time) -> Option<String> {
    let trouble = state.last_model_failure()?;
    let (id, model) = (state.id(), if trouble.model.is_empty() { "its model" } else { &trouble.model });
    let error = shorten(&format!("{}: {}", trouble.error, trouble.message));
    Some(format!("{id} waits until {until} and asks again then: {model} failed ({error})."))
}
