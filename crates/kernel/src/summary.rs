//! `AgentSummary`: the one picture of an agent that every surface shows. Assembled on read from the state; nothing
//! ever reads it back to decide something.

use serde_json::{Value, json};

use crate::agent::AgentState;
use crate::agent::approval::Approval;
use crate::agent::budget::{Budget, Limits, Used};
use crate::agent::credentials::Credentials;
use crate::agent::hint::Trigger;
use crate::agent::task::Task;
use crate::agent::timer::Timer;
use crate::agent::waiting::Wait;
use crate::agent::work::WorkItem;
use crate::agent::workspace::Workspace;
use crate::explain::FolderHolder;
use crate::fact::{Schedule, Usage};
use crate::scheduler::closure::closure;
use crate::scheduler::posture::posture;
use crate::scheduler::{self};
use crate::time::Time;
use crate::vocabulary::{ApprovalStatus, Standing, Status, TaskKind, TimerStatus, WaitKind, WaitStatus};

/// How many records of one kind a summary shows; the planes have the rest.
const SHOWN: usize = 50;

#[must_use]
pub fn agent_summary(state: &AgentState, now: Time) -> Value {
    let closure = closure(state);
    let sleeping_until = state
        .waits
        .open()
        .values()
        .filter(|wait| wait.kind == WaitKind::Sleep)
        .filter_map(|wait| match &wait.resource {
            Some(crate::fact::Resource::Timer(id)) => state.timers.get(id)?.next_fire_at,
            _ => None,
        })
        .min();
    let children = state.tasks.open().values().filter(|task| task.kind == TaskKind::ChildAgent);
    json!({
        "identity": state.identity,
        "agent": {
            "status": state.status(),
            "pending": state.queue.pending(),
            "parked": state.queue.parked(),
            "turn_index": state.turn_index,
            "current_run_id": state.turn.as_ref().map(|turn| turn.exec_id.clone()),
            "current_work_item_id": state.work.current_id(),
            "current_turn_work_item_id": state.turn.as_ref().and_then(|turn| turn.work_item_id.clone()),
            "sleeping_until": sleeping_until,
        },
        "scheduling_posture": posture(state),
        "decision": scheduler::decide(state, now),
        "closure": closure,
        "continuation": state.last_continuation,
        "lifecycle": lifecycle(state),
        "model": {
            "name": state.config.model,
            "default": state.config.default_model,
            "answered_by": state.measure.model,
            "cut": state.last_terminal.as_ref().is_some_and(|last| last.cut),
            "fallback": state.config.models().skip(1).collect::<Vec<_>>(),
            "default_fallback": state.config.default_fallback,
            "in_use": state.model_in_use(now),
            "trouble": state.trouble(),
            "rests": state.rests,
            "usage": usage_shape(&state.usage),
            "budget": budget_shape(&state.config.budget),
            "wall_ms": state.spending.wall_ms,
            "today": used_shape(&state.spending.today),
            "today_until": state.spending.day_ends(),
            "children": used_shape(&state.spending.children),
            "granted": limits_shape(&state.granted()),
        },
        "execution": execution(state),
        "active_children": children.take(SHOWN).map(task_shape).collect::<Vec<_>>(),
        "active_waiting_intents": state.waits.open().values().take(SHOWN).map(wait_shape).collect::<Vec<_>>(),
        "active_timers": state.timers.active().values().take(SHOWN).map(timer_shape).collect::<Vec<_>>(),
        "active_external_triggers": state.triggers.values().take(SHOWN).map(trigger_shape).collect::<Vec<_>>(),
        "pending_approvals": state.approvals.pending().values().take(SHOWN).map(approval_shape).collect::<Vec<_>>(),
        "at_seq": state.seq,
        "owed_results": state.tasks.owed().values().take(SHOWN).map(task_shape).collect::<Vec<_>>(),
    })
}

