//! What `why` says would wake an agent: never nothing without a person being named.

use crate::story::check;

#[test]
fn a_stopped_agent() {
    check(
        "stop
         operator hi
         ---
         wakers",
        "a start",
    );
}

#[test]
fn a_task_wait() {
    check(
        "task t1
         person CreateWorkItem build
         round WaitFor task t1
         ---
         wakers",
        "the end of the task t1 (make), a message from the operator",
    );
}

#[test]
fn an_external_wait() {
    check(
        "operator hi
         round WaitFor external c1
         event news
         ---
         wakers",
        "the external event it waits for, a message from the operator",
    );
}

#[test]
fn a_timer() {
    check(
        "person CreateTimer every=1h tea
         ---
         wakers",
        "the clock, at +3600s, a message from the operator",
    );
}

#[test]
fn a_question() {
    check(
        "operator hi
         round WaitFor operator
         ---
         wakers",
        "a message from the operator",
    );
}

#[test]
fn spent_progress() {
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
         wakers",
        "a message from the operator",
    );
}

#[test]
fn stuck_work() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain
         round done
         ---
         wakers",
        "a message from the operator",
    );
}

#[test]
fn a_spent_budget() {
    check(
        "budget turns=1
         operator hi
         round done
         operator hi
         ---
         wakers",
        "a person who raises the budget",
    );
}

#[test]
fn a_backoff() {
    check(
        "person CreateWorkItem build
         round done
         ---
         wakers",
        "the clock, at +30s, a message from the operator",
    );
}

#[test]
fn nothing_to_do() {
    check(
        "operator hi
         round done
         ---
         wakers",
        "a message from the operator",
    );
}

#[test]
fn a_quarantined_agent() {
    check(
        "quarantine bad
         ---
         wakers",
        "a start",
    );
}

#[test]
fn a_clock_and_a_task_and_a_message() {
    check(
        "person CreateTimer every=1h tea
         task t1
         operator hi
         fail rate_limited after=1m
         ---
         wakers",
        "the clock, at +60s, the end of the task t1 (make), a message from the operator",
    );
}

/// Until the daemon is back nobody is there to hear the operator: what is said meanwhile is kept, and wakes nobody.
#[test]
fn an_agent_that_shuts_down() {
    check(
        "operator hi
         shutdown
         round Tool make
         ---
         wakers
         crash
         wakers",
        "the daemon, when it is back
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         a message from the operator",
    );
}

#[test]
fn work_behind_a_sleep() {
    check(
        "operator hi
         round CreateWorkItem build ; Sleep 1h
         ---
         wakers",
        "the clock, at +3600s, a message from the operator",
    );
}

#[test]
fn a_hint_whose_source_has_a_parked_tick() {
    check(
        "operator hi
         round WaitFor operator
         wake source=s one
         wake source=s two
         ---
         hints
         wakers",
        "s
         a message from the operator",
    );
}

/// Nothing is to be done, and what was done last went wrong: whoever asks wants to know both.
#[test]
fn a_turn_that_failed() {
    check(
        "operator hi
         fail auth
         ---
         why
         operator more
         round done
         why",
        "a has nothing to do: its last turn failed (provider_failed_needs_recovery); its briefs say why, and a message will wake it.
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: done
         Sleep no_pending_scheduler_facts
         a has nothing to do; a message will wake it.",
    );
}
