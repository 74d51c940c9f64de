//! Read rows: what lists and pages show, written beside the facts. A pure function of one fact, so that rows can be
//! thrown away and made again; never an input to a decision.

mod patch;

use abide_views::WithNulls;
use abide_views::budget::{LimitsView, UsedView};
use abide_views::task::TaskOutput;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::{Config, Identity};
use crate::fact::{BriefRecorded, Fact, TurnTerminal};
use crate::id::{AgentId, MessageId, Seq, WorkItemId};
use crate::limits::{self, LISTED_BODY_BYTES};
use crate::time::Time;
use crate::vocabulary::{
    ApprovalStatus, QueueStatus, Scope, Status, TaskStatus, TimerStatus, TriggerStatus, WaitStatus, WorkItemState,
    WorkspaceStatus,
};

/// Tells apart rows that another version of `rows_of` made: those are made again from the facts. It is a digest of the rows
/// that `rows_of` makes of a fixed set of facts, so it can't stay the same by oversight: a test compares it, and says the
/// new one. A change that no fact of that set shows needs one that does (`tests/kernel/row_fingerprint.rs`).
pub const FINGERPRINT: &str = "rows-73f1b2544c6b8af7";

/// One change of one row: merged into the row of that id, key by key.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub plane: &'static str,
    pub id: String,
    pub patch: Value,
}

fn row(plane: &'static str, id: impl ToString, patch: impl Serialize) -> Vec<Row> {
    // Patches are ours, and all have a JSON form.
    vec![Row { plane, id: id.to_string(), patch: serde_json::to_value(patch).unwrap_or_default() }]
}

/// A record as it is stored, with more beside it, which goes before what the record says.
#[derive(Serialize)]
struct With<'a, R: ?Sized, M> {
    #[serde(flatten)]
    record: &'a R,
    #[serde(flatten)]
    more: M,
}

fn with<R: Serialize + ?Sized, M: Serialize>(record: &R, more: M) -> With<'_, R, M> {
    With { record, more }
}

