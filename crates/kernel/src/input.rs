//! Everything that can be asked of an agent or reported to it. A closed set that fits on a screen or two.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::open_json::{JsonBody, ProviderState, ToolOutput};
pub use crate::refusal::Refusal;

use crate::budget::Usage;
use crate::config::{AgentLimits, Config, ConfigChange, DefaultModels, Identity};
use crate::fact::{TaskCreated, TaskEnd, WorkspaceAttached};
use crate::id::{AgentId, CallId, ExecId, MessageId, Seq, TaskId, TimerId, TriggerId, WorkItemId};
use crate::time::Time;
use crate::tool::{Call, RecordCall};
use crate::vocabulary::{
    ControlAction, Disposition, HoldCause, MessageKind, Priority, ProviderError, TaskStatus, ToolStatus,
};

#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    Create {
        identity: Identity,
        config: Config,
        start: bool,
    },
    /// A supervisor's task comes to life as an agent of its own.
    CreateChild(Box<CreateChild>),
    /// A child's supervisor wants it no longer.
    Dismiss {
        evidence: Vec<String>,
    },
    /// A child's supervisor has recorded how its task ended, or is no more.
    SupervisorHeard,
    Configure {
        change: Box<ConfigChange>,
    },
    Fork {
        agent_id: AgentId,
        parent: AgentId,
        at_seq: Seq,
    },
    Start,
    Stop,
    /// Ends one execution: the named one, or whichever runs.
    Abort {
        exec_id: Option<ExecId>,
    },
    /// The process is about to end: the turn stops at its next safe point, or at once.
    Shutdown {
        at_once: bool,
        /// Such as the signal that the process got.
        reason: String,
    },
    /// The process is new: whatever was in flight is cut.
    Boot {
        context: BootContext,
    },
    Quarantine {
        reason: String,
    },
    /// Its operator deletes it. Only a stopped agent goes.
    Archive,

    Queue(NewMessage),
    /// Something came in by a trigger, under the generation of its URL.
    Deliver {
        trigger_id: TriggerId,
        generation: u32,
        /// Its signature was checked and is right.
        verified: bool,
        delivery: Delivery,
    },
    Wake {
        reason: String,
        source: Option<String>,
        resource: Option<String>,
        body: Option<String>,
    },
    /// Time has passed: fire what is due.
    FireDue,
    /// The clock shows an earlier time than the last fact has.
    FollowClock,
    /// A person acts on the agent's records.
    Act {
        by: String,
        act: RecordCall,
    },

    FinishRound {
        exec_id: ExecId,
        round: u32,
        reply: Reply,
    },
    FailRound {
        exec_id: ExecId,
        round: u32,
        error: ProviderError,
        retry_after_ms: Option<u64>,
        message: String,
        carry: Option<ProviderState>,
        /// A draw, by which the wait until the next try is longer or shorter.
        jitter: u16,
        /// The usage of the call all the same.
        spent: Option<Spent>,
        /// Where turns are held for it: nobody told the operator of this cause yet, in the whole home.
        announce: bool,
    },
    /// A call to a model was ended, and took this before it was.
    CountCutRound {
        exec_id: ExecId,
        round: u32,
        spent: Spent,
    },
    OverflowBaseline {
        exec_id: ExecId,
        needed_tokens: u64,
        budget_tokens: u64,
    },
    FinishTool {
        exec_id: ExecId,
        call_id: CallId,
        status: ToolStatus,
        result: ToolOutput,
        /// The task whose output is in the result.
        reads: Option<Reads>,
    },
    Checkpoint {
        exec_id: ExecId,
        recap: String,
        /// The last round that the recap stands for.
        through_round: Option<u32>,
    },
    Compact {
        compacted_messages: u64,
        summary: Option<String>,
        /// The last fact that the summary speaks of.
        through: Option<Seq>,
        usage: Option<Usage>,
    },

    CreateTask(TaskCreated),
    RunTask {
        task_id: TaskId,
        recovery: Option<String>,
    },
    EndTask {
        status: TaskStatus,
        end: TaskEnd,
    },

    /// Binds a folder, and has the agent work there.
    UseWorkspace(WorkspaceAttached),
    OccupyWorkspace {
        workspace: String,
    },
    /// How the removal of a worktree went.
    FinishRemoval {
        root: String,
        removal: Result<Removal, String>,
    },
    /// A command was ended to keep room on a disk: no turn starts until then.
    HoldForDisk {
        until: Time,
        evidence: String,
    },
    DiskHasRoom,
    /// The cause for which turns were held is gone.
    ReleaseTurns {
        cause: HoldCause,
        evidence: String,
    },
    ReleaseWorkspace {
        workspace: String,
        /// As the effect had it.
        action: Option<ControlAction>,
        error: Option<String>,
    },
    RecordRuntimeError {
        error: String,
    },
    /// The check of the occurrence that was due then.
    FinishCheck {
        timer_id: TimerId,
        due: Time,
        checked: Checked,
    },
}

