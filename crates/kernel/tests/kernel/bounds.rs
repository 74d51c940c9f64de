//! Every bound of an input at its edge: as much as is allowed is taken, and one more is refused.

use abide_kernel::budget::Limits;
use abide_kernel::config::{Config, Identity};
use abide_kernel::id::{AgentId, Fresh, TriggerId, WorkItemId};
use abide_kernel::input::{Answer, Delivery, Input, NewMessage};
use abide_kernel::limits;
use abide_kernel::time::Time;
use abide_kernel::todo::Todo;
use abide_kernel::tool::{RecordCall, When, WorkItemChange};
use abide_kernel::vocabulary::{ApprovalDefault, CatchUp, DeliveryMode, PlanStatus, TodoState, WaitKind};
use abide_kernel::{AgentState, admit};
use serde_json::Value;

const NOW_MS: i64 = 1_800_000_000_000;

/// An agent at work whose answers are looked at. Nothing is decided in between.
struct Asked {
    state: AgentState,
    draws: u64,
}

impl Asked {
    fn agent() -> Asked {
        let id = AgentId::new("a").unwrap();
        let mut asked = Asked { state: AgentState::empty(id.clone()), draws: 0 };
        let create = Input::Create { identity: Identity::named(id), config: Config::default(), start: true };
        asked.ask(create).unwrap();
        asked
    }

    /// The answer, or the code of the refusal.
    fn ask(&mut self, input: Input) -> Result<Answer, &'static str> {
        self.draws += 1;
        let now = Time::from_ms(NOW_MS + i64::try_from(self.draws).unwrap());
        let mut fresh = Fresh::new(now, self.draws << 32);
        admit(&mut self.state, input, now, &mut fresh)
            .map(|admitted| admitted.answer)
            .map_err(|refusal| refusal.code.word())
    }

    fn act(&mut self, act: RecordCall) -> Result<Value, &'static str> {
        let answer = self.ask(Input::Act { by: "ann".to_owned(), act })?;
        let Answer::Acted(shown) = answer else { panic!("{answer:?}") };
        Ok(shown.0)
    }

    fn item(&mut self) -> WorkItemId {
        let shown = self.act(item("build")).unwrap();
        WorkItemId::new(shown["work_item_id"].as_str().unwrap())
    }
}

fn item(objective: &str) -> RecordCall {
    RecordCall::CreateWorkItem {
        objective: objective.to_owned(),
        plan: None,
        plan_status: None,
        todo: Vec::new(),
        budget: None,
    }
}

/// An act with a text of `max` bytes is taken, and one with a byte more is refused.
#[track_caller]
fn holds(max: usize, code: &str, act: impl Fn(String) -> RecordCall) {
    let mut asked = Asked::agent();
    assert_eq!(asked.act(act("x".repeat(max))).err(), None);
    assert_eq!(asked.act(act("x".repeat(max + 1))).err(), Some(code));
}

#[test]
fn texts_of_acts_end_at_their_bound() {
    let (line, text) = (limits::LINE_BYTES, limits::TEXT_BYTES);
    holds(line, "too_long", |objective| item(&objective));
    holds(text, "too_long", |plan| RecordCall::CreateWorkItem {
        objective: "build".to_owned(),
        plan: Some(plan),
        plan_status: None,
        todo: Vec::new(),
        budget: None,
    });
    holds(text, "too_long", |text| RecordCall::NotifyOperator { text });
    holds(line, "too_long", |reason| RecordCall::WaitFor {
        wake: WaitKind::Operator,
        resource: None,
        after_ms: None,
        work_item_id: None,
        reason,
    });
    holds(line, "too_long", |resource| RecordCall::WaitFor {
        wake: WaitKind::External,
        resource: Some(resource),
        after_ms: None,
        work_item_id: None,
        reason: "later".to_owned(),
    });
    holds(line, "too_long", |summary| RecordCall::RequestApproval {
        summary,
        tool: None,
        deadline_ms: None,
        default: ApprovalDefault::Deny,
    });
    holds(line, "too_long", |name| RecordCall::CreateTrigger {
        name,
        delivery_mode: DeliveryMode::WakeHint,
        work_item_id: None,
        signed: false,
        address: None,
    });
    holds(line, "too_long", |summary| timer(summary, When::AfterMs(1_000), None));
    holds(line, "too_long", |check| timer("tea".to_owned(), When::AfterMs(1_000), Some(check)));
}

fn timer(summary: String, when: When, check: Option<String>) -> RecordCall {
    RecordCall::CreateTimer { summary, when, catch_up: CatchUp::Latest, work_item_id: None, check }
}

