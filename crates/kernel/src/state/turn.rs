//! The running turn, and what is remembered of the last one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::AgentState;
use crate::continuation::Continuation;
use crate::fact::{CallRecord, TurnCheckpointed};
use crate::id::{CallId, ExecId, MessageId, Seq, TaskId, TurnId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::TerminalKind;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    pub turn_id: TurnId,
    pub exec_id: ExecId,
    pub turn_index: u64,
    pub message_id: MessageId,
    /// The model that thinks it. A change of models is for the next turn.
    #[serde(default)]
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    pub continuation: Continuation,
    /// The operator's message that this turn has to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<MessageId>,
    /// The answer was put off: a wait of this turn stands between.
    #[serde(default)]
    pub puts_off: bool,
    /// Owed results that the next committed round settles.
    #[serde(default)]
    pub presents: Vec<TaskId>,
    pub started_at: Time,
    /// Up to here its time is counted as used.
    #[serde(default)]
    pub counted_to: Time,
    /// The day on which it counts, since 1970.
    #[serde(default)]
    pub counted_on: i64,
    pub seq: Seq,
    /// The round that was last begun.
    pub round: u32,
    pub rounds_recorded: u32,
    pub phase: Phase,
    /// A tool asked for the turn to end once the calls of this round are done.
    #[serde(default)]
    pub ends: bool,
    /// An interjection joined since the last recorded round: the model has yet to hear it.
    #[serde(default)]
    pub unheard: bool,
    #[serde(default)]
    pub last_text: Option<String>,
    /// Answers that were complete when something else was asked: they are part of what is answered in the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<String>,
    /// Rounds in a row, up to the last, in which nothing was said and nothing called.
    #[serde(default)]
    pub silent: u32,
    /// It called something.
    #[serde(default)]
    pub acted: bool,
    /// The last round had more to say.
    #[serde(default)]
    pub cut: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<TurnCheckpointed>,
    /// Something about the bound item changed during this turn.
    #[serde(default)]
    pub progressed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A model call is under way.
    Model,
    /// Between rounds: a safe point.
    Safe,
    /// These calls have begun and have no outcome yet; `waiting` have not begun.
    Tools { running: BTreeMap<CallId, CallRecord>, waiting: Vec<CallRecord> },
}

/// A call without an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownCall {
    pub call_id: CallId,
    pub tool: String,
    pub at: Time,
    pub seq: Seq,
}

impl Turn {
    /// What the turn has said so far to whoever asked.
    #[must_use]
    pub fn said(&self) -> Option<String> {
        let said: Vec<&str> = self.answered.iter().chain(&self.last_text).map(String::as_str).collect();
        (!said.is_empty()).then(|| said.join("\n\n"))
    }
}

/// How the last turn ended, until something newer is admitted or awaited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastTerminal {
    pub turn_index: u64,
    pub kind: TerminalKind,
    pub seq: Seq,
    /// Something newer than this end was admitted or is awaited.
    #[serde(default)]
    pub superseded: bool,
    /// What it said last had been cut.
    #[serde(default)]
    pub cut: bool,
    /// What went wrong, cut to what a sentence takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A checkpoint means something only while the work item is what it was.
#[must_use]
pub fn checkpoint_holds(state: &AgentState, turn: &Turn) -> bool {
    turn.checkpoint.as_ref().is_some_and(|checkpoint| {
        let now = checkpoint.work_item_id.as_ref().and_then(|id| state.planes.work.open(id)).map(|item| item.revision);
        now == checkpoint.revision
    })
}