/// Adds to a summary what no agent's records hold: what really confines its commands, what it has on the disk, who
/// holds the folder that it works in, and whether its model has a price in the settings.
pub fn add_world(
    summary: &mut Value,
    sandbox: Value,
    disk_bytes: Option<u64>,
    held_by: Option<&FolderHolder>,
    priced: bool,
) {
    if let Some(execution) = summary["execution"].as_object_mut() {
        execution.insert("sandbox".to_owned(), sandbox);
        execution.extend(disk_bytes.map(|bytes| ("disk_bytes".to_owned(), bytes.into())));
        execution.extend(held_by.map(|holder| ("held_by".to_owned(), holder.shape())));
    }
    if let Some(model) = summary["model"].as_object_mut() {
        model.insert("priced".to_owned(), priced.into());
    }
}

/// Where it works. What confines it there is for whoever runs its tools to say.
fn execution(state: &AgentState) -> Value {
    let active = state.workspaces.active();
    json!({
        "workspace": active.map(|workspace| &workspace.workspace).or(state.config.workspace.as_ref()),
        "cwd": active.map(|workspace| &workspace.root).or(state.config.workspace.as_ref()),
        "mode": active.map(|workspace| workspace.mode),
        "branch": active.and_then(|workspace| workspace.worktree.as_ref()).map(|worktree| &worktree.branch),
        "commands": state.tasks.commands(),
        "occupied": state.workspaces.occupied(), "network": state.config.network,
        "credentials": (!state.config.credentials.is_empty()).then(|| credentials_shape(&state.config.credentials)),
    })
}

fn credentials_shape(credentials: &Credentials) -> Value {
    let Credentials { env, secrets, git_credentials, ssh_agent, known_hosts, for_children } = credentials;
    json!({
        "env": env, "secrets": secrets, "git_credentials": git_credentials, "ssh_agent": ssh_agent,
        "known_hosts": known_hosts, "for_children": for_children,
    })
}

/// Whether an operator's message would be taken, and what to do where it would not, or would only be kept.
fn lifecycle(state: &AgentState) -> Value {
    let supervisor = state.identity.supervisor.as_ref();
    let hint = match (supervisor, state.status()) {
        (Some(supervisor), _) => Some(format!("it works for {0}: send it to {0}", supervisor.agent_id)),
        (None, Status::Stopped) => Some("messages are kept; start the agent to have them worked on".to_owned()),
        (None, Status::Booting | Status::AwakeIdle | Status::AwakeRunning | Status::Asleep) => None,
    };
    json!({ "accepts_messages": supervisor.is_none() && !state.archived, "hint": hint })
}

#[allow(clippy::cast_precision_loss, reason = "for display only; sums are kept in millionths")]
fn usd(micro: u64) -> f64 {
    micro as f64 / 1e6
}

fn usage_shape(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens, "cost_usd": usd(usage.cost_micro_usd),
    })
}

pub(crate) fn used_shape(used: &Used) -> Value {
    json!({ "turns": used.turns, "wall_ms": used.wall_ms, "usage": usage_shape(&used.usage) })
}

pub(crate) fn limits_shape(limits: &Limits) -> Value {
    json!({
        "max_turns": limits.max_turns, "max_tokens": limits.max_tokens,
        "max_usd": limits.max_micro_usd.map(usd), "max_wall_ms": limits.max_wall_ms,
    })
}

fn budget_shape(budget: &Budget) -> Value {
    let mut shape = limits_shape(&budget.in_all());
    shape["daily"] = limits_shape(&budget.daily);
    shape
}

#[must_use]
pub fn wait_shape(wait: &Wait) -> Value {
    json!({
        "waiting_intent_id": wait.waiting_intent_id, "scope": wait.scope(), "kind": wait.kind,
        "work_item_id": wait.work_item_id, "source": wait.source,
        "resource": wait.resource.as_ref().map(crate::fact::Resource::as_str),
        "delivery_mode": wait.delivery_mode, "status": WaitStatus::Active, "trigger_count": wait.trigger_count,
        "reason": wait.reason, "answers": wait.answers, "created_at": wait.created_at, "seq": wait.seq,
    })
}

#[must_use]
pub fn timer_shape(timer: &Timer) -> Value {
    let mut shape = json!({
        "timer_id": timer.timer_id, "summary": timer.summary, "next_fire_at": timer.next_fire_at,
        "status": TimerStatus::Active, "fire_count": timer.fire_count, "missed_count": timer.missed_count,
        "last_fired_at": timer.last_fired_at, "catch_up": timer.catch_up, "check": timer.check,
        "checking": timer.checking.map(|checking| checking.due), "made_by": timer.made_by,
    });
    if let (Value::Object(shape), Value::Object(schedule)) = (&mut shape, schedule_shape(&timer.schedule)) {
        shape.extend(schedule);
    }
    shape
}

