//! Read rows: what lists and pages show, written beside the facts. A pure function of one fact, so that rows can be
//! thrown away and made again; never an input to a decision.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::agent::budget::Limits;
use crate::agent::config::{Config, Identity};
use crate::fact::Fact;
use crate::id::{AgentId, Seq, WorkItemId};
use crate::limits::LISTED_BODY_BYTES;
use crate::summary::{limits_shape, schedule_shape, used_shape};
use crate::time::Time;
use crate::vocabulary::{
    AgentKind, ApprovalStatus, Ownership, QueueStatus, Status, TaskStatus, TimerStatus, Visibility, WaitStatus,
    WorkItemState,
};

/// Tells apart rows that another version of `rows_of` made: those are made again from the facts. It is a digest of the rows
/// that `rows_of` makes of a fixed set of facts, so it can't stay the same by oversight: a test compares it, and says the
/// new one. A change that no fact of that set shows needs one that does (`tests/kernel/row_fingerprint.rs`).
pub const FINGERPRINT: &str = "rows-67d8940088e7b841";

/// One change of one row: merged into the row of that id, key by key.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub plane: &'static str,
    pub id: String,
    pub patch: Value,
}

fn row(plane: &'static str, id: impl ToString, patch: Value) -> Vec<Row> {
    vec![Row { plane, id: id.to_string(), patch }]
}

/// A record as it is stored, with more beside it.
fn with(record: &impl serde::Serialize, more: Value) -> Value {
    let mut value = serde_json::to_value(record).unwrap_or_default();
    if let (Some(fields), Value::Object(more)) = (value.as_object_mut(), more) {
        fields.extend(more);
    }
    value
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
            let scope = if wait.work_item_id.is_some() { "work_item" } else { "agent" };
            let more = json!({
                "scope": scope, "status": WaitStatus::Active, "trigger_count": 0, "created_at": at, "seq": seq,
            });
            row("waits", &wait.waiting_intent_id, with(wait, more))
        }
        Fact::WaitingIntentTriggered(wait) => {
            let patch = json!({ "status": WaitStatus::Triggered, "trigger_count": wait.trigger_count });
            row("waits", &wait.waiting_intent_id, patch)
        }
        Fact::WaitingIntentCancelled(wait) => {
            row("waits", &wait.waiting_intent_id, json!({ "status": WaitStatus::Cancelled }))
        }
        Fact::TimerCreated(timer) => {
            let mut more = schedule_shape(&timer.schedule);
            more["status"] = json!(TimerStatus::Active);
            more["fire_count"] = json!(0);
            more["missed_count"] = json!(0);
            // Lists say when it fires.
            more["after_ms"] = Value::Null;
            row("timers", &timer.timer_id, with(timer, more))
        }
        Fact::TimerCheckStarted(timer) => row("timers", &timer.timer_id, json!({ "next_fire_at": timer.next_fire_at })),
        Fact::TimerFired(timer) => {
            let (due, next, count) = (timer.due, timer.next_fire_at, timer.fire_count);
            let patch = json!({ "last_fired_at": due, "next_fire_at": next, "fire_count": count });
            row("timers", &timer.timer_id, patch)
        }
        Fact::TimerMissed(timer) => {
            let patch = json!({ "next_fire_at": timer.next_fire_at, "missed_count": timer.missed_count });
            row("timers", &timer.timer_id, patch)
        }
        Fact::TimerRescheduled(timer) => row("timers", &timer.timer_id, json!({ "next_fire_at": timer.to })),
        Fact::TimerCompleted(timer) => row("timers", &timer.timer_id, timer_end(TimerStatus::Completed)),
        Fact::TimerCancelled(timer) => row("timers", &timer.timer_id, timer_end(TimerStatus::Cancelled)),
        Fact::TriggerCreated(trigger) => {
            row("triggers", &trigger.trigger_id, with(trigger, json!({ "status": "active", "signed": trigger.signed })))
        }
        Fact::TriggerRevoked(trigger) => {
            let (count, last) = (trigger.delivery_count, trigger.last_delivered_at);
            let patch = json!({ "status": "revoked", "delivery_count": count, "last_delivered_at": last });
            row("triggers", &trigger.trigger_id, patch)
        }
        Fact::ApprovalRequested(approval) => {
            let more = json!({ "status": ApprovalStatus::Pending });
            row("approvals", &approval.approval_id, with(approval, more))
        }
        Fact::ApprovalDeadlineMoved(moved) => row("approvals", &moved.approval_id, json!({ "deadline": moved.to })),
        Fact::ApprovalDecided(decided) => {
            let patch = json!({ "status": decided.status, "decided_by": decided.decided_by, "decided_at": at });
            row("approvals", &decided.approval_id, patch)
        }
        Fact::ApprovalUsed(used) => row("approvals", &used.approval_id, json!({ "used_at": at })),
        Fact::WorkspaceAttached(workspace) => {
            let worktree = workspace.worktree.as_ref();
            let patch = json!({
                "workspace": workspace.workspace, "root": workspace.root, "mode": workspace.mode,
                "branch": worktree.map(|worktree| &worktree.branch), "note": workspace.note,
                "base_commit": worktree.map(|worktree| &worktree.base_commit),
                "status": "attached", "attached_at": at,
            });
            row(WORKSPACE_PLANE, &workspace.root, patch)
        }
        Fact::WorkspaceDetached(workspace) => row(WORKSPACE_PLANE, &workspace.root, json!({ "status": "detached" })),
        Fact::WorktreeRemoving(worktree) => row(WORKSPACE_PLANE, &worktree.root, json!({ "status": "removing" })),
        Fact::WorktreeRemoved(worktree) => {
            row(WORKSPACE_PLANE, &worktree.root, json!({ "status": "removed", "patch": worktree.patch }))
        }
        Fact::WorktreeKept(worktree) => {
            row(WORKSPACE_PLANE, &worktree.root, json!({ "status": "attached", "kept": worktree.error }))
        }
        Fact::BriefRecorded(brief) => row("briefs", &brief.brief_id, with(brief, json!({ "at": at }))),
        Fact::AgentCreated(_)
        | Fact::AgentConfigured(_)
        | Fact::AgentForked(_)
        | Fact::AgentQuarantined(_)
        | Fact::AgentArchived(_)
        | Fact::PostureChanged(_)
        | Fact::TurnStarted(_)
        | Fact::TurnAborted(_)
        | Fact::TurnTerminal(_) => agent_rows(at, fact),
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
        // What an active trigger counts is in its state: a row per delivery would cost more than the delivery.
        | Fact::TriggerDelivered(_)
        | Fact::BudgetReached(_)
        | Fact::BudgetRenewed(_)
        | Fact::WakeHintSubmitted(_)
        | Fact::WakeHintCoalesced(_)
        | Fact::WakeHintIgnored(_) => Vec::new(),
    }
}

