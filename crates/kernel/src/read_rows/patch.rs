//! The change that a fact makes to a row. A field that is null takes away what the row had; one that is left out leaves it.
//! Stored rows are merged from these, so no field is renamed, added or left out without another fingerprint.

use std::collections::{BTreeMap, BTreeSet};

use abide_views::WithNulls;
use abide_views::budget::{LimitsView, UsedView};
use abide_views::task::TaskOutput;
use serde::Serialize;

use crate::fact::{Schedule, TaskCreated, WorkspaceAttached};
use crate::id::{AgentId, BriefId, MessageId, Seq, TaskId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::{
    AgentKind, ApprovalStatus, BriefKind, Ownership, QueueStatus, Role, Scope, Status as AgentStatus, TaskKind,
    TaskStatus, TerminalKind, TimerStatus, TriggerStatus, Visibility, WaitStatus, WorkItemState, WorkspaceMode,
    WorkspaceStatus,
};

#[derive(Serialize)]
pub(super) struct Status<S> {
    pub status: S,
}

#[derive(Serialize)]
pub(super) struct MessageQueued {
    pub seq: Seq,
    pub at: Time,
    pub status: QueueStatus,
}

/// The row has the beginning of the body only.
#[derive(Serialize)]
pub(super) struct MessageCut {
    pub bytes: u64,
    pub truncated: bool,
}

#[derive(Serialize)]
pub(super) struct MessageStatus {
    pub status: QueueStatus,
    pub not_before: Option<Time>,
}

/// The message that this one joined, or none of them any more.
#[derive(Serialize)]
pub(super) struct MessageRequeued {
    pub status: QueueStatus,
    pub not_before: Option<Time>,
    pub outcome_of: (),
}

#[derive(Serialize)]
pub(super) struct MessageJoined<'a> {
    pub status: QueueStatus,
    pub not_before: (),
    pub outcome_of: &'a MessageId,
}

#[derive(Serialize)]
pub(super) struct MessageAborted {
    pub status: QueueStatus,
    pub not_before: (),
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
}

#[derive(Serialize)]
pub(super) struct MessageDropped<'a> {
    pub status: QueueStatus,
    pub not_before: (),
    pub dropped: &'a [String],
}

/// A message that ends as another one does.
#[derive(Serialize)]
pub(super) struct MessageOutcomeOf<'a> {
    pub outcome_of: &'a MessageId,
}

/// The last turn about a message, where no brief says what it came to.
#[derive(Serialize)]
pub(super) struct MessageTurn<'a> {
    pub turn: TurnSummary<'a>,
}

#[derive(Serialize)]
pub(super) struct TurnSummary<'a> {
    pub terminal_kind: TerminalKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// The newest brief of each kind about a message.
#[derive(Serialize)]
pub(super) struct MessageBriefs<'a> {
    pub briefs: BTreeMap<BriefKind, &'a BriefId>,
}

#[derive(Serialize)]
pub(super) struct BriefAt {
    pub at: Time,
}

#[derive(Serialize)]
pub(super) struct WaitBegun {
    pub scope: Scope,
    pub status: WaitStatus,
    pub trigger_count: u32,
    pub created_at: Time,
    pub seq: Seq,
}

#[derive(Serialize)]
pub(super) struct WaitTriggered {
    pub status: WaitStatus,
    pub trigger_count: u32,
}

#[derive(Serialize)]
pub(super) struct TimerBegun<'a> {
    every_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<&'a str>,
    status: TimerStatus,
    fire_count: u64,
    missed_count: u64,
    /// Lists say when it fires.
    after_ms: (),
}

impl TimerBegun<'_> {
    pub(super) fn new(schedule: &Schedule) -> TimerBegun<'_> {
        let (every_ms, cron, time_zone) = match schedule {
            Schedule::Once { .. } => (None, None, None),
            Schedule::Every { every_ms, .. } => (Some(*every_ms), None, None),
            Schedule::Cron { cron, time_zone } => (None, Some(cron.as_str()), Some(time_zone.as_str())),
        };
        let (status, fire_count, missed_count) = (TimerStatus::Active, 0, 0);
        TimerBegun { every_ms, cron, time_zone, status, fire_count, missed_count, after_ms: () }
    }
}

#[derive(Serialize)]
pub(super) struct TimerNext {
    pub next_fire_at: Option<Time>,
}

#[derive(Serialize)]
pub(super) struct TimerFired {
    pub last_fired_at: Time,
    pub next_fire_at: Option<Time>,
    pub fire_count: u64,
}

#[derive(Serialize)]
pub(super) struct TimerMissed {
    pub next_fire_at: Option<Time>,
    pub missed_count: u64,
}

#[derive(Serialize)]
pub(super) struct TimerEnd {
    status: TimerStatus,
    next_fire_at: (),
}

impl TimerEnd {
    pub(super) fn new(status: TimerStatus) -> TimerEnd {
        TimerEnd { status, next_fire_at: () }
    }
}

#[derive(Serialize)]
pub(super) struct TriggerBegun {
    pub status: TriggerStatus,
    pub signed: bool,
}

#[derive(Serialize)]
pub(super) struct TriggerEnd {
    pub status: TriggerStatus,
    pub delivery_count: u64,
    pub last_delivered_at: Option<Time>,
}