/// A timer with what is to come, for whoever asks about this one.
#[must_use]
pub fn timer_ahead(timer: &Timer) -> Value {
    let mut shape = timer_shape(timer);
    shape["upcoming"] = json!(timer.schedule.upcoming(timer.next_fire_at, UPCOMING));
    shape
}

/// How many occurrences ahead are shown.
pub(crate) const UPCOMING: usize = 5;

/// When a timer fires, as people gave it.
pub(crate) fn schedule_shape(schedule: &Schedule) -> Value {
    match schedule {
        Schedule::Once { .. } => json!({ "every_ms": null }),
        Schedule::Every { every_ms, .. } => json!({ "every_ms": every_ms }),
        Schedule::Cron { cron, time_zone } => json!({ "every_ms": null, "cron": cron, "time_zone": time_zone }),
    }
}

#[must_use]
pub fn approval_shape(approval: &Approval) -> Value {
    json!({
        "approval_id": approval.approval_id, "tool": approval.tool, "summary": approval.summary,
        "status": ApprovalStatus::Pending, "deadline": approval.deadline, "default": approval.default,
        "decided_by": null, "decided_at": null,
    })
}

#[must_use]
pub fn trigger_shape(trigger: &Trigger) -> Value {
    json!({
        "trigger_id": trigger.trigger_id, "name": trigger.name, "delivery_mode": trigger.delivery_mode,
        "work_item_id": trigger.work_item_id, "signed": trigger.signed, "status": "active", "delivery_count": trigger.delivery_count,
        "last_delivered_at": trigger.last_delivered_at,
    })
}

#[must_use]
pub fn task_shape(task: &Task) -> Value {
    let end = task.end.as_ref();
    json!({
        "granted": (!task.granted.is_none()).then(|| limits_shape(&task.granted)),
        "used": end.and_then(|end| end.used.as_ref()).map(used_shape),
        "task_id": task.task_id, "kind": task.kind, "status": task.status, "summary": task.summary,
        "command": task.command, "work_item_id": task.work_item_id, "child_agent_id": task.child_agent_id,
        "created_at": task.created_at, "ended_at": task.ended_at,
        "exit_code": end.and_then(|end| end.exit_code), "signal": end.and_then(|end| end.signal),
        "output": { "bytes": end.map_or(0, |end| end.output_bytes), "truncated": end.is_some_and(|end| end.truncated) },
        "recovery": task.recovery, "evidence": end.map(|end| end.evidence.clone()).unwrap_or_default(),
    })
}

#[must_use]
pub fn workspace_shape(state: &AgentState, workspace: &Workspace) -> Value {
    let active = state.workspaces.active().is_some_and(|active| active.root == workspace.root);
    json!({
        "workspace": workspace.workspace, "root": workspace.root, "mode": workspace.mode,
        "branch": workspace.worktree.as_ref().map(|worktree| &worktree.branch),
        "base_commit": workspace.worktree.as_ref().map(|worktree| &worktree.base_commit),
        "status": if workspace.removing { "removing" } else { "attached" },
        "active": active, "occupied": state.workspaces.occupied() == Some(workspace.root.as_str()),
        "kept": workspace.kept, "note": workspace.note, "attached_at": workspace.attached_at,
    })
}

#[must_use]
pub fn work_item_shape(state: &AgentState, item: &WorkItem) -> Value {
    json!({
        "work_item_id": item.work_item_id, "revision": item.revision, "objective": item.objective,
        "state": item.state, "plan_status": item.plan_status, "plan": item.plan, "todo": item.todo,
        "blocked_by": item.blocked_by, "recheck_at": item.recheck_at,
        "readiness": state.work.readiness(&item.work_item_id).unwrap_or(Standing::Completed),
        "current": state.work.current_id() == Some(&item.work_item_id), "report": item.report,
        "budget": (!item.budget.is_none()).then(|| limits_shape(&item.budget)), "used": used_shape(&item.used),
    })
}
