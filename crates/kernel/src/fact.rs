//! Facts: everything that ever changes a state, in the past tense, one struct each.
//!
//! A fact that introduces a thing carries all its fields; later facts name the thing and carry what they change.
//! The spelling of a kind and the fields of its struct are stored for ever: change one, and `upcast` must learn the
//! old shape, and the golden file of the old shape stays. An unknown kind is an error; it is never skipped.

mod approval;
mod brief;
mod budget;
mod children;
mod clock;
mod control;
mod hold;
mod message;
pub mod reader;
mod task;
mod turn;
pub mod upcast;
mod waiting;
mod work;
mod workspace;

use serde::{Deserialize, Serialize};

use crate::pack;

pub use approval::*;
pub use brief::*;
pub use budget::*;
pub use children::*;
pub use clock::*;
pub use control::*;
pub use hold::*;
pub use message::*;
pub use task::*;
pub use turn::*;
pub use waiting::*;
pub use work::*;
pub use workspace::*;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("no fact is called {kind:?} in this version: the ledger was written by a newer one, or is damaged")]
    UnknownKind { kind: String },
    #[error("a {kind} fact does not read: {problem}")]
    BadPayload { kind: String, problem: String },
}

macro_rules! facts {
    ($($variant:ident = $kind:literal,)*) => {
        #[derive(Debug, Clone, PartialEq)]
        pub enum Fact { $($variant($variant)),* }

        impl Fact {
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The name under which it is stored and published: `domain.action`.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self { $(Fact::$variant(_) => $kind),* }
            }

            /// The stored bytes. Our own types always encode; a failure would be a bug of ours.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                match self { $(Fact::$variant(fact) => encode(fact)),* }
            }

            /// From bytes as they are stored (see `pack`), or from JSON.
            pub fn decode(kind: &str, payload: &[u8]) -> Result<Fact, DecodeError> {
                match kind {
                    $($kind => decode::<$variant>(kind, payload).map(Fact::$variant),)*
                    _ => upcast::decode(kind, payload),
                }
            }
        }

        $(impl From<$variant> for Fact {
            fn from(fact: $variant) -> Fact { Fact::$variant(fact) }
        })*
    };
}

fn encode<T: Serialize>(fact: &T) -> Vec<u8> {
    match serde_json::to_vec(fact) {
        Ok(bytes) => bytes,
        Err(error) => unreachable!("a fact has only string keys and finite numbers: {error}"),
    }
}

fn decode<'a, T: Deserialize<'a>>(kind: &str, payload: &'a [u8]) -> Result<T, DecodeError> {
    pack::read_stored(payload)
        .map_err(|error| DecodeError::BadPayload { kind: kind.to_owned(), problem: error.to_string() })
}

facts! {
    AgentCreated = "agent.created",
    AgentConfigured = "agent.configured",
    AgentForked = "agent.forked",
    AgentQuarantined = "agent.quarantined",
    AgentArchived = "agent.archived",
    ChildLeaving = "child.leaving",
    ChildReporting = "child.reporting",

    ControlAdmitted = "control.admitted",
    ControlApplied = "control.applied",
    PostureChanged = "posture.changed",
    SchedulerDecided = "scheduler.decision",
    RuntimeErrorRecorded = "runtime.error",
    StaleOutcomeIgnored = "outcome.ignored",
    LimitsChanged = "limits.changed",
    ClockSetBack = "clock.set_back",
    SelfTurnsPaced = "self_turns.paced",
    WorkTicksSpent = "work.ticks_spent",
    WorkspaceAttached = "workspace.attached",
    WorkspaceUsed = "workspace.used",
    WorkspaceDetached = "workspace.detached",
    WorkspaceOccupied = "workspace.occupied",
    WorkspaceReleased = "workspace.released",
    WorktreeRemoving = "worktree.removing",
    WorktreeRemoved = "worktree.removed",
    WorktreeKept = "worktree.kept",
    DiskShort = "disk.short",
    DiskHasRoom = "disk.has_room",
    TurnsHeld = "turns.held",
    TurnsReleased = "turns.released",

    MessageQueued = "message.queued",
    MessageDequeued = "message.dequeued",
    MessageProcessed = "message.processed",
    MessageInterjected = "message.interjected",
    MessageParked = "message.parked",
    MessageRequeued = "message.requeued",
    MessageAborted = "message.aborted",
    MessageDropped = "message.dropped",

    TurnStarted = "turn.started",
    TurnBound = "turn.bound",
    RoundStarted = "turn.round_started",
    ProviderRoundCompleted = "turn.provider_round_completed",
    ProviderRoundFailed = "turn.provider_round_failed",
    CutRoundCounted = "turn.cut_round_counted",
    AssistantRoundRecorded = "turn.assistant_round_recorded",
    ToolStarted = "tool.started",
    ToolFinished = "tool.finished",
    ToolRoundCompleted = "turn.tool_round_completed",
    TurnCheckpointed = "turn.checkpointed",
    TurnBaselineOverBudget = "turn.baseline_over_budget",
    TurnAborted = "exec.aborted",
    TurnTerminal = "turn.terminal",
    ContextCompacted = "context.compacted",

    TaskCreated = "task.created",
    TaskRunning = "task.running",
    TaskCancelling = "task.cancelling",
    TaskCompleted = "task.completed",
    TaskFailed = "task.failed",
    TaskCancelled = "task.cancelled",
    TaskInterrupted = "task.interrupted",
    TaskUpdateIgnored = "task.update_ignored",
    TaskResultQueued = "task.result_queued",
    TaskResultDelivered = "task.result_delivered",

    WorkItemCreated = "work_item.created",
    WorkItemPicked = "work_item.picked",
    WorkItemUpdated = "work_item.updated",
    WorkItemBlocked = "work_item.blocked",
    WorkItemUnblocked = "work_item.unblocked",
    WorkItemCompleted = "work_item.completed",
    WorkItemDelegated = "work_item.delegated",
    WorkItemDelegationCompleted = "work_item.delegation_completed",
    RecheckFired = "work_item.recheck_fired",
    RecheckMoved = "work_item.recheck_moved",

    WaitingIntentCreated = "wait.created",
    WaitingIntentTriggered = "wait.triggered",
    WaitingIntentCancelled = "wait.cancelled",
    TimerCreated = "timer.created",
    TimerCheckStarted = "timer.check_started",
    TimerFired = "timer.fired",
    TimerMissed = "timer.missed",
    TimerRescheduled = "timer.rescheduled",
    TimerCompleted = "timer.completed",
    TimerCancelled = "timer.cancelled",
    WakeHintSubmitted = "wake_hint.submitted",
    WakeHintCoalesced = "wake_hint.coalesced",
    WakeHintIgnored = "wake_hint.ignored",
    TriggerCreated = "trigger.created",
    TriggerRotated = "trigger.rotated",
    TriggerDelivered = "trigger.delivered",
    TriggerRevoked = "trigger.revoked",

    ApprovalRequested = "approval.requested",
    ApprovalDeadlineMoved = "approval.deadline_moved",
    ApprovalDecided = "approval.decided",
    ApprovalUsed = "approval.used",
    BriefRecorded = "brief.recorded",
    BudgetReached = "budget.reached",
    BudgetRenewed = "budget.renewed",
}
