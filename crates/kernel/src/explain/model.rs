//! What `why` says of the model: which one thinks, and why not the one that was chosen.

use super::gist;
use crate::agent::AgentState;
use crate::scheduler::decision::Decision;

pub(super) fn notes(state: &AgentState) -> Vec<String> {
    let Some(trouble) = &state.trouble else { return Vec::new() };
    let (model, in_use) = (&trouble.model, state.model_in_use());
    let how = format!("{model} failed at {}, {}: {}", trouble.at, trouble.error, gist(&trouble.message));
    if in_use != state.config.model {
        return vec![format!("this turn thinks with {in_use}; {how}")];
    }
    vec![if model.is_empty() { how.trim_start().to_owned() } else { how }]
}

/// The sentence about a message that is tried again later: which model failed, and how.
pub(super) fn until_tried_again(state: &AgentState, decision: &Decision) -> Option<String> {
    let entry = decision.message_id.as_ref().and_then(|id| state.queue.get(id))?;
    let (until, trouble) = (entry.not_before?, state.trouble.as_ref()?);
    let (id, model) = (state.id(), if trouble.model.is_empty() { "its model" } else { &trouble.model });
    let error = gist(&format!("{}: {}", trouble.error, trouble.message));
    Some(format!("{id} waits until {until} and asks again then: {model} failed ({error})."))
}