#[derive(Serialize)]
pub(super) struct ApprovalDeadline {
    pub deadline: Time,
}

#[derive(Serialize)]
pub(super) struct ApprovalDecided<'a> {
    pub status: ApprovalStatus,
    pub decided_by: &'a str,
    pub decided_at: Time,
}

#[derive(Serialize)]
pub(super) struct ApprovalUsed {
    pub used_at: Time,
}

#[derive(Serialize)]
pub(super) struct WorkspaceBound<'a> {
    workspace: &'a str,
    root: &'a str,
    mode: WorkspaceMode,
    branch: Option<&'a str>,
    base_commit: Option<&'a str>,
    note: Option<&'a str>,
    status: WorkspaceStatus,
    attached_at: Time,
}

impl WorkspaceBound<'_> {
    pub(super) fn new(bound: &WorkspaceAttached, attached_at: Time) -> WorkspaceBound<'_> {
        let worktree = bound.worktree.as_ref();
        WorkspaceBound {
            workspace: &bound.workspace,
            root: &bound.root,
            mode: bound.mode,
            branch: worktree.map(|worktree| worktree.branch.as_str()),
            base_commit: worktree.map(|worktree| worktree.base_commit.as_str()),
            note: bound.note.as_deref(),
            status: WorkspaceStatus::Attached,
            attached_at,
        }
    }
}

#[derive(Serialize)]
pub(super) struct WorktreeGone<'a> {
    pub status: WorkspaceStatus,
    pub patch: &'a Option<String>,
}

#[derive(Serialize)]
pub(super) struct WorktreeKept<'a> {
    pub status: WorkspaceStatus,
    pub kept: &'a str,
}

#[derive(Serialize)]
pub(super) struct AgentSettings<'a> {
    pub model: &'a str,
    pub default_model: bool,
    pub secrets: Option<BTreeSet<String>>,
}

#[derive(Serialize)]
pub(super) struct AgentBegun {
    pub status: AgentStatus,
    pub created_at: Time,
}

#[derive(Serialize)]
pub(super) struct AgentRole {
    pub role: Role,
}

#[derive(Serialize)]
pub(super) struct AgentForked<'a> {
    id: &'a AgentId,
    status: AgentStatus,
    created_at: Time,
    kind: AgentKind,
    visibility: Visibility,
    ownership: Ownership,
    supervisor: (),
    secrets: (),
}

impl AgentForked<'_> {
    pub(super) fn new(id: &AgentId, created_at: Time) -> AgentForked<'_> {
        AgentForked {
            id,
            status: AgentStatus::Stopped,
            created_at,
            kind: AgentKind::Named,
            visibility: Visibility::Public,
            ownership: Ownership::SelfOwned,
            supervisor: (),
            secrets: (),
        }
    }
}

#[derive(Serialize)]
pub(super) struct AgentArchived {
    pub archived: bool,
}

#[derive(Serialize)]
pub(super) struct TaskBegun<'a> {
    task_id: &'a TaskId,
    kind: TaskKind,
    status: TaskStatus,
    summary: &'a str,
    command: Option<&'a str>,
    work_item_id: Option<&'a WorkItemId>,
    child_agent_id: Option<&'a str>,
    recovery: Option<&'a str>,
    created_at: Time,
    granted: Option<WithNulls<'a, LimitsView>>,
}

impl<'a> TaskBegun<'a> {
    pub(super) fn new(task: &'a TaskCreated, created_at: Time, granted: Option<&'a LimitsView>) -> TaskBegun<'a> {
        TaskBegun {
            task_id: &task.task_id,
            kind: task.task_kind,
            status: TaskStatus::Queued,
            summary: &task.summary,
            command: task.command.as_deref(),
            work_item_id: task.work_item_id.as_ref(),
            child_agent_id: task.child_agent_id.as_deref(),
            recovery: task.recovery.as_deref(),
            created_at,
            granted: granted.map(WithNulls),
        }
    }
}

#[derive(Serialize)]
pub(super) struct TaskCancelling<'a> {
    pub status: TaskStatus,
    pub evidence: &'a [String],
}

#[derive(Serialize)]
pub(super) struct TaskEnded<'a> {
    pub status: TaskStatus,
    pub ended_at: Time,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub output: TaskOutput,
    pub evidence: &'a [String],
    pub used: Option<UsedView>,
}

#[derive(Serialize)]
pub(super) struct WorkItemBegun<'a> {
    pub revision: u64,
    pub state: WorkItemState,
    pub current: bool,
    pub budget: Option<WithNulls<'a, LimitsView>>,
}

#[derive(Serialize)]
pub(super) struct WorkItemFocus {
    pub current: bool,
}

#[derive(Serialize)]
pub(super) struct WorkItemBudget<'a> {
    pub budget: Option<WithNulls<'a, LimitsView>>,
}

#[derive(Serialize)]
pub(super) struct WorkItemRecheck {
    pub recheck_at: Option<Time>,
}

#[derive(Serialize)]
pub(super) struct WorkItemUnblocked {
    pub revision: u64,
    pub blocked_by: (),
    pub recheck_at: (),
}

#[derive(Serialize)]
pub(super) struct WorkItemCompleted<'a> {
    pub revision: u64,
    pub state: WorkItemState,
    pub report: &'a str,
    pub blocked_by: (),
    pub recheck_at: (),
    pub current: bool,
}