/// The rows that a fact changes.
#[must_use]
pub fn rows_of(seq: Seq, at: Time, fact: &Fact) -> Vec<Row> {
    match fact {
        Fact::MessageQueued(_)
        | Fact::MessageDequeued(_)
        | Fact::MessageProcessed(_)
        | Fact::MessageInterjected(_)
        | Fact::MessageParked(_)
        | Fact::MessageRequeued(_)
        | Fact::MessageAborted(_)
        | Fact::MessageDropped(_) => message_rows(seq, at, fact),
        Fact::TaskCreated(_)
        | Fact::TaskRunning(_)
        | Fact::TaskCancelling(_)
        | Fact::TaskCompleted(_)
        | Fact::TaskFailed(_)
        | Fact::TaskCancelled(_)
        | Fact::TaskInterrupted(_) => task_rows(at, fact),
        Fact::WorkItemCreated(_)
        | Fact::WorkItemPicked(_)
        | Fact::WorkItemUpdated(_)
        | Fact::WorkItemBlocked(_)
        | Fact::WorkItemUnblocked(_)
        | Fact::WorkItemCompleted(_)
        | Fact::RecheckMoved(_)
        | Fact::RecheckFired(_) => work_rows(fact),
        Fact::WaitingIntentCreated(wait) => {
            let scope = if wait.work_item_id.is_some() { Scope::WorkItem } else { Scope::Agent };
            let more =
                patch::WaitBegun { scope, status: WaitStatus::Active, trigger_count: 0, created_at: at, seq };
            row("waits", &wait.waiting_intent_id, with(wait, more))
        }
        Fact::WaitingIntentTriggered(wait) => {
            let patch = patch::WaitTriggered { status: WaitStatus::Triggered, trigger_count: wait.trigger_count };
            row("waits", &wait.waiting_intent_id, patch)
        }
        Fact::WaitingIntentCancelled(wait) => row("waits", &wait.waiting_intent_id, status(WaitStatus::Cancelled)),
        Fact::TimerCreated(timer) => {
            row("timers", &timer.timer_id, with(timer, patch::TimerBegun::new(&timer.schedule)))
        }
        Fact::TimerCheckStarted(timer) => {
            row("timers", &timer.timer_id, patch::TimerNext { next_fire_at: timer.next_fire_at })
        }
        Fact::TimerFired(timer) => {
            let (due, next_fire_at, fire_count) = (timer.due, timer.next_fire_at, timer.fire_count);
            row("timers", &timer.timer_id, patch::TimerFired { last_fired_at: due, next_fire_at, fire_count })
        }
        Fact::TimerMissed(timer) => {
            let (next_fire_at, missed_count) = (timer.next_fire_at, timer.missed_count);
            row("timers", &timer.timer_id, patch::TimerMissed { next_fire_at, missed_count })
        }
        Fact::TimerRescheduled(timer) => {
            row("timers", &timer.timer_id, patch::TimerNext { next_fire_at: Some(timer.to) })
        }
        Fact::TimerCompleted(timer) => row("timers", &timer.timer_id, patch::TimerEnd::new(TimerStatus::Completed)),
        Fact::TimerCancelled(timer) => row("timers", &timer.timer_id, patch::TimerEnd::new(TimerStatus::Cancelled)),
        Fact::TriggerCreated(trigger) => {
            let more = patch::TriggerBegun { status: TriggerStatus::Active, signed: trigger.signed };
            row("triggers", &trigger.trigger_id, with(trigger, more))
        }
        Fact::TriggerRevoked(trigger) => {
            let patch = patch::TriggerEnd {
                status: TriggerStatus::Revoked,
                delivery_count: trigger.delivery_count,
                last_delivered_at: trigger.last_delivered_at,
            };
            row("triggers", &trigger.trigger_id, patch)
        }
        Fact::ApprovalRequested(approval) => {
            row("approvals", &approval.approval_id, with(approval, status(ApprovalStatus::Pending)))
        }
        Fact::ApprovalDeadlineMoved(moved) => {
            row("approvals", &moved.approval_id, patch::ApprovalDeadline { deadline: moved.to })
        }
        Fact::ApprovalDecided(decided) => {
            let (status, decided_by) = (decided.status, &decided.decided_by);
            row("approvals", &decided.approval_id, patch::ApprovalDecided { status, decided_by, decided_at: at })
        }
        Fact::ApprovalUsed(used) => row("approvals", &used.approval_id, patch::ApprovalUsed { used_at: at }),
        Fact::WorkspaceAttached(workspace) => {
            row(WORKSPACE_PLANE, &workspace.root, patch::WorkspaceBound::new(workspace, at))
        }
        Fact::WorkspaceDetached(workspace) => {
            row(WORKSPACE_PLANE, &workspace.root, status(WorkspaceStatus::Detached))
        }
        Fact::WorktreeRemoving(worktree) => row(WORKSPACE_PLANE, &worktree.root, status(WorkspaceStatus::Removing)),
        Fact::WorktreeRemoved(worktree) => {
            let patch = patch::WorktreeGone { status: WorkspaceStatus::Removed, patch: &worktree.patch };
            row(WORKSPACE_PLANE, &worktree.root, patch)
        }
        Fact::WorktreeKept(worktree) => {
            let patch = patch::WorktreeKept { status: WorkspaceStatus::Attached, kept: &worktree.error };
            row(WORKSPACE_PLANE, &worktree.root, patch)
        }
        Fact::BriefRecorded(brief) => brief_rows(at, brief),
        Fact::AgentCreated(_)
        | Fact::AgentConfigured(_)
        | Fact::AgentForked(_)
        | Fact::AgentQuarantined(_)
        | Fact::AgentArchived(_)
        | Fact::PostureChanged(_)
        | Fact::TurnStarted(_)
        | Fact::TurnAborted(_) => agent_rows(at, fact),
        Fact::TurnTerminal(turn) => agent_rows(at, fact).into_iter().chain(turn_rows(turn)).collect(),
        Fact::ChildLeaving(_)
        | Fact::ChildReporting(_)
        | Fact::ControlAdmitted(_)
        | Fact::ControlApplied(_)
        | Fact::SchedulerDecided(_)
        | Fact::RuntimeErrorRecorded(_)
        | Fact::StaleOutcomeIgnored(_)
        | Fact::LimitsChanged(_)
        | Fact::ClockSetBack(_)
        | Fact::SelfTurnsPaced(_)
        | Fact::WorkTicksSpent(_)
        | Fact::WorkspaceUsed(_)
        | Fact::WorkspaceOccupied(_)
        | Fact::WorkspaceReleased(_)
        | Fact::DiskShort(_)
        | Fact::DiskHasRoom(_)
        | Fact::TurnsHeld(_)
        | Fact::TurnsReleased(_)
        | Fact::TurnBound(_)
        | Fact::RoundStarted(_)
        | Fact::ProviderRoundCompleted(_)
        | Fact::ProviderRoundFailed(_)
        | Fact::CutRoundCounted(_)
        | Fact::AssistantRoundRecorded(_)
        | Fact::ToolStarted(_)
        | Fact::ToolFinished(_)
        | Fact::ToolRoundCompleted(_)
        | Fact::TurnCheckpointed(_)
        | Fact::TurnBaselineOverBudget(_)
        | Fact::ContextCompacted(_)
        | Fact::TaskUpdateIgnored(_)
        | Fact::TaskResultQueued(_)
        | Fact::TaskResultDelivered(_)
        | Fact::WorkItemDelegated(_)
        | Fact::WorkItemDelegationCompleted(_)
        | Fact::TriggerRotated(_)
        // The state has the counts of an active trigger: a row per delivery would cost more than the delivery.
        | Fact::TriggerDelivered(_)
        | Fact::BudgetReached(_)
        | Fact::BudgetRenewed(_)
        | Fact::WakeHintSubmitted(_)
        | Fact::WakeHintCoalesced(_)
        | Fact::WakeHintIgnored(_) => Vec::new(),
    }
}

