//! The table of decisions, rows 1 to 7: control, a running turn, budgets, messages, hints, work (spec 5 and 6).

use abide_kernel::decision::Decision;
use abide_kernel::limits::EVIDENCE_MAX;
use abide_kernel::vocabulary::{DecisionKind, Reason};

use crate::story::check;

#[test]
fn a_stopped_agent_decides_stop() {
    check(
        "stop
         ---
         operator hi
         decide
         advance 1h",
        "queued m1 operator_prompt
         Stop stopped",
    );
}

#[test]
fn a_quarantined_agent_decides_stop() {
    check(
        "quarantine bad
         operator hi
         decide
         status",
        "quarantined bad
         Stop quarantined
         queued m1 operator_prompt
         Stop quarantined
         stopped",
    );
}

#[test]
fn a_requested_shutdown_decides_stop() {
    check(
        "operator hi
         shutdown
         round Tool make
         operator more
         decide",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         control shutdown awake_running
         Stop shutdown_requested
         cut shutdown
         requeued m1 shutdown
         queued m2 operator_prompt
         Stop shutdown_requested",
    );
}

#[test]
fn a_running_turn_decides_nothing() {
    check(
        "operator hi
         ---
         operator more
         advance 1h
         decide",
        "queued m2 operator_prompt
         Noop turn_in_progress",
    );
}

#[test]
fn a_spent_budget_starts_no_turn_and_emits_no_tick() {
    check(
        "budget turns=1
         operator hi
         round CreateWorkItem build
         round done
         ---
         operator more
         wake body
         advance 1h
         decide
         budget turns=2",
        "queued m2 operator_prompt
         WaitForOperator budget_spent
         hint operator coalesced
         WaitForOperator budget_spent
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn a_spent_budget_ends_a_turn_between_rounds() {
    check(
        "budget tokens=10
         operator hi
         ---
         round Tool make tokens=10
         tool call1
         budget tokens=100",
        "cut budget
         requeued m1 budget
         WaitForOperator budget_spent
         reached tokens 10/10
         told failure: a has used up its budget: 10 of 10 tokens. Raise it to go on: `abide agent set a --max-tokens N`.
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn what_an_operator_says_re_enters() {
    check(
        "operator hi
         round done",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_status_is_reduced_without_a_turn() {
    check(
        "message task_status running",
        "queued m1 task_status
         ReduceMessageOnly liveness_only_message m1
         processed m1: non_terminal_task_status
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn what_is_not_awaited_is_parked() {
    check(
        "operator hi
         round WaitFor external c1
         ---
         event corr=c2 news
         decide",
        "queued m2 webhook_event
         ReduceMessageOnly message_parked m2
         parked m2 behind wait1
         WaitForExternalChange active_agent_waiting_intents
         WaitForExternalChange active_agent_waiting_intents",
    );
}

#[test]
fn a_hint_then_current_work_then_queued_work() {
    check(
        "operator hi
         round CreateWorkItem build
         round CreateWorkItem test
         round PickWorkItem w2
         wake look
         ---
         round done
         round done
         round done",
        "end completed
         processed m1
         told result: done
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:operator:1
         StartModelTurn model_reentry_message m2
         turn local_continuation of w2
         end completed
         processed m2
         EmitSystemTick queued_available w1 ignoring suppressed_after_reentry w2
         queued m3 system_tick work_queue:queued_available:w1:1
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1
         end completed
         processed m3
         WaitForTimer tick_backoff w2 ignoring suppressed_after_reentry w2",
    );
}

#[test]
fn work_in_focus_is_continued() {
    check(
        "operator hi
         round CreateWorkItem build
         round PickWorkItem w1
         round UpdateWorkItem w1 plan=x
         ---
         round done",
        "end completed
         processed m1
         told result: done
         EmitSystemTick continue_active w1
         queued m2 system_tick work_queue:continue_active:w1:2
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1",
    );
}

#[test]
fn queued_work_is_offered_and_does_not_take_the_focus() {
    check(
        "person CreateWorkItem build
         item w1
         round done
         item w1",
        "w1 created
         EmitSystemTick queued_available w1
         queued m1 system_tick work_queue:queued_available:w1:1
         StartModelTurn model_reentry_message m1 w1
         turn local_continuation of w1
         runnable revision 1
         end completed
         processed m1
         WaitForTimer tick_backoff w1
         runnable revision 1",
    );
}

#[test]
fn a_decision_has_so_much_evidence() {
    let decided = |count: usize| {
        let none = Decision::new(DecisionKind::Sleep, Reason::NoPendingSchedulerFacts);
        (0..count).fold(none, |decision, number| decision.because(number.to_string())).evidence.len()
    };
    assert_eq!((decided(EVIDENCE_MAX), decided(EVIDENCE_MAX + 1)), (EVIDENCE_MAX, EVIDENCE_MAX));
}

#[test]
fn an_offer_that_waits_is_said_to_be_there() {
    check(
        "person CreateWorkItem build
         round PickWorkItem w1
         round done
         round done
         ---
         ignored
         stop
         ignored",
        "duplicate_tick w1
         control stop stopped
         Stop stopped",
    );
}