/// All that a child starts with, in one commit.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateChild {
    pub identity: Identity,
    pub config: Config,
    pub message: String,
    pub workspace: Option<WorkspaceAttached>,
}

/// A look at a task's output. The task as the state has it belongs into the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reads {
    pub task_id: TaskId,
    /// The end was in it: the result is no longer owed.
    pub end: bool,
}

/// The state of the world around an agent that is read again: by a new process, or by this one after a sleep.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BootContext {
    /// The steps that were needed to be sure that nothing of a task runs, by task.
    pub ended: BTreeMap<TaskId, Vec<String>>,
    /// The workspace that is still kept for it.
    pub occupied: Option<String>,
    /// The settings' models for agents without models of their own. None where there is no word of it.
    pub models: Option<DefaultModels>,
    /// The settings' limits for every agent. None where there is no word of it.
    pub limits: Option<AgentLimits>,
    /// The process that reads it holds its turns. A new process holds nobody's: it tries again.
    pub holds_turns: bool,
}

/// The outcome of a worktree's removal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removal {
    pub patch: Option<String>,
    pub branches: Vec<String>,
    pub evidence: Vec<String>,
}

/// A message as a surface hands it in; what follows from how it came is filled in on admission.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewMessage {
    /// Only where the caller has to know it beforehand.
    pub message_id: Option<MessageId>,
    pub kind: Option<MessageKind>,
    pub text: Option<String>,
    pub json: Option<JsonBody>,
    pub priority: Option<Priority>,
    /// Which sender of that kind: fills the origin's id.
    pub origin_id: Option<String>,
    /// The sender is another agent.
    pub from_agent: Option<AgentId>,
    /// It works for the same operator's agent.
    pub same_tree: bool,
    /// It sent this in a turn that something from outside had started.
    pub from_outside: bool,
    pub work_item_id: Option<WorkItemId>,
    pub trigger_id: Option<TriggerId>,
    pub correlation_id: Option<String>,
    pub causation_id: Option<String>,
    pub idempotency_key: Option<String>,
}

/// A delivery that came in by a trigger. It is data from outside, whatever it claims to be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Delivery {
    /// The id that its sender gave it.
    pub delivery_id: Option<String>,
    pub text: Option<String>,
    pub json: Option<JsonBody>,
    pub correlation_id: Option<String>,
}

/// The model's answer in one round.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    pub text: String,
    pub calls: Vec<Call>,
    pub usage: Usage,
    pub elapsed_ms: Option<u64>,
    /// State that the provider wants back with its next call, whatever happens in between.
    pub carry: Option<ProviderState>,
    /// Which model answered, where it was one that has to be paid.
    pub model: Option<String>,
    /// State that the provider wants back with this round, whenever it is shown again.
    pub sealed: Option<ProviderState>,
    /// Why the model stopped, in its provider's word, where it is not the usual one.
    pub stop: Option<String>,
    /// How many tokens the request was thought to have.
    pub estimated_tokens: Option<u64>,
    /// The workspace's tree, where it was looked at.
    pub tree: Option<String>,
}

impl Reply {
    /// The reason to stop of a model that has written as much as it may, the same for every provider.
    pub const FULL: &'static str = "max_tokens";

    /// It had more to say.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.stop.as_deref() == Some(Reply::FULL)
    }
}

/// The usage of a call that came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    pub usage: Usage,
    /// By our own guess; the provider did not come to say it.
    pub estimated: bool,
}

/// The outcome of a timer's check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    Exited {
        exit_code: i32,
        output: String,
    },
    /// It could not be run, or not to its end.
    NotDone {
        why: String,
    },
}

/// The answer to the asker once the facts are durable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Done,
    /// The state was already so; nothing was recorded.
    Unchanged,
    Queued {
        message_id: MessageId,
    },
    Woken {
        disposition: Disposition,
        reason: String,
    },
    Acted(ToolOutput),
}
