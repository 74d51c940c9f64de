//! The invariants are able to fail: for each, a violation is planted, and exactly that name is reported.
//!
//! A violation is a (before, fact, after) triple that the kernel itself would never make: a state edited as JSON.

use std::collections::BTreeSet;
use std::sync::Arc;

use abide_kernel::AgentState;
use abide_kernel::continuation::Continuation;
use abide_kernel::decision::Decision;
use abide_kernel::fact::{
    ContextCompacted, Fact, MessageProcessed, MessageQueued, PostureChanged, RoundStarted, SchedulerDecided,
    StaleOutcomeIgnored, TaskUpdateIgnored, TurnStarted, WaitingIntentTriggered, WorkItemCompleted, WorkItemPicked,
};
use abide_kernel::id::{ExecId, MessageId, TurnId, WaitId, WorkItemId};
use abide_kernel::invariants::{self, Change, INVARIANTS};
use abide_kernel::message::{Message, SubjectRecord};
use abide_kernel::vocabulary::{
    Boundary, ContinuationClass, DecisionKind, MessageKind, Reason, Status, TaskStatus, TickKind, TriggerKind,
};
use serde_json::{Value, json};

use crate::story::Story;

/// A change that must never happen. Most are looked at where a commit ends.
struct Plant {
    before: AgentState,
    fact: Fact,
    after: AgentState,
    at_rest: bool,
}

fn plant(before: &AgentState, fact: impl Into<Fact>, after: &AgentState) -> Plant {
    Plant { before: before.clone(), fact: fact.into(), after: after.clone(), at_rest: true }
}

impl Plant {
    /// Looked at inside a commit.
    fn inside(self) -> Plant {
        Plant { at_rest: false, ..self }
    }

    /// Which invariants it breaks.
    fn breaks(&self) -> Vec<&'static str> {
        let change = Change { before: &self.before, fact: &self.fact, after: &self.after };
        invariants::check_invariants(change, self.at_rest).iter().map(|violation| violation.invariant).collect()
    }
}

fn told(lines: &str) -> AgentState {
    let mut story = Story::begin();
    for line in lines.lines().map(str::trim) {
        story.tell(line).unwrap();
    }
    story.state
}

/// The state with its records edited by hand.
fn edited(state: &AgentState, edit: impl FnOnce(&mut Value)) -> AgentState {
    let mut records: Value = serde_json::from_slice(&state.snapshot()).unwrap();
    edit(&mut records);
    AgentState::from_snapshot(records.to_string().as_bytes()).unwrap()
}

/// The state with its items not filed under where they stand, as no reading of its records would leave it.
fn unfiled(state: &AgentState) -> AgentState {
    serde_json::from_slice(&state.snapshot()).unwrap()
}

/// A fact that says nothing.
fn nothing() -> Fact {
    StaleOutcomeIgnored { exec_id: ExecId::new("exec_over"), evidence: Vec::new() }.into()
}

fn first<'a>(records: &'a mut Value, plane: &str) -> &'a mut Value {
    records.pointer_mut(plane).unwrap().as_object_mut().unwrap().values_mut().next().unwrap()
}

fn queued(tick: Option<TickKind>) -> Fact {
    let subject = SubjectRecord { tick, ..SubjectRecord::of(MessageKind::SystemTick) };
    let message = Message::new(MessageId::new("msg_new"), subject);
    MessageQueued { message: Arc::new(message) }.into()
}

fn turn_about(message: &MessageId) -> Fact {
    TurnStarted {
        answers: None,
        turn_id: TurnId::new("turn_new"),
        exec_id: ExecId::new("exec_new"),
        turn_index: 1,
        message_id: message.clone(),
        work_item_id: None,
        continuation: Continuation {
            trigger_kind: TriggerKind::SystemTick,
            class: ContinuationClass::LocalContinuation,
            model_reentry: true,
            matched_waiting_reason: false,
            evidence: Vec::new(),
        },
        presents: Vec::new(),
        message_seq: None,
    }
    .into()
}

/// One planted violation for each name.
macro_rules! planted {
    ($($name:ident: $plant:block)*) => {
        $(
            #[test]
            fn $name() {
                let plant: Plant = $plant;
                assert_eq!(plant.breaks(), [stringify!($name)]);
            }
        )*

        const PLANTED: &[&str] = &[$(stringify!($name)),*];
    };
}