fn status<S>(status: S) -> patch::Status<S> {
    patch::Status { status }
}

/// The agent itself, as a list of agents shows one that sleeps: one row.
pub const AGENT_PLANE: &str = "agent";
/// The plane of the folders that an agent has or had, by their paths.
pub const WORKSPACE_PLANE: &str = "workspaces";
pub const AGENT_ROW: &str = "agent";

#[allow(clippy::wildcard_enum_match_arm, reason = "only called with facts about the agent as a whole")]
fn agent_rows(at: Time, fact: &Fact) -> Vec<Row> {
    match fact {
        Fact::AgentCreated(created) => {
            let status = if created.start { Status::AwakeIdle } else { Status::Stopped };
            let settings = settings(&created.config);
            let more = with(&settings, patch::AgentBegun { status, created_at: at });
            agent_row(with(&created.identity, more))
        }
        Fact::AgentConfigured(configured) => match configured.role {
            Some(role) => agent_row(with(&settings(&configured.config), patch::AgentRole { role })),
            None => agent_row(settings(&configured.config)),
        },
        Fact::AgentForked(forked) => agent_row(patch::AgentForked::new(&forked.agent_id, at)),
        Fact::AgentQuarantined(_) => agent_row(status(Status::Stopped)),
        Fact::AgentArchived(_) => agent_row(patch::AgentArchived { archived: true }),
        Fact::PostureChanged(changed) => agent_row(status(changed.next_status)),
        Fact::TurnStarted(_) => agent_row(status(Status::AwakeRunning)),
        Fact::TurnAborted(_) | Fact::TurnTerminal(_) => agent_row(status(Status::AwakeIdle)),
        _ => Vec::new(),
    }
}

fn agent_row(patch: impl Serialize) -> Vec<Row> {
    row(AGENT_PLANE, AGENT_ROW, patch)
}

/// The agent that a row of this plane is about, and its founder. None where the row is not readable as one.
#[must_use]
pub fn founder_of_row(row: &Value) -> Option<(AgentId, AgentId)> {
    fn field<T: DeserializeOwned + Default>(row: &Value, name: &str) -> T {
        row.get(name).and_then(|value| serde_json::from_value(value.clone()).ok()).unwrap_or_default()
    }
    let id = AgentId::new(row["id"].as_str()?).ok()?;
    let identity = Identity {
        parent: field(row, "parent"),
        supervisor: field(row, "supervisor"),
        makers: field(row, "makers"),
        ..Identity::named(id.clone())
    };
    Some((id, identity.founder()))
}

