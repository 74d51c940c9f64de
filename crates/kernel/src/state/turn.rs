//! The running turn, and what is remembered of the last one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::AgentState;
use crate::continuation::Continuation;
use crate::fact::{AssistantRoundRecorded, CallRecord, TurnCheckpointed};
use crate::id::{CallId, ExecId, MessageId, Seq, TaskId, TurnId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::TerminalKind;

/// Its stored form is flat: see `stored/turn.rs`.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub turn_id: TurnId,
    /// The execution of the turn: one that a crash ended begins again under another id.
    pub exec_id: ExecId,
    pub turn_index: u64,
    pub message_id: MessageId,
    /// The model of all its rounds: a change of models applies from the next turn.
    pub model: String,
    /// The work item that the turn is about.
    pub item: Option<BoundItem>,
    pub continuation: Continuation,
    /// The answer that the operator waits for.
    pub answer: Option<OwedAnswer>,
    /// Owed results that the next committed round settles.
    pub presents: Vec<TaskId>,
    pub started_at: Time,
    /// The time up to which its duration is counted as used.
    pub counted_to: Time,
    /// The day on which it counts, since 1970.
    pub counted_on: i64,
    pub seq: Seq,
    /// The round that was last begun.
    pub round: u32,
    pub phase: Phase,
    pub rounds: RecordedRounds,
    pub checkpoint: Option<TurnCheckpointed>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundItem {
    pub work_item_id: WorkItemId,
    /// Something about the item changed during this turn.
    pub progressed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwedAnswer {
    /// The operator's message.
    pub message_id: MessageId,
    /// The turn made a wait, and the answer follows when the wait ends.
    pub put_off: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// A model call is in progress.
    Model,
    /// Between rounds: a safe point.
    Safe { ends_turn: bool },
    /// The calls in `running` have no outcome yet; those in `waiting` have not begun. With `ends_turn`, a tool asked for
    /// the turn to end once the calls of this round are done.
    Tools { running: BTreeMap<CallId, CallRecord>, waiting: Vec<CallRecord>, ends_turn: bool },
}

/// The recorded rounds of a turn. The two bools are facts of their own, and no states of one machine: an empty round may
/// be truncated, and a turn that called tools in one round may be silent in the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedRounds {
    pub count: u32,
    pub last_text: Option<String>,
    /// Answers that were complete when an interjection joined. They are part of the answer that the turn ends with.
    pub earlier_answers: Vec<String>,
    pub last: LastRound,
    /// Any of the rounds made calls.
    pub have_calls: bool,
    /// The model had more to say in the last round, but had reached its output limit.
    pub last_is_truncated: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LastRound {
    /// It had text or calls, or no round is recorded yet.
    #[default]
    HadContent,
    /// This many rounds in a row, up to the last, had neither text nor calls.
    Empty { in_a_row: u32 },
    /// An interjection joined after it, and the model has not read the interjection yet.
    Interjected,
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
    #[must_use]
    pub fn work_item_id(&self) -> Option<&WorkItemId> {
        self.item.as_ref().map(|item| &item.work_item_id)
    }

    /// The operator's message that this turn has to answer.
    #[must_use]
    pub fn answers(&self) -> Option<&MessageId> {
        self.answer.as_ref().map(|answer| &answer.message_id)
    }

    #[must_use]
    pub fn puts_off_answer(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.put_off)
    }
}

impl RecordedRounds {
    /// The text of the turn so far, for the person who asked.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let texts: Vec<&str> = self.earlier_answers.iter().chain(&self.last_text).map(String::as_str).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// How many rounds in a row, up to the last, had neither text nor calls.
    #[must_use]
    pub fn empty_in_a_row(&self) -> u32 {
        match self.last {
            LastRound::Empty { in_a_row } => in_a_row,
            LastRound::HadContent | LastRound::Interjected => 0,
        }
    }

    pub(super) fn record(&mut self, round: &AssistantRoundRecorded) {
        self.count += 1;
        self.last = if round.is_silent() {
            LastRound::Empty { in_a_row: self.empty_in_a_row() + 1 }
        } else {
            LastRound::HadContent
        };
        self.last_is_truncated = round.cut;
        self.have_calls |= !round.calls.is_empty();
        if !round.text.trim().is_empty() {
            self.last_text = Some(round.text.clone());
        }
    }

    /// An interjection joins the turn. Where the turn was about to end, its last text was an answer.
    pub(super) fn interject(&mut self, was_about_to_end: bool) {
        if was_about_to_end {
            self.earlier_answers.extend(self.last_text.take());
        }
        self.last = LastRound::Interjected;
    }
}

/// The end of the last turn. Its two bools are independent of each other: one is about the text, the other about what came
/// after the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastTerminal {
    pub turn_index: u64,
    pub kind: TerminalKind,
    pub seq: Seq,
    /// Something newer than this end was admitted, or the agent waits for something.
    #[serde(default)]
    pub superseded: bool,
    /// The last text of the turn is truncated.
    #[serde(default, rename = "cut")]
    pub is_truncated: bool,
    /// The error, truncated to the length of a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Whether the turn has a checkpoint, and the work item has not changed since.
#[must_use]
pub fn checkpoint_holds(state: &AgentState, turn: &Turn) -> bool {
    turn.checkpoint.as_ref().is_some_and(|checkpoint| {
        let now = checkpoint.work_item_id.as_ref().and_then(|id| state.planes.work.open(id)).map(|item| item.revision);
        now == checkpoint.revision
    })
}
