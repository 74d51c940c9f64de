//! Random replies of models, acts of operators and messages. They name records that are there, and now and then one
//! that is not.

use abide_kernel::AgentState;
use abide_kernel::budget::{Budget, Limits, Usage};
use abide_kernel::config::AgentLimits;
use abide_kernel::credentials::Credentials;
use abide_kernel::fact::ChildSpec;
use abide_kernel::id::{AgentId, ApprovalId, CallId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use abide_kernel::input::{Delivery, Input, NewMessage, Reads, Reply, Spent};
use abide_kernel::state::guard::call_hash;
use abide_kernel::todo::Todo;
use abide_kernel::tool::{Call, Command, ExecCommand, ExecutorCall, RecordCall, ToolCall, When, WorkItemChange};
use abide_kernel::vocabulary::{
    ApprovalDefault, CatchUp, ChildWorkspace, DeliveryMode, MessageKind, PlanStatus, Priority, TodoState, WaitKind,
};
use serde_json::json;

use crate::rng::Rng;

/// One of those that exist, or (rarely) one that does not.
fn some_id<K: Clone>(rng: &mut Rng, ids: impl Iterator<Item = K>, none: K) -> K {
    let ids: Vec<K> = ids.collect();
    if rng.chance(4) {
        return none;
    }
    rng.pick(&ids).cloned().unwrap_or(none)
}

fn item(rng: &mut Rng, state: &AgentState) -> WorkItemId {
    some_id(rng, state.planes.work.items().keys().cloned(), WorkItemId::new("work_none"))
}

fn maybe_item(rng: &mut Rng, state: &AgentState) -> Option<WorkItemId> {
    rng.chance(30).then(|| item(rng, state))
}

fn task(rng: &mut Rng, state: &AgentState) -> TaskId {
    let ids = state.planes.tasks.open().keys().chain(state.planes.tasks.owed().keys()).cloned();
    some_id(rng, ids, TaskId::new("task_none"))
}

pub fn reply(rng: &mut Rng, state: &AgentState, calls_made: &mut u64) -> Reply {
    // Now and then one that looks at the same thing over and over.
    let looked =
        state.turns.current.as_ref().and_then(|turn| state.planes.queue.get(&turn.message_id)).is_some_and(|entry| {
            entry.guard.repeats_of(call_hash("ExecCommand", &json!({ "cmd": "look" }).into())) > 0
        });
    let stubborn = if looked { rng.chance(97) } else { rng.chance(2) };
    let count = if !stubborn && rng.chance(45) { 0 } else { 1 + rng.below(3) };
    let calls = (0..count)
        .map(|_| {
            *calls_made += 1;
            let call_id = CallId::new(format!("call_{calls_made}"));
            if stubborn || rng.chance(40) {
                let cmd = if stubborn { "look".to_owned() } else { format!("build {calls_made}") };
                let input = json!({ "cmd": &cmd }).into();
                return Call { call_id, tool: "ExecCommand".to_owned(), input, parsed: command(cmd) };
            }
            let act = model_act(rng, state);
            let input = json!({ "act": format!("{act:?}") }).into();
            Call { call_id, tool: tool_name(&act).to_owned(), input, parsed: ToolCall::Record(act) }
        })
        .collect();
    let tree = rng.chance(10).then(|| format!("tree_{}", rng.below(3)));
    let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
    let number = rng.below(1000);
    // Now and then one that says nothing, and one that had more to say.
    let text = if number < 60 { String::new() } else { format!("round {number}") };
    let stop = number.is_multiple_of(20).then(|| Reply::FULL.to_owned());
    Reply { text, calls, usage, tree, stop, ..Reply::default() }
}

/// A call that runs outside and may change anything there.
fn command(command: String) -> ToolCall {
    ToolCall::Executor(ExecutorCall::ExecCommand(ExecCommand {
        command: Command { command, ..Command::default() },
        yield_time_ms: 0,
        start_new: false,
        max_output_bytes: 0,
    }))
}

/// The usage of a failed call: in half of the cases, none.
pub fn spent(jitter: u16) -> Option<Spent> {
    let usage = Usage { input_tokens: 8, ..Usage::default() };
    jitter.is_multiple_of(2).then_some(Spent { usage, estimated: true })
}

/// A call may return the end of a task's output, also while another one waits for it.
pub fn reads(rng: &mut Rng, state: &AgentState) -> Option<Reads> {
    let owed = state.planes.tasks.owed();
    (!owed.is_empty() && rng.chance(60)).then(|| {
        let task_id = some_id(rng, owed.keys().cloned(), TaskId::new("task_none"));
        Reads { task_id, end: rng.chance(90) }
    })
}

pub fn tool_name(act: &RecordCall) -> &'static str {
    match act {
        RecordCall::WaitFor { .. } => "WaitFor",
        RecordCall::CancelWait { .. } => "CancelWait",
        RecordCall::Sleep { .. } => "Sleep",
        RecordCall::CreateTimer { .. } => "CreateTimer",
        RecordCall::CancelTimer { .. } => "CancelTimer",
        RecordCall::CreateTrigger { .. } => "CreateTrigger",
        RecordCall::RotateTrigger { .. } => "RotateTrigger",
        RecordCall::RevokeTrigger { .. } => "RevokeTrigger",
        RecordCall::CreateWorkItem { .. } => "CreateWorkItem",
        RecordCall::PickWorkItem { .. } => "PickWorkItem",
        RecordCall::UpdateWorkItem { .. } => "UpdateWorkItem",
        RecordCall::CompleteWorkItem { .. } => "CompleteWorkItem",
        RecordCall::RequestApproval { .. } => "RequestApproval",
        RecordCall::DecideApproval { .. } => "DecideApproval",
        RecordCall::NotifyOperator { .. } => "NotifyOperator",
        RecordCall::SpawnChild { .. } => "SpawnAgent",
        RecordCall::StopTask { .. } => "TaskStop",
        RecordCall::ListTasks => "TaskList",
        RecordCall::ShowTask { .. } => "TaskStatus",
        RecordCall::ListWorkItems { .. } => "ListWorkItems",
        RecordCall::ShowWorkItem { .. } => "GetWorkItem",
        RecordCall::RunCommand { .. } => "RunCommand",
        RecordCall::DetachWorkspace { .. } => "DetachWorkspace",
    }
}

