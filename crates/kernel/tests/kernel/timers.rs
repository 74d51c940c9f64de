//! Timers (spec 12).

use crate::story::check;

#[test]
fn one_undelivered_tick_at_a_time() {
    check(
        "person CreateTimer every=1m tea
         operator hi
         ---
         advance 1m
         advance 1m
         advance 1m
         round done
         missed",
        "queued m2 timer_tick
         timer1 fired in m2
         end completed
         processed m1
         told result: done
         StartModelTurn model_reentry_message m2
         timer1 missed 2 (+120s to +180s) coalesced
         turn local_continuation
         2",
    );
}

#[test]
fn what_came_due_while_the_tick_waited_is_told_with_it() {
    check(
        "person CreateTimer every=1m tea
         operator hi
         advance 90s
         advance 5m
         ---
         round done
         missed",
        "end completed
         processed m1
         told result: done
         StartModelTurn model_reentry_message m2
         timer1 missed 5 (+120s to +360s) coalesced
         turn local_continuation
         5",
    );
}

#[test]
fn latest_catches_up_with_one_tick() {
    check(
        "person CreateTimer every=1m tea
         stop
         ---
         advance 10m
         start
         missed",
        "control start awake_idle
         queued m1 timer_tick
         timer1 fired in m1
         timer1 missed 9 (+60s to +540s) coalesced
         StartModelTurn model_reentry_message m1
         turn local_continuation
         9",
    );
}

#[test]
fn none_skips_what_is_late() {
    check(
        "person CreateTimer every=1m catch_up=none tea
         stop
         advance 630s
         ---
         start
         advance 30s",
        "control start awake_idle
         timer1 missed 10 (+60s to +600s) skipped
         WaitForTimer active_timers
         queued m1 timer_tick
         timer1 fired in m1
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn none_tells_the_last_if_it_is_on_time() {
    check(
        "person CreateTimer every=1m catch_up=none tea
         stop
         advance 10m
         ---
         start",
        "control start awake_idle
         queued m1 timer_tick
         timer1 fired in m1
         timer1 missed 9 (+60s to +540s) skipped
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn none_tells_what_is_on_time() {
    check(
        "person CreateTimer every=1m catch_up=none tea
         ---
         advance 1m",
        "queued m1 timer_tick
         timer1 fired in m1
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn all_is_bounded_too() {
    check(
        "person CreateTimer every=1m catch_up=all tea
         stop
         advance 150m
         ---
         start",
        "control start awake_idle
         timer1 missed 50 (+60s to +3000s) coalesced
         queued m1 timer_tick
         timer1 fired in m1
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn all_delivers_one_after_another() {
    check(
        "person CreateTimer every=1m catch_up=all tea
         stop
         advance 3m
         ---
         start
         round done
         round done
         round done",
        "control start awake_idle
         queued m1 timer_tick
         timer1 fired in m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         queued m2 timer_tick
         timer1 fired in m2
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         queued m3 timer_tick
         timer1 fired in m3
         StartModelTurn model_reentry_message m3
         turn local_continuation
         end completed
         processed m3
         WaitForTimer active_timers",
    );
}

#[test]
fn cancelling_drops_the_undelivered_tick() {
    check(
        "person CreateTimer every=1m tea
         operator hi
         advance 1m
         ---
         person CancelTimer timer1
         round done",
        "timer1 cancelled: cancelled_by ann
         dropped m2: timer_cancelled
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_timer_with_one_occurrence_completes_by_being_taken() {
    check(
        "person CreateTimer after=1m tea
         ---
         advance 1m
         round done
         timers",
        "queued m1 timer_tick
         timer1 fired in m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         timer1 completed
         Sleep no_pending_scheduler_facts
         []",
    );
}

#[test]
fn a_sleep_ends_when_it_fires() {
    check(
        "person CreateWorkItem build
         ---
         round Sleep 1m
         item w1
         advance 1m",
        "wait1 sleep on timer1 of w1
         timer1 at +60s
         end completed
         processed m1
         WaitForTimer work_item_timer_wait w1
         waiting_for_timer revision 1
         queued m2 timer_tick
         timer1 fired in m2
         StartModelTurn model_reentry_message m2 w1
         wait1 triggered by m2
         turn resume_expected_wait of w1",
    );
}

#[test]
fn a_sleep_ends_when_the_next_turn_of_what_it_holds_starts() {
    check(
        "person CreateWorkItem build
         person PickWorkItem w1
         round done
         ---
         round Sleep 1h
         operator hi
         waits
         timers",
        "wait1 sleep on timer1 of w1
         timer1 at +3600s
         end completed
         processed m2
         WaitForTimer work_item_timer_wait w1
         queued m3 operator_prompt
         StartModelTurn model_reentry_message m3
         wait1 cancelled: turn_started
         timer1 cancelled: wait_ended
         turn local_continuation of w1
         []
         []",
    );
}

#[test]
fn a_sleep_of_an_item_does_not_end_with_a_turn_about_another() {
    check(
        "person CreateWorkItem build
         person CreateWorkItem test
         ---
         round Sleep 1h
         waits",
        "wait1 sleep on timer1 of w1
         timer1 at +3600s
         end completed
         processed m1
         EmitSystemTick queued_available w2
         queued m2 system_tick work_queue:queued_available:w2:1
         StartModelTurn model_reentry_message m2 w2
         turn local_continuation of w2
         [wait1]",
    );
}

#[test]
fn a_sleep_without_a_duration_only_ends_the_turn() {
    check(
        "operator hi
         ---
         round Sleep
         waits",
        "end completed
         processed m1
         told result: Done.
         Sleep no_pending_scheduler_facts
         []",
    );
}

#[test]
fn a_timer_too_often_is_refused() {
    check("person CreateTimer every=99ms tea", "refused too_often");
}

#[test]
fn a_timer_too_far_is_refused() {
    check("person CreateTimer after=900000h tea", "refused too_far_ahead");
}

#[test]
fn a_timer_that_never_fired_holds_nothing_back() {
    check(
        "person CreateTimer after=1h tea
         person CreateWorkItem build",
        "timer1 at +3600s
         WaitForTimer active_timers
         w1 created
         EmitSystemTick queued_available w1
         queued m1 system_tick work_queue:queued_available:w1:1
         StartModelTurn model_reentry_message m1 w1
         turn local_continuation of w1",
    );
}
