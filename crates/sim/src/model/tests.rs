//! The model's own rules of thumb: histories as facts, answers as text.

use std::sync::Arc;

use abide_kernel::budget::Limits;
use abide_kernel::config::{Config, Identity};
use abide_kernel::continuation::Continuation;
use abide_kernel::fact::{
    AgentCreated, ControlApplied, Fact, MessageDequeued, MessageProcessed, MessageQueued, MessageRequeued, Resource,
    TurnStarted, TurnTerminal, WaitingIntentCreated, WakeHintSubmitted, WorkItemCreated,
};
use abide_kernel::id::{AgentId, ExecId, MessageId, TaskId, TurnId, WaitId, WorkItemId};
use abide_kernel::message::{Message, Subject, SubjectRecord};
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{
    Boundary, ContinuationClass, ControlAction, DeliveryMode, MessageKind, PlanStatus, RequeueReason, Status,
    TerminalKind, TickKind, TriggerKind, WaitKind, WaitSource,
};

use super::Model;

fn model(facts: &[Fact]) -> Model {
    let id = AgentId::new("a").expect("a fine name");
    let mut model = Model::new(id.clone());
    let mut history = vec![
        Fact::from(AgentCreated { identity: Identity::named(id), config: Config::default(), start: true }),
        control(ControlAction::Start),
    ];
    history.extend_from_slice(facts);
    for (seq, fact) in (1..).zip(&history) {
        model.observe(seq, Time::EPOCH, fact);
    }
    model
}

/// `now_ms` after everything happened, the model expects this: `Kind reason [message] [item]`.
#[track_caller]
fn check(facts: &[Fact], now_ms: i64, expected: &str) {
    let decision = model(facts).decide(Time::from_ms(now_ms));
    let mut text = format!("{} {}", decision.kind, decision.reason);
    for id in [decision.message_id.map(|id| id.to_string()), decision.work_item_id.map(|id| id.to_string())] {
        text.extend(id.map(|id| format!(" {id}")));
    }
    assert_eq!(text, expected);
}

fn control(action: ControlAction) -> Fact {
    Fact::from(ControlApplied {
        action,
        boundary: Boundary::Control,
        previous_status: Status::Booting,
        next_status: Status::AwakeIdle,
        exec_id: None,
        task_ids: Vec::new(),
        workspace: None,
        evidence: Vec::new(),
    })
}

fn message(id: &str, subject: impl Into<Subject>) -> Message {
    Message { text: Some("read me".to_owned()), ..Message::new(MessageId::new(id), subject) }
}

fn queued(message: Message) -> Fact {
    Fact::from(MessageQueued { message: Arc::new(message) })
}

fn work_tick(id: &str, item: &str) -> Message {
    let subject = SubjectRecord {
        tick: Some(TickKind::QueuedAvailable),
        work_item_id: Some(WorkItemId::new(item)),
        ..SubjectRecord::of(MessageKind::SystemTick)
    };
    message(id, subject)
}

fn item(id: &str) -> Fact {
    Fact::from(WorkItemCreated {
        made_by: None,
        work_item_id: WorkItemId::new(id),
        objective: "done".to_owned(),
        plan_status: PlanStatus::Ready,
        plan: None,
        todo: Vec::new(),
        budget: Limits::default(),
    })
}

fn wait(id: &str, kind: WaitKind, item: Option<&str>, resource: Option<Resource>) -> Fact {
    Fact::from(WaitingIntentCreated {
        answers: None,
        waiting_intent_id: WaitId::new(id),
        kind,
        work_item_id: item.map(WorkItemId::new),
        source: WaitSource::Model,
        resource,
        delivery_mode: DeliveryMode::EnqueueMessage,
        reason: "because".to_owned(),
    })
}

/// A turn from the taking of its message to its end, in which nothing changed.
fn turn(message: &str, trigger_kind: TriggerKind, item: Option<&str>) -> Vec<Fact> {
    let (message_id, exec_id) = (MessageId::new(message), ExecId::new(message));
    let continuation = Continuation {
        trigger_kind,
        class: ContinuationClass::LocalContinuation,
        model_reentry: true,
        matched_waiting_reason: false,
        evidence: Vec::new(),
    };
    vec![
        Fact::from(MessageDequeued { message_id: message_id.clone(), replays: 0 }),
        Fact::from(TurnStarted {
            answers: None,
            turn_id: TurnId::new(message),
            exec_id: exec_id.clone(),
            turn_index: 1,
            message_id: message_id.clone(),
            work_item_id: item.map(WorkItemId::new),
            continuation,
            presents: Vec::new(),
            message_seq: None,
        }),
        Fact::from(TurnTerminal {
            exec_id,
            turn_index: 1,
            message_id: message_id.clone(),
            terminal_kind: TerminalKind::Completed,
            rounds: 1,
            last_assistant_message: None,
            checkpoint: false,
            tree: None,
            error: None,
            returned: false,
            cut: false,
            settles: Vec::new(),
        }),
        Fact::from(MessageProcessed { message_id, ignored: Vec::new() }),
    ]
}

