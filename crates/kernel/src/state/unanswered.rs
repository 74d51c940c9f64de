//! Messages whose answer was put off: their turn is over, and a wait of that turn comes before the answer. They have left
//! the queue and are listed here until they are answered, so that they do not count as answered before.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::AgentState;
use super::turn::Turn;
use crate::fact::TurnTerminal;
use crate::id::MessageId;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnansweredMessages {
    messages: BTreeSet<MessageId>,
}

impl UnansweredMessages {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    #[must_use]
    pub fn contains(&self, id: &MessageId) -> bool {
        self.messages.contains(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &MessageId> {
        self.messages.iter()
    }

    pub(super) fn remove(&mut self, id: &MessageId) {
        self.messages.remove(id);
    }
}

impl AgentState {
    /// Messages that wait for an answer which nothing brings any more once this turn is over: their waits ended in turns
    /// that answer somebody else. What this turn said is all they will get.
    #[must_use]
    pub fn left_unanswered(&self, turn: &Turn) -> Vec<MessageId> {
        let left = |id: &&MessageId| turn.answers() != Some(*id) && !self.has_answer_coming(id);
        self.turns.unanswered.iter().filter(left).cloned().collect()
    }

    /// Whether a wait or a message stands for the answer to this one.
    fn has_answer_coming(&self, id: &MessageId) -> bool {
        let is_it = |answers: Option<&MessageId>| answers == Some(id);
        self.planes.waits.open().values().any(|wait| is_it(wait.answers.as_ref()))
            || self.planes.queue.entries().any(|entry| is_it(entry.answers.as_ref()) || is_it(entry.message.answers()))
    }

    /// Only the turn of the message itself puts it here: one that was answered before stays answered, whatever else its
    /// waits bring.
    pub(super) fn update_unanswered(&mut self, turn: &Turn, fact: &TurnTerminal) {
        if fact.returned {
            return;
        }
        for id in self.left_unanswered(turn) {
            self.turns.unanswered.remove(&id);
        }
        if turn.puts_off_answer() && fact.error.is_none() && turn.answers() == Some(&turn.message_id) {
            self.turns.unanswered.messages.insert(turn.message_id.clone());
        }
    }
}
