//! Budgets: limits in all, a day, of an item and of children; what holds when one is reached, and what ends that.

use abide_kernel::budget::{Budget, Limits, Used};
use abide_kernel::vocabulary::Measure;

use crate::story::check;

#[test]
fn a_limit_is_told_once_and_explained_with_numbers() {
    check(
        "budget turns=1
         operator hi
         round done
         ---
         operator more
         operator even more
         why
         wakers
         notes
         crash
         decide",
        "queued m2 operator_prompt
         WaitForOperator budget_spent
         queued m3 operator_prompt
         WaitForOperator budget_spent
         a has used up its budget: 1 of 1 turns. Raise it to go on: `abide agent set a --max-turns N`.
         a person who raises the budget
         used of its budget: 1 of 1 turns
         unchanged
         WaitForOperator budget_spent",
    );
}

#[test]
fn a_limit_that_is_raised_and_reached_again_is_told_again() {
    check(
        "budget turns=1
         operator hi
         round done
         operator more
         ---
         budget turns=2
         round done
         operator even more",
        "StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: done
         WaitForOperator budget_spent
         reached turns 2/2
         told failure: a has used up its budget: 2 of 2 turns. Raise it to go on: `abide agent set a --max-turns N`.
         queued m3 operator_prompt
         WaitForOperator budget_spent",
    );
}

#[test]
fn a_day_s_budget_begins_anew_at_midnight() {
    check(
        "budget daily_turns=1
         operator hi
         round done
         operator more
         ---
         why
         wakers
         wake?
         advance 12h
         wake?
         advance 12h
         round done
         operator more",
        "a has used up its budget of the day: 1 of 1 turns. It goes on at +86400s, or when you raise it: `abide agent set a --daily-turns N`.
         the next day, at +86400s, a person who raises the budget
         +86400s: due
         +86400s: due
         renewed +86400s
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: done
         WaitForOperator budget_spent
         reached turns 1/1 until +172800s
         told failure: a has used up its budget of the day: 1 of 1 turns. It goes on at +172800s, or when you raise it: `abide agent set a --daily-turns N`.
         queued m3 operator_prompt
         WaitForOperator budget_spent",
    );
}

