//! Closure, scheduling posture and readiness (spec 7).

use crate::story::check;

#[test]
fn a_runtime_error_is_a_failure_until_a_turn_completes() {
    check(
        "error disk
         closure
         operator hi
         ---
         closure
         round done
         closure",
        "failed awake
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts
         completed sleeping",
    );
}

#[test]
fn no_closure_while_a_turn_runs() {
    check(
        "operator hi
         ---
         closure
         posture
         status",
        "none awake
         active_turn
         awake_running",
    );
}

#[test]
fn a_failed_turn_is_a_failure_until_something_newer_is_admitted() {
    check(
        "operator hi
         fail invalid
         ---
         closure
         operator more
         fail invalid
         closure",
        "failed sleeping
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end provider_failed_needs_recovery
         processed m2: invalid: no
         told failure: invalid: no
         Sleep no_pending_scheduler_facts
         failed sleeping",
    );
}

#[test]
fn a_failed_turn_is_no_failure_once_something_is_awaited() {
    check(
        "operator hi
         abort
         ---
         closure
         person WaitFor external c1
         closure",
        "failed sleeping
         wait1 external on c1
         WaitForExternalChange active_agent_waiting_intents
         waiting awaiting_external_change sleeping",
    );
}

#[test]
fn queued_input_is_continuable() {
    check(
        "stop
         operator hi
         ---
         closure
         posture",
        "continuable sleeping
         archived",
    );
}

#[test]
fn runnable_work_is_continuable() {
    check(
        "person CreateWorkItem build
         round done
         ---
         closure
         posture
         status",
        "continuable sleeping
         has_runnable_work
         asleep",
    );
}

#[test]
fn an_operator_wait_goes_first() {
    check(
        "task t1
         person CreateTimer every=1h tea
         operator hi
         round WaitFor external c1
         operator hi
         round WaitFor task t1
         operator hi
         round WaitFor operator
         ---
         closure
         posture",
        "waiting awaiting_operator_input sleeping
         waiting_for_task",
    );
}

#[test]
fn a_task_wait_goes_next() {
    check(
        "task t1
         person CreateTimer every=1h tea
         operator hi
         round WaitFor external c1
         operator hi
         round WaitFor task t1
         ---
         closure
         posture",
        "waiting awaiting_task_result sleeping
         waiting_for_task",
    );
}

#[test]
fn an_external_wait_goes_before_a_timer() {
    check(
        "person CreateTimer every=1h tea
         operator hi
         round WaitFor external c1
         ---
         closure
         posture",
        "waiting awaiting_external_change sleeping
         waiting_for_external",
    );
}

#[test]
fn a_standing_timer_waits_and_is_idle() {
    check(
        "person CreateTimer every=1h tea
         ---
         closure
         posture",
        "waiting awaiting_timer sleeping
         idle",
    );
}

#[test]
fn an_active_task_alone_is_completed() {
    check(
        "task t1
         operator hi
         round done
         ---
         closure
         posture",
        "completed sleeping
         idle",
    );
}

#[test]
fn input_in_backoff_waits_for_a_timer() {
    check(
        "operator hi
         fail rate_limited after=1m
         operator more
         ---
         closure
         posture
         decide",
        "waiting awaiting_timer sleeping
         has_queued_input
         WaitForTimer provider_backoff m1",
    );
}

#[test]
fn a_failed_provider_is_a_failure_first() {
    check(
        "operator hi
         fail rate_limited after=1m
         ---
         closure",
        "failed sleeping",
    );
}

#[test]
fn needs_input_waits_for_the_operator() {
    check(
        "operator hi
         round CreateWorkItem build status=needs_input
         round done
         ---
         closure
         posture
         item w1",
        "waiting awaiting_operator_input sleeping
         waiting_for_operator
         needs_input revision 1",
    );
}

#[test]
fn a_recheck_waits_for_a_timer() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain recheck=1h
         round done
         ---
         closure
         posture
         item w1",
        "waiting awaiting_timer sleeping
         blocked
         blocked_until_recheck revision 2",
    );
}

#[test]
fn stuck_work_waits_for_the_operator() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain
         round done
         ---
         closure
         posture
         item w1",
        "waiting awaiting_operator_input sleeping
         blocked
         blocked revision 2",
    );
}

#[test]
fn a_timer_wait_is_blocked() {
    check(
        "operator hi
         round WaitFor timer after=1h
         ---
         posture
         closure",
        "blocked
         waiting awaiting_timer sleeping",
    );
}

#[test]
fn a_stopped_agent_is_archived() {
    check(
        "person CreateWorkItem build
         stop
         ---
         posture
         closure",
        "archived
         failed sleeping",
    );
}

