//! Order and precedence, suppressed work that is shown as such, and the scope of a wait (spec 5 and 6).

use crate::story::check;

#[test]
fn an_active_task_alone_is_no_wait() {
    check(
        "person CreateWorkItem build
         round done
         ---
         task t1 item=w1
         decide",
        "t1 created of w1
         EmitSystemTick queued_available w1
         queued m2 system_tick work_queue:queued_available:w1:1:1
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1
         Noop turn_in_progress",
    );
}

#[test]
fn a_tick_under_way_is_not_doubled() {
    check(
        "person CreateWorkItem build
         round PickWorkItem w1
         ---
         fail rate_limited after=1m
         decide",
        "end provider_failed_needs_recovery
         requeued m1 provider_backoff until +60s
         WaitForTimer provider_backoff m1 ignoring duplicate_tick w1
         WaitForTimer provider_backoff m1 ignoring duplicate_tick w1",
    );
}

#[test]
fn a_wake_tick_under_way_is_not_doubled() {
    check(
        "wake source=s body
         fail rate_limited after=1m
         ---
         wake source=s more
         decide",
        "hint s coalesced
         WaitForTimer provider_backoff m1 ignoring duplicate_wake_hint 1
         WaitForTimer provider_backoff m1 ignoring duplicate_wake_hint 1",
    );
}

#[test]
fn a_turn_about_the_item_suppresses_its_tick() {
    check(
        "stop
         person CreateWorkItem build
         person PickWorkItem w1
         operator hi
         start
         ---
         round done",
        "end completed
         processed m1
         told result: done
         WaitForTimer tick_backoff w1 ignoring suppressed_after_reentry w1",
    );
}

#[test]
fn a_sleep_of_the_agent_holds_back_offers() {
    check(
        "operator hi
         round Sleep 1m
         person CreateWorkItem build
         decide
         advance 1m",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         wait1 sleep on timer1
         timer1 at +60s
         end completed
         processed m1
         told ack: Waiting.
         WaitForTimer active_timers ignoring held_by_sleep wait1
         w1 created
         WaitForTimer active_timers ignoring held_by_sleep wait1
         queued m2 timer_tick
         timer1 fired in m2
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn a_decision_is_recorded_once() {
    check(
        "person CreateTimer every=1h tea
         ---
         advance 1s
         advance 1s
         decide",
        "WaitForTimer active_timers",
    );
}

#[test]
fn evidence_does_not_depend_on_the_clock() {
    check(
        "person CreateTimer every=1h tea
         ---
         evidence
         advance 30m
         evidence",
        "timer timer1 next +3600s seq 7
         timer timer1 next +3600s seq 7",
    );
}

#[test]
fn an_agent_level_wait_silences_no_runnable_work() {
    check(
        "operator hi
         round WaitFor external c1
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
fn a_timer_turn_does_not_run_twice_while_an_operator_waits() {
    check(
        "person CreateTimer every=1s tea
         advance 1s
         operator hi
         advance 5s
         ---
         round done
         round done",
        "end completed
         processed m1
         queued m3 timer_tick
         timer1 fired in m3
         timer1 missed 4 (+2s to +5s) coalesced
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: done
         StartModelTurn model_reentry_message m3
         turn local_continuation",
    );
}

#[test]
fn a_timer_turn_does_not_run_twice_while_work_is_due() {
    check(
        "person CreateTimer every=1s tea
         advance 1s
         person CreateWorkItem build
         advance 5s
         ---
         round done
         round done",
        "end completed
         processed m1
         queued m2 timer_tick
         timer1 fired in m2
         timer1 missed 4 (+2s to +5s) coalesced
         EmitSystemTick queued_available w1
         queued m3 system_tick work_queue:queued_available:w1:1
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1
         end completed
         processed m3
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn a_work_tick_does_not_run_twice_while_an_operator_waits() {
    check(
        "person CreateWorkItem build
         person CreateWorkItem test
         operator hi
         ---
         round done",
        "end completed
         processed m1
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn results_timer_ticks_and_hints_are_next() {
    check(
        "operator a
         person CreateTimer after=1s tea
         task t1
         operator b
         task t1 ends
         advance 1s
         wake body
         ---
         round done
         round done
         round done",
        "end completed
         processed m1
         told result: done
         StartModelTurn model_reentry_message m3 t1
         turn local_continuation shows t1
         read t1: round 1
         end completed
         processed m3
         StartModelTurn model_reentry_message m4
         turn local_continuation
         end completed
         processed m4
         timer1 completed
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn a_wait_belongs_to_the_item_named() {
    check(
        "person CreateWorkItem build
         person CreateWorkItem test
         ---
         round WaitFor operator item=w2",
        "wait1 operator_input of w2
         end completed
         processed m1
         WaitForOperator active_operator_wait w2",
    );
}

#[test]
fn a_wait_belongs_to_the_items_turn_else_the_focus_else_the_agent() {
    check(
        "person CreateWorkItem build
         person PickWorkItem w1
         round done
         round done
         operator hi
         ---
         round RequestApproval deploy",
        "wait1 operator_input on appr1 of w1
         appr1 asked of w1
         end completed
         processed m3
         told ack: Waiting.
         WaitForOperator approval_pending w1",
    );
}

#[test]
fn an_approval_holds_the_item_it_is_about() {
    check(
        "person CreateWorkItem build
         ---
         round RequestApproval deploy
         item w1
         person DecideApproval appr1 grant",
        "wait1 operator_input on appr1 of w1
         appr1 asked of w1
         end completed
         processed m1
         WaitForOperator approval_pending w1
         waiting_for_operator revision 1
         appr1 granted by ann
         queued m2 internal_followup
         StartModelTurn model_reentry_message m2 w1
         wait1 triggered by m2
         turn resume_expected_wait of w1",
    );
}

#[test]
fn an_operator_goes_before_the_second_tick_in_a_row() {
    check(
        "person CreateTimer every=1m tea
         person CreateWorkItem build
         round done
         advance 1m
         operator x
         ---
         advance 1m
         round done
         round done",
        "end completed
         processed m2
         queued m4 timer_tick
         timer1 fired in m4
         StartModelTurn model_reentry_message m3
         turn local_continuation
         end completed
         processed m3
         told result: done
         StartModelTurn model_reentry_message m4
         turn local_continuation",
    );
}
