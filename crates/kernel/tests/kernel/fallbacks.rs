//! Models that fail: the next in order, a later try with jitter, or a visible end.

use abide_kernel::limits::{self, PROVIDER_BACKOFF_MS};
use abide_kernel::provider::{NO_JITTER, Tells, backoff_ms, keeps_message};
use abide_kernel::vocabulary::ProviderError;

use crate::story::{Story, check};

/// Every class has its rule, and the rules are these.
#[test]
fn the_table_of_errors() {
    let table: Vec<String> = ProviderError::ALL
        .iter()
        .map(|error| {
            let rule = abide_kernel::provider::rule(*error);
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
        system: passes true, falls back false, tells nobody
        unpriced: passes false, falls back true, tells operator
        home_budget_spent: passes false, falls back false, tells nobody";
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(table, expected);
}

#[test]
fn a_message_stays_where_time_or_a_person_mends_what_failed() {
    let kept = ProviderError::ALL.iter().filter(|error| keeps_message(**error));
    let kept: Vec<&str> = kept.map(|error| error.as_str()).collect();
    let expected = ["rate_limited", "overloaded", "timeout", "disconnect", "auth", "system", "home_budget_spent"];
    assert_eq!(kept, expected);
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
         a/one is left alone until +2s (overloaded)
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
         advance 3s
         operator last
         model
         round done
         notes",
        "b/two
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts
         a/one failed at +0s, overloaded: no
         a/one is left alone until +2s (overloaded)
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         b/two
         end completed
         processed m2
         told result: done
         Sleep no_pending_scheduler_facts
         queued m3 operator_prompt
         StartModelTurn model_reentry_message m3
         turn local_continuation
         a/one
         end completed
         processed m3
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

/// A machine that is short of file descriptors for a while costs no message, and no other model is asked for it.
#[test]
fn a_shortage_of_the_machine_is_waited_for() {
    check(
        "models a/one b/two
         operator hi
         ---
         fail system jitter=32768
         advance 2s
         model
         fail system jitter=32768
         advance 10s
         fail system jitter=32768
         advance 1m
         round done",
        "end provider_failed_needs_recovery
         requeued m1 provider_backoff until +2s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         a/one
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +12s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +72s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
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

/// Only another model than the chosen one is named as the one that thinks.
#[test]
fn a_model_that_failed_and_is_asked_again_is_named_once() {
    check(
        "models a/one\noperator hi\nfail overloaded\nadvance 10s\n---\nmodel\nnotes",
        "a/one\na/one failed at +0s, overloaded: no",
    );
}

/// The limit is the model's: the next message asks another at once, and the first again when it may be asked.
#[test]
fn a_model_that_asked_for_time_is_left_alone_by_every_message() {
    check(
        "models a/one b/two
         operator hi
         fail rate_limited after=1h
         round done
         ---
         operator more
         model
         notes
         round done
         advance 2h
         operator last
         model",
        "queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         b/two
         this turn thinks with b/two; a/one failed at +0s, rate_limited: no
         a/one is left alone until +3600s (rate_limited)
         end completed
         processed m2
         told result: done
         Sleep no_pending_scheduler_facts
         queued m3 operator_prompt
         StartModelTurn model_reentry_message m3
         turn local_continuation
         a/one",
    );
}

#[test]
fn a_message_waits_for_whichever_model_is_back_first() {
    check(
        "models a/one b/two
         operator hi
         ---
         fail rate_limited after=1h
         fail rate_limited after=10m
         why
         wakers
         advance 10m
         model",
        "end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +600s
         WaitForTimer provider_backoff m1
         a waits until +600s and asks again then: b/two failed (rate_limited: no).
         the clock, at +600s, a message from the operator that is not put behind what waits (`abide send --priority next`)
         StartModelTurn model_reentry_message m1
         turn local_continuation
         b/two",
    );
}

/// A message that waited goes on at once, because it was the other model that asked for time; that one still has it.
#[test]
fn another_model_takes_what_waited_at_once() {
    check(
        "models a/one
         operator hi
         fail rate_limited after=1h
         ---
         models b/two
         model
         fail rate_limited after=2h
         models a/one b/two
         models c/three a/one
         model",
        "requeued m1 model_changed
         StartModelTurn model_reentry_message m1
         turn local_continuation
         b/two
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +7200s
         WaitForTimer provider_backoff m1
         requeued m1 model_changed until +3600s
         WaitForTimer provider_backoff m1
         requeued m1 model_changed
         StartModelTurn model_reentry_message m1
         turn local_continuation
         c/three",
    );
}

/// Time does not mend a refusal, but another model may take it, once it has rested.
#[test]
fn a_refusal_waits_for_the_model_that_rests() {
    check(
        "models a/one b/two
         operator hi
         fail rate_limited after=1h
         round done
         ---
         operator more
         fail refusal
         advance 1h
         model
         fail refusal
         fail refusal",
        "queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m2 provider_backoff until +3600s
         WaitForTimer provider_backoff m2
         StartModelTurn model_reentry_message m2
         turn local_continuation
         a/one
         end deferred_to_fallback
         requeued m2 fallback
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end provider_failed_needs_recovery
         processed m2: refusal: no
         told failure: refusal: no
         Sleep no_pending_scheduler_facts",
    );
}

/// A message under which its model always fails is tried ever more seldom, although the model answers others. Only once
/// does it go on because another was answered.
#[test]
fn the_wait_grows_under_one_message_while_others_are_answered() {
    check(
        "operator hi
         fail timeout
         ---
         interject look
         round done
         fail timeout
         interject look
         round done
         advance 10s
         fail timeout",
        "queued m2 operator_prompt as interject
         StartModelTurn model_reentry_message m2
         turn local_continuation
         requeued m1 model_back
         end completed
         processed m2
         told result: done
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +10s
         WaitForTimer provider_backoff m1
         queued m3 operator_prompt as interject
         StartModelTurn model_reentry_message m3
         turn local_continuation
         end completed
         processed m3
         told result: done
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +70s
         WaitForTimer provider_backoff m1",
    );
}

/// A limit that is over is over for everything that waited, whatever its provider had said.
#[test]
fn what_waits_for_a_model_goes_on_when_it_answers() {
    check(
        "operator one
         fail rate_limited after=1h
         ---
         operator priority=next two
         round done
         round done
         notes",
        "queued m2 operator_prompt as next
         StartModelTurn model_reentry_message m2
         turn local_continuation
         requeued m1 model_back
         end completed
         processed m2
         told result: done
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

/// Where all of them rest, the one that is back first is asked by what can't wait.
#[test]
fn while_all_rest_the_first_to_be_back_is_asked() {
    check(
        "models a/one b/two
         operator hi
         fail rate_limited after=1h
         fail rate_limited after=10m
         ---
         operator priority=next now
         model
         round done
         model",
        "queued m2 operator_prompt as next
         StartModelTurn model_reentry_message m2
         turn local_continuation
         b/two
         requeued m1 model_back
         end completed
         processed m2
         told result: done
         StartModelTurn model_reentry_message m1
         turn local_continuation
         b/two",
    );
}

/// The wait of a model grows with each failure since it last answered, over all messages that asked.
#[test]
fn the_wait_of_a_model_grows_over_messages() {
    check(
        "operator one
         fail timeout
         ---
         operator priority=next two
         fail timeout
         interject three
         fail timeout",
        "queued m2 operator_prompt as next
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m2 provider_backoff until +10s
         WaitForTimer provider_backoff m1
         queued m3 operator_prompt as interject
         StartModelTurn model_reentry_message m3
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m3 provider_backoff until +60s
         WaitForTimer provider_backoff m1",
    );
}

/// A model that has too little room for what must be shown leaves it to the next, or to one that is back later. Where none
/// has room, the message ends.
#[test]
fn one_with_too_little_room_is_passed_over() {
    check(
        "models a/one b/two c/three
         operator hi
         fail rate_limited after=1h
         ---
         overflow
         model
         overflow
         advance 1h
         model
         fail auth
         overflow
         overflow",
        "end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m1
         turn local_continuation
         c/three
         end baseline_over_budget
         requeued m1 provider_backoff until +3600s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         a/one
         told failure: a/one failed: auth: no; it goes on with b/two.
         end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end baseline_over_budget
         processed m1: context_length: what must always be shown needs 9 tokens, and c/three has room for 8: give it a model with a larger window, raise that one's context_tokens in the settings, or shorten its instructions, its guides or what it was asked
         told failure: context_length: what must always be shown needs 9 tokens, and c/three has room for 8: give it a model with a larger window, raise that one's context_tokens in the settings, or shorten its instructions, its guides or what it was asked
         Sleep no_pending_scheduler_facts",
    );
}

/// The operator hears once of a key that is wrong, also where another model fails in between.
#[test]
fn trouble_of_one_model_is_not_forgotten_for_another() {
    check(
        "models a/one b/two
         operator hi
         ---
         fail auth
         fail rate_limited after=1h
         advance 1h
         fail auth
         round done
         notes",
        "told failure: a/one failed: auth: no; it goes on with b/two.
         end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +3600s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts
         a/one failed at +3600s, auth: no",
    );
}

/// An agent without a model of its own has the one of the settings, from its next awakening on. One that somebody named
/// for it stays, and nobody is turned into an echo because a key is missing.
#[test]
fn who_has_no_model_of_its_own_follows_the_settings() {
    check(
        "follow a/one
         operator hi
         model
         round done
         ---
         settings b/two c/three
         operator more
         model
         fail overloaded
         model
         round done
         settings script/echo unchosen=1
         config
         models d/four
         settings a/one
         advance 1m
         operator last
         model",
        "queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         b/two
         end deferred_to_fallback
         requeued m2 fallback
         StartModelTurn model_reentry_message m2
         turn local_continuation
         c/three
         end completed
         processed m2
         told result: done
         Sleep no_pending_scheduler_facts
         b/two
         unchanged
         queued m3 operator_prompt
         StartModelTurn model_reentry_message m3
         turn local_continuation
         d/four",
    );
}

#[test]
fn a_script_falls_back_on_nothing_that_was_not_named_for_it() {
    check(
        "follow script/x b/two
         operator hi
         ---
         fail overloaded
         models script/x b/two
         model",
        "end provider_failed_needs_recovery
         requeued m1 provider_backoff until +2s
         WaitForTimer provider_backoff m1
         requeued m1 model_changed
         StartModelTurn model_reentry_message m1
         turn local_continuation
         b/two",
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

/// However people change the list of models, the number of models that are remembered is bounded.
#[test]
fn no_more_is_remembered_of_models_than_there_can_be() {
    let mut story = Story::begin();
    story.tell("operator hi").unwrap();
    let most = limits::FALLBACK_MAX + 1;
    for number in 0..4 * most {
        // For the next turn: the one that runs has its own.
        story.tell(&format!("models a/{number} b/{number}")).unwrap();
        story.tell(if number % 2 == 0 { "fail rate_limited after=1h" } else { "fail auth" }).unwrap();
    }
    let state = &story.state;
    let tried = state.planes.queue.entries().map(|entry| entry.tried.len()).max();
    assert_eq!((state.models.backoffs.len(), state.models.failures.len(), tried), (most, 1, Some(most)));
}

#[test]
fn a_failure_with_another_model_is_recorded_whole() {
    check(
        "models a/one b/two
         operator hi
         ---
         fail overloaded
         facts",
        r#"end deferred_to_fallback
         requeued m1 fallback
         StartModelTurn model_reentry_message m1
         turn local_continuation
         turn.provider_round_failed {"exec_id":"exec1","round":1,"error":"overloaded","message":"no","not_before":"2026-01-01T00:00:02.004Z","model":"a/one"}
         turn.terminal {"exec_id":"exec1","turn_index":1,"message_id":"m1","terminal_kind":"deferred_to_fallback","rounds":0,"error":"overloaded: no; it goes on with b/two","returned":true}
         message.requeued {"message_id":"m1","reason":"fallback"}
         scheduler.decision {"kind":"StartModelTurn","reason":"model_reentry_message","boundary":"message","model_reentry":true,"liveness_only":false,"message_id":"m1","ignored":[],"evidence":["message_queued m1 seq 8","local_continuation","no_wait_open","replayed"]}
         message.dequeued {"message_id":"m1","replays":1}
         turn.started {"turn_id":"turn2","exec_id":"exec2","turn_index":2,"message_id":"m1","continuation":{"trigger_kind":"operator_input","class":"local_continuation","model_reentry":true,"matched_waiting_reason":false,"evidence":["no_wait_open","replayed"]},"answers":"m1"}
         turn.round_started {"exec_id":"exec2","round":1}"#,
    );
}

/// The posture says which message woke it.
#[test]
fn a_message_that_goes_on_with_another_model_ends_the_rest() {
    check(
        "operator hi
         fail rate_limited after=1m
         ---
         models a/b
         facts",
        r#"requeued m1 model_changed
         StartModelTurn model_reentry_message m1
         turn local_continuation
         agent.configured {"config":{"model":"a/b","budget":{}}}
         message.requeued {"message_id":"m1","reason":"model_changed"}
         posture.changed {"boundary":"message_admission","previous_status":"asleep","next_status":"awake_idle","task_ids":[],"evidence":["message_requeued m1"]}
         scheduler.decision {"kind":"StartModelTurn","reason":"model_reentry_message","boundary":"message","model_reentry":true,"liveness_only":false,"message_id":"m1","ignored":[],"evidence":["message_queued m1 seq 7","local_continuation","no_wait_open","replayed"]}
         message.dequeued {"message_id":"m1","replays":1}
         turn.started {"turn_id":"turn2","exec_id":"exec2","turn_index":2,"message_id":"m1","continuation":{"trigger_kind":"operator_input","class":"local_continuation","model_reentry":true,"matched_waiting_reason":false,"evidence":["no_wait_open","replayed"]},"answers":"m1"}
         turn.round_started {"exec_id":"exec2","round":1}"#,
    );
}

#[test]
fn a_role_that_stays_the_same_is_no_change() {
    check(
        "---
         role execution
         facts
         role execution",
        r#"agent.configured {"config":{"budget":{}},"role":"execution"}
         unchanged"#,
    );
}