/// The resource of a wake hint: a correlation, a trigger or a wait.
pub fn hinted_resource(rng: &mut Rng, state: &AgentState) -> String {
    match rng.below(3) {
        0 => format!("corr_{}", rng.below(3)),
        1 => trigger(rng, state).to_string(),
        _ => open_wait(rng, state).to_string(),
    }
}

fn model_act(rng: &mut Rng, state: &AgentState) -> RecordCall {
    // A model that has started something usually waits for it.
    if !state.planes.tasks.open().is_empty() && rng.chance(30) {
        let task = some_id(rng, state.planes.tasks.open().keys().cloned(), TaskId::new("task_none"));
        return RecordCall::WaitFor {
            wake: WaitKind::Task,
            resource: Some(task.to_string()),
            after_ms: None,
            work_item_id: maybe_item(rng, state),
            reason: "waiting for it".to_owned(),
        };
    }
    match rng.weighted(&[22, 4, 6, 8, 3, 4, 2, 14, 8, 12, 7, 4, 2, 2, 1]) {
        0 => wait_for(rng, state),
        1 => RecordCall::CancelWait { waiting_intent_id: open_wait(rng, state) },
        2 => RecordCall::Sleep { reason: None, duration_ms: rng.chance(70).then(|| 1 + rng.below(120_000)) },
        3 => create_timer(rng, state),
        4 => RecordCall::CancelTimer { timer_id: active_timer(rng, state) },
        5 => RecordCall::CreateTrigger {
            name: "hook".to_owned(),
            delivery_mode: if rng.chance(50) { DeliveryMode::EnqueueMessage } else { DeliveryMode::WakeHint },
            work_item_id: maybe_item(rng, state),
            signed: false,
            address: None,
        },
        6 => RecordCall::RevokeTrigger { trigger_id: trigger(rng, state) },
        7 => create_item(rng),
        8 => RecordCall::PickWorkItem { work_item_id: item(rng, state) },
        9 => update_item(rng, state),
        10 => RecordCall::CompleteWorkItem { work_item_id: item(rng, state), report: "done".to_owned() },
        11 => RecordCall::RequestApproval {
            summary: "may I".to_owned(),
            tool: None,
            deadline_ms: rng.chance(60).then(|| rng.below(300_000)),
            default: if rng.chance(50) { ApprovalDefault::Deny } else { ApprovalDefault::Grant },
        },
        12 => RecordCall::ShowTask { task_id: task(rng, state) },
        13 => RecordCall::StopTask { task_id: task(rng, state) },
        _ => RecordCall::NotifyOperator { text: "look".to_owned() },
    }
}

