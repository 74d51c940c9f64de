//! The stored form of the state: one flat object, as snapshots and the `agent.json` of an export hold it.
//!
//! Its names, their order and the fields that are left out never change without a new `FINGERPRINT` and an upgrade step:
//! exports written by any version must load. The groups of `AgentState` may change freely: a field that is added to one of
//! them and not stored here is a compile error in the conversion below.

mod turn;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::AgentState;
use super::RecordedDecision;
use super::accounts::Accounts;
use super::approval::Approvals;
use super::child::Departure;
use super::definition::Definition;
use super::hint::{Hints, Trigger};
use super::lifecycle::{Control, Lifecycle};
use super::model::{Backoff, ModelFailure, Models};
use super::pace::Pace;
use super::planes::Planes;
use super::queue::Queue;
use super::spending::Spending;
use super::task::Tasks;
use super::timer::Timers;
use super::token_calibration::TokenCalibration;
use super::turn::{LastTerminal, Turn, UnknownCall};
use super::turns::{LastTrigger, Turns};
use super::unanswered::UnansweredMessages;
use super::waiting::Waits;
use super::work::Work;
use super::workspace::Workspaces;
use crate::budget::Usage;
use crate::config::{AgentLimits, Config, Identity};
use crate::continuation::Continuation;
use crate::decision::Decision;
use crate::fact::{BriefRecorded, ContextCompacted, DiskShort, TurnsHeld};
use crate::id::{Seq, TriggerId};
use crate::open_json::ProviderState;
use crate::time::Time;

/// Values are borrowed from the state when it is written, and owned when it is read.
#[derive(Serialize, Deserialize)]
struct StoredState<'a> {
    seq: Seq,
    at: Time,
    identity: Cow<'a, Identity>,
    config: Cow<'a, Config>,
    #[serde(default)]
    limits: Cow<'a, AgentLimits>,
    control: Cow<'a, Control>,
    shutdown: bool,
    resting: bool,
    queue: Cow<'a, Queue>,
    turn: Cow<'a, Option<Turn>>,
    turn_index: u64,
    last_terminal: Cow<'a, Option<LastTerminal>>,
    last_continuation: Cow<'a, Option<Continuation>>,
    last_trigger: Cow<'a, Option<LastTrigger>>,
    #[serde(default, skip_serializing_if = "Pace::is_new")]
    pace: Cow<'a, Pace>,
    runtime_error: Cow<'a, Option<String>>,
    tasks: Cow<'a, Tasks>,
    work: Cow<'a, Work>,
    waits: Cow<'a, Waits>,
    timers: Cow<'a, Timers>,
    triggers: Cow<'a, BTreeMap<TriggerId, Trigger>>,
    approvals: Cow<'a, Approvals>,
    hints: Cow<'a, Hints>,
    usage: Usage,
    spending: Cow<'a, Spending>,
    #[serde(default, skip_serializing_if = "<[ModelFailure]>::is_empty")]
    troubles: Cow<'a, [ModelFailure]>,
    #[serde(default, skip_serializing_if = "<[Backoff]>::is_empty")]
    rests: Cow<'a, [Backoff]>,
    tool_executions: u64,
    unknown_calls: Cow<'a, VecDeque<UnknownCall>>,
    compaction: Cow<'a, Option<ContextCompacted>>,
    workspaces: Cow<'a, Workspaces>,
    tree: Cow<'a, Option<String>>,
    decision: Option<Cow<'a, Decision>>,
    decision_seq: Seq,
    briefs: Cow<'a, VecDeque<BriefRecorded>>,
    carry: Cow<'a, Option<ProviderState>>,
    #[serde(default)]
    measure: Cow<'a, TokenCalibration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    disk_short: Cow<'a, Option<DiskShort>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Cow<'a, Option<TurnsHeld>>,
    archived: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leaving: Cow<'a, Option<Departure>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_said: Cow<'a, Option<String>>,
    #[serde(default, skip_serializing_if = "UnansweredMessages::is_empty")]
    unanswered: Cow<'a, UnansweredMessages>,
}

