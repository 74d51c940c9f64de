//! Which waits a message ends: the one it names, those of its kind that name nothing (spec 8).

use crate::story::check;

#[test]
fn a_named_wait_is_satisfied_by_what_it_names() {
    check(
        "operator hi
         round WaitFor external c1
         ---
         event corr=c1 news",
        "queued m2 webhook_event
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn a_named_wait_is_not_satisfied_by_another() {
    check(
        "operator hi
         round WaitFor external c1
         ---
         event corr=c2 news
         waits",
        "queued m2 webhook_event
         ReduceMessageOnly message_parked m2
         parked m2 behind wait1
         WaitForExternalChange active_agent_waiting_intents
         [wait1]",
    );
}

#[test]
fn an_unnamed_wait_is_satisfied_by_any_of_its_kind() {
    check(
        "operator hi
         round WaitFor external
         ---
         event corr=c2 news",
        "queued m2 webhook_event
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn an_unnamed_wait_is_not_satisfied_by_a_blank_event() {
    check(
        "operator hi
         round WaitFor external
         ---
         event corr=c2
         waits",
        "queued m2 webhook_event
         ReduceMessageOnly liveness_only_message m2
         processed m2: blank
         WaitForExternalChange active_agent_waiting_intents
         [wait1]",
    );
}

#[test]
fn a_blank_event_resumes_the_wait_it_names() {
    check(
        "operator hi
         round WaitFor external c1
         ---
         event corr=c1",
        "queued m2 webhook_event
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn one_event_ends_all_waits_it_satisfies() {
    check(
        "person CreateWorkItem build
         round WaitFor external c1
         operator hi
         round WaitFor external c1
         operator hi
         round WaitFor external
         ---
         event corr=c1 news
         waits",
        "queued m4 webhook_event
         StartModelTurn model_reentry_message m4
         wait1 triggered by m4
         wait2 triggered by m4
         wait3 triggered by m4
         turn resume_expected_wait
         []",
    );
}

#[test]
fn an_operator_ends_the_question_of_the_item_in_focus() {
    check(
        "person CreateWorkItem build
         person CreateWorkItem test
         person PickWorkItem w1
         round WaitFor operator item=w1
         round WaitFor operator item=w2
         ---
         operator yes
         waits",
        "queued m3 operator_prompt
         StartModelTurn model_reentry_message m3
         wait1 triggered by m3
         turn resume_expected_wait of w1
         [wait2]",
    );
}

#[test]
fn an_operator_ends_the_newest_question_else() {
    check(
        "person CreateWorkItem build
         person CreateWorkItem test
         round WaitFor operator item=w1
         round WaitFor operator item=w2
         ---
         operator yes
         waits",
        "queued m3 operator_prompt
         StartModelTurn model_reentry_message m3
         wait2 triggered by m3
         turn resume_expected_wait
         [wait1]",
    );
}

#[test]
fn an_operator_does_not_decide_an_approval_by_talking() {
    check(
        "operator hi
         round RequestApproval deploy
         ---
         operator what
         waits",
        "queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn resume_override
         [wait1]",
    );
}

#[test]
fn an_interjection_satisfies_waits_as_its_own_turn_would() {
    check(
        "operator hi
         round WaitFor operator
         event corr=c1 news
         message internal_followup x
         operator hi
         round WaitFor operator
         task t1
         task t1 ends
         interject yes
         ---
         round go",
        "read t1: round 1
         interjected m6 into m5
         wait2 triggered by m6
         requeued m2 unparked
         requeued m3 unparked",
    );
}

#[test]
fn a_task_result_resumes_the_wait_that_names_it() {
    check(
        "task t1
         task t2
         operator hi
         round WaitFor task t1
         ---
         task t1 ends",
        "t1 completed
         queued m2 task_result
         result of t1 in m2
         StartModelTurn model_reentry_message m2 t1
         wait1 triggered by m2
         turn resume_expected_wait shows t1",
    );
}

#[test]
fn another_tasks_result_overrides() {
    check(
        "task t1
         task t2
         operator hi
         round WaitFor task t1
         ---
         task t2 ends
         waits",
        "t2 completed
         queued m2 task_result
         result of t2 in m2
         StartModelTurn model_reentry_message m2 t2
         turn resume_override shows t2
         [wait1]",
    );
}

#[test]
fn an_unnamed_task_wait_is_satisfied_by_any_result() {
    check(
        "task t1
         task t2
         operator hi
         round WaitFor task
         ---
         task t2 ends",
        "t2 completed
         queued m2 task_result
         result of t2 in m2
         StartModelTurn model_reentry_message m2 t2
         wait1 triggered by m2
         turn resume_expected_wait shows t2",
    );
}

#[test]
fn a_timer_resumes_the_wait_that_names_it() {
    check(
        "person CreateTimer every=1m tea
         operator hi
         round WaitFor timer timer1
         ---
         advance 1m",
        "queued m2 timer_tick
         timer1 fired in m2
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn another_timer_leaves_it_waiting() {
    check(
        "person CreateTimer every=1m tea
         person CreateTimer every=1h cake
         operator hi
         round WaitFor timer timer2
         ---
         advance 1m
         waits",
        "queued m2 timer_tick
         timer1 fired in m2
         StartModelTurn model_reentry_message m2
         turn local_continuation
         [wait1]",
    );
}

#[test]
fn an_unnamed_timer_wait_is_satisfied_by_any_timer() {
    check(
        "person CreateTimer every=1m tea
         operator hi
         round WaitFor timer
         ---
         advance 1m",
        "queued m2 timer_tick
         timer1 fired in m2
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn a_trigger_resumes_the_wait_that_names_it() {
    check(
        "person CreateTrigger hook
         operator hi
         round WaitFor external trig1
         ---
         event news
         event trigger=trig1 news",
        "queued m2 webhook_event
         ReduceMessageOnly message_parked m2
         parked m2 behind wait1
         WaitForExternalChange active_agent_waiting_intents
         queued m3 webhook_event
         StartModelTurn model_reentry_message m3
         wait1 triggered by m3
         turn resume_expected_wait
         requeued m2 unparked",
    );
}

#[test]
fn a_trigger_that_only_wakes_takes_no_message() {
    check(
        "person CreateTrigger mode=wake_hint hook
         ---
         event trigger=trig1 news",
        "refused trigger_only_wakes",
    );
}

#[test]
fn a_blank_hint_resumes_the_wait_it_names() {
    check(
        "operator hi
         round WaitFor external c1
         ---
         wake resource=c1",
        "hint c1 triggered
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:c1:1
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn a_blank_hint_resumes_the_wait_it_names_by_id() {
    check(
        "operator hi
         round WaitFor external c1
         ---
         wake resource=wait1",
        "hint wait1 triggered
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:wait1:1
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn a_blank_hint_makes_backed_off_ticks_due() {
    check(
        "person CreateWorkItem build
         round done
         ---
         wake source=s",
        "hint s triggered
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:s:1
         ReduceMessageOnly liveness_only_message m2
         processed m2: blank
         EmitSystemTick queued_available w1
         queued m3 system_tick work_queue:queued_available:w1:1:1
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1",
    );
}

#[test]
fn an_approval_comes_back_to_the_wait_that_asked() {
    check(
        "operator hi
         round RequestApproval deadline=1m default=grant deploy
         ---
         advance 1m",
        "appr1 expired by deadline
         queued m2 internal_followup
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn a_message_is_classified_when_it_is_taken() {
    check(
        "operator hi
         event corr=c1 news
         ---
         round WaitFor external c1",
        "wait1 external on c1
         end completed
         processed m1
         told ack: Waiting.
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}