fn open_wait(rng: &mut Rng, state: &AgentState) -> WaitId {
    some_id(rng, state.planes.waits.open().keys().cloned(), WaitId::new("wait_none"))
}

fn active_timer(rng: &mut Rng, state: &AgentState) -> TimerId {
    some_id(rng, state.planes.timers.active().keys().cloned(), TimerId::new("timer_none"))
}

fn trigger(rng: &mut Rng, state: &AgentState) -> TriggerId {
    some_id(rng, state.planes.triggers.keys().cloned(), TriggerId::new("trig_none"))
}

fn wait_for(rng: &mut Rng, state: &AgentState) -> RecordCall {
    let wake = [WaitKind::Operator, WaitKind::Task, WaitKind::External, WaitKind::Timer][rng.weighted(&[2, 4, 3, 3])];
    let named = rng.chance(65);
    let resource = match wake {
        WaitKind::Task => named.then(|| task(rng, state).to_string()),
        WaitKind::Timer => named.then(|| active_timer(rng, state).to_string()),
        WaitKind::External if named && rng.chance(50) => Some(trigger(rng, state).to_string()),
        WaitKind::External => named.then(|| format!("corr_{}", rng.below(3))),
        WaitKind::Operator | WaitKind::Sleep => None,
    };
    let after_ms = (wake == WaitKind::Timer && !named).then(|| rng.below(60_000));
    RecordCall::WaitFor { wake, resource, after_ms, work_item_id: maybe_item(rng, state), reason: "waiting".to_owned() }
}

fn create_timer(rng: &mut Rng, state: &AgentState) -> RecordCall {
    let when = match rng.below(20) {
        0..10 => When::AfterMs(rng.below(90_000)),
        10..17 => When::EveryMs(100 + rng.below(60_000)),
        minutes => When::Cron { cron: format!("*/{} * * * *", minutes - 15), time_zone: "Europe/Berlin".to_owned() },
    };
    let check = rng.chance(25).then(|| "test -s inbox".to_owned());
    let catch_up = *rng.pick(CatchUp::ALL).unwrap_or(&CatchUp::Latest);
    RecordCall::CreateTimer { summary: "tick".to_owned(), when, catch_up, work_item_id: maybe_item(rng, state), check }
}

fn create_item(rng: &mut Rng) -> RecordCall {
    let plan_status = rng.chance(10).then_some(PlanStatus::NeedsInput);
    RecordCall::CreateWorkItem {
        objective: "make it so".to_owned(),
        plan: None,
        plan_status,
        todo: Vec::new(),
        budget: None,
    }
}

fn update_item(rng: &mut Rng, state: &AgentState) -> RecordCall {
    let mut change = WorkItemChange::default();
    match rng.below(5) {
        0 => change.plan = Some(format!("plan {}", rng.below(3))),
        1 => change.plan_status = rng.pick(PlanStatus::ALL).copied(),
        2 => change.todo = Some(vec![Todo { text: format!("step {}", rng.below(3)), state: TodoState::Pending }]),
        3 => {
            change.blocked_by = Some(Some("the weather".to_owned()));
            change.recheck_after_ms = rng.chance(60).then(|| 1 + rng.below(200_000));
        }
        _ => change.blocked_by = Some(None),
    }
    RecordCall::UpdateWorkItem { work_item_id: item(rng, state), change: Box::new(change) }
}