/// `turns` ticks of the item in a row that led nowhere.
fn circles(turns: u32) -> Vec<Fact> {
    let mut facts = vec![item("w")];
    for n in 0..turns {
        let id = format!("tick{n}");
        facts.push(queued(work_tick(&id, "w")));
        facts.extend(turn(&id, TriggerKind::SystemTick, Some("w")));
    }
    facts
}

#[test]
fn an_unchanged_item_is_offered_four_times_and_then_a_person_is_asked() {
    check(&circles(0), 0, "EmitSystemTick queued_available w");
    check(&circles(1), 29_999, "WaitForTimer tick_backoff w");
    check(&circles(1), 30_000, "EmitSystemTick queued_available w");
    check(&circles(2), 119_999, "WaitForTimer tick_backoff w");
    check(&circles(3), 600_000, "EmitSystemTick queued_available w");
    check(&circles(4), 10_000_000, "WaitForOperator no_progress_budget_spent w");
    assert_eq!(model(&circles(2)).next_wake(), Some(Time::from_ms(120_000)));

    let mut restored = circles(4);
    restored.push(queued(message("hello", MessageKind::OperatorPrompt)));
    restored.extend(turn("hello", TriggerKind::OperatorInput, None));
    check(&restored, 0, "EmitSystemTick queued_available w");
}

#[test]
fn a_wait_holds_its_own_work_and_parks_what_is_not_its_own() {
    let task = || Some(Resource::Task(TaskId::new("t")));
    check(&[item("w"), wait("x", WaitKind::Task, Some("w"), task())], 0, "WaitForTask work_item_task_wait w");
    check(&[item("w"), wait("x", WaitKind::Task, None, task())], 0, "EmitSystemTick queued_available w");

    let event = queued(message("m", MessageKind::ChannelEvent));
    check(&[wait("x", WaitKind::Task, None, task()), event.clone()], 0, "ReduceMessageOnly message_parked m");
    check(&[wait("x", WaitKind::External, None, None), event], 0, "StartModelTurn model_reentry_message m");

    let result = message("r", Subject::TaskResult { task_id: TaskId::new("other"), work_item_id: None });
    let facts = [wait("x", WaitKind::Task, None, task()), queued(result)];
    check(&facts, 0, "StartModelTurn model_reentry_message r");
    assert_eq!(model(&facts).classify(&MessageId::new("r")), Some(super::Verdict::Override));
}

#[test]
fn a_timer_does_not_go_twice_before_an_operator_or_due_work() {
    let mut facts = vec![queued(message("t1", MessageKind::TimerTick))];
    facts.extend(turn("t1", TriggerKind::TimerFire, None));
    facts.push(queued(message("t2", MessageKind::TimerTick)));
    check(&facts, 0, "StartModelTurn model_reentry_message t2");
    facts.push(item("w"));
    check(&facts, 0, "EmitSystemTick queued_available w");
    facts.push(queued(work_tick("k", "w")));
    check(&facts, 0, "StartModelTurn model_reentry_message k w");
    facts.push(queued(message("o", MessageKind::OperatorPrompt)));
    check(&facts, 0, "StartModelTurn model_reentry_message o");
}

#[test]
fn a_lane_waits_behind_a_head_that_was_told_to_wait() {
    let back = MessageRequeued {
        message_id: MessageId::new("m2"),
        reason: RequeueReason::ProviderBackoff,
        not_before: Some(Time::from_ms(50)),
    };
    let m1 = queued(message("m1", MessageKind::OperatorPrompt));
    let m2 = queued(message("m2", MessageKind::OperatorPrompt));
    let facts = [m1, m2, back.into()];
    check(&facts, 49, "WaitForTimer provider_backoff");
    check(&facts, 50, "StartModelTurn model_reentry_message m2");
    assert_eq!(model(&facts).next_wake(), Some(Time::from_ms(50)));
}

#[test]
fn one_undelivered_wake_tick_per_source() {
    let hint = |source: &str| {
        Fact::from(WakeHintSubmitted {
            source: source.to_owned(),
            generation: 1,
            reason: "look".to_owned(),
            resource: None,
            body: None,
            evidence: Vec::new(),
        })
    };
    let subject = Subject::WakeHint { resource: None, idempotency_key: "wake_hint:a:b:1".to_owned() };
    let tick = Message::new(MessageId::new("k"), subject);
    let taken = Fact::from(MessageDequeued { message_id: MessageId::new("k"), replays: 0 });
    check(&[hint("a:b")], 0, "EmitSystemTick wake_hint");
    check(&[hint("a:b"), queued(tick.clone())], 0, "ReduceMessageOnly liveness_only_message k");
    check(&[queued(tick.clone()), taken.clone(), hint("a:b")], 0, "Noop duplicate_wake_hint");
    check(&[queued(tick), taken, hint("a")], 0, "EmitSystemTick wake_hint");
}