#[test]
fn a_day_s_budget_is_not_renewed_by_a_clock_that_goes_back() {
    check(
        "advance 30h
         budget daily_turns=1
         operator hi
         round done
         operator more
         ---
         back 12h
         wake?
         decide
         advance 30h",
        "clock set back from +108000s to +64800s
         +172800s: due
         WaitForOperator budget_spent
         renewed +172800s
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn what_was_used_yesterday_does_not_count_today() {
    check(
        "budget daily_turns=2
         operator hi
         round done
         advance 24h
         operator more
         round done
         ---
         operator even more
         round done
         operator now
         evidence",
        "queued m3 operator_prompt
         StartModelTurn model_reentry_message m3
         turn local_continuation
         end completed
         processed m3
         told result: done
         WaitForOperator budget_spent
         reached turns 2/2 until +172800s
         told failure: a has used up its budget of the day: 2 of 2 turns. It goes on at +172800s, or when you raise it: `abide agent set a --daily-turns N`.
         queued m4 operator_prompt
         WaitForOperator budget_spent
         daily_turns_spent 2 of 2 until +172800s",
    );
}

#[test]
fn a_whole_budget_that_is_spent_waits_for_no_midnight() {
    check(
        "budget turns=1 daily_turns=1
         operator hi
         round done
         operator more
         ---
         wake?
         wakers
         advance 48h
         evidence",
        "never
         a person who raises the budget
         turns_spent 1 of 1",
    );
}

#[test]
fn a_day_s_budget_ends_a_turn_between_rounds_and_a_new_day_goes_on() {
    check(
        "budget daily_tokens=10
         operator hi
         ---
         round Tool make tokens=12
         tool call1
         advance 24h",
        "cut budget
         requeued m1 budget
         WaitForOperator budget_spent
         reached tokens 12/10 until +86400s
         told failure: a has used up its budget of the day: 12 of 10 tokens. It goes on at +86400s, or when you raise it: `abide agent set a --daily-tokens N`.
         renewed +86400s
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn time_counts_in_turns_and_not_in_between() {
    check(
        "budget wall=1h
         operator hi
         advance 20m
         round done
         advance 10h
         operator more
         advance 20m
         ---
         round Tool make
         notes
         advance 20m
         tool call1
         why",
        "used of its budget: 0.66 of 1 hours
         cut budget
         requeued m2 budget
         WaitForOperator budget_spent
         reached wall_ms 3600003/3600000
         told failure: a has used up its budget: 1 of 1 hours. Raise it to go on: `abide agent set a --max-hours N`.
         a has used up its budget: 1 of 1 hours. Raise it to go on: `abide agent set a --max-hours N`.",
    );
}

#[test]
fn the_time_that_a_process_was_gone_is_not_counted() {
    check(
        "budget wall=1h
         operator hi
         advance 20m
         round Tool make
         advance 10h
         ---
         crash
         notes",
        "call1 unknown
         cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         Tool (call1) was cut off at 2026-01-01T10:20:00.005Z; whether it did its work is unknown, and it is not run again: look before you repeat it (seq 18)
         used of its budget: 0.33 of 1 hours",
    );
}

#[test]
fn the_time_after_a_shutdown_that_cut_a_turn_is_not_counted() {
    check(
        "budget wall=1h
         operator hi
         advance 20m
         round Tool make
         shutdown
         advance 10h
         ---
         crash
         notes",
        "call1 unknown
         cut shutdown
         requeued m1 shutdown
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         Tool (call1) was cut off at 2026-01-01T10:20:00.006Z; whether it did its work is unknown, and it is not run again: look before you repeat it (seq 21)
         used of its budget: 0.33 of 1 hours",
    );
}

#[test]
fn an_item_s_budget_holds_the_item_and_nothing_else() {
    check(
        "person CreateWorkItem max_turns=1 build
         ---
         round done
         item w1
         why
         on
         closure
         posture
         list waiting
         advance 1h
         operator hi
         round done
         person CreateWorkItem other",
        "end completed
         processed m1
         WaitForOperator budget_spent w1
         reached turns of w1 1/1
         told failure: a has used up the budget of the work item w1 (build): 1 of 1 turns. Raise it to go on with it: `abide work update --agent a w1 --max-turns N`.
         budget_spent revision 1
         a has used up the budget of the work item w1 (build): 1 of 1 turns. Raise it to go on with it: `abide work update --agent a w1 --max-turns N`.
         the work item w1 (build), budget_spent
         waiting awaiting_operator_input sleeping
         waiting_for_operator
         waiting: w1
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: done
         WaitForOperator budget_spent w1
         w2 created
         EmitSystemTick queued_available w2
         queued m3 system_tick work_queue:queued_available:w2:1
         StartModelTurn model_reentry_message m3 w2
         turn local_continuation of w2",
    );
}

#[test]
fn an_item_s_budget_is_raised_by_a_person_and_by_nobody_else() {
    check(
        "person CreateWorkItem max_turns=1 build
         round done
         operator hi
         ---
         round UpdateWorkItem w1 max_turns=9
         round CreateWorkItem max_turns=9 more
         round done
         person UpdateWorkItem w1 max_turns=2",
        "UpdateWorkItem refused not_yours
         CreateWorkItem refused not_yours
         end completed
         processed m2
         told result: done
         WaitForOperator budget_spent w1
         w1 updated to 2
         EmitSystemTick queued_available w1
         queued m3 system_tick work_queue:queued_available:w1:2
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1",
    );
}

#[test]
fn an_item_s_budget_ends_its_turn_between_rounds_and_its_tick_is_dropped() {
    check(
        "person CreateWorkItem max_tokens=10 build
         ---
         round Tool make tokens=10
         tool call1",
        "cut budget
         requeued m1 budget
         dropped m1: work_item_not_runnable
         WaitForOperator budget_spent w1
         reached tokens of w1 10/10
         told failure: a has used up the budget of the work item w1 (build): 10 of 10 tokens. Raise it to go on with it: `abide work update --agent a w1 --max-tokens N`.",
    );
}

#[test]
fn a_message_about_an_item_whose_budget_is_spent_is_answered_for_no_item() {
    check(
        "person CreateWorkItem max_tokens=10 build
         person PickWorkItem w1
         round done
         operator hi
         ---
         round Tool make tokens=10
         tool call1
         round done",
        "cut budget
         requeued m2 budget
         dropped m2: work_item_not_runnable
         StartModelTurn model_reentry_message m3
         turn local_continuation
         end completed
         processed m3
         told result: done
         WaitForOperator budget_spent w1
         reached tokens of w1 10/10
         told failure: a has used up the budget of the work item w1 (build): 10 of 10 tokens. Raise it to go on with it: `abide work update --agent a w1 --max-tokens N`.",
    );
}

#[test]
fn a_grant_counts_as_used_until_the_child_says_what_it_used() {
    check(
        "budget turns=6
         operator hi
         round done
         ---
         task t1 child=kid grant_turns=5
         task t1 runs
         operator more
         why
         wakers
         task t1 ends used_turns=2
         notes",
        "t1 created
         WaitForOperator budget_spent
         reached turns 6/6
         told failure: a has used up its budget: 6 of 6 turns (with what its children at work were granted). Raise it to go on: `abide agent set a --max-turns N`.
         t1 running
         queued m2 operator_prompt
         WaitForOperator budget_spent
         a has used up its budget: 6 of 6 turns (with what its children at work were granted). Raise it to go on: `abide agent set a --max-turns N`.
         the end of the child t1, which gives back what it did not use, a person who raises the budget
         t1 completed
         queued m3 task_result
         result of t1 in m3
         StartModelTurn model_reentry_message m3 t1
         turn local_continuation shows t1
         used of its budget: 4 of 6 turns",
    );
}

#[test]
fn a_child_that_is_gone_without_a_word_has_used_its_grant() {
    check(
        "budget turns=3
         task t1 child=kid grant_turns=2
         task t1 runs
         ---
         task t1 ends interrupted
         round done
         notes",
        "t1 interrupted
         queued m1 task_result
         result of t1 in m1
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation shows t1
         read t1: round 1
         end completed
         processed m1
         WaitForOperator budget_spent
         reached turns 3/3
         told failure: a has used up its budget: 3 of 3 turns. Raise it to go on: `abide agent set a --max-turns N`.
         used of its budget: 3 of 3 turns",
    );
}

#[test]
fn a_grant_counts_on_every_day() {
    check(
        "budget daily_turns=4
         task t1 child=kid grant_turns=3
         operator hi
         round done
         operator more
         ---
         advance 24h
         round done
         operator even more
         wake?",
        "renewed +86400s
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: done
         WaitForOperator budget_spent
         reached turns 4/4 until +172800s
         told failure: a has used up its budget of the day: 4 of 4 turns (with what its children at work were granted). It goes on at +172800s, or when you raise it: `abide agent set a --daily-turns N`.
         queued m3 operator_prompt
         WaitForOperator budget_spent
         at once: children_changing",
    );
}

#[test]
fn what_a_child_used_for_an_item_counts_on_it() {
    check(
        "person CreateWorkItem max_turns=4 build
         round done
         task t1 child=kid item=w1 grant_turns=9
         task t1 runs
         ---
         task t1 ends used_turns=3
         item w1",
        "t1 completed
         w1 delegation t1 completed
         queued m3 task_result
         result of t1 in m3
         budget_spent revision 1",
    );
}

#[test]
fn a_fork_has_no_children_and_used_nothing_of_their_grants() {
    check(
        "budget turns=9
         task t1 child=kid grant_turns=8
         task t1 runs
         ---
         fork b
         notes",
        "forked b
         t1 interrupted: fork
         queued m1 task_result
         result of t1 in m1
         Stop stopped
         used of its budget: 0 of 9 turns",
    );
}

/// An outage is nobody's turn: what a provider gave back before it said a word is not counted, in all, on the day and
/// for the item. A turn that did something is.
#[test]
fn turns_in_which_no_model_spoke_do_not_count() {
    check(
        "budget turns=2 daily_turns=2
         person CreateWorkItem max_turns=2 build
         fail overloaded
         advance 2s
         fail overloaded
         advance 10s
         ---
         round Tool make
         tool call1
         fail overloaded
         advance 1m
         round done
         operator hi",
        "end provider_failed_needs_recovery
         requeued m1 provider_backoff until +72s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1 w1
         turn local_continuation of w1
         end completed
         processed m1
         WaitForOperator budget_spent
         reached turns 2/2
         told failure: a has used up its budget: 2 of 2 turns. Raise it to go on: `abide agent set a --max-turns N`.
         reached turns of w1 2/2
         told failure: a has used up the budget of the work item w1 (build): 2 of 2 turns. Raise it to go on with it: `abide work update --agent a w1 --max-turns N`.
         queued m2 operator_prompt
         WaitForOperator budget_spent",
    );
}

/// A call that broke off, or was ended, is paid for as far as it came.
#[test]
fn calls_that_came_to_nothing_count() {
    check(
        "budget tokens=100
         operator hi
         fail disconnect tokens=60
         advance 1m
         abort
         ---
         cut tokens=50
         notes
         operator more",
        "counted 50
         WaitForOperator budget_spent
         reached tokens 110/100
         told failure: a has used up its budget: 110 of 100 tokens. Raise it to go on: `abide agent set a --max-tokens N`.
         used of its budget: 110 of 100 tokens
         failed at +0s, disconnect: no
         queued m2 operator_prompt
         WaitForOperator budget_spent",
    );
}

#[test]
fn an_answer_that_came_too_late_to_be_heard_is_paid_for() {
    check(
        "operator hi
         abort
         ---
         round too late tokens=70",
        "counted 70
         stale
         unchanged",
    );
}

/// Setting the clock back does not give the day's budget a second time.
#[test]
fn a_day_that_has_begun_stays_begun() {
    check(
        "budget daily_turns=2
         advance 25h
         operator hi
         round done
         back 2h
         operator more
         round done
         ---
         operator even more
         why",
        "queued m3 operator_prompt
         WaitForOperator budget_spent
         a has used up its budget of the day: 2 of 2 turns. It goes on at +172800s, or when you raise it: `abide agent set a --daily-turns N`.",
    );
}

#[test]
fn money_may_be_limited_for_a_day_alone() {
    let money = Limits { max_micro_usd: Some(1), ..Limits::default() };
    let other = Limits { max_tokens: Some(1), ..Limits::default() };
    let limits = |in_all: Limits, daily: Limits| Budget { daily, ..Budget::from(in_all) }.limits_money();
    assert_eq!([limits(money, other), limits(other, money), limits(other, other)], [true, true, false]);
}

/// A child that is gone without a word of what it used counts with all that it was granted.
#[test]
fn a_grant_counts_as_used_in_every_measure() {
    let grant = Limits { max_turns: Some(2), max_tokens: Some(3), max_micro_usd: Some(5), max_wall_ms: Some(7) };
    for measure in [Measure::Turns, Measure::Tokens, Measure::Money, Measure::Wall] {
        assert_eq!(Some(Used::all_of(&grant).of(measure)), grant.of(measure), "{measure}");
    }
}

#[test]
fn a_raised_budget_that_is_spent_again_is_told_again() {
    check(
        "person CreateWorkItem max_turns=1 build
         round done
         ---
         person UpdateWorkItem w1 max_turns=2
         round done",
        "w1 updated to 2
         EmitSystemTick queued_available w1
         queued m2 system_tick work_queue:queued_available:w1:2
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1
         end completed
         processed m2
         WaitForOperator budget_spent w1
         reached turns of w1 2/2
         told failure: a has used up the budget of the work item w1 (build): 2 of 2 turns. Raise it to go on with it: `abide work update --agent a w1 --max-turns N`.",
    );
}

#[test]
fn the_last_turn_of_an_item_is_not_cut_between_rounds() {
    check(
        "person CreateWorkItem max_turns=1 build
         round Tool x
         ---
         tool call1
         item w1
         round done",
        "budget_spent revision 1
         end completed
         processed m1
         WaitForOperator budget_spent w1
         reached turns of w1 1/1
         told failure: a has used up the budget of the work item w1 (build): 1 of 1 turns. Raise it to go on with it: `abide work update --agent a w1 --max-turns N`.",
    );
}

#[test]
fn a_child_that_was_granted_nothing_holds_nothing() {
    check(
        "budget turns=10
         task t1 child=a.1 grant_turns=0
         ---
         notes",
        "used of its budget: 0 of 10 turns",
    );
}

#[test]
fn a_budget_that_children_hold_nothing_of() {
    check(
        "budget turns=1
         operator hi
         round done
         task t1 child=a.1 grant_turns=0
         ---
         operator hi
         why
         wakers",
        "queued m2 operator_prompt
         WaitForOperator budget_spent
         a has used up its budget: 1 of 1 turns. Raise it to go on: `abide agent set a --max-turns N`.
         a person who raises the budget",
    );
}

#[test]
fn a_turn_in_vain_costs_its_item_nothing() {
    check(
        "person CreateWorkItem max_turns=1 build
         ---
         fail rate_limited after=1m
         item w1",
        "end provider_failed_needs_recovery
         requeued m1 provider_backoff until +60s
         WaitForTimer provider_backoff m1
         runnable revision 1",
    );
}

#[test]
fn what_children_were_granted_is_told_with_what_was_used() {
    check(
        "budget turns=10
         task t1 child=a.1 grant_turns=3
         ---
         notes",
        "used of its budget: 3 of 10 turns and grants to children",
    );
}