/// An agent without a model of its own may get another when it wakes: the list that shows it says which. The names of its
/// secrets are stored so that the removal of a secret finds its users.
fn settings(config: &Config) -> patch::AgentSettings<'_> {
    let secrets = config.credentials.secret_names();
    let secrets = (!secrets.is_empty()).then_some(secrets);
    patch::AgentSettings { model: &config.model, default_model: config.default_model, secrets }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "only called with facts about messages")]
fn message_rows(seq: Seq, at: Time, fact: &Fact) -> Vec<Row> {
    let status = |id: &crate::id::MessageId, status: QueueStatus| {
        row("messages", id, patch::MessageStatus { status, not_before: None })
    };
    match fact {
        Fact::MessageQueued(queued) => {
            let message = &*queued.message;
            let more = patch::MessageQueued { seq, at, status: QueueStatus::Queued };
            match message.excerpt(LISTED_BODY_BYTES) {
                None => row("messages", &message.message_id, with(message, more)),
                Some(excerpt) => {
                    let cut = patch::MessageCut { bytes: message.body_bytes(), truncated: true };
                    row("messages", &message.message_id, with(&with(&excerpt, more), cut))
                }
            }
        }
        Fact::MessageRequeued(message) => {
            let (status, not_before) = (QueueStatus::Queued, message.not_before);
            row("messages", &message.message_id, patch::MessageRequeued { status, not_before, outcome_of: () })
        }
        Fact::MessageDequeued(message) => status(&message.message_id, QueueStatus::Dequeued),
        Fact::MessageProcessed(message) => status(&message.message_id, QueueStatus::Processed),
        Fact::MessageInterjected(message) => {
            let status = QueueStatus::Interjected;
            let patch = patch::MessageJoined { status, not_before: (), outcome_of: &message.joined };
            row("messages", &message.message_id, patch)
        }
        Fact::MessageParked(message) => status(&message.message_id, QueueStatus::Parked),
        Fact::MessageAborted(message) => {
            let (status, given_up) = (QueueStatus::Aborted, message.given_up);
            let patch = patch::MessageAborted { status, not_before: (), given_up };
            let aborted = row("messages", &message.message_id, patch);
            aborted.into_iter().chain(ends_with(&message.answers, &message.message_id)).collect()
        }
        Fact::MessageDropped(message) => {
            let (status, dropped) = (QueueStatus::Dropped, message.evidence.as_slice());
            row("messages", &message.message_id, patch::MessageDropped { status, not_before: (), dropped })
        }
        _ => Vec::new(),
    }
}

/// Messages that end as `message` does.
fn ends_with<'a>(ended: impl IntoIterator<Item = &'a MessageId>, message: &'a MessageId) -> impl Iterator<Item = Row> {
    ended.into_iter().flat_map(|ended| row("messages", ended, patch::MessageOutcomeOf { outcome_of: message }))
}

/// The end of a turn is part of its message where no brief tells it: it failed, or others end with it. A turn whose
/// message returned to the queue is not the last one.
fn turn_rows(turn: &TurnTerminal) -> Vec<Row> {
    if turn.returned || (turn.error.is_none() && turn.settles.is_empty()) {
        return Vec::new();
    }
    let clip = |text| limits::clip(text, limits::LAST_ASSISTANT_BYTES);
    let summary = patch::TurnSummary {
        terminal_kind: turn.terminal_kind,
        error: turn.error.as_deref().map(clip),
        said: turn.last_assistant_message.as_deref().map(clip),
        cut: turn.cut,
    };
    let ended = row("messages", &turn.message_id, patch::MessageTurn { turn: summary });
    ended.into_iter().chain(ends_with(&turn.settles, &turn.message_id)).collect()
}