/// As people see them; nothing where nothing is limited.
fn limits(limits: &Limits) -> Option<Value> {
    (!limits.is_none()).then(|| limits_shape(limits))
}

fn timer_end(status: TimerStatus) -> Value {
    json!({ "status": status, "next_fire_at": null })
}

/// The agent itself, as a list of agents shows one that sleeps: one row.
pub const AGENT_PLANE: &str = "agent";
/// The plane of the folders that an agent has or had, by their paths.
pub const WORKSPACE_PLANE: &str = "workspaces";
pub const AGENT_ROW: &str = "agent";

#[allow(clippy::wildcard_enum_match_arm, reason = "only called with facts about the agent as a whole")]
fn agent_rows(at: Time, fact: &Fact) -> Vec<Row> {
    let patch = match fact {
        Fact::AgentCreated(created) => {
            let status = if created.start { Status::AwakeIdle } else { Status::Stopped };
            with(&created.identity, with(&settings(&created.config), json!({ "status": status, "created_at": at })))
        }
        Fact::AgentConfigured(configured) => match configured.role {
            Some(role) => with(&settings(&configured.config), json!({ "role": role })),
            None => settings(&configured.config),
        },
        Fact::AgentForked(forked) => json!({
            "id": forked.agent_id, "status": Status::Stopped, "created_at": at, "kind": AgentKind::Named,
            "visibility": Visibility::Public, "ownership": Ownership::SelfOwned, "supervisor": null, "secrets": null,
        }),
        Fact::AgentQuarantined(_) => json!({ "status": Status::Stopped }),
        Fact::AgentArchived(_) => json!({ "archived": true }),
        Fact::PostureChanged(changed) => json!({ "status": changed.next_status }),
        Fact::TurnStarted(_) => json!({ "status": Status::AwakeRunning }),
        Fact::TurnAborted(_) | Fact::TurnTerminal(_) => json!({ "status": Status::AwakeIdle }),
        _ => return Vec::new(),
    };
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

/// One that has no model of its own may find another when it wakes: whoever lists it says which it would be. The secrets
/// that it names are there for whoever removes one.
fn settings(config: &Config) -> Value {
    let secrets = config.credentials.secret_names();
    json!({ "model": config.model, "default_model": config.default_model, "secrets": (!secrets.is_empty()).then_some(secrets) })
}

#[allow(clippy::wildcard_enum_match_arm, reason = "only called with facts about messages")]
fn message_rows(seq: Seq, at: Time, fact: &Fact) -> Vec<Row> {
    let status = |id: &crate::id::MessageId, status: QueueStatus| {
        row("messages", id, json!({ "status": status, "not_before": null }))
    };
    match fact {
        Fact::MessageQueued(queued) => {
            let message = &*queued.message;
            let more = json!({ "seq": seq, "at": at, "status": QueueStatus::Queued });
            let patch = match message.excerpt(LISTED_BODY_BYTES) {
                None => with(message, more),
                Some(excerpt) => {
                    with(&with(&excerpt, more), json!({ "bytes": message.body_bytes(), "truncated": true }))
                }
            };
            row("messages", &message.message_id, patch)
        }
        Fact::MessageRequeued(message) => {
            let patch = json!({ "status": QueueStatus::Queued, "not_before": message.not_before });
            row("messages", &message.message_id, patch)
        }
        Fact::MessageDequeued(message) => status(&message.message_id, QueueStatus::Dequeued),
        Fact::MessageProcessed(message) => status(&message.message_id, QueueStatus::Processed),
        Fact::MessageInterjected(message) => status(&message.message_id, QueueStatus::Interjected),
        Fact::MessageParked(message) => status(&message.message_id, QueueStatus::Parked),
        Fact::MessageAborted(message) => status(&message.message_id, QueueStatus::Aborted),
        Fact::MessageDropped(message) => status(&message.message_id, QueueStatus::Dropped),
        _ => Vec::new(),
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "only called with facts about tasks")]
fn task_rows(at: Time, fact: &Fact) -> Vec<Row> {
    let ended = |status: TaskStatus, end: &crate::fact::TaskEnd| {
        let output = json!({ "bytes": end.output_bytes, "truncated": end.truncated });
        let patch = json!({
            "status": status, "ended_at": at, "exit_code": end.exit_code, "signal": end.signal,
            "output": output, "evidence": end.evidence, "used": end.used.as_ref().map(used_shape),
        });
        row("tasks", &end.task_id, patch)
    };
    match fact {
        Fact::TaskCreated(task) => {
            let patch = json!({
                "task_id": task.task_id, "kind": task.task_kind, "status": TaskStatus::Queued,
                "summary": task.summary, "command": task.command, "work_item_id": task.work_item_id,
                "child_agent_id": task.child_agent_id, "recovery": task.recovery, "created_at": at,
                "granted": task.child.as_ref().and_then(|child| limits(&child.grant)),
            });
            row("tasks", &task.task_id, patch)
        }
        Fact::TaskRunning(task) => row("tasks", &task.task_id, with(task, json!({ "status": TaskStatus::Running }))),
        Fact::TaskCancelling(task) => {
            row("tasks", &task.task_id, json!({ "status": TaskStatus::Cancelling, "evidence": task.evidence }))
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
            let budget = limits(&item.budget);
            let more = json!({ "revision": 1, "state": WorkItemState::Open, "current": false, "budget": budget });
            row("work_items", &item.work_item_id, with(item, more))
        }
        Fact::WorkItemPicked(item) => {
            let current = |id: &WorkItemId, current| row("work_items", id, json!({ "current": current }));
            let left = item.previous.iter().flat_map(|previous| current(previous, false));
            left.chain(current(&item.work_item_id, true)).collect()
        }
        Fact::WorkItemUpdated(item) => {
            let more = item.budget.map_or_else(|| json!({}), |budget| json!({ "budget": limits(&budget) }));
            row("work_items", &item.work_item_id, with(item, more))
        }
        Fact::WorkItemBlocked(item) => {
            // Without a recheck of its own, it takes away the one that was set before.
            let patch = with(item, json!({ "recheck_at": item.recheck_at }));
            row("work_items", &item.work_item_id, patch)
        }
        Fact::WorkItemUnblocked(item) => {
            let patch = json!({ "revision": item.revision, "blocked_by": null, "recheck_at": null });
            row("work_items", &item.work_item_id, patch)
        }
        Fact::WorkItemCompleted(item) => {
            let patch = json!({
                "revision": item.revision, "state": WorkItemState::Completed, "report": item.report,
                "blocked_by": null, "recheck_at": null, "current": false,
            });
            row("work_items", &item.work_item_id, patch)
        }
        Fact::RecheckMoved(item) => row("work_items", &item.work_item_id, json!({ "recheck_at": item.to })),
        Fact::RecheckFired(item) => row("work_items", &item.work_item_id, json!({ "recheck_at": null })),
        _ => Vec::new(),
    }
}
