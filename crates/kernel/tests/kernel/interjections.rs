//! Interjections: how they join a turn, and that they are never lost in it (spec 11).

use crate::story::check;

#[test]
fn interjections_replay_with_the_message_they_joined() {
    check(
        "operator a
         interject b
         round Tool make
         ---
         queue
         crash
         queue
         round done
         queue",
        "m2 interjected, m1 dequeued
         call1 unknown
         cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         m2 interjected, m1 dequeued
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn interjections_return_when_it_will_not_replay() {
    check(
        "operator a
         interject b
         round Tool make
         ---
         abort",
        "call1 unknown
         cut abort
         aborted m1
         requeued m2 interjection_returned
         told failure: Aborted by the operator.
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn an_interjection_joins_at_the_next_safe_point() {
    check(
        "operator a
         interject b
         ---
         round Tool make
         tool call1
         round done",
        "interjected m2 into m1
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_turn_that_would_end_goes_on_until_an_interjection_was_heard() {
    check(
        "operator a
         interject b
         ---
         round Sleep
         effects
         round done",
        "interjected m2 into m1
         call model exec1 round 2
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_turn_that_went_on_ends_only_when_asked_again() {
    check(
        "operator a
         ---
         round Tool make ; Sleep
         interject b
         tool call1
         round Tool make
         tool call3
         effects",
        "queued m2 operator_prompt as interject
         interjected m2 into m1
         call model exec1 round 3",
    );
}

#[test]
fn interjections_of_a_failed_turn_return() {
    check(
        "operator a
         interject b
         round Tool make
         tool call1
         ---
         fail invalid",
        "end provider_failed_needs_recovery
         requeued m2 interjection_returned
         processed m1: invalid: no
         told failure: invalid: no
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn interjections_of_a_turn_with_too_large_a_baseline_return() {
    check(
        "operator a
         interject b
         round Tool make
         tool call1
         ---
         overflow",
        "end baseline_over_budget
         requeued m2 interjection_returned
         processed m1: what must always be shown needs 9 tokens, and its model has room for 8: give it a model with a larger window, raise that one's context_tokens in the settings, or shorten its instructions, its guides or what it was asked
         told failure: what must always be shown needs 9 tokens, and its model has room for 8: give it a model with a larger window, raise that one's context_tokens in the settings, or shorten its instructions, its guides or what it was asked
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn an_interjection_without_a_turn_is_a_turn() {
    check(
        "interject a",
        "queued m1 operator_prompt as interject
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn interjections_of_a_given_up_message_return() {
    check(
        "operator a
         interject b
         round Tool make
         crash
         crash
         ---
         crash",
        "cut cut
         aborted m1 given_up
         requeued m2 interjection_returned
         told failure: Your message \"a\" was given up: the process ended 3 times while it was being worked on. To send it again: abide send a 'a'
         wait1 operator_input
         control restart awake_idle
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}