#[test]
fn a_pending_approval_waits_for_the_operator() {
    check(
        "operator hi
         round RequestApproval deploy
         ---
         closure
         posture",
        "waiting awaiting_operator_input sleeping
         waiting_for_operator",
    );
}

#[test]
fn nothing_is_completed() {
    check(
        "operator hi
         round done
         ---
         closure
         posture",
        "completed sleeping
         idle",
    );
}

#[test]
fn readiness_follows_the_record_and_its_waits() {
    check(
        "operator hi
         round CreateWorkItem build
         item w1
         round UpdateWorkItem w1 status=needs_input
         item w1
         round UpdateWorkItem w1 status=ready blocked=rain
         item w1
         round UpdateWorkItem w1 recheck=1h
         item w1
         round UpdateWorkItem w1 unblocked
         item w1
         round PickWorkItem w1
         item w1
         round CompleteWorkItem w1
         item w1
         round PickWorkItem w1",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         w1 created
         runnable revision 1
         w1 updated to 2
         needs_input revision 2
         w1 updated to 3
         w1 blocked
         blocked revision 4
         w1 blocked
         blocked_until_recheck revision 5
         w1 unblocked
         runnable revision 6
         w1 picked
         runnable revision 6 current
         w1 completed
         completed revision 7
         PickWorkItem refused not_open",
    );
}

#[test]
fn each_wait_holds_its_item() {
    check(
        "task t1
         operator hi
         round CreateWorkItem build
         round WaitFor timer after=1h item=w1
         item w1
         operator hi
         round WaitFor external item=w1
         item w1
         operator hi
         round WaitFor task item=w1
         item w1
         operator hi
         round WaitFor operator item=w1
         item w1",
        "t1 created
         queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         w1 created
         wait1 timer on timer1 of w1
         timer1 at +3600s
         end completed
         processed m1
         told ack: Waiting.
         WaitForTimer work_item_timer_wait w1
         waiting_for_timer revision 1
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         wait2 external of w1
         end completed
         processed m2
         told ack: Waiting.
         WaitForExternalChange work_item_external_wait w1
         waiting_for_external revision 1
         queued m3 operator_prompt
         StartModelTurn model_reentry_message m3
         turn local_continuation
         wait3 task_result of w1
         end completed
         processed m3
         told ack: Waiting.
         WaitForTask work_item_task_wait w1
         waiting_for_task revision 1
         queued m4 operator_prompt
         StartModelTurn model_reentry_message m4
         turn local_continuation
         wait4 operator_input of w1
         end completed
         processed m4
         told ack: Waiting.
         WaitForOperator active_operator_wait w1
         waiting_for_operator revision 1",
    );
}

#[test]
fn a_completed_item_never_runs_again() {
    check(
        "person CreateWorkItem build
         round CompleteWorkItem w1
         ---
         round done
         person UpdateWorkItem w1 plan=x
         person CompleteWorkItem w1
         person PickWorkItem w1",
        "end completed
         processed m1
         Sleep no_pending_scheduler_facts
         refused not_open
         refused not_open
         refused not_open",
    );
}

#[test]
fn writing_the_same_again_is_no_revision() {
    check(
        "operator hi
         round CreateWorkItem build
         round UpdateWorkItem w1 plan=x
         round UpdateWorkItem w1 plan=x
         item w1",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         w1 created
         w1 updated to 2
         runnable revision 2",
    );
}

#[test]
fn a_recheck_needs_a_blocker() {
    check(
        "operator hi
         round CreateWorkItem build
         round UpdateWorkItem w1 recheck=1h",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         w1 created
         UpdateWorkItem refused not_blocked",
    );
}

#[test]
fn completing_clears_the_focus_and_keeps_triggers() {
    check(
        "operator hi
         round CreateWorkItem build
         round PickWorkItem w1
         round CreateTrigger hook
         round CompleteWorkItem w1
         round done
         ---
         item w1
         event trigger=trig1 news",
        "completed revision 2
         queued m2 webhook_event
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn what_is_waited_for_is_counted_in_the_evidence() {
    check(
        "person CreateTimer every=1h tea
         person CreateTimer every=1h milk
         stop
         person CreateWorkItem build
         person UpdateWorkItem w1 blocked=rain recheck=2h
         closing
         start
         ---
         closing",
        "timers 3",
    );
}

/// All work that needs a person is counted together: questions, items that need input, and those that nothing came of.
#[test]
fn what_needs_a_person_is_counted_together() {
    check(
        "stop
         person CreateWorkItem status=needs_input one
         person CreateWorkItem status=needs_input two
         person CreateWorkItem status=needs_input three
         start
         operator hi
         round RequestApproval deploy it
         ---
         closing",
        "operator_waits 5",
    );
    check(
        "person CreateWorkItem max_turns=1 build
         round done
         stop
         person CreateWorkItem status=needs_input one
         start
         ---
         closing",
        "operator_waits 2",
    );
}