impl<'a> From<&'a AgentState> for StoredState<'a> {
    fn from(state: &'a AgentState) -> StoredState<'a> {
        StoredState {
            seq: state.seq,
            at: state.at,
            identity: Cow::Borrowed(&state.definition.identity),
            config: Cow::Borrowed(&state.definition.config),
            limits: Cow::Borrowed(&state.definition.limits),
            control: Cow::Borrowed(&state.lifecycle.control),
            shutdown: state.lifecycle.shutdown,
            resting: state.lifecycle.resting,
            queue: Cow::Borrowed(&state.planes.queue),
            turn: Cow::Borrowed(&state.turns.current),
            turn_index: state.turns.last_index,
            last_terminal: Cow::Borrowed(&state.turns.last_terminal),
            last_continuation: Cow::Borrowed(&state.turns.last_continuation),
            last_trigger: Cow::Borrowed(&state.turns.last_trigger),
            pace: Cow::Borrowed(&state.accounts.pace),
            runtime_error: Cow::Borrowed(&state.lifecycle.runtime_error),
            tasks: Cow::Borrowed(&state.planes.tasks),
            work: Cow::Borrowed(&state.planes.work),
            waits: Cow::Borrowed(&state.planes.waits),
            timers: Cow::Borrowed(&state.planes.timers),
            triggers: Cow::Borrowed(&state.planes.triggers),
            approvals: Cow::Borrowed(&state.planes.approvals),
            hints: Cow::Borrowed(&state.planes.hints),
            usage: state.accounts.usage,
            spending: Cow::Borrowed(&state.accounts.spending),
            troubles: Cow::Borrowed(&state.models.failures),
            rests: Cow::Borrowed(&state.models.backoffs),
            tool_executions: state.turns.tool_executions,
            unknown_calls: Cow::Borrowed(&state.turns.unknown_calls),
            compaction: Cow::Borrowed(&state.turns.compaction),
            workspaces: Cow::Borrowed(&state.planes.workspaces),
            tree: Cow::Borrowed(&state.turns.last_tree),
            decision: state.last_decision.as_ref().map(|last| Cow::Borrowed(&last.decision)),
            decision_seq: state.last_decision.as_ref().map_or(0, |last| last.seq),
            briefs: Cow::Borrowed(&state.planes.briefs),
            carry: Cow::Borrowed(&state.models.carry),
            measure: Cow::Borrowed(&state.models.calibration),
            disk_short: Cow::Borrowed(&state.lifecycle.disk_short),
            held: Cow::Borrowed(&state.lifecycle.turns_held),
            archived: state.lifecycle.archived,
            leaving: Cow::Borrowed(&state.lifecycle.leaving),
            last_said: Cow::Borrowed(&state.turns.last_text),
            unanswered: Cow::Borrowed(&state.turns.unanswered),
        }
    }
}

impl From<StoredState<'_>> for AgentState {
    fn from(stored: StoredState<'_>) -> AgentState {
        let seq = stored.decision_seq;
        AgentState {
            seq: stored.seq,
            at: stored.at,
            definition: Definition {
                identity: stored.identity.into_owned(),
                config: stored.config.into_owned(),
                limits: stored.limits.into_owned(),
            },
            lifecycle: Lifecycle {
                control: stored.control.into_owned(),
                shutdown: stored.shutdown,
                resting: stored.resting,
                runtime_error: stored.runtime_error.into_owned(),
                disk_short: stored.disk_short.into_owned(),
                turns_held: stored.held.into_owned(),
                archived: stored.archived,
                leaving: stored.leaving.into_owned(),
            },
            turns: Turns {
                current: stored.turn.into_owned(),
                last_index: stored.turn_index,
                last_terminal: stored.last_terminal.into_owned(),
                last_continuation: stored.last_continuation.into_owned(),
                last_trigger: stored.last_trigger.into_owned(),
                tool_executions: stored.tool_executions,
                unknown_calls: stored.unknown_calls.into_owned(),
                compaction: stored.compaction.into_owned(),
                last_tree: stored.tree.into_owned(),
                last_text: stored.last_said.into_owned(),
                unanswered: stored.unanswered.into_owned(),
            },
            planes: Planes {
                queue: stored.queue.into_owned(),
                tasks: stored.tasks.into_owned(),
                work: stored.work.into_owned(),
                waits: stored.waits.into_owned(),
                timers: stored.timers.into_owned(),
                triggers: stored.triggers.into_owned(),
                approvals: stored.approvals.into_owned(),
                hints: stored.hints.into_owned(),
                workspaces: stored.workspaces.into_owned(),
                briefs: stored.briefs.into_owned(),
            },
            accounts: Accounts {
                pace: stored.pace.into_owned(),
                usage: stored.usage,
                spending: stored.spending.into_owned(),
            },
            models: Models {
                failures: stored.troubles.into_owned(),
                backoffs: stored.rests.into_owned(),
                carry: stored.carry.into_owned(),
                calibration: stored.measure.into_owned(),
            },
            last_decision: stored.decision.map(|decision| RecordedDecision { seq, decision: decision.into_owned() }),
        }
    }
}

impl Serialize for AgentState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredState::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AgentState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AgentState, D::Error> {
        StoredState::deserialize(deserializer).map(AgentState::from)
    }
}
