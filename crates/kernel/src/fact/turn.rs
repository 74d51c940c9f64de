//! Facts of a turn: rounds of model and tools, and how it ends.

use serde::{Deserialize, Serialize};

use super::Fact;
use crate::budget::Usage;
use crate::continuation::Continuation;
use crate::id::{CallId, ExecId, MessageId, Seq, TaskId, TurnId, WorkItemId};
use crate::open_json::{ProviderState, ToolInput, ToolOutput};
use crate::time::Time;
use crate::vocabulary::{
    AbortReason, Boundary, ControlAction, ProviderError, SideEffect, Status, TerminalKind, ToolStatus,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnStarted {
    pub turn_id: TurnId,
    pub exec_id: ExecId,
    pub turn_index: u64,
    pub message_id: MessageId,
    /// The item this one turn is about; the focus is a fact of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    pub continuation: Continuation,
    /// The operator's message that this turn has to answer, be it its own or one that it was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<MessageId>,
    /// Owed results that this turn shows to the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presents: Vec<TaskId>,
    /// The fact that has the message, where it lies far back: who reads the turn need not search for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_seq: Option<Seq>,
}

/// The running turn is about another item from here on: it picked that one, or it was about none and made it. What the
/// turn makes next belongs to the item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnBound {
    pub exec_id: ExecId,
    pub work_item_id: WorkItemId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<WorkItemId>,
}

/// The intent to call the model; durable before the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundStarted {
    pub exec_id: ExecId,
    pub round: u32,
}

impl Fact {
    /// The facts that say what calls to models used.
    pub const USAGE_KINDS: [&'static str; 4] =
        ["turn.provider_round_completed", "turn.provider_round_failed", "turn.cut_round_counted", "context.compacted"];

    /// The usage of calls to models, as far as this fact is the one that says it. The end of a child's task is not: the
    /// child's own facts say its usage.
    #[must_use]
    #[allow(clippy::wildcard_enum_match_arm, reason = "other facts record no call to a model")]
    pub fn model_usage(&self) -> Option<&Usage> {
        match self {
            Fact::ProviderRoundCompleted(fact) => Some(&fact.usage),
            Fact::ProviderRoundFailed(fact) => fact.usage.as_ref(),
            Fact::CutRoundCounted(fact) => Some(&fact.usage),
            Fact::ContextCompacted(fact) => fact.usage.as_ref(),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderRoundCompleted {
    pub exec_id: ExecId,
    pub round: u32,
    #[serde(default)]
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
    /// State that this provider wants back with the next call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry: Option<ProviderState>,
    /// Which model answered, where it was one that has to be paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// State that the provider wants back with this round, whenever it is shown again. It means nothing to anyone else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<ProviderState>,
    /// Why the model stopped, in its provider's word, where it is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// How many tokens the request was thought to have; the usage says how many it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_tokens: Option<u64>,
}

/// A call to the model came to nothing; what becomes of the turn follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderRoundFailed {
    pub exec_id: ExecId,
    pub round: u32,
    pub error: ProviderError,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// When the model may be asked again: as its provider said, or later where it keeps failing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry: Option<ProviderState>,
    /// Which model failed, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The usage of the call all the same: it had begun to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The usage is our guess: its provider did not come to say it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// A call to a model was ended before its answer was there, and is paid for all the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CutRoundCounted {
    pub exec_id: ExecId,
    pub round: u32,
    pub usage: Usage,
    /// The usage is our guess: its provider did not come to say it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// A tool call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRecord {
    pub call_id: CallId,
    pub tool: String,
    #[serde(default, skip_serializing_if = "ToolInput::is_null")]
    pub input: ToolInput,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssistantRoundRecorded {
    pub exec_id: ExecId,
    pub round: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallRecord>,
    /// It had more to say, but had written as much as it may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl AssistantRoundRecorded {
    /// No answer at all: nothing was said, and nothing called.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.calls.is_empty() && self.text.trim().is_empty()
    }
}

/// The intent to run one tool call; durable before it runs. The call itself is in the round that asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolStarted {
    pub exec_id: ExecId,
    pub call_id: CallId,
    pub tool: String,
    /// The change that it may make in the world; left out for a call that only changes the agent's own records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side_effect: Option<SideEffect>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFinished {
    pub exec_id: ExecId,
    pub call_id: CallId,
    pub tool: String,
    pub status: ToolStatus,
    #[serde(default, skip_serializing_if = "ToolOutput::is_null")]
    pub result: ToolOutput,
    /// The turn ends once the calls of this round are done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_turn: bool,
    /// It was not run: it had come to the same result too often.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
    /// It was not run: the answer reached its longest before the call was complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Every call of the round has its outcome. Which calls they were is in the round that asked for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRoundCompleted {
    pub exec_id: ExecId,
    pub round: u32,
}

/// A turn-local checkpoint. It is anchored to what the work item was, and means nothing once that has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnCheckpointed {
    pub exec_id: ExecId,
    pub round: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    pub recap: String,
    /// The last round that the recap stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through_round: Option<u32>,
}

/// The part of a prompt that the turn must keep does not fit the model's window; the turn ends with this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnBaselineOverBudget {
    pub exec_id: ExecId,
    pub turn_index: u64,
    pub needed_tokens: u64,
    pub budget_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnAborted {
    /// The action of control that ended it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ControlAction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<Boundary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_status: Option<Status>,
    /// The status that the action leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_status: Option<Status>,
    pub exec_id: ExecId,
    pub turn_index: u64,
    pub message_id: MessageId,
    pub reason: AbortReason,
    pub rounds: u32,
    /// The tasks that end with it.
    #[serde(default)]
    pub task_ids: Vec<TaskId>,
    /// The workspace that is let go of with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    pub evidence: Vec<String>,
    /// A shutdown was recorded, and the process ended before the turn did: the next boot found it. How long it ran is
    /// not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub process_ended: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnTerminal {
    pub exec_id: ExecId,
    pub turn_index: u64,
    pub message_id: MessageId,
    pub terminal_kind: TerminalKind,
    pub rounds: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_assistant_message: Option<String>,
    /// Whether a checkpoint of this turn was still anchored when it ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checkpoint: bool,
    /// The workspace's tree when the turn ended, where there is a workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its message went back to its queue, to be taken again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub returned: bool,
    /// The last assistant message was cut: the model had written as much as it may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Operator messages whose outcome is that of this turn's message, because no brief answers them: answers that were put
    /// off and that nothing would bring any more, and interjections in a turn that answers none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settles: Vec<MessageId>,
}

/// Cross-turn compaction: what the model sees became shorter. Scheduling never reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextCompacted {
    pub compacted_messages: u64,
    pub epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The last fact that the summary speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Seq>,
    /// The usage of making the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}