planted! {
    stopped_runtime_processes_no_message: {
        let state = told("operator hi\nstop");
        let message_id = state.planes.queue.entries().next().unwrap().message.message_id.clone();
        plant(&state, MessageProcessed { message_id, ignored: Vec::new() }, &state)
    }

    paused_runtime_starts_no_turn: {
        let state = told("shutdown");
        plant(&state, queued(Some(TickKind::WakeHint)), &state)
    }

    run_id_only_while_a_run_is_active: {
        let state = told("operator hi");
        let message = state.turns.current.as_ref().unwrap().message_id.clone();
        let without = edited(&state, |records| {
            let entries = records["queue"]["entries"].as_array_mut().unwrap();
            entries.retain(|entry| entry["message"]["message_id"] != json!(message));
        });
        plant(&state, nothing(), &without)
    }

    terminal_tasks_are_not_active: {
        let state = told("task t1");
        let ended = edited(&state, |records| first(records, "/tasks/open")["status"] = json!("completed"));
        plant(&state, nothing(), &ended)
    }

    stale_updates_reopen_no_task: {
        let owed = told("task t1\nstop\ntask t1 ends");
        let open = told("task t1\nstop");
        plant(&owed, nothing(), &open)
    }

    blocking_is_counted_from_open_tasks: {
        let state = told("task t1");
        let blocking = edited(&state, |records| first(records, "/tasks/open")["wait_policy"] = json!("blocking"));
        plant(&state, nothing(), &blocking)
    }

    completed_items_are_not_runnable: {
        let state = told("operator hi\nround CreateWorkItem build");
        let completed = edited(&state, |records| first(records, "/work/items")["state"] = json!("completed"));
        plant(&state, nothing(), &completed)
    }

    focus_moves_only_by_pick: {
        let state = told("operator hi\nround CreateWorkItem build");
        let picked = edited(&state, |records| {
            let id = first(records, "/work/items")["work_item_id"].clone();
            records["work"]["current"] = id;
        });
        plant(&state, nothing(), &picked)
    }

    needs_input_waits_for_the_operator: {
        let state = told("operator hi\nround CreateWorkItem build status=needs_input");
        plant(&state, nothing(), &unfiled(&state)).inside()
    }

    one_tick_under_way_per_item: {
        let state = told("person CreateWorkItem build");
        let doubled = edited(&state, |records| {
            let entries = records["queue"]["entries"].as_array_mut().unwrap();
            let mut again = entries[0].clone();
            again["message"]["message_id"] = json!("msg_again");
            again["place"] = json!(99);
            entries.push(again);
        });
        plant(&state, nothing(), &doubled)
    }

    wake_hints_are_liveness_signals: {
        let state = told("operator hi\nfail rate_limited after=1h");
        let hinted = edited(&state, |records| {
            let message = &mut records["queue"]["entries"][0]["message"];
            message["kind"] = json!("system_tick");
            message["tick"] = json!("wake_hint");
            message["text"] = Value::Null;
        });
        let message = hinted.planes.queue.entries().next().unwrap().message.message_id.clone();
        plant(&hinted, turn_about(&message), &hinted)
    }

    mismatched_triggers_satisfy_nothing: {
        let state = told("operator hi\nround WaitFor external c1\nevent corr=c2 news");
        let waiting_intent_id: WaitId = state.planes.waits.open().keys().next().unwrap().clone();
        let message_id = Some(state.planes.queue.entries().next().unwrap().message.message_id.clone());
        let fact = WaitingIntentTriggered { waiting_intent_id, trigger_count: 1, message_id, evidence: Vec::new() };
        plant(&state, fact, &state)
    }

    only_real_turn_ends_touch_work_items: {
        let state = told("operator hi\nround CreateWorkItem build");
        let revised = edited(&state, |records| first(records, "/work/items")["revision"] = json!(9));
        let fact = MessageProcessed { message_id: MessageId::new("msg_x"), ignored: Vec::new() };
        plant(&state, fact, &revised)
    }

    compaction_rewrites_no_truth: {
        let state = told("operator hi\nround WaitFor external c1");
        let forgotten = edited(&state, |records| records["waits"] = json!([]));
        let fact = ContextCompacted { compacted_messages: 1, epoch: 1, summary: None, through: None, usage: None };
        plant(&state, fact, &forgotten)
    }

    records_explain_the_projection: {
        let state = told("person CreateWorkItem build\nround done");
        plant(&state, nothing(), &unfiled(&state))
    }

    no_wait_outlives_what_could_end_it: {
        let state = told("task t1\noperator hi\nround WaitFor task t1");
        let lost = edited(&state, |records| records["tasks"]["open"] = json!({}));
        plant(&state, nothing(), &lost)
    }

    every_owed_result_has_a_carrier: {
        let state = told("task t1\nstop\ntask t1 ends");
        let lost = edited(&state, |records| records["queue"]["entries"] = json!([]));
        plant(&state, nothing(), &lost)
    }

    undelivered_ticks_are_in_the_queue: {
        let state = told("person CreateWorkItem build\nfail rate_limited after=1h");
        let gone = edited(&state, |records| records["queue"]["entries"] = json!([]));
        plant(&state, nothing(), &gone)
    }

    settled_messages_stay_settled: {
        let state = told("operator hi\nround hello");
        let id = state.planes.briefs.back().unwrap().message_id.clone().unwrap();
        let revived = edited(&state, |records| records["unanswered"] = json!([id]));
        plant(&state, nothing(), &revived)
    }

    put_off_answers_have_left_the_queue: {
        let state = told("stop\noperator hi");
        let id = state.planes.queue.entries().next().unwrap().message.message_id.clone();
        let both = edited(&state, |records| records["unanswered"] = json!([id]));
        plant(&state, nothing(), &both)
    }
}

