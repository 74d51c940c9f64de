//! Wake hints: the outcome of each, one tick per source, keys.

use abide_kernel::limits::HINT_SOURCES_MAX;

use crate::story::{Story, check};

#[test]
fn a_hint_to_a_resting_agent_triggers() {
    check(
        "wake source=s look",
        "hint s triggered
         EmitSystemTick wake_hint
         queued m1 wake_hint as next wake_hint:s:1
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn a_hint_to_a_running_agent_coalesces() {
    check(
        "operator hi
         ---
         wake source=s look
         round done",
        "hint s coalesced
         end completed
         processed m1
         told result: done
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:s:1
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn a_hint_to_an_agent_with_queued_input_coalesces() {
    check(
        "operator hi
         fail rate_limited after=1h
         ---
         wake source=s look",
        "hint s coalesced
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:s:1
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn a_hint_to_a_stopped_agent_is_ignored() {
    check(
        "stop
         ---
         wake source=s look
         hints",
        "hint s ignored
         none",
    );
}

#[test]
fn hints_of_one_source_become_one_tick() {
    check(
        "operator hi
         wake source=s one
         wake source=s two
         wake source=t three
         ---
         round done
         round done",
        "end completed
         processed m1
         told result: done
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:s:2
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         EmitSystemTick wake_hint
         queued m3 wake_hint as next wake_hint:t:3
         StartModelTurn model_reentry_message m3
         turn local_continuation",
    );
}

#[test]
fn a_blank_hint_is_liveness_only() {
    check(
        "wake source=s",
        "hint s triggered
         EmitSystemTick wake_hint
         queued m1 wake_hint as next wake_hint:s:1
         ReduceMessageOnly liveness_only_message m1
         processed m1: blank
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_hint_keeps_its_generation() {
    check(
        "wake source=s one
         round done
         wake source=s two",
        "hint s triggered
         EmitSystemTick wake_hint
         queued m1 wake_hint as next wake_hint:s:1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         Sleep no_pending_scheduler_facts
         hint s triggered
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:s:2
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn a_hint_names_the_wait_it_is_for() {
    check(
        "operator hi
         round WaitFor external c1
         ---
         wake resource=c1 news",
        "hint c1 triggered
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:c1:1
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn a_hint_to_a_quarantined_agent_is_ignored() {
    check(
        "quarantine bad
         ---
         wake source=s look",
        "hint s ignored",
    );
}

#[test]
fn a_hint_that_names_a_wait_of_another_kind_does_not_end_it() {
    check(
        "operator hi
         round RequestApproval deploy
         ---
         wake resource=wait1
         wake resource=wait1 news
         waits",
        "hint wait1 triggered
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:wait1:1
         ReduceMessageOnly liveness_only_message m2
         processed m2: blank
         WaitForOperator approval_pending
         hint wait1 triggered
         answered parked: it is parked behind wait1, and taken when that ends
         EmitSystemTick wake_hint
         queued m3 wake_hint as next wake_hint:wait1:2
         ReduceMessageOnly message_parked m3
         parked m3 behind wait1
         WaitForOperator approval_pending
         [wait1]",
    );
}

#[test]
fn a_hint_that_is_ignored_takes_no_earlier_one_along() {
    check(
        "operator hi
         wake source=s news
         stop
         ---
         wake source=s
         hints
         start
         round done",
        "hint s ignored
         s
         control start awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         told result: done
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:s:1
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn the_hint_of_a_trigger_ends_the_wait_that_names_it() {
    check(
        "operator hi
         round CreateTrigger mode=wake_hint builds
         round WaitFor external trig1
         ---
         wake resource=trig1",
        "hint trig1 triggered
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:trig1:1
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

/// Hints become ticks, and ticks that say something are parked: their sources count until they are over.
#[test]
fn sources_whose_ticks_are_parked_count_too() {
    let mut story = Story::begin();
    story.tell("operator hi").unwrap();
    story.tell("round WaitFor operator").unwrap();
    for source in 0..2 * HINT_SOURCES_MAX {
        story.tell(&format!("wake source=s{source} news")).unwrap();
    }
    assert_eq!(story.state.planes.queue.parked(), HINT_SOURCES_MAX);
    // A source that is known already joins its own tick, and takes no more room.
    story.tell("wake source=s1 more").unwrap();
    assert_eq!(story.state.planes.hints.pending().len(), 1);
}

/// The answer says what the table of continuations will do with the hint.
#[test]
fn a_hint_that_will_be_parked_is_answered_so() {
    check(
        "operator hi
         round WaitFor external c1
         ---
         wake source=s look
         wake source=t
         wake resource=c1 look",
        "hint s triggered
         answered parked: it is parked behind wait1, and taken when that ends
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:s:1
         ReduceMessageOnly message_parked m2
         parked m2 behind wait1
         WaitForExternalChange active_agent_waiting_intents
         hint t triggered
         EmitSystemTick wake_hint
         queued m3 wake_hint as next wake_hint:t:2
         ReduceMessageOnly liveness_only_message m3
         processed m3: blank
         WaitForExternalChange active_agent_waiting_intents
         hint c1 triggered
         EmitSystemTick wake_hint
         queued m4 wake_hint as next wake_hint:c1:3
         StartModelTurn model_reentry_message m4
         wait1 triggered by m4
         turn resume_expected_wait
         requeued m2 unparked",
    );
}
