//! The table of decisions, rows 8 to 14: what an agent that has nothing to do waits for, first things first (spec 5 and 6).

use crate::story::check;

#[test]
fn needs_input_goes_before_other_questions() {
    check(
        "operator hi
         round CreateWorkItem build status=needs_input ; RequestApproval deploy
         decide
         person UpdateWorkItem w1 status=ready",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         w1 created
         wait1 operator_input on appr1 of w1
         appr1 asked of w1
         end completed
         processed m1
         told ack: Waiting.
         WaitForOperator work_item_needs_input w1
         WaitForOperator work_item_needs_input w1
         w1 updated to 2
         WaitForOperator approval_pending w1",
    );
}

#[test]
fn an_operator_wait_goes_before_an_approval() {
    check(
        "operator hi
         round RequestApproval deploy
         operator again
         round WaitFor operator
         decide",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         wait1 operator_input on appr1
         appr1 asked
         end completed
         processed m1
         told ack: Waiting.
         WaitForOperator approval_pending
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn resume_override
         wait2 operator_input
         end completed
         processed m2
         told ack: Waiting.
         WaitForOperator active_operator_wait
         WaitForOperator active_operator_wait",
    );
}

#[test]
fn a_pending_approval_waits_for_the_operator() {
    check(
        "operator hi
         round RequestApproval deploy
         decide",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         wait1 operator_input on appr1
         appr1 asked
         end completed
         processed m1
         told ack: Waiting.
         WaitForOperator approval_pending
         WaitForOperator approval_pending",
    );
}

#[test]
fn a_spent_progress_budget_waits_for_the_operator() {
    check(
        "person CreateWorkItem build
         round a
         advance 30s
         round b
         advance 2m
         round c
         advance 10m
         round d
         decide",
        "w1 created
         EmitSystemTick queued_available w1
         queued m1 system_tick work_queue:queued_available:w1:1
         StartModelTurn model_reentry_message m1 w1
         turn local_continuation of w1
         end completed
         processed m1
         WaitForTimer tick_backoff w1
         EmitSystemTick queued_available w1
         queued m2 system_tick work_queue:queued_available:w1:1:1
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1
         end completed
         processed m2
         WaitForTimer tick_backoff w1
         EmitSystemTick queued_available w1
         queued m3 system_tick work_queue:queued_available:w1:1:2
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1
         end completed
         processed m3
         WaitForTimer tick_backoff w1
         EmitSystemTick queued_available w1
         queued m4 system_tick work_queue:queued_available:w1:1:3
         StartModelTurn model_reentry_message m4 w1
         turn local_continuation of w1
         end completed
         processed m4
         WaitForOperator no_progress_budget_spent w1
         WaitForOperator no_progress_budget_spent w1",
    );
}

#[test]
fn persons_go_before_tasks() {
    check(
        "operator hi
         round CreateWorkItem build status=needs_input
         round done
         task t1
         operator more
         round WaitFor task t1
         decide",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         w1 created
         end completed
         processed m1
         told result: done
         WaitForOperator work_item_needs_input w1
         t1 created
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         wait1 task_result on t1
         end completed
         processed m2
         told ack: Waiting.
         WaitForOperator work_item_needs_input w1
         WaitForOperator work_item_needs_input w1",
    );
}

#[test]
fn a_task_wait_of_an_item() {
    check(
        "person CreateWorkItem build
         task t1
         ---
         round WaitFor task t1",
        "wait1 task_result on t1 of w1
         end completed
         processed m1
         WaitForTask work_item_task_wait w1 t1",
    );
}

#[test]
fn a_task_wait_of_the_agent() {
    check(
        "task t1
         operator hi
         ---
         round WaitFor task t1",
        "wait1 task_result on t1
         end completed
         processed m1
         told ack: Waiting.
         WaitForTask active_task_wait t1",
    );
}

#[test]
fn tasks_go_before_external_events() {
    check(
        "task t1
         operator hi
         round WaitFor external c1
         operator hi
         ---
         round WaitFor task t1",
        "wait2 task_result on t1
         end completed
         processed m2
         told ack: Waiting.
         WaitForTask active_task_wait t1",
    );
}

#[test]
fn an_external_wait_of_an_item() {
    check(
        "person CreateWorkItem build
         ---
         round WaitFor external c1",
        "wait1 external on c1 of w1
         end completed
         processed m1
         WaitForExternalChange work_item_external_wait w1",
    );
}

