//! The stored form of the running turn: one flat object, older than the types that hold its fields.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::continuation::Continuation;
use crate::fact::{CallRecord, TurnCheckpointed};
use crate::id::{CallId, ExecId, MessageId, Seq, TaskId, TurnId, WorkItemId};
use crate::state::turn::{BoundItem, LastRound, OwedAnswer, Phase, RecordedRounds, Turn};
use crate::time::Time;

#[derive(Serialize, Deserialize)]
struct StoredTurn<'a> {
    turn_id: Cow<'a, TurnId>,
    exec_id: Cow<'a, ExecId>,
    turn_index: u64,
    message_id: Cow<'a, MessageId>,
    #[serde(default)]
    model: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work_item_id: Option<Cow<'a, WorkItemId>>,
    continuation: Cow<'a, Continuation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answers: Option<Cow<'a, MessageId>>,
    #[serde(default)]
    puts_off: bool,
    #[serde(default)]
    presents: Cow<'a, [TaskId]>,
    started_at: Time,
    #[serde(default)]
    counted_to: Time,
    #[serde(default)]
    counted_on: i64,
    seq: Seq,
    round: u32,
    rounds_recorded: u32,
    phase: StoredPhase<'a>,
    #[serde(default)]
    ends: bool,
    #[serde(default)]
    unheard: bool,
    #[serde(default)]
    last_text: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    answered: Cow<'a, [String]>,
    #[serde(default)]
    silent: u32,
    #[serde(default)]
    acted: bool,
    #[serde(default)]
    cut: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<Cow<'a, TurnCheckpointed>>,
    #[serde(default)]
    progressed: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredPhase<'a> {
    Model,
    Safe,
    Tools { running: Cow<'a, BTreeMap<CallId, CallRecord>>, waiting: Cow<'a, [CallRecord]> },
}

impl<'a> From<&'a Turn> for StoredTurn<'a> {
    fn from(turn: &'a Turn) -> StoredTurn<'a> {
        let (phase, ends) = match &turn.phase {
            Phase::Model => (StoredPhase::Model, false),
            Phase::Safe { ends_turn } => (StoredPhase::Safe, *ends_turn),
            Phase::Tools { running, waiting, ends_turn } => {
                (StoredPhase::Tools { running: Cow::Borrowed(running), waiting: Cow::Borrowed(waiting) }, *ends_turn)
            }
        };
        let (silent, unheard) = match turn.rounds.last {
            LastRound::HadContent => (0, false),
            LastRound::Empty { in_a_row } => (in_a_row, false),
            LastRound::Interjected => (0, true),
        };
        StoredTurn {
            turn_id: Cow::Borrowed(&turn.turn_id),
            exec_id: Cow::Borrowed(&turn.exec_id),
            turn_index: turn.turn_index,
            message_id: Cow::Borrowed(&turn.message_id),
            model: Cow::Borrowed(&turn.model),
            work_item_id: turn.work_item_id().map(Cow::Borrowed),
            continuation: Cow::Borrowed(&turn.continuation),
            answers: turn.answers().map(Cow::Borrowed),
            puts_off: turn.puts_off_answer(),
            presents: Cow::Borrowed(&turn.presents),
            started_at: turn.started_at,
            counted_to: turn.counted_to,
            counted_on: turn.counted_on,
            seq: turn.seq,
            round: turn.round,
            rounds_recorded: turn.rounds.count,
            phase,
            ends,
            unheard,
            last_text: turn.rounds.last_text.as_deref().map(Cow::Borrowed),
            answered: Cow::Borrowed(&turn.rounds.earlier_answers),
            silent,
            acted: turn.rounds.have_calls,
            cut: turn.rounds.last_is_truncated,
            checkpoint: turn.checkpoint.as_ref().map(Cow::Borrowed),
            progressed: turn.item.as_ref().is_some_and(|item| item.progressed),
        }
    }
}

impl From<StoredTurn<'_>> for Turn {
    fn from(stored: StoredTurn<'_>) -> Turn {
        let ends_turn = stored.ends;
        let phase = match stored.phase {
            StoredPhase::Model => Phase::Model,
            StoredPhase::Safe => Phase::Safe { ends_turn },
            StoredPhase::Tools { running, waiting } => {
                Phase::Tools { running: running.into_owned(), waiting: waiting.into_owned(), ends_turn }
            }
        };
        let last = match (stored.unheard, stored.silent) {
            (true, _) => LastRound::Interjected,
            (false, 0) => LastRound::HadContent,
            (false, in_a_row) => LastRound::Empty { in_a_row },
        };
        let (progressed, put_off) = (stored.progressed, stored.puts_off);
        Turn {
            turn_id: stored.turn_id.into_owned(),
            exec_id: stored.exec_id.into_owned(),
            turn_index: stored.turn_index,
            message_id: stored.message_id.into_owned(),
            model: stored.model.into_owned(),
            item: stored.work_item_id.map(|id| BoundItem { work_item_id: id.into_owned(), progressed }),
            continuation: stored.continuation.into_owned(),
            answer: stored.answers.map(|id| OwedAnswer { message_id: id.into_owned(), put_off }),
            presents: stored.presents.into_owned(),
            started_at: stored.started_at,
            counted_to: stored.counted_to,
            counted_on: stored.counted_on,
            seq: stored.seq,
            round: stored.round,
            phase,
            rounds: RecordedRounds {
                count: stored.rounds_recorded,
                last_text: stored.last_text.map(Cow::into_owned),
                earlier_answers: stored.answered.into_owned(),
                last,
                have_calls: stored.acted,
                last_is_truncated: stored.cut,
            },
            checkpoint: stored.checkpoint.map(Cow::into_owned),
        }
    }
}

impl Serialize for Turn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredTurn::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Turn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Turn, D::Error> {
        StoredTurn::deserialize(deserializer).map(Turn::from)
    }
}