/// Reading a result changes nothing about its task being over.
#[test]
fn a_task_whose_result_was_read_stays_over() {
    let open = told("task t1\noperator hi");
    let read = told("task t1\noperator hi\ntask t1 ends\nround ok\nround read");
    assert!(read.planes.tasks.owed().is_empty() && !read.planes.tasks.recent().is_empty(), "the result was not read");
    let reopened = edited(&read, |records| {
        let was: Value = serde_json::from_slice(&open.snapshot()).unwrap();
        records["tasks"]["open"] = was["tasks"]["open"].clone();
    });
    assert_eq!(plant(&read, nothing(), &reopened).breaks(), ["stale_updates_reopen_no_task"]);
}

#[test]
fn a_late_report_is_ignored_with_evidence() {
    let state = told("task t1\noperator hi\ntask t1 ends");
    let task_id = state.planes.tasks.owed().keys().next().unwrap().clone();
    let report = |evidence: &[&str]| TaskUpdateIgnored {
        task_id: task_id.clone(),
        reported: TaskStatus::Running,
        evidence: evidence.iter().map(|&evidence| evidence.to_owned()).collect(),
    };
    assert!(plant(&state, report(&["it is completed already"]), &state).breaks().is_empty());
    assert_eq!(plant(&state, report(&[]), &state).breaks(), ["stale_updates_reopen_no_task"]);
}

/// A duplicate that is suppressed leaves evidence, and a tick that is not follows from a decision.
#[test]
fn a_tick_has_durable_evidence() {
    let state = told("person CreateWorkItem build\nround PickWorkItem w1\nround on\nfail rate_limited after=1h");
    let item = state.planes.work.current().unwrap();
    assert!(item.ticks.undelivered.is_some(), "its tick is not under way");
    let silent = Decision::new(DecisionKind::WaitForTimer, Reason::ProviderBackoff).because("later");
    let said = Decision { ignored: vec![format!("duplicate_tick {}", item.work_item_id)], ..silent.clone() };
    let decided = |decision: &Decision| Fact::from(SchedulerDecided { decision: decision.clone() });
    assert!(plant(&state, decided(&said), &state).breaks().is_empty());
    assert_eq!(plant(&state, decided(&silent), &state).breaks(), ["one_tick_under_way_per_item"]);
    assert_eq!(plant(&state, queued(Some(TickKind::ContinueActive)), &state).breaks(), ["one_tick_under_way_per_item"]);
}

/// Nothing that happens in a story breaks any of them; here only that every one of them can be broken.
#[test]
fn every_invariant_has_a_planted_violation() {
    let names: BTreeSet<&str> = INVARIANTS.iter().map(|(name, _)| *name).collect();
    let planted: BTreeSet<&str> = PLANTED.iter().copied().collect();
    assert_eq!(names, planted);
    assert_eq!(names.len(), INVARIANTS.len(), "two invariants have one name");
}

/// Within the commit that ends its turn, a message is in the queue and its answer is put off.
#[test]
fn a_message_may_leave_the_queue_after_its_answer_was_put_off() {
    let before = told("stop\noperator hi");
    let id = before.planes.queue.entries().next().unwrap().message.message_id.clone();
    let both = edited(&before, |records| records["unanswered"] = json!([id]));
    assert!(plant(&before, nothing(), &both).inside().breaks().is_empty());
    let put_off = told("operator hi\nround WaitFor external c1");
    assert!(plant(&put_off, nothing(), &put_off).breaks().is_empty());
}

/// Facts that are always allowed break nothing.
#[test]
fn a_sound_change_breaks_nothing() {
    let state = told("operator hi");
    let (from, to) = (Status::AwakeIdle, Status::AwakeRunning);
    let posture = PostureChanged::by_scheduler(Boundary::Control, from, to, Vec::new());
    let round = RoundStarted { exec_id: ExecId::new("exec_new"), round: 1 };
    for fact in [nothing(), posture.into(), round.into(), queued(None)] {
        assert!(plant(&state, fact.clone(), &state).breaks().is_empty(), "{fact:?}");
    }
}

