//! Continuation, cell by cell: how each trigger re-enters the model while nothing and while something is awaited
//! (spec 8).

use abide_kernel::id::{MessageId, TaskId, WaitId};
use abide_kernel::message::{Message, Subject, SubjectRecord};
use abide_kernel::scheduler::continuation::{Classification, classify};
use abide_kernel::vocabulary::{ContinuationClass, MessageKind, TriggerKind};

use crate::story::{Story, tell};

/// Something is awaited that none of the triggers is about.
const SOME: &str = "operator hi
                    round WaitFor external c9";

/// The trigger's outcome: how it re-entered, or why not.
fn outcome(setup: &str, trigger: &str) -> String {
    let told = tell(&format!("{setup}\n---\n{trigger}"));
    let words = ["turn ", "parked", "processed"];
    let outcome = told.iter().find(|line| words.iter().any(|word| line.starts_with(word)));
    outcome.map_or_else(|| told.join("; "), |line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

#[track_caller]
fn cell(trigger: &str, none: &str, some: &str) {
    assert_eq!(outcome("", trigger), none, "while nothing is awaited");
    assert_eq!(outcome(SOME, trigger), some, "while something is awaited");
}

#[test]
fn operator() {
    cell("operator hi", "turn local_continuation", "turn resume_override");
}

#[test]
fn terminal_task_result() {
    cell("task t1\ntask t1 ends", "turn local_continuation", "turn resume_override");
}

#[test]
fn external_event() {
    cell("event news", "turn local_continuation", "parked m2");
    cell("message channel_event from=kid news", "turn local_continuation", "parked m2");
    cell("message callback_event news", "turn local_continuation", "parked m2");
}

#[test]
fn blank_external_event() {
    cell("event", "processed m1:", "processed m2:");
}

#[test]
fn timer() {
    cell("person CreateTimer after=1s tea\nadvance 1s", "turn local_continuation", "turn local_continuation");
}

#[test]
fn blank_timer() {
    cell("message timer_tick", "processed m1:", "processed m2:");
}

#[test]
fn internal_follow_up() {
    cell("message internal_followup look", "turn local_continuation", "parked m2");
}

#[test]
fn system_tick() {
    cell("message system_tick look", "turn local_continuation", "parked m2");
    cell("wake source=s look", "turn local_continuation", "parked m2");
}

#[test]
fn blank_system_tick() {
    cell("message system_tick", "processed m1:", "processed m2:");
    cell("wake source=s", "processed m1:", "processed m2:");
}

#[test]
fn non_terminal_task_status() {
    cell("message task_status running", "processed m1:", "processed m2:");
}

#[test]
fn control_message() {
    cell("message control look", "processed m1:", "processed m2:");
}

#[test]
fn work_tick() {
    cell("person CreateWorkItem build", "turn local_continuation", "turn local_continuation");
}

/// The tick of a sleep or timer wait that is no longer open. Ending the wait drops its tick, so only a record from
/// elsewhere can be one.
#[test]
fn mismatched_timer() {
    let story = Story::begin();
    let subject = SubjectRecord {
        waiting_intent_id: Some(WaitId::new("wait_over")),
        ..SubjectRecord::of(MessageKind::TimerTick)
    };
    let tick = Message { text: Some("tea".to_owned()), ..Message::new(MessageId::new("msg_1"), subject) };
    let classified = classify(&story.state, &tick);
    assert!(matches!(classified, Classification::Reduce { .. }), "{classified:?}");
    assert_eq!(classified.continuation().class, ContinuationClass::LivenessOnly);
    assert_eq!(classified.continuation().evidence, ["mismatched_timer"]);
}

/// The result of a task that still runs is no result.
#[test]
fn result_of_a_running_task() {
    let mut story = Story::begin();
    story.tell("task t1").unwrap();
    let subject = Subject::TaskResult { task_id: TaskId::new("t1"), work_item_id: None };
    let result = Message { text: Some("done".to_owned()), ..Message::new(MessageId::new("msg_1"), subject) };
    let classified = classify(&story.state, &result);
    assert_eq!(classified.continuation().class, ContinuationClass::LivenessOnly);
}

#[test]
fn every_kind_of_message_is_a_trigger() {
    let kinds: Vec<String> = MessageKind::ALL.iter().map(|kind| format!("{kind} {}", TriggerKind::of(*kind))).collect();
    let expected = [
        "operator_prompt operator_input",
        "channel_event external_event",
        "webhook_event external_event",
        "callback_event external_event",
        "timer_tick timer_fire",
        "system_tick system_tick",
        "task_result task_result",
        "task_status task_result",
        "control system_tick",
        "internal_followup internal_followup",
        "brief_ack system_tick",
        "brief_result system_tick",
    ];
    assert_eq!(kinds, expected);
}

/// A turn says why its message re-entered the model.
#[test]
fn a_turn_says_why_it_began() {
    let evidence = |lines: &str| {
        let mut story = Story::begin();
        lines.lines().for_each(|line| story.tell(line).unwrap());
        story.state.turns.last_continuation.unwrap().evidence
    };
    assert_eq!(evidence("operator hi"), ["no_wait_open"]);
    let waiting = "person CreateTimer after=1m tea\noperator hi\nround WaitFor external c1";
    assert_eq!(evidence(&format!("{waiting}\nadvance 1m")), ["stands_on_its_own"]);
    assert_eq!(evidence(&format!("{waiting}\noperator ho")), ["waits_open 1"]);
}
