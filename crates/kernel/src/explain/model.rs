//! What `why` says of the model: which one thinks, and why not the one that was chosen.

use crate::agent::AgentState;

pub(super) fn notes(state: &AgentState) -> Vec<String> {
    cut(state).into_iter().chain(trouble(state)).collect()
}

/// What it said last is not all that it had to say.
fn cut(state: &AgentState) -> Option<String> {
    let last = state.last_terminal.as_ref().filter(|last| last.cut)?;
    let (turn, model) = (last.turn_index, &state.config.model);
    let raise = format!("raise max_output_tokens for {model} in config.toml");
    Some(format!("the answer of turn {turn} is cut: the model had written as much as it may; {raise}"))
}

fn trouble(state: &AgentState) -> Vec<String> {
    let Some(trouble) = &state.trouble else { return Vec::new() };
    let (model, in_use) = (&trouble.model, state.model_in_use());
    let how = format!("{model} failed at {}, {}: {}", trouble.at, trouble.error, trouble.message);
    if in_use != state.config.model {
        return vec![format!("this turn thinks with {in_use}; {how}")];
    }
    vec![if model.is_empty() { how.trim_start().to_owned() } else { how }]
}
