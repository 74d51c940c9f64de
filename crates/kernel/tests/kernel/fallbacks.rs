//! Models that fail: the next in order, a later try with jitter, or a visible end.

use abide_kernel::limits::PROVIDER_BACKOFF_MS;
use abide_kernel::provider::{NO_JITTER, Tells, backoff_ms};
use abide_kernel::vocabulary::ProviderError;

use crate::story::check;

/// Every class has its rule, and the rules are these.
#[test]
fn the_table_of_errors() {
    let table: Vec<String> = ProviderError::ALL
        .iter()
        .map(|error| {
            let rule = error.rule();
            let tells = match rule.tells {
                Tells::Nobody => "nobody",
                Tells::Operator => "operator",
            };
            format!("{error}: passes {}, falls back {}, tells {tells}", rule.passes_with_time, rule.falls_back)
        })
        .collect();
    let expected = "rate_limited: passes true, falls back true, tells nobody
        overloaded: passes true, falls back true, tells nobody
        timeout: passes true, falls back true, tells nobody
        disconnect: passes true, falls back true, tells nobody
        context_length: passes false, falls back false, tells nobody
        refusal: passes false, falls back true, tells nobody
        auth: passes false, falls back true, tells operator
        invalid: passes false, falls back false, tells nobody
        unpriced: passes false, falls back true, tells operator";
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(table, expected);
}

#[test]
fn a_wait_is_between_three_and_five_quarters_of_the_table() {
    for (failures, wait) in PROVIDER_BACKOFF_MS.into_iter().enumerate() {
        let failures = u32::try_from(failures).unwrap();
        assert_eq!(backoff_ms(failures, 0), wait - wait / 4);
        assert_eq!(backoff_ms(failures, NO_JITTER), wait);
        let longest = backoff_ms(failures, u16::MAX);
        assert!(longest > wait + wait / 5 && longest <= wait + wait / 4, "{longest}");
    }
    assert_eq!(backoff_ms(99, NO_JITTER), 600_000);
}

#[test]
fn the_wait_has_jitter_and_what_the_provider_said_is_its_floor() {
    check(
        "operator hi
         ---
         fail overloaded jitter=0
         advance 10m
         fail overloaded jitter=65535
         advance 10m
         fail rate_limited after=5s jitter=0
         advance 10m
         fail rate_limited after=20m jitter=65535
         advance 1h
         fail rate_limited after=900h",
        "end provider_failed_needs_recovery
         requeued m1 provider_backoff until +1s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +612s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +1245s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +3000s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +91800s
         WaitForTimer provider_backoff m1",
    );
}

#[test]
fn the_next_model_takes_the_message_at_once_and_then_the_first_again() {
    check(
        "models a/one b/two c/three
         operator hi
         model
         ---
         fail overloaded
         model
         notes
         fail timeout
         model
         fail disconnect
         advance 2s
         model
         round done
         operator more
         model",
        "end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m1
         turn local_continuation
         b/two
         this turn thinks with b/two; a/one failed at +0s, overloaded: no
         end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m1
         turn local_continuation
         c/three
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +2s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         a/one
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         a/one",
    );
}

#[test]
fn a_model_that_answers_goes_on_with_its_turn() {
    check(
        "models a/one b/two
         operator hi
         fail overloaded
         ---
         round Tool make
         tool call1
         model
         round done
         notes
         operator more
         model
         round done
         notes",
        "b/two
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts
         a/one failed at +0s, overloaded: no
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         a/one
         end completed
         processed m2
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn what_no_other_model_would_take_either_does_not_fall_back() {
    check(
        "models a/one b/two
         operator hi
         ---
         fail invalid
         operator again
         fail context_length
         operator more
         fail refusal
         model",
        "end provider_failed_needs_recovery
         processed m1: invalid: no
         told failure: invalid: no
         Sleep no_pending_scheduler_facts
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end baseline_over_budget
         processed m2: context_length: no
         told failure: context_length: no
         Sleep no_pending_scheduler_facts
         queued m3 operator_prompt
         StartModelTurn model_reentry_message m3
         turn local_continuation
         end deferred_to_fallback
         requeued m3 fallback
         StartModelTurn model_reentry_message m3
         turn local_continuation
         b/two",
    );
}

#[test]
fn when_all_refuse_the_message_ends_and_when_one_would_pass_with_time_it_waits() {
    check(
        "models a/one b/two
         operator hi
         ---
         fail refusal
         fail auth
         operator again
         fail rate_limited after=1m
         fail auth",
        "end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         processed m1: auth: no
         told failure: auth: no
         Sleep no_pending_scheduler_facts
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end deferred_to_fallback
         requeued m2 fallback
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m2 provider_backoff until +60s
         WaitForTimer provider_backoff m2",
    );
}

#[test]
fn the_operator_hears_once_of_a_key_that_is_wrong() {
    check(
        "models a/one b/two
         operator hi
         ---
         fail auth
         round done
         operator more
         fail auth
         round done",
        "told failure: a/one failed: auth: no; it goes on with b/two.
         end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end deferred_to_fallback
         requeued m2 fallback
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_fallback_is_kept_through_a_crash_and_a_stop() {
    check(
        "models a/one b/two
         operator hi
         fail overloaded
         ---
         crash
         model
         stop
         start
         model",
        "cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         b/two
         cut stop
         requeued m1 stop
         control stop stopped
         Stop stopped
         control start awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         b/two",
    );
}

#[test]
fn an_interjection_and_the_item_s_offers_are_as_before() {
    check(
        "models a/one b/two
         person CreateWorkItem build
         interject look
         ---
         fail overloaded
         round done
         item w1
         round done",
        "end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: done
         StartModelTurn model_reentry_message m1 w1
         turn local_continuation of w1
         runnable revision 1
         end completed
         processed m1
         WaitForTimer tick_backoff w1",
    );
}

/// Nothing was asked, so nothing is told to be wrong with the provider: the operator hears that a price is missing.
#[test]
fn a_model_without_a_price() {
    check(
        "models a/one b/two
         operator hi
         ---
         fail unpriced
         model
         fail overloaded",
        "told failure: a/one failed: unpriced: no; it goes on with b/two.
         end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m1
         turn local_continuation
         b/two
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +2s
         WaitForTimer provider_backoff m1",
    );
}