/// A person may say what an item may use, or that it may use anything again.
#[allow(clippy::wildcard_enum_match_arm, reason = "nothing else has a budget")]
fn limited(rng: &mut Rng, act: RecordCall) -> RecordCall {
    let limits = match rng.below(10) {
        0 => Limits { max_turns: Some(rng.below(4)), ..Limits::default() },
        1 => Limits { max_tokens: Some(rng.below(80)), max_wall_ms: Some(rng.below(60_000)), ..Limits::default() },
        2 => Limits::default(),
        _ => return act,
    };
    match act {
        RecordCall::CreateWorkItem { objective, plan, plan_status, todo, budget: _ } => {
            RecordCall::CreateWorkItem { objective, plan, plan_status, todo, budget: Some(limits) }
        }
        RecordCall::UpdateWorkItem { work_item_id, change } => {
            let change = Box::new(WorkItemChange { budget: Some(limits), ..*change });
            RecordCall::UpdateWorkItem { work_item_id, change }
        }
        other => other,
    }
}

pub fn jitter(rng: &mut Rng) -> u16 {
    u16::try_from(rng.below(1 << 16)).unwrap_or(u16::MAX)
}

/// The model that an agent gets by a change of its configuration.
pub fn model(rng: &mut Rng) -> String {
    let names = ["first/model", "second/model", "other/0"];
    (*rng.pick(&names).unwrap_or(&names[0])).to_owned()
}

/// Models that are tried when the first fails: mostly none.
pub fn fallback(rng: &mut Rng) -> Vec<String> {
    let count = if rng.chance(25) { 1 + rng.below(2) } else { 0 };
    (0..count).map(|number| format!("other/{number}")).collect()
}

/// Limits of the settings: the usual ones, or some that are low enough to be reached.
pub fn limits(rng: &mut Rng) -> AgentLimits {
    let usual = AgentLimits::default();
    let self_turns_per_hour = match rng.below(4) {
        0 => 0,
        1 => 1 + u32::try_from(rng.below(8)).unwrap_or(0),
        _ => usual.self_turns_per_hour,
    };
    let rounds_per_turn = if rng.chance(20) { 1 + u32::try_from(rng.below(5)).unwrap_or(0) } else { 0 };
    AgentLimits { self_turns_per_hour, rounds_per_turn }
}

/// The reply of a model that makes itself work without end: in every turn one more item, and nothing else.
pub fn endless_reply(state: &AgentState, calls_made: &mut u64) -> Reply {
    let first = state.turns.current.as_ref().is_some_and(|turn| turn.round == 1);
    let calls = first.then(|| {
        *calls_made += 1;
        let act = RecordCall::CreateWorkItem {
            objective: "more".to_owned(),
            plan: None,
            plan_status: None,
            todo: Vec::new(),
            budget: None,
        };
        let (call_id, input) = (CallId::new(format!("call_{calls_made}")), json!({ "objective": "more" }).into());
        Call { call_id, tool: tool_name(&act).to_owned(), input, parsed: ToolCall::Record(act) }
    });
    Reply { text: "more".to_owned(), calls: calls.into_iter().collect(), ..Reply::default() }
}

/// A budget in all and per day: mostly without limits.
pub fn budget(rng: &mut Rng) -> Budget {
    let mut budget = Budget::default();
    if rng.chance(10) {
        budget.max_turns = Some(5 + rng.below(20));
    }
    if rng.chance(6) {
        budget.daily.max_turns = Some(1 + rng.below(6));
    }
    if rng.chance(3) {
        budget.daily.max_tokens = Some(10 + rng.below(200));
    }
    if rng.chance(3) {
        budget.max_wall_ms = Some(rng.below(3_600_000));
        budget.daily.max_wall_ms = Some(rng.below(600_000));
    }
    budget
}

