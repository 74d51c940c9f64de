//! Acts: changes to the agent's own records, by its model or by a person. Each checks before it records.

use abide_views::task::TaskView;
use serde::Serialize;

use crate::act_result::{
    ApprovalAnswered, ApprovalAsked, OperatorNotified, ResultDelivered, TaskResult, TaskStop, WaitEnded,
    WaitRegistered, told,
};
use crate::fact::{ApprovalDecided, ApprovalRequested, TaskCancelling};
use crate::fact::{Resource, Schedule, TimerCreated, WaitingIntentCreated};
use crate::id::{ApprovalId, ExecId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use crate::limits;
use crate::open_json::ToolOutput;
use crate::refusal::{ErrorCode, Refusal};
use crate::rules::transaction::Transaction;
use crate::state::AgentState;
use crate::state::timer::Timer;
use crate::time::Time;
use crate::tool::RecordCall;
use crate::vocabulary::{
    ApprovalDefault, ApprovalStatus, BriefKind, CatchUp, DeliveryMode, Maker, QueueStatus, TaskStatus, WaitKind,
    WaitSource,
};

use super::settle::tell_agent;
use super::task::settle_result;
use super::turn::record_brief;
use super::waits::{cancel_wait, naming};
use super::{children, due, task, timers, trigger, work, workspace};

/// Who asks for it.
#[derive(Debug, Clone)]
pub(super) enum Actor {
    Model(ExecId),
    Person(String),
}

impl Actor {
    pub(super) fn name(&self) -> &str {
        match self {
            Actor::Model(exec) => exec.as_str(),
            Actor::Person(name) => name,
        }
    }

    pub(super) fn maker(&self) -> Maker {
        match self {
            Actor::Model(_) => Maker::Model,
            Actor::Person(_) => Maker::Person,
        }
    }

    fn source(&self) -> WaitSource {
        match self {
            Actor::Model(_) => WaitSource::Model,
            Actor::Person(_) => WaitSource::Operator,
        }
    }
}

#[derive(Debug)]
pub(super) struct Done {
    pub result: ToolOutput,
    pub ends_turn: bool,
}

pub(super) type Acted = Result<Done, Refusal>;

pub(super) fn answer_with(result: &impl Serialize) -> Acted {
    Ok(Done { result: told(result), ends_turn: false })
}

pub(super) fn carry_out_act(tx: &mut Transaction<'_>, actor: &Actor, act: RecordCall) -> Acted {
    match act {
        RecordCall::WaitFor { wake, resource, after_ms, work_item_id, reason } => {
            wait_for(tx, actor, wake, resource, after_ms, work_item_id, reason)
        }
        RecordCall::CancelWait { waiting_intent_id } => end_wait(tx, actor, &waiting_intent_id),
        RecordCall::Sleep { reason, duration_ms } => sleep(tx, actor, reason, duration_ms),
        RecordCall::CreateTimer { summary, when, catch_up, work_item_id, check } => {
            timers::create(tx, actor, timers::Made { summary, when, catch_up, work_item_id, check })
        }
        RecordCall::CancelTimer { timer_id } => timers::cancel(tx, actor, &timer_id),
        RecordCall::CreateTrigger { name, delivery_mode, work_item_id, signed, address } => {
            trigger::create(tx, name, delivery_mode, work_item_id, signed, address)
        }
        RecordCall::RotateTrigger { trigger_id } => trigger::rotate(tx, actor, &trigger_id),
        RecordCall::RevokeTrigger { trigger_id } => trigger::revoke(tx, actor, &trigger_id),
        RecordCall::CreateWorkItem { objective, plan, plan_status, todo, budget } => {
            let made = work::Made { objective, plan, plan_status, todo, budget };
            work::create(tx, actor, made)
        }
        RecordCall::PickWorkItem { work_item_id } => work::pick_item(tx, actor, &work_item_id),
        RecordCall::UpdateWorkItem { work_item_id, change } => work::update(tx, actor, &work_item_id, *change),
        RecordCall::CompleteWorkItem { work_item_id, report } => work::complete(tx, &work_item_id, report),
        RecordCall::RequestApproval { summary, tool, deadline_ms, default } => {
            let asked = ApprovalRequest { summary, tool, deadline_ms, default, call: None };
            request_approval(tx, actor, asked).map(|asked| Done { result: told(&asked), ends_turn: true })
        }
        RecordCall::DecideApproval { approval_id, grant } => decide_approval(tx, actor, &approval_id, grant),
        RecordCall::NotifyOperator { text } => {
            let text = require_text(text, limits::TEXT_BYTES, "text")?;
            record_brief(tx, BriefKind::Result, text, None);
            answer_with(&OperatorNotified {
                brief_id: tx.state.planes.briefs.back().map(|brief| brief.brief_id.clone()),
            })
        }
        RecordCall::SpawnChild { message, workspace_mode, model, instructions, work_item_id } => {
            children::spawn(tx, actor, children::Wanted { message, workspace_mode, model, instructions, work_item_id })
        }
        RecordCall::StopTask { task_id } => stop_task(tx, actor, &task_id),
        RecordCall::ListTasks => answer_with(&task::list_tasks(tx)),
        RecordCall::ShowTask { task_id } => task::show_task(tx, &task_id),
        RecordCall::ListWorkItems { filter } => answer_with(&work::list_items(tx, filter)),
        RecordCall::ShowWorkItem { work_item_id } => work::show_item(tx, &work_item_id),
        RecordCall::RunCommand { command, workdir, tty, accepts_input } => {
            task::run_command(tx, actor, command, workdir, tty, accepts_input)
        }
        RecordCall::DetachWorkspace { folder, discard } => workspace::detach(tx, actor, &folder, discard),
    }
}

/// A required text within its bound.
pub(super) fn require_text(text: String, max: usize, field: &str) -> Result<String, Refusal> {
    if text.trim().is_empty() {
        return Err(
            Refusal::new(ErrorCode::Empty, format!("{field} is empty")).with_hint(format!("say something in {field}"))
        );
    }
    if text.len() > max {
        let size = text.len();
        return Err(Refusal::new(ErrorCode::TooLong, format!("{field} has {size} bytes"))
            .with_hint(format!("keep it under {max}")));
    }
    Ok(text)
}

pub(super) fn require_room(open: usize, what: &str) -> Result<(), Refusal> {
    if open >= limits::OPEN_RECORDS_MAX {
        return Err(
            Refusal::new(ErrorCode::TooMany, format!("{open} {what} are open")).with_hint("end some of them first")
        );
    }
    Ok(())
}

fn wait_for(
    tx: &mut Transaction<'_>,
    actor: &Actor,
    kind: WaitKind,
    resource: Option<String>,
    after_ms: Option<u64>,
    work_item_id: Option<WorkItemId>,
    reason: String,
) -> Acted {
    let reason = require_text(reason, limits::LINE_BYTES, "reason")?;
    let work_item_id = work::anchor(tx, work_item_id)?;
    require_room(tx.state.planes.waits.open().len(), "waits")?;
    if kind == WaitKind::Task
        && let Some(delivered) = deliver_owed(tx, actor, resource.as_deref())
    {
        return answer_with(&delivered);
    }
    if let Some(ms) = after_ms {
        ahead(tx, ms)?;
        if kind == WaitKind::Timer {
            return wait_out(tx, actor, kind, ms, work_item_id, reason);
        }
    }
    let resource = what_could_end(tx, kind, resource)?;
    let waiting_intent_id = register(tx, actor, kind, work_item_id, resource, reason);
    Ok(Done { result: told(&WaitRegistered { waiting_intent_id, timer_id: None }), ends_turn: true })
}

fn register(
    tx: &mut Transaction<'_>,
    actor: &Actor,
    kind: WaitKind,
    work_item_id: Option<WorkItemId>,
    resource: Option<Resource>,
    reason: String,
) -> WaitId {
    let waiting_intent_id = tx.fresh.wait();
    let answers = match actor {
        Actor::Model(_) => tx.state.turns.current.as_ref().and_then(|turn| turn.answers().cloned()),
        Actor::Person(_) => None,
    };
    let delivery_mode = match &resource {
        Some(Resource::Trigger(id)) => tx.state.planes.triggers.get(id).map(|trigger| trigger.delivery_mode),
        Some(Resource::Task(_) | Resource::Correlation(_) | Resource::Timer(_) | Resource::Approval(_)) | None => None,
    };
    tx.emit(WaitingIntentCreated {
        waiting_intent_id: waiting_intent_id.clone(),
        kind,
        work_item_id,
        source: actor.source(),
        resource,
        delivery_mode: delivery_mode.unwrap_or(DeliveryMode::EnqueueMessage),
        reason,
        answers,
    });
    waiting_intent_id
}

/// A wait with a timer of its own, which ends with it.
fn wait_out(
    tx: &mut Transaction<'_>,
    actor: &Actor,
    kind: WaitKind,
    ms: u64,
    work_item_id: Option<WorkItemId>,
    reason: String,
) -> Acted {
    let at = ahead(tx, ms)?;
    let timer_id = tx.fresh.timer();
    let resource = Some(Resource::Timer(timer_id.clone()));
    let wait = register(tx, actor, kind, work_item_id.clone(), resource, reason.clone());
    tx.emit(TimerCreated {
        timer_id: timer_id.clone(),
        summary: reason,
        schedule: Schedule::Once { at },
        next_fire_at: at,
        catch_up: CatchUp::Latest,
        waiting_intent_id: Some(wait.clone()),
        work_item_id,
        check: None,
        made_by: Some(actor.maker()),
        after_ms: Some(ms),
    });
    let registered = WaitRegistered { waiting_intent_id: wait, timer_id: Some(timer_id) };
    Ok(Done { result: told(&registered), ends_turn: true })
}

pub(super) fn ahead(tx: &Transaction<'_>, ms: u64) -> Result<Time, Refusal> {
    if ms > limits::TIMER_AHEAD_MAX_MS {
        return Err(Refusal::new(ErrorCode::TooFarAhead, "that is more than a hundred years ahead"));
    }
    Ok(tx.now.plus_ms(ms))
}

/// A wait on a result that is owed already gets it now, and the turn goes on.
fn deliver_owed(tx: &mut Transaction<'_>, actor: &Actor, resource: Option<&str>) -> Option<ResultDelivered> {
    let Actor::Model(exec) = actor else { return None };
    let owed = tx.state.planes.tasks.owed();
    let presenting = |id: &TaskId| tx.state.turns.current.as_ref().is_some_and(|turn| turn.presents.contains(id));
    let task = match resource {
        Some(id) => owed.get(&TaskId::new(id)),
        None => owed.values().find(|task| !presenting(&task.task_id)),
    }?;
    let task_id = task.task_id.clone();
    let delivered = TaskResult {
        task_id: task_id.clone(),
        status: task.status,
        summary: task.summary.clone(),
        exit_code: task.end.as_ref().and_then(|end| end.exit_code),
        output_tail: task.end.as_ref().map(|end| end.output_tail.clone()),
    };
    settle_result(tx, &task_id, exec, "wait_for_found_it_owed");
    Some(ResultDelivered { delivered })
}

/// The resource that the wait names, checked: a wait that nothing could ever end is refused.
fn what_could_end(tx: &Transaction<'_>, kind: WaitKind, resource: Option<String>) -> Result<Option<Resource>, Refusal> {
    let never = |message: String, hint: &str| Err(Refusal::new(ErrorCode::NothingWouldEndIt, message).with_hint(hint));
    match (kind, resource) {
        (WaitKind::Task, Some(id)) => {
            let task = TaskId::new(&id);
            if tx.state.planes.tasks.open().contains_key(&task) {
                return Ok(Some(Resource::Task(task)));
            }
            never(
                format!("{id} is not a running task"),
                "TaskList shows the tasks; a result that was read does not come again",
            )
        }
        (WaitKind::Task, None) if tx.state.planes.tasks.open().is_empty() => {
            never("no task is running".to_owned(), "start one first, or wait for something else")
        }
        (WaitKind::Timer, Some(id)) => {
            let timer = TimerId::new(&id);
            if tx.state.planes.timers.get(&timer).is_some_and(|timer| will_tick(tx.state, timer)) {
                return Ok(Some(Resource::Timer(timer)));
            }
            never(format!("{id} is not a timer that will fire"), "create a timer first, or give after_ms")
        }
        (WaitKind::Timer, None)
            if !tx.state.planes.timers.active().values().any(|timer| will_tick(tx.state, timer)) =>
        {
            never("no timer will fire".to_owned(), "give after_ms, or create a timer first")
        }
        (WaitKind::External, Some(id)) => {
            let trigger = TriggerId::new(&id);
            if tx.state.planes.triggers.contains_key(&trigger) {
                return Ok(Some(Resource::Trigger(trigger)));
            }
            if id.starts_with("trig_") {
                return never(format!("{id} is not a trigger of this agent"), "create the trigger first");
            }
            Ok(Some(Resource::Correlation(require_text(id, limits::LINE_BYTES, "resource")?)))
        }
        (WaitKind::Operator, None) if tx.state.definition.identity.supervisor.is_some() => never(
            "nobody speaks to a child but other agents".to_owned(),
            "ask your supervisor with SendMessage, or a person with RequestApproval",
        ),
        (WaitKind::Operator, Some(_)) => {
            Err(Refusal::new(ErrorCode::NoResourceHere, "a wait for the operator names no resource"))
        }
        (WaitKind::Sleep, _) => Err(Refusal::new(ErrorCode::NotAWait, "a sleep is not waited for")),
        (WaitKind::Task | WaitKind::Timer | WaitKind::External | WaitKind::Operator, None) => Ok(None),
    }
}

/// Whether a tick of this timer is still to be taken: one ahead, or one in the queue.
fn will_tick(state: &AgentState, timer: &Timer) -> bool {
    let tick = timer.undelivered.as_ref().and_then(|tick| state.planes.queue.get(tick));
    timer.next_fire_at.is_some()
        || timer.checking.is_some()
        || tick.is_some_and(|entry| entry.status == QueueStatus::Queued)
}

fn end_wait(tx: &mut Transaction<'_>, actor: &Actor, id: &WaitId) -> Acted {
    if tx.state.planes.waits.get(id).is_none() {
        return Err(Refusal::new(ErrorCode::NotFound, format!("{id} is not an open wait")).with_hint("list the waits"));
    }
    if let Actor::Person(name) = actor {
        tell_agent(tx, id, &format!("{name} cancelled it"), Maker::Person);
    }
    cancel_wait(tx, id, &format!("cancelled_by {}", actor.name()));
    answer_with(&WaitEnded { ended: id.clone() })
}

fn sleep(tx: &mut Transaction<'_>, actor: &Actor, reason: Option<String>, duration_ms: Option<u64>) -> Acted {
    let Some(ms) = duration_ms else {
        return Ok(Done { result: ToolOutput(serde_json::Map::new().into()), ends_turn: true });
    };
    require_room(tx.state.planes.waits.open().len(), "waits")?;
    let item = work::anchor(tx, None)?;
    let reason = reason.filter(|reason| !reason.trim().is_empty()).unwrap_or_else(|| "The sleep is over.".to_owned());
    let reason = require_text(reason, limits::LINE_BYTES, "reason")?;
    wait_out(tx, actor, WaitKind::Sleep, ms, item, reason)
}

/// Ends the waits that name something that is gone. The agent is told, unless it did it itself.
pub(super) fn end_waits_naming(tx: &mut Transaction<'_>, actor: &Actor, resource: &Resource, why: &str) -> Vec<WaitId> {
    let waits = naming(tx, resource);
    for wait in &waits {
        if let Actor::Person(_) = actor {
            tell_agent(tx, wait, why, Maker::Person);
        }
        cancel_wait(tx, wait, why);
    }
    waits
}

/// A question as it is put to a person.
pub(super) struct ApprovalRequest {
    pub summary: String,
    pub tool: Option<String>,
    pub deadline_ms: Option<u64>,
    pub default: ApprovalDefault,
    pub call: Option<String>,
}

pub(super) fn request_approval(
    tx: &mut Transaction<'_>,
    actor: &Actor,
    asked: ApprovalRequest,
) -> Result<ApprovalAsked, Refusal> {
    let ApprovalRequest { summary, tool, deadline_ms, default, call } = asked;
    let summary = require_text(summary, limits::LINE_BYTES, "summary")?;
    require_room(tx.state.planes.approvals.pending().len(), "approvals")?;
    let deadline = deadline_ms.map(|ms| ahead(tx, ms)).transpose()?;
    let work_item_id = work::anchor(tx, None)?;
    let approval_id = tx.fresh.approval();
    let resource = Some(Resource::Approval(approval_id.clone()));
    let wait = register(tx, actor, WaitKind::Operator, work_item_id.clone(), resource, summary.clone());
    tx.emit(ApprovalRequested {
        approval_id: approval_id.clone(),
        waiting_intent_id: wait.clone(),
        tool,
        summary,
        work_item_id,
        deadline,
        default,
        call,
    });
    Ok(ApprovalAsked { approval_id, waiting_intent_id: Some(wait), error: None })
}

fn decide_approval(tx: &mut Transaction<'_>, actor: &Actor, id: &ApprovalId, grant: bool) -> Acted {
    if let Actor::Model(_) = actor {
        return Err(Refusal::new(ErrorCode::NotYours, "an agent can't decide its own approval")
            .with_hint("wait for the operator"));
    }
    let Some(approval) = tx.state.planes.approvals.pending().get(id).cloned() else {
        return Err(Refusal::new(ErrorCode::NotPending, format!("{id} is not pending")));
    };
    let (status, word) = if grant { (ApprovalStatus::Granted, "granted") } else { (ApprovalStatus::Denied, "denied") };
    let decided_by = actor.name().to_owned();
    let lets_call = grant && approval.call.is_some();
    tx.emit(ApprovalDecided { approval_id: id.clone(), status, decided_by, lets_call });
    let text = format!("{} {word}: {}", actor.name(), approval.summary);
    due::tell_decision(tx, &approval, grant, &text, actor.maker());
    answer_with(&ApprovalAnswered { approval_id: id.clone(), status })
}

/// Asks first, forces the second time.
fn stop_task(tx: &mut Transaction<'_>, actor: &Actor, id: &TaskId) -> Acted {
    let Some(task) = tx.state.planes.tasks.open().get(id) else {
        return Err(Refusal::new(ErrorCode::NotRunning, format!("{id} is not a running task")));
    };
    let force = task.status == TaskStatus::Cancelling;
    let evidence = vec![format!("stopped_by {}", actor.name())];
    tx.emit(TaskCancelling { task_id: id.clone(), force, evidence });
    let task = tx.state.planes.tasks.open().get(id).map(TaskView::from);
    answer_with(&TaskStop { task, forced: force })
}
