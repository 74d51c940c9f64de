//! Turns that are held: keys that do not work and the home's budget consume nothing, and what waited goes on.

use crate::story::check;

#[test]
fn a_key_that_does_not_work_consumes_nothing() {
    check(
        "operator hi
         fail auth
         operator more
         why
         wakers
         good
         round done
         round more",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 turns_held
         held by model_key until +600s
         told failure: No model of this agent has a key that works: auth: no. Nothing is lost: its messages wait.
         WaitForOperator model_key
         queued m2 operator_prompt
         WaitForOperator model_key
         a has no model with a key that works (auth: no); 2 messages wait, and nothing is lost. Set the key, then `abide daemon restart`, or `abide model test` if it works by now; it is tried again at +600s.
         the clock, at +600s, a key that works
         released by the key works
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         told result: done
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: more
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn it_is_tried_again_by_itself_and_by_a_new_process() {
    check(
        "operator hi
         fail auth told=yes
         ---
         wake_up
         advance 10m
         fail auth after=5m told=yes
         advance 4m
         advance 1m
         fail auth told=yes
         crash
         round done",
        "unchanged
         released by due
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 turns_held
         held by model_key until +900s
         WaitForOperator model_key
         released by due
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 turns_held
         held by model_key until +1500s
         WaitForOperator model_key
         released by restart
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_spent_home_waits_for_the_next_day() {
    check(
        "person CreateWorkItem build
         operator hi
         fail home_budget_spent
         ---
         why
         good
         advance 24h
         round done",
        "a may ask no model until +86400s, because the home has spent its budget of the day (home_budget_spent: no); 2 messages wait. Raise it to go on: `abide config set budget.daily_usd N`, then `abide daemon restart`.
         unchanged
         released by due
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: done
         StartModelTurn model_reentry_message m1 w1
         turn local_continuation of w1",
    );
}

#[test]
fn another_model_goes_before_a_hold_and_other_models_end_it() {
    check(
        "models a/1 b/2
         operator hi
         fail auth
         fail auth
         ---
         models a/1 c/3
         round done",
        "released by models_changed
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_model_without_a_price_does_not_consume_what_a_key_would_keep() {
    for errors in ["fail auth\nfail unpriced", "fail unpriced\nfail auth"] {
        check(
            &format!("models a/1 b/2\noperator hi\n{errors}\n---\ngood\nround done"),
            "released by the key works
             StartModelTurn model_reentry_message m1
             turn local_continuation
             end completed
             processed m1
             told result: done
             Sleep no_pending_scheduler_facts",
        );
    }
}

/// A model that was asked and refused has a key that works.
#[test]
fn what_a_model_refuses_holds_nothing() {
    check(
        "models a/1 b/2
         operator hi
         fail auth
         ---
         fail refusal",
        "end provider_failed_needs_recovery
         processed m1: refusal: no
         told failure: refusal: no
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_person_who_starts_it_again_lets_it_try() {
    check(
        "operator hi
         fail auth
         stop
         ---
         start
         round done",
        "control start awake_idle
         released by started
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}