/// An item's change by a text.
type Change = fn(String) -> WorkItemChange;

#[test]
fn texts_of_a_changed_item_end_at_their_bound() {
    let (line, text) = (limits::LINE_BYTES, limits::TEXT_BYTES);
    let cases: [(usize, Change); 3] = [
        (line, |text| WorkItemChange { objective: Some(text), ..WorkItemChange::default() }),
        (text, |text| WorkItemChange { plan: Some(text), ..WorkItemChange::default() }),
        (line, |text| WorkItemChange { blocked_by: Some(Some(text)), ..WorkItemChange::default() }),
    ];
    for (max, change) in cases {
        let mut asked = Asked::agent();
        let work_item_id = asked.item();
        let update =
            |text| RecordCall::UpdateWorkItem { work_item_id: work_item_id.clone(), change: Box::new(change(text)) };
        let longest = update("x".repeat(max));
        assert_eq!(asked.act(update("x".repeat(max + 1))).err(), Some("too_long"));
        assert_eq!(asked.act(longest).err(), None);
    }
    let mut asked = Asked::agent();
    let work_item_id = asked.item();
    let complete = |report: String| RecordCall::CompleteWorkItem { work_item_id: work_item_id.clone(), report };
    assert_eq!(asked.act(complete("x".repeat(text + 1))).err(), Some("too_long"));
    assert_eq!(asked.act(complete("x".repeat(text))).err(), None);
}

fn todo(text: &str, state: TodoState) -> Todo {
    Todo { text: text.to_owned(), state }
}

/// The same for an item that is made and for one that is changed.
#[track_caller]
fn todo_is(todo: &[Todo], expected: Option<&str>) {
    let mut asked = Asked::agent();
    let work_item_id = asked.item();
    let change = WorkItemChange { todo: Some(todo.to_vec()), ..WorkItemChange::default() };
    assert_eq!(asked.act(RecordCall::UpdateWorkItem { work_item_id, change: Box::new(change) }).err(), expected);
    let made = RecordCall::CreateWorkItem {
        objective: "build".to_owned(),
        plan: None,
        plan_status: None,
        todo: todo.to_vec(),
        budget: None,
    };
    assert_eq!(asked.act(made).err(), expected);
}

#[test]
fn a_todo_list_has_a_number_of_entries_each_a_line_and_one_in_progress() {
    let pending = |text: &str| todo(text, TodoState::Pending);
    todo_is(&vec![pending("step"); limits::TODO_MAX], None);
    todo_is(&vec![pending("step"); limits::TODO_MAX + 1], Some("todo_too_long"));
    todo_is(&[pending(&"x".repeat(limits::LINE_BYTES))], None);
    todo_is(&[pending("one"), pending(&"x".repeat(limits::LINE_BYTES + 1))], Some("todo_too_long"));
    let begun = |text: &str| todo(text, TodoState::InProgress);
    todo_is(&[begun("one"), pending("two"), pending("three")], None);
    todo_is(&[begun("one"), pending("two"), begun("three")], Some("one_in_progress"));
}

#[test]
fn a_message_is_as_long_as_its_bound() {
    let message = |size: usize| {
        let text = Some("x".repeat(size));
        Input::Queue(NewMessage { text, ..NewMessage::default() })
    };
    let mut asked = Asked::agent();
    assert_eq!(asked.ask(message(limits::MESSAGE_BYTES + 1)).err(), Some("message_too_large"));
    assert_eq!(asked.ask(message(limits::MESSAGE_BYTES)).err(), None);
}

#[test]
fn a_time_lies_within_a_hundred_years() {
    let mut asked = Asked::agent();
    let far = limits::TIMER_AHEAD_MAX_MS;
    let after = |ms| timer("tea".to_owned(), When::AfterMs(ms), None);
    assert_eq!(asked.act(after(far)).err(), None);
    assert_eq!(asked.act(after(far + 1)).err(), Some("too_far_ahead"));
    let every = |ms| timer("tea".to_owned(), When::EveryMs(ms), None);
    assert_eq!(asked.act(every(limits::TIMER_EVERY_MIN_MS)).err(), None);
    assert!(asked.act(every(limits::TIMER_EVERY_MIN_MS - 1)).is_err());
}

