//! Restart and cuts: what replays, what is given up, what is only evidence (spec 11).

use abide_kernel::vocabulary::QueueStatus;

use crate::story::check;

#[test]
fn queued_and_dequeued_messages_replay_and_no_others() {
    let replays = QueueStatus::ALL.iter().filter(|status| status.replays()).map(|status| status.as_str());
    assert_eq!(replays.collect::<Vec<_>>(), ["queued", "dequeued"]);
}

#[test]
fn a_boot_that_finds_nothing_cut_records_nothing() {
    check(
        "operator hi
         round done
         ---
         crash",
        "unchanged",
    );
}

#[test]
fn a_dequeued_message_replays_after_a_cut() {
    check(
        "operator a
         operator b
         ---
         crash
         queue",
        "cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         m1 dequeued, m2 queued",
    );
}

#[test]
fn a_queued_message_replays_in_order() {
    check(
        "operator a
         operator b
         operator c
         replay
         crash
         round done
         round done",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         queued m2 operator_prompt
         queued m3 operator_prompt
         [m1, m2, m3]
         cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         told result: done
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
fn no_recorded_call_runs_again() {
    check(
        "operator a
         ---
         round Tool make
         effects
         crash
         effects",
        "run Tool call1
         call1 unknown
         cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end exec1, call model exec2 round 1",
    );
}

#[test]
fn a_running_task_is_interrupted_and_its_result_owed() {
    check(
        "task t1
         task t1 runs
         ---
         crash",
        "t1 interrupted: restart
         control restart asleep
         queued m1 task_result
         result of t1 in m1
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation shows t1",
    );
}

#[test]
fn a_child_is_not_interrupted_by_a_restart() {
    check(
        "operator hi
         round CreateWorkItem build status=needs_input
         round done
         task t1 item=w1 child=kid
         ---
         crash
         task t1 ends",
        "unchanged
         t1 completed
         w1 delegation t1 completed
         queued m2 task_result
         result of t1 in m2
         StartModelTurn model_reentry_message m2 w1 t1
         turn local_continuation of w1 shows t1",
    );
}

#[test]
fn parked_stays_parked() {
    check(
        "operator hi
         round WaitFor external c1
         event news
         ---
         crash
         pending
         replay",
        "unchanged
         pending 0 parked 1
         []",
    );
}

#[test]
fn three_crashes_without_a_round_give_a_message_up() {
    check(
        "operator a
         ---
         crash
         crash
         crash
         decide
         operator b",
        "cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         cut cut
         aborted m1 given_up
         told failure: Your message \"a\" was given up: the process ended 3 times while it was being worked on. To send it again: abide send a 'a'
         wait1 operator_input
         control restart awake_idle
         WaitForOperator active_operator_wait
         WaitForOperator active_operator_wait
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn a_round_between_begins_the_count_anew() {
    check(
        "operator a
         ---
         crash
         crash
         round Tool make
         crash
         crash
         crash",
        "cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         call1 unknown
         cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         cut cut
         aborted m1 given_up
         told failure: Your message \"a\" was given up: the process ended 5 times while it was being worked on. To send it again: abide send a 'a'
         wait1 operator_input
         control restart awake_idle
         WaitForOperator active_operator_wait",
    );
}

#[test]
fn ten_crashes_in_all_give_a_message_up() {
    check(
        "operator a
         round Tool make
         crash
         round Tool make
         crash
         round Tool make
         crash
         round Tool make
         crash
         round Tool make
         crash
         round Tool make
         crash
         round Tool make
         crash
         round Tool make
         crash
         round Tool make
         crash
         round Tool make
         ---
         crash",
        "call10 unknown
         cut cut
         aborted m1 given_up
         told failure: Your message \"a\" was given up: the process ended 10 times while it was being worked on. To send it again: abide send a 'a'
         wait1 operator_input
         control restart awake_idle
         WaitForOperator active_operator_wait",
    );
}

#[test]
fn a_stop_in_a_turn_returns_its_message_to_the_front() {
    check(
        "operator a
         operator b
         ---
         stop
         queue
         start",
        "cut stop
         requeued m1 stop
         control stop stopped
         Stop stopped
         m1 queued, m2 queued
         control start awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn only_an_abort_makes_it_aborted() {
    check(
        "operator a
         ---
         abort
         decide",
        "cut abort
         aborted m1
         told failure: Aborted by the operator.
         Sleep no_pending_scheduler_facts
         StayIdle already_asleep",
    );
}

#[test]
fn an_abort_names_the_execution_it_means() {
    check(
        "operator a
         round done
         operator b
         ---
         abort exec1
         abort exec2
         abort",
        "refused stale_exec
         cut abort
         aborted m2
         told failure: Aborted by the operator.
         Sleep no_pending_scheduler_facts
         refused no_turn",
    );
}

#[test]
fn shutdown_is_cleared_by_boot() {
    check(
        "operator a
         shutdown
         round Tool make
         ---
         decide
         crash",
        "Stop shutdown_requested
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

/// The daemon ended before the turn came to a safe point, because it was told to twice or was killed: however often that
/// happens, the message did not take it down.
#[test]
fn a_turn_that_a_shutdown_cut_is_no_crash() {
    let impatient = "shutdown\ncrash\n";
    let cut = "control shutdown awake_running
         Stop shutdown_requested
         cut shutdown
         requeued m1 shutdown
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation\n";
    check(
        &format!("operator a\n---\n{}round done", impatient.repeat(12)),
        &format!(
            "{}end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
            cut.repeat(12)
        ),
    );
}

/// Only the shutdown that was recorded excuses the cut; the next end without one counts.
#[test]
fn a_crash_after_a_shutdown_counts_again() {
    check(
        "operator a
         shutdown
         crash
         crash
         crash
         ---
         crash",
        "cut cut
         aborted m1 given_up
         told failure: Your message \"a\" was given up: the process ended 3 times while it was being worked on. To send it again: abide send a 'a'
         wait1 operator_input
         control restart awake_idle
         WaitForOperator active_operator_wait",
    );
}

/// The answer is there: to ask for it again would cost another, and perhaps be another.
#[test]
fn an_answer_that_comes_during_a_shutdown_is_the_answer() {
    check(
        "operator a
         ---
         shutdown
         round one
         crash",
        "control shutdown awake_running
         Stop shutdown_requested
         end completed
         processed m1
         told result: one
         control restart awake_idle
         Sleep no_pending_scheduler_facts",
    );
}

/// A word that joined the turn is part of its message, and has not been heard.
#[test]
fn an_answer_during_a_shutdown_that_has_not_heard_all_is_not_the_last() {
    check(
        "operator a
         interject b
         shutdown
         ---
         round one",
        "interjected m2 into m1
         cut shutdown
         requeued m1 shutdown",
    );
}

#[test]
fn a_quarantined_agent_can_be_started() {
    check(
        "quarantine bad
         ---
         start
         status",
        "control start awake_idle
         Sleep no_pending_scheduler_facts
         asleep",
    );
}

/// Stopping it lets go of what it holds; why it can't be trusted is known until it is tried again.
#[test]
fn a_quarantined_agent_that_is_stopped_keeps_the_reason() {
    check(
        "quarantine bad
         ---
         stop
         evidence
         start",
        "unchanged
         quarantined bad
         control start awake_idle
         Sleep no_pending_scheduler_facts",
    );
    check(
        "occupy ws
         task t1
         quarantine bad
         ---
         stop
         effects
         release ws
         task t1 ends cancelled
         stop
         evidence",
        "t1 cancelling
         control stop stopped
         end t1, release ws
         released ws
         t1 cancelled: stop
         queued m1 task_result
         result of t1 in m1
         unchanged
         quarantined bad",
    );
}

#[test]
fn stale_outcomes_are_evidence() {
    check(
        "operator a
         round done
         ---
         round late
         fail auth
         tool call9
         overflow
         checkpoint",
        "stale
         unchanged
         stale
         unchanged
         stale
         unchanged
         stale
         unchanged
         stale
         unchanged",
    );
}

/// The model has answered, and its tools run: what is still said of that round comes too late.
#[test]
fn outcomes_of_a_round_that_was_answered_are_stale() {
    check(
        "operator a
         round Tool build
         ---
         fail auth
         round late
         tool call1
         fail auth",
        "stale
         unchanged
         stale
         unchanged
         end provider_failed_needs_recovery
         requeued m1 turns_held
         held by model_key until +600s
         told failure: No model of this agent has a key that works: auth: no. Nothing is lost: its messages wait.
         WaitForOperator model_key",
    );
}

#[test]
fn an_acknowledged_round_is_kept_by_a_cut() {
    check(
        "operator a
         round Tool make
         ---
         kinds
         crash
         kinds",
        "turn.provider_round_completed turn.assistant_round_recorded tool.started
         call1 unknown
         cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         control.admitted tool.finished exec.aborted message.requeued control.applied posture.changed scheduler.decision message.dequeued turn.started turn.round_started",
    );
}

#[test]
fn a_boot_puts_owners_of_something_open_into_the_wake_index() {
    check(
        "person CreateTimer every=1h tea
         wake?
         operator a
         wake?
         fail rate_limited after=1m
         wake?
         task t1
         wake?",
        "timer1 at +3600s every 3600s
         WaitForTimer active_timers
         +3600s: due
         queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         at once: turn_running
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +60s
         WaitForTimer provider_backoff m1
         +60s: due
         t1 created
         at once: tasks_running",
    );
}

/// A message that was taken goes back to the front of its own lane, and the lanes in front of that come first.
#[test]
fn a_replay_waits_for_the_lanes_in_front_of_it() {
    check(
        "operator a
         operator b
         operator c priority=next
         ---
         replay
         crash
         round done",
        "[m3, m1, m2]
         cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m3
         turn local_continuation
         end completed
         processed m3
         told result: done
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

/// A restart alone interrupts nothing: a clean one less than any.
#[test]
fn a_shutdown_ends_no_child() {
    check(
        "task t1
         task t2 child=kid
         ---
         shutdown
         effects",
        "t1 cancelling
         control shutdown asleep
         Stop shutdown_requested
         end t1",
    );
}

/// The operator's message was taken out of turn, before a tick that stood in front of it.
#[test]
fn a_cut_changes_no_order() {
    let begin = "person CreateTimer every=1h a
         person CreateTimer every=1h b
         advance 1h
         operator priority=next hi
         round done
         ---
         replay";
    for cut in ["crash", "shutdown now\nboot"] {
        let told = crate::story::tell(&format!("{begin}\n{cut}\nqueue\nreplay"));
        assert_eq!(told.first().unwrap(), "[m2, m3]", "{cut}: {told:?}");
        assert_eq!(told.last().unwrap(), "[m2, m3]", "{cut}: {told:?}");
    }
}

#[test]
fn a_worktree_whose_removal_was_cut_is_removed_again() {
    check(
        "use /h/1 of=/w
         person DetachWorkspace /h/1
         ---
         crash
         effects",
        "control restart asleep
         remove /h/1",
    );
}