/// The budget of a whole family.
pub fn family_budget(rng: &mut Rng) -> Budget {
    let max_turns = rng.chance(40).then(|| 8 + rng.below(60));
    Budget { max_turns, ..Budget::default() }
}

/// A child that was granted something of its supervisor's budget.
pub fn child(rng: &mut Rng) -> ChildSpec {
    ChildSpec {
        message: "do it".to_owned(),
        workspace_mode: ChildWorkspace::Inherit,
        folder: None,
        model: String::new(),
        fallback: Vec::new(),
        default_model: false,
        default_fallback: false,
        credentials: Credentials::default(),
        instructions: None,
        network: false,
        grant: Limits { max_turns: Some(1 + rng.below(5)), ..Limits::default() },
    }
}

/// An act of an operator on an agent's records.
pub fn operator_act(rng: &mut Rng, state: &AgentState) -> RecordCall {
    match rng.below(9) {
        0 => RecordCall::CancelWait { waiting_intent_id: open_wait(rng, state) },
        1 => RecordCall::CancelTimer { timer_id: active_timer(rng, state) },
        2 => create_timer(rng, state),
        3 => {
            let act = create_item(rng);
            limited(rng, act)
        }
        4 => {
            let act = update_item(rng, state);
            limited(rng, act)
        }
        5 => RecordCall::CompleteWorkItem { work_item_id: item(rng, state), report: "done by hand".to_owned() },
        6 => RecordCall::StopTask { task_id: task(rng, state) },
        7 => RecordCall::RevokeTrigger { trigger_id: trigger(rng, state) },
        _ => {
            let pending = state.planes.approvals.pending().keys().cloned();
            let approval_id = some_id(rng, pending, ApprovalId::new("appr_none"));
            RecordCall::DecideApproval { approval_id, grant: rng.chance(50) }
        }
    }
}

/// A message from outside, by a trigger where it names one.
pub fn incoming_input(rng: &mut Rng, state: &AgentState) -> Input {
    let message = message(rng, state);
    let Some(trigger) = message.trigger_id.as_ref().and_then(|id| state.planes.triggers.get(id)) else {
        return Input::Queue(message);
    };
    Input::Deliver {
        trigger_id: trigger.trigger_id.clone(),
        generation: trigger.generation,
        verified: false,
        delivery: Delivery {
            delivery_id: None,
            text: message.text,
            json: message.json,
            correlation_id: message.correlation_id,
        },
    }
}

fn message(rng: &mut Rng, state: &AgentState) -> NewMessage {
    let kinds =
        [MessageKind::OperatorPrompt, MessageKind::ChannelEvent, MessageKind::WebhookEvent, MessageKind::CallbackEvent];
    let kind = kinds[rng.weighted(&[5, 2, 2, 1])];
    let priority = if kind == MessageKind::OperatorPrompt && rng.chance(25) {
        Some(Priority::Interject)
    } else if rng.chance(20) {
        rng.pick(&[Priority::Next, Priority::Normal, Priority::Background]).copied()
    } else {
        None
    };
    let external = kind != MessageKind::OperatorPrompt;
    let existing = external && rng.chance(30) && !state.planes.triggers.is_empty();
    let from_agent = kind == MessageKind::ChannelEvent && rng.chance(50);
    NewMessage {
        kind: Some(kind),
        text: (!external || rng.chance(85)).then(|| format!("hello {}", rng.below(1000))),
        priority,
        trigger_id: existing.then(|| trigger(rng, state)),
        correlation_id: (external && rng.chance(30)).then(|| format!("corr_{}", rng.below(3))),
        work_item_id: if external { maybe_item(rng, state) } else { None },
        from_agent: from_agent.then(|| AgentId::new("b").ok()).flatten(),
        from_outside: rng.chance(30),
        ..NewMessage::default()
    }
}