/// A time that has just passed is meant as now.
#[test]
fn a_moment_that_has_just_passed_is_taken() {
    let mut asked = Asked::agent();
    let mut at = |ms: i64| {
        let now = NOW_MS + i64::try_from(asked.draws).unwrap() + 1;
        asked.act(timer("tea".to_owned(), When::At(Time::from_ms(now + ms)), None)).err()
    };
    let just = i64::try_from(limits::JUST_PASSED_MS).unwrap();
    assert_eq!((at(-just), at(-just - 1), at(-just - 1_000)), (None, Some("in_the_past"), Some("in_the_past")));
    let far = i64::try_from(limits::TIMER_AHEAD_MAX_MS).unwrap();
    assert_eq!((at(0), at(far), at(far + 1)), (None, None, Some("too_far_ahead")));
}

#[test]
fn a_sleep_says_why() {
    let mut asked = Asked::agent();
    let sleep =
        |reason: Option<&str>| RecordCall::Sleep { reason: reason.map(str::to_owned), duration_ms: Some(1_000) };
    for reason in [None, Some(" "), Some("nap")] {
        asked.act(sleep(reason)).unwrap();
    }
    let reasons: Vec<&str> = asked.state.planes.waits.open().values().map(|wait| wait.reason.as_str()).collect();
    assert_eq!(reasons, ["The sleep is over.", "The sleep is over.", "nap"]);
    let long = "x".repeat(limits::LINE_BYTES + 1);
    assert_eq!(asked.act(sleep(Some(&long))).err(), Some("too_long"));
}

/// A delivery that wakes says what it brought; of one that is too long, the beginning.
#[test]
fn a_delivery_that_wakes_keeps_its_body_up_to_the_bound() {
    let mut asked = Asked::agent();
    let made = asked.act(RecordCall::CreateTrigger {
        name: "hook".to_owned(),
        delivery_mode: DeliveryMode::WakeHint,
        work_item_id: None,
        signed: false,
        address: None,
    });
    let trigger_id = TriggerId::new(made.unwrap()["trigger_id"].as_str().unwrap());
    let long = "x".repeat(limits::TEXT_BYTES + 1);
    for text in ["news", &long] {
        let delivery = Delivery { text: Some(text.to_owned()), ..Delivery::default() };
        asked.ask(Input::Deliver { trigger_id: trigger_id.clone(), generation: 0, verified: false, delivery }).unwrap();
    }
    let hint = asked.state.planes.hints.pending().values().next().unwrap();
    assert_eq!(hint.bodies, ["news", &long[..limits::TEXT_BYTES]]);
}

#[test]
fn open_records_of_one_kind_end_at_their_bound() {
    let trigger = || RecordCall::CreateTrigger {
        name: "hook".to_owned(),
        delivery_mode: DeliveryMode::WakeHint,
        work_item_id: None,
        signed: false,
        address: None,
    };
    let mut asked = Asked::agent();
    asked.act(trigger()).unwrap();
    let one = asked.state.planes.triggers.values().next().unwrap().clone();
    for index in 2..limits::OPEN_RECORDS_MAX {
        asked.state.planes.triggers.insert(TriggerId::new(format!("trig_{index}")), one.clone());
    }
    assert_eq!(asked.act(trigger()).err(), None);
    assert_eq!(asked.act(trigger()).err(), Some("too_many"));
}

/// A record that is written again with the same content is not revised.
#[test]
fn only_what_differs_is_a_change_of_an_item() {
    let set = |text: &str| {
        let limits = Limits { max_turns: Some(text.len() as u64), ..Limits::default() };
        let plan_status = if text == "one" { PlanStatus::Ready } else { PlanStatus::Draft };
        [
            WorkItemChange { objective: Some(text.to_owned()), ..WorkItemChange::default() },
            WorkItemChange { plan: Some(text.to_owned()), ..WorkItemChange::default() },
            WorkItemChange { plan_status: Some(plan_status), ..WorkItemChange::default() },
            WorkItemChange { todo: Some(vec![todo(text, TodoState::Pending)]), ..WorkItemChange::default() },
            WorkItemChange { blocked_by: Some(Some(text.to_owned())), ..WorkItemChange::default() },
            WorkItemChange { budget: Some(limits), ..WorkItemChange::default() },
        ]
    };
    for (one, other) in set("one").into_iter().zip(set("three")) {
        let mut asked = Asked::agent();
        let work_item_id = asked.item();
        let mut revision = |change: &WorkItemChange| {
            let change = Box::new(change.clone());
            let act = RecordCall::UpdateWorkItem { work_item_id: work_item_id.clone(), change };
            asked.act(act).unwrap()["revision"].as_u64().unwrap()
        };
        let revisions = [revision(&one), revision(&one), revision(&other), revision(&other)];
        assert_eq!(revisions, [2, 2, 3, 3], "{one:?}");
    }
}