#[test]
fn an_external_wait_of_the_agent() {
    check(
        "operator hi
         ---
         round WaitFor external",
        "wait1 external
         end completed
         processed m1
         told ack: Waiting.
         WaitForExternalChange active_agent_waiting_intents",
    );
}

#[test]
fn external_events_go_before_timers() {
    check(
        "person CreateTimer every=1h tea
         operator hi
         ---
         round WaitFor external c1",
        "wait1 external on c1
         end completed
         processed m1
         told ack: Waiting.
         WaitForExternalChange active_agent_waiting_intents",
    );
}

#[test]
fn a_timer_wait_of_an_item() {
    check(
        "person CreateWorkItem build
         person CreateTimer every=1m tea
         ---
         round WaitFor timer after=1h",
        "wait1 timer on timer2 of w1
         timer2 at +3600s
         end completed
         processed m1
         WaitForTimer work_item_timer_wait w1",
    );
}

#[test]
fn an_active_timer() {
    check(
        "person CreateTimer every=1h tea",
        "timer1 at +3600s every 3600s
         WaitForTimer active_timers",
    );
}

#[test]
fn a_timer_wait_of_the_agent_counts_as_a_timer() {
    check(
        "operator hi
         ---
         round WaitFor timer after=1h",
        "wait1 timer on timer1
         timer1 at +3600s
         end completed
         processed m1
         told ack: Waiting.
         WaitForTimer active_timers",
    );
}

#[test]
fn a_recheck_goes_before_a_standing_timer() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain recheck=1h
         ---
         round done
         person CreateTimer every=2h tea",
        "end completed
         processed m1
         WaitForTimer recheck_pending w1
         timer1 at +7200s every 7200s",
    );
}

#[test]
fn a_recheck_is_pending() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain recheck=1h
         ---
         round done",
        "end completed
         processed m1
         WaitForTimer recheck_pending w1",
    );
}

#[test]
fn a_tick_backs_off() {
    check(
        "person CreateWorkItem build
         ---
         round done",
        "end completed
         processed m1
         WaitForTimer tick_backoff w1",
    );
}

#[test]
fn a_provider_backs_off() {
    check(
        "operator hi
         ---
         fail rate_limited after=1m
         advance 59s
         advance 1s",
        "end provider_failed_needs_recovery
         requeued m1 provider_backoff until +60s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn work_that_nothing_wakes() {
    check(
        "person CreateWorkItem build
         ---
         round UpdateWorkItem w1 blocked=rain
         round done",
        "w1 blocked
         end completed
         processed m1
         WaitForOperator work_item_blocked w1
         told failure: Nothing will wake the work item w1 (build): it is blocked by rain.",
    );
}

#[test]
fn nothing_to_do() {
    check(
        "operator hi
         ---
         round done
         decide",
        "end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts
         StayIdle already_asleep",
    );
}

/// Work that a sleep or a spent budget holds back comes due for nobody: an index that said otherwise would never rest.
#[test]
fn what_is_held_back_is_not_due() {
    check(
        "person CreateWorkItem build
         round done
         wake?
         operator hi
         round Sleep 1h
         ---
         wake?
         wakers
         advance 10m
         wake?",
        "+3600s: due
         the clock, at +3600s, a message from the operator
         +3600s: due",
    );
    check(
        "operator hi
         round done
         operator more
         fail rate_limited after=1m
         ---
         wake?
         budget turns=1
         advance 2m
         wake?",
        "+60s: due
         WaitForOperator budget_spent
         reached turns 1/1
         told failure: a has used up its budget: 1 of 1 turns. Raise it to go on: `abide agent set a --max-turns N`.
         never",
    );
}

/// The agent sleeps on for something else; the operator hears of the work all the same.
#[test]
fn work_that_gets_stuck_while_the_agent_sleeps_is_told() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain recheck=1h
         round done
         operator hi
         round WaitFor external c1
         ---
         person UpdateWorkItem w1 blocked=snow
         status
         person UpdateWorkItem w1 blocked=snow",
        "w1 blocked
         told failure: Nothing will wake the work item w1 (build): it is blocked by snow.
         asleep",
    );
}

/// Only the first message of a lane holds it back: a time further behind that has passed is nothing to wake for.
#[test]
fn a_lane_waits_for_its_first_message_only() {
    check(
        "person CreateWorkItem build
         fail rate_limited after=1m
         operator hi
         advance 2m
         ---
         fail rate_limited after=1h
         queue
         wake?",
        "end provider_failed_needs_recovery
         requeued m2 provider_backoff until +3720s
         WaitForTimer provider_backoff m2
         m2 queued, m1 queued
         +3720s: due",
    );
}
