//! Messages that stand back behind a wait, those that do not, and how they are freed again (spec 8).

use crate::story::check;

#[test]
fn a_trigger_that_enqueues_stands_on_its_own() {
    check(
        "person CreateTrigger hook
         operator hi
         round WaitFor external c9
         ---
         event trigger=trig1 news
         waits",
        "queued m2 webhook_event
         StartModelTurn model_reentry_message m2
         turn local_continuation
         [wait1]",
    );
}

#[test]
fn a_schedule_is_not_silenced_by_an_open_question() {
    check(
        "person CreateTimer every=1m tea
         operator hi
         round WaitFor operator
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
fn work_ticks_re_enter_whatever_is_awaited() {
    check(
        "operator hi
         round WaitFor operator
         ---
         person CreateWorkItem build",
        "w1 created
         EmitSystemTick queued_available w1
         queued m2 system_tick work_queue:queued_available:w1:1
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1",
    );
}

#[test]
fn rechecks_re_enter_whatever_is_awaited() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain recheck=1m
         round WaitFor external c1
         ---
         advance 1m",
        "w1 recheck
         queued m2 recheck
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1",
    );
}

#[test]
fn waits_of_another_item_do_not_park() {
    check(
        "person CreateWorkItem build
         round WaitFor external c1
         ---
         event news",
        "queued m2 webhook_event
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn waits_of_its_own_item_park() {
    check(
        "person CreateWorkItem build
         round WaitFor external c1
         ---
         event item=w1 news",
        "queued m2 webhook_event
         ReduceMessageOnly message_parked m2 w1
         parked m2 behind wait1
         WaitForExternalChange work_item_external_wait w1",
    );
}

#[test]
fn a_question_of_the_runtime_parks_nothing() {
    check(
        "operator a
         crash
         crash
         crash
         ---
         event news",
        "queued m2 webhook_event
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn a_sleep_parks_nothing() {
    check(
        "operator hi
         round Sleep 1h
         ---
         event news",
        "queued m2 webhook_event
         StartModelTurn model_reentry_message m2
         wait1 cancelled: turn_started
         timer1 cancelled: wait_ended
         turn local_continuation",
    );
}

#[test]
fn what_is_parked_is_freed_when_the_wait_ends() {
    check(
        "operator hi
         round WaitFor external c1
         event one
         event two
         pending
         ---
         person CancelWait wait1
         round done",
        "queued m4 internal_followup
         wait1 cancelled: cancelled_by ann
         requeued m2 unparked
         requeued m3 unparked
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         StartModelTurn model_reentry_message m3
         turn local_continuation",
    );
}

#[test]
fn what_is_parked_is_matched_when_a_wait_is_registered() {
    check(
        "operator hi
         round WaitFor external c1
         event corr=c2 news
         operator hi
         ---
         round WaitFor external c2
         waits",
        "wait2 external on c2
         end completed
         processed m3
         told ack: Waiting.
         requeued m2 unparked
         StartModelTurn model_reentry_message m2
         wait2 triggered by m2
         turn resume_expected_wait
         [wait1]",
    );
}

#[test]
fn what_is_parked_stays_behind_the_other_wait() {
    check(
        "person CreateWorkItem build
         round WaitFor external c1
         operator hi
         round WaitFor external c2
         event item=w1 news
         ---
         event corr=c2 go
         pending",
        "queued m4 webhook_event
         StartModelTurn model_reentry_message m4
         wait2 triggered by m4
         turn resume_expected_wait
         pending 1 parked 1",
    );
}

#[test]
fn what_is_parked_is_no_input() {
    check(
        "operator hi
         round WaitFor external c1
         event news
         ---
         pending
         posture
         closure
         replay
         why",
        "pending 0 parked 1
         waiting_for_external
         waiting awaiting_external_change sleeping
         []
         a sleeps until something outside happens (c1): later. 1 message is parked behind what it waits for.",
    );
}

#[test]
fn why_counts_what_is_parked_behind_each_wait() {
    check(
        "person CreateWorkItem build
         round WaitFor external c1
         operator hi
         round WaitFor external c2
         event item=w1 news
         event more
         ---
         on",
        "an external event (c1) for w1 (1 message is parked behind it): later, since +0s
         an external event (c2) for the agent (2 messages are parked behind it): later, since +0s",
    );
}

#[test]
fn a_hint_with_a_body_is_parked_behind_what_it_does_not_name() {
    check(
        "operator hi
         round WaitFor external c1
         ---
         wake source=s news",
        "hint s triggered
         answered parked: it is parked behind wait1, and taken when that ends
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:s:1
         ReduceMessageOnly message_parked m2
         parked m2 behind wait1
         WaitForExternalChange active_agent_waiting_intents",
    );
}

/// A message that was taken out of turn goes back to the front; the parked message whose place that was keeps its own.
#[test]
fn a_returned_message_takes_no_parked_messages_place() {
    check(
        "operator hi
         round WaitFor external c1
         event news
         person CreateWorkItem build
         stop
         operator first
         start
         stop
         person CancelWait wait1
         ---
         pending
         start
         round done
         round done",
        "pending 4 parked 0
         control start awake_idle
         StartModelTurn model_reentry_message m4
         turn resume_override
         end completed
         processed m4
         told result: done
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1",
    );
}
