//! The part of `why` about turns that an agent causes itself, and that wait because there were too many of them.

use super::counted;
use crate::state::AgentState;

/// The sentence about an agent whose next turn waits. Empty where none does.
pub(crate) fn sentence(state: &AgentState) -> String {
    let Some(until) = state.pace_ends() else { return String::new() };
    let turns = counted(usize::try_from(state.definition.limits.self_turns_per_hour).unwrap_or(usize::MAX), "turn");
    let (id, waiting) = (state.id(), counted(state.planes.queue.queued_own(), "message"));
    format!(
        "{id} has caused {turns} itself within an hour, by its own timers, tasks and messages; the next one begins at {until} \
         ({waiting} waiting). What you send is not held back. Raise `self_turns_per_hour` if this is what it should do."
    )
}

/// The same beside another sentence.
pub(super) fn note(state: &AgentState) -> Option<String> {
    let until = state.pace_ends()?;
    let per_hour = state.definition.limits.self_turns_per_hour;
    Some(format!("turns that it causes itself are paced ({per_hour} an hour); the next one begins at {until}"))
}