/// A brief is a row, and the message that it is about names it.
fn brief_rows(at: Time, brief: &BriefRecorded) -> Vec<Row> {
    let recorded = row("briefs", &brief.brief_id, with(brief, patch::BriefAt { at }));
    let about = brief.message_id.iter().flat_map(|message| {
        let briefs = [(brief.kind, &brief.brief_id)].into_iter().collect();
        row("messages", message, patch::MessageBriefs { briefs })
    });
    recorded.into_iter().chain(about).collect()
}

#[allow(clippy::wildcard_enum_match_arm, reason = "only called with facts about tasks")]
fn task_rows(at: Time, fact: &Fact) -> Vec<Row> {
    let ended = |status: TaskStatus, end: &crate::fact::TaskEnd| {
        let used = end.used.as_ref().map(UsedView::from);
        let patch = patch::TaskEnded {
            status,
            ended_at: at,
            exit_code: end.exit_code,
            signal: end.signal,
            output: TaskOutput { bytes: end.output_bytes, truncated: end.truncated },
            evidence: &end.evidence,
            used,
        };
        row("tasks", &end.task_id, patch)
    };
    match fact {
        Fact::TaskCreated(task) => {
            let granted = task.child.as_ref().and_then(|child| child.grant.view());
            row("tasks", &task.task_id, patch::TaskBegun::new(task, at, granted.as_ref()))
        }
        Fact::TaskRunning(task) => row("tasks", &task.task_id, with(task, self::status(TaskStatus::Running))),
        Fact::TaskCancelling(task) => {
            let patch = patch::TaskCancelling { status: TaskStatus::Cancelling, evidence: &task.evidence };
            row("tasks", &task.task_id, patch)
        }
        Fact::TaskCompleted(task) => ended(TaskStatus::Completed, &task.end),
        Fact::TaskFailed(task) => ended(TaskStatus::Failed, &task.end),
        Fact::TaskCancelled(task) => ended(TaskStatus::Cancelled, &task.end),
        Fact::TaskInterrupted(task) => ended(TaskStatus::Interrupted, &task.end),
        _ => Vec::new(),
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "only called with facts about work items")]
fn work_rows(fact: &Fact) -> Vec<Row> {
    match fact {
        Fact::WorkItemCreated(item) => {
            let budget: Option<LimitsView> = item.budget.view();
            let budget = budget.as_ref().map(WithNulls);
            let more = patch::WorkItemBegun { revision: 1, state: WorkItemState::Open, current: false, budget };
            row("work_items", &item.work_item_id, with(item, more))
        }
        Fact::WorkItemPicked(item) => {
            let current = |id: &WorkItemId, current| row("work_items", id, patch::WorkItemFocus { current });
            let left = item.previous.iter().flat_map(|previous| current(previous, false));
            left.chain(current(&item.work_item_id, true)).collect()
        }
        Fact::WorkItemUpdated(item) => match item.budget.map(|budget| budget.view()) {
            None => row("work_items", &item.work_item_id, item),
            Some(budget) => {
                let more = patch::WorkItemBudget { budget: budget.as_ref().map(WithNulls) };
                row("work_items", &item.work_item_id, with(item, more))
            }
        },
        Fact::WorkItemBlocked(item) => {
            // Without a recheck of its own, it takes away the one that was set before.
            let more = patch::WorkItemRecheck { recheck_at: item.recheck_at };
            row("work_items", &item.work_item_id, with(item, more))
        }
        Fact::WorkItemUnblocked(item) => {
            let patch = patch::WorkItemUnblocked { revision: item.revision, blocked_by: (), recheck_at: () };
            row("work_items", &item.work_item_id, patch)
        }
        Fact::WorkItemCompleted(item) => {
            let patch = patch::WorkItemCompleted {
                revision: item.revision,
                state: WorkItemState::Completed,
                report: &item.report,
                blocked_by: (),
                recheck_at: (),
                current: false,
            };
            row("work_items", &item.work_item_id, patch)
        }
        Fact::RecheckMoved(item) => {
            row("work_items", &item.work_item_id, patch::WorkItemRecheck { recheck_at: Some(item.to) })
        }
        Fact::RecheckFired(item) => row("work_items", &item.work_item_id, patch::WorkItemRecheck { recheck_at: None }),
        _ => Vec::new(),
    }
}