/// The focus ends with the item in focus, and goes nowhere else.
#[test]
fn a_completed_item_hands_its_focus_to_no_other() {
    let before = told("person CreateWorkItem build\nround CreateWorkItem paint\nperson PickWorkItem w1");
    let focus = before.planes.work.current_id().unwrap().clone();
    let other = before.planes.work.items().keys().find(|id| **id != focus).unwrap().clone();
    let moved = |to: Option<&WorkItemId>| {
        let to = to.map_or(Value::Null, |id| id.as_str().into());
        edited(&before, |records| records["work"]["current"] = to)
    };
    let completed =
        |id: &WorkItemId| WorkItemCompleted { work_item_id: id.clone(), revision: 2, report: "done".into() };
    let picked = |id: &WorkItemId| WorkItemPicked { work_item_id: id.clone(), previous: Some(focus.clone()) };
    let broken = ["focus_moves_only_by_pick"];
    assert_eq!(plant(&before, completed(&focus), &moved(Some(&other))).breaks(), broken);
    assert_eq!(plant(&before, completed(&other), &moved(None)).breaks(), broken);
    assert_eq!(plant(&before, picked(&focus), &moved(Some(&other))).breaks(), broken);
    assert_eq!(plant(&before, completed(&focus), &moved(None)).breaks(), [""; 0]);
    assert_eq!(plant(&before, picked(&other), &moved(Some(&other))).breaks(), [""; 0]);
}

/// Runnable is what neither a blocker nor a wait holds.
#[test]
fn an_item_that_is_held_is_not_runnable() {
    let broken = ["completed_items_are_not_runnable"];
    let runs = told("operator hi\nround CreateWorkItem build");
    let found = |held: &str| {
        let held = told(&format!("operator hi\nround CreateWorkItem build\n{held}"));
        // Its items are as they were, and are filed as if nothing held them.
        let mut records: Value = serde_json::from_slice(&runs.snapshot()).unwrap();
        let of: Value = serde_json::from_slice(&held.snapshot()).unwrap();
        records["waits"] = of["waits"].clone();
        records["timers"] = of["timers"].clone();
        let mut wrong = AgentState::from_snapshot(records.to_string().as_bytes()).unwrap();
        wrong.planes.work = runs.planes.work.clone();
        plant(&wrong, nothing(), &wrong).breaks()
    };
    assert_eq!(found("round Tool make"), [""; 0]);
    assert!(found("round WaitFor external c1 item=w1").contains(&broken[0]));
}

/// A timer's tick that waits in the queue goes with its timer; one that was taken is done with.
#[test]
fn a_tick_of_a_timer_that_is_gone_is_no_longer_to_be_taken() {
    let state = told("person CreateTimer every=1h tea\noperator hi\nadvance 1h");
    let orphan = |status: &str, taken: u32| {
        edited(&state, |records| {
            records["timers"] = json!([]);
            let entries = records["queue"]["entries"].as_array_mut().unwrap();
            let tick = entries.iter_mut().find(|entry| entry["message"]["kind"] == "timer_tick").unwrap();
            tick["status"] = json!(status);
            tick["taken"] = json!(taken);
        })
    };
    let broken = "undelivered_ticks_are_in_the_queue";
    let breaks = |state: &AgentState| plant(state, nothing(), state).breaks();
    assert!(breaks(&orphan("queued", 0)).contains(&broken));
    assert!(!breaks(&orphan("queued", 1)).contains(&broken));
    assert!(!breaks(&orphan("parked", 0)).contains(&broken));
}

/// Nothing is passed over in silence by an agent that takes no work, or whose item has no tick under way.
#[test]
fn an_agent_that_takes_no_work_has_no_duplicate_to_tell_of() {
    let silent = Decision::new(DecisionKind::WaitForTimer, Reason::ProviderBackoff).because("later");
    let decided = |state: &AgentState| plant(state, SchedulerDecided { decision: silent.clone() }, state).breaks();
    let under_way = "person CreateWorkItem build\nround PickWorkItem w1\nround on\nfail rate_limited after=1h";
    assert_eq!(decided(&told(under_way)), ["one_tick_under_way_per_item"]);
    for held in ["stop", "disk after=1h full", "budget turns=1", "operator priority=next hi"] {
        assert_eq!(decided(&told(&format!("{under_way}\n{held}"))), [""; 0], "{held}");
    }
    let asleep = "operator hi\nround CreateWorkItem build\nround PickWorkItem w1\nround Sleep 1h";
    assert_eq!(decided(&told(asleep)), [""; 0]);
}
