//! The turns of an agent: the one that runs, and what is remembered of those before it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::turn::{LastTerminal, Turn, UnknownCall};
use super::unanswered::UnansweredMessages;
use crate::continuation::Continuation;
use crate::fact::ContextCompacted;
use crate::limits;
use crate::vocabulary::TriggerKind;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turns {
    /// The running turn.
    pub current: Option<Turn>,
    /// The index of the last turn that started. The first turn has index 1.
    pub last_index: u64,
    pub last_terminal: Option<LastTerminal>,
    pub last_continuation: Option<Continuation>,
    /// The cause of the last turn, for fairness between work and messages.
    pub last_trigger: Option<LastTrigger>,
    /// The last text of a child: its result, when it has nothing left to do.
    pub last_text: Option<String>,
    pub tool_executions: u64,
    /// Calls whose effect is unknown because they were cut off. A completed turn clears the list.
    pub unknown_calls: VecDeque<UnknownCall>,
    pub compaction: Option<ContextCompacted>,
    /// The workspace's tree when a turn last ended.
    pub last_tree: Option<String>,
    /// Messages whose answer was put off.
    pub unanswered: UnansweredMessages,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastTrigger {
    pub kind: TriggerKind,
    pub work_tick: bool,
}

impl Turns {
    /// The last turn, if it failed and nothing newer has come since.
    #[must_use]
    pub fn last_failure(&self) -> Option<&LastTerminal> {
        self.last_terminal.as_ref().filter(|last| last.kind.is_failure() && !last.superseded)
    }

    pub(super) fn supersede_last_terminal(&mut self) {
        if let Some(last) = &mut self.last_terminal {
            last.superseded = true;
        }
    }

    pub(super) fn add_unknown_call(&mut self, call: UnknownCall) {
        if self.unknown_calls.len() == limits::RECENT_MAX {
            self.unknown_calls.pop_front();
        }
        self.unknown_calls.push_back(call);
    }
}
