//! Which work items a reader is shown, and what `why` says of each: always something that a person can act on.

use abide_kernel::admit;
use abide_kernel::id::Fresh;
use abide_kernel::input::{Answer, Input};
use abide_kernel::tool::RecordCall;
use abide_kernel::vocabulary::WorkItemFilter;
use serde_json::Value;

use crate::story::{Story, check};

#[test]
fn every_open_item_is_current_queued_blocked_or_waiting() {
    check(
        "person CreateWorkItem one
         person CreateWorkItem two
         person CreateWorkItem status=needs_input three
         person CreateWorkItem four
         person CreateWorkItem five
         person UpdateWorkItem w4 blocked=rain
         person PickWorkItem w1
         person CompleteWorkItem w5
         stop
         ---
         list all
         list open
         list completed
         list current
         list queued
         list blocked
         list waiting
         person UpdateWorkItem w1 blocked=hail
         list current
         list blocked",
        "all: w1 w2 w3 w4 w5
         open: w1 w2 w3 w4
         completed: w5
         current: w1
         queued: w2
         blocked: w4
         waiting: w3
         w1 blocked
         dropped m1: work_item_not_runnable
         current: w1
         blocked: w1 w4",
    );
}

#[test]
fn an_item_that_a_wait_holds_is_waiting() {
    check(
        "person CreateWorkItem build
         round WaitFor external c1 item=w1
         ---
         list waiting
         list queued
         why",
        "waiting: w1
         queued:
         a sleeps until something outside happens, for \"build\" (c1): later.",
    );
}

#[test]
fn why_of_work_that_needs_input() {
    check(
        "person CreateWorkItem status=needs_input build
         ---
         why",
        "a needs your input on \"build\"; send it a message.",
    );
}

#[test]
fn why_of_work_that_is_blocked() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain
         round done
         ---
         why
         on",
        "a is blocked on \"build\" by rain, and nothing will unblock it by itself: `abide work update --agent a w1 --unblock` when that is settled, or send it a message.
         the work item w1 (build), blocked by rain",
    );
}

#[test]
fn why_of_work_that_is_looked_at_again() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain recheck=2h
         round done
         ---
         why
         on",
        "a sleeps until +7200s, when it looks again at what blocks \"build\": rain.
         the work item w1 (build), blocked_until_recheck by rain, recheck at +7200s",
    );
}

#[test]
fn why_of_work_that_is_tried_again() {
    check(
        "person CreateWorkItem build
         round done
         ---
         why
         on",
        "a worked on \"build\" and nothing changed; it tries again at +30s, or when you send a message.
         the work item w1 (build), tried again at +30s",
    );
}

#[test]
fn why_of_work_that_came_to_nothing() {
    check(
        "person CreateWorkItem build
         round a
         advance 30s
         round b
         advance 2m
         round c
         advance 10m
         round d
         ---
         why
         on",
        "a tried \"build\" several times and nothing changed; send it a message to go on.
         the work item w1 (build), progress_spent",
    );
}

#[test]
fn why_of_a_question() {
    check(
        "person CreateWorkItem build
         round RequestApproval deadline=1h deploy it
         ---
         why
         person RequestApproval again
         why",
        "a waits for your approval, for \"build\": deploy it. `abide approval grant --agent a appr1`, or deny. Unanswered, it is denied at +3600s.
         wait2 operator_input on appr2
         appr2 asked
         a waits for your approval, for \"build\": deploy it. `abide approval grant --agent a appr1`, or deny. Unanswered, it is denied at +3600s. 1 more is pending.",
    );
}

#[test]
fn a_recheck_lies_within_a_hundred_years() {
    check(
        "person CreateWorkItem build
         ---
         person UpdateWorkItem w1 blocked=rain recheck=900000h",
        "refused too_far_ahead",
    );
}

/// The list that a model is shown when it asks for all of them.
fn listed(story: &mut Story) -> Value {
    let act = RecordCall::ListWorkItems { filter: WorkItemFilter::All };
    let input = Input::Act { by: "ann".to_owned(), act };
    let admitted = admit(&mut story.state, input, story.now, &mut Fresh::new(story.now, 1 << 40)).unwrap();
    let Answer::Acted(list) = admitted.answer else { panic!("it was not shown") };
    list.0
}

/// As many as there is room for, the first to be offered first; and it is said that there are more.
#[test]
fn a_list_that_is_cut_off_says_so() {
    let objectives = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["objective"].as_str().unwrap().to_owned()).collect()
    };
    let mut story = Story::begin();
    story.tell("stop").unwrap();
    for number in 1..=100 {
        story.tell(&format!("person CreateWorkItem {number}")).unwrap();
    }
    let list = listed(&mut story);
    assert_eq!((objectives(&list).len(), &list["truncated"]), (100, &Value::from(false)));
    story.tell("person CreateWorkItem more").unwrap();
    let list = listed(&mut story);
    let expected: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
    assert_eq!((objectives(&list), &list["truncated"]), (expected, &Value::from(true)));

    // Long ones are cut off sooner, and one is always shown.
    let mut story = Story::begin();
    story.tell("stop").unwrap();
    for number in 0..70 {
        story.tell(&format!("person CreateWorkItem {number}{}", "x".repeat(4_000))).unwrap();
    }
    let list = listed(&mut story);
    let shown = objectives(&list).len();
    assert!((60..66).contains(&shown), "{shown} of 70, each a little over 4,000 bytes");
    assert_eq!(list["truncated"], true);
}

#[test]
fn a_list_has_neither_plans_nor_reports() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 plan=p
         person CompleteWorkItem w1
         ---
         person ListWorkItems all
         answer",
        r#"{"items":[{"blocked_by":null,"budget":null,"current":false,"objective":"build","plan_status":"draft","readiness":"completed","recheck_at":null,"revision":3,"state":"completed","todo":[],"used":{"turns":1,"usage":{"cached_tokens":0,"cost_usd":0.0,"input_tokens":0,"output_tokens":0},"wall_ms":1},"work_item_id":"w1"}],"truncated":false}"#,
    );
}

#[test]
fn what_is_not_blocked_is_not_unblocked() {
    check(
        "person CreateWorkItem build
         ---
         person UpdateWorkItem w1 unblocked",
        "",
    );
}
