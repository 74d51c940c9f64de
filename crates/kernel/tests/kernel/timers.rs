//! Timers (spec 12).

use abide_kernel::scheduler::timed::Timed;

use crate::story::{Story, check};

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
         told result: (Nothing was said after the last tool calls; the transcript has them.)
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

#[test]
fn a_check_that_says_yes_wakes_with_what_it_said() {
    check(
        "person CreateTimer every=1m check=look tea
         ---
         advance 1m
         effects
         wakers
         checked timer1 0 two letters
         round done",
        "timer1 check of +60s
         WaitForTimer active_timers
         check timer1 look
         the check of timer1, a message from the operator
         queued m1 timer_tick
         timer1 fired in m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         WaitForTimer active_timers",
    );
}

#[test]
fn a_check_that_says_no_skips_the_occurrence_and_says_so() {
    check(
        "person CreateTimer every=1m check=look tea
         advance 1m
         ---
         checked timer1 1 no letters
         advance 1m
         checked timer1 2",
        "timer1 missed 1 (+60s to +60s) check_said_no (exit code 1: no letters)
         WaitForTimer active_timers
         timer1 check of +120s
         WaitForTimer active_timers
         timer1 missed 1 (+120s to +120s) check_said_no (exit code 2)
         WaitForTimer active_timers",
    );
}

#[test]
fn a_check_that_can_not_be_done_hides_nothing() {
    check(
        "person CreateTimer after=1m check=look tea
         advance 1m
         ---
         checked timer1 lost its shell
         round done",
        "queued m1 timer_tick
         timer1 fired in m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         timer1 completed
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_timer_has_one_check_at_a_time() {
    check(
        "person CreateTimer every=1m check=look tea
         advance 1m
         ---
         advance 5m
         checked timer1 1",
        "timer1 missed 1 (+60s to +60s) check_said_no (exit code 1)
         timer1 check of +360s
         timer1 missed 4 (+120s to +300s) coalesced
         WaitForTimer active_timers",
    );
}

#[test]
fn a_check_that_was_cut_is_done_again() {
    check(
        "person CreateTimer every=1h check=look tea
         advance 1h
         ---
         crash
         effects
         crash
         checked timer1 1",
        "control restart asleep
         timer1 check of +3600s
         check timer1 look
         control restart asleep
         timer1 check of +3600s
         timer1 missed 1 (+3600s to +3600s) check_said_no (exit code 1)
         WaitForTimer active_timers",
    );
}

#[test]
fn a_stopped_agent_checks_nothing() {
    check(
        "person CreateTimer every=1h check=look tea
         advance 1h
         ---
         stop
         effects
         advance 90m
         start",
        "timer1 missed 1 (+3600s to +3600s) stopped
         control stop stopped
         Stop stopped
         end check timer1
         control start awake_idle
         timer1 check of +7200s
         WaitForTimer active_timers",
    );
}

#[test]
fn a_shutdown_ends_a_check_and_the_next_boot_does_it_again() {
    check(
        "person CreateTimer every=1h check=look tea
         advance 1h
         ---
         shutdown
         effects
         crash
         effects",
        "control shutdown asleep
         Stop shutdown_requested
         end check timer1
         control restart asleep
         timer1 check of +3600s
         WaitForTimer active_timers
         check timer1 look",
    );
}

#[test]
fn cancelling_a_timer_ends_its_check() {
    check(
        "person CreateTimer every=1h check=look tea
         advance 1h
         ---
         person CancelTimer timer1
         effects",
        "timer1 missed 1 (+3600s to +3600s) cancelled
         timer1 cancelled: cancelled_by ann
         StayIdle already_asleep
         end check timer1",
    );
}

#[test]
fn a_clock_set_back_fires_nothing_twice() {
    check(
        "person CreateTimer every=1h tea
         ---
         advance 1h
         round done
         back 30m
         advance 30m
         advance 1h",
        "queued m1 timer_tick
         timer1 fired in m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         WaitForTimer active_timers
         clock set back from +3600s to +1800s
         timer1 rescheduled from +7200s to +5400s
         WaitForTimer active_timers
         queued m2 timer_tick
         timer1 fired in m2
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn a_clock_set_forward_by_a_year_is_one_tick_that_counts_the_rest() {
    check(
        "person CreateTimer cron=0_9_*_*_* zone=Europe/Berlin tea
         ---
         advance 8760h",
        "queued m1 timer_tick
         timer1 fired in m1
         timer1 missed 364 (+28800s to +31392000s) coalesced
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn a_calendar_timer_is_made_by_its_first_time() {
    check(
        "person CreateTimer cron=0_9_*_*_mon-fri zone=europe/berlin tea",
        "timer1 at +28800s by 0 9 * * mon-fri in Europe/Berlin
         WaitForTimer active_timers",
    );
}

/// The text of a tick of a timer with a check.
#[test]
fn a_check_that_said_nothing_adds_nothing() {
    let text = |checked: &str| {
        let mut story = Story::begin();
        for line in ["operator hi", "person CreateTimer every=1m check=look tea", "advance 1m", checked] {
            story.tell(line).unwrap();
        }
        let tick = story.state.planes.queue.entries().find(|entry| entry.message.timer_id().is_some()).unwrap();
        tick.message.text.clone().unwrap()
    };
    assert_eq!(text("checked timer1 0"), "tea");
    assert_eq!(text("checked timer1 0 two letters"), "tea\n\nIts check said:\ntwo letters");
    let failed = text("checked timer1 broken");
    assert!(failed.starts_with("tea\n\nIts check could not be done, so look yourself: "), "{failed}");
}

#[test]
fn a_check_that_said_no_is_over() {
    check(
        "person CreateTimer every=1h check=look tea
         advance 1h
         ---
         checked timer1 1 no
         effects
         facts",
        r#"timer1 missed 1 (+3600s to +3600s) check_said_no (exit code 1: no)
         WaitForTimer active_timers
         timer.missed {"timer_id":"timer1","count":1,"first":"2026-01-01T01:00:00.002Z","last":"2026-01-01T01:00:00.002Z","reason":"check_said_no","next_fire_at":"2026-01-01T02:00:00.002Z","missed_count":1,"note":"exit code 1: no"}
         scheduler.decision {"kind":"WaitForTimer","reason":"active_timers","boundary":"idle","model_reentry":false,"liveness_only":false,"ignored":[],"evidence":["timer timer1 next +7200s seq 7"]}"#,
    );
}

/// When each thing that goes on by itself is due.
#[test]
fn what_is_due_first_is_due_at_its_time() {
    let due = |lines: &str| {
        let mut story = Story::begin();
        for line in lines.lines().map(str::trim) {
            story.tell(line).unwrap();
        }
        let due = Timed::first(&story.state).and_then(|timed| timed.due());
        due.map(|due| story.short(&due.to_string()))
    };
    assert_eq!(due("operator hi\nround Sleep 1h").as_deref(), Some("+3600s"));
    assert_eq!(due("operator hi\nround WaitFor timer after=2h").as_deref(), Some("+7200s"));
    let blocked = "person CreateWorkItem build\nround UpdateWorkItem w1 blocked=rain recheck=3h\nround done";
    assert_eq!(due(blocked).as_deref(), Some("+10800s"));
    assert_eq!(due("person CreateWorkItem build\nround done").as_deref(), Some("+30s"));
    assert_eq!(due("operator hi\nfail rate_limited after=1m").as_deref(), Some("+60s"));
    assert_eq!(due("operator hi").as_deref(), None);
}
