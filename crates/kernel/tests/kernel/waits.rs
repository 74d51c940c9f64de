//! How waits end, and which are refused (spec 9).

use abide_kernel::Fact;
use abide_kernel::vocabulary::WaitSource;

use crate::story::{Story, check};

#[test]
fn completing_an_item_ends_its_waits_and_their_timers() {
    check(
        "person CreateWorkItem build
         round WaitFor timer after=1h
         person PickWorkItem w1
         operator hi
         ---
         round CompleteWorkItem w1
         timers",
        "wait1 cancelled: work_item_completed
         timer1 cancelled: wait_ended
         w1 completed
         []",
    );
}

#[test]
fn cancelling_a_timer_ends_the_waits_that_name_it() {
    check(
        "person CreateTimer every=1h tea
         operator hi
         round WaitFor timer timer1
         ---
         person CancelTimer timer1",
        "queued m2 internal_followup
         wait1 cancelled: its timer was cancelled
         timer1 cancelled: cancelled_by ann
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn cancelling_the_timer_of_a_wait_ends_both() {
    check(
        "operator hi
         round WaitFor timer after=1h
         ---
         person CancelTimer timer1",
        "queued m2 internal_followup
         wait1 cancelled: its timer was cancelled
         timer1 cancelled: wait_ended
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn revoking_a_trigger_ends_the_waits_that_name_it() {
    check(
        "person CreateTrigger hook
         operator hi
         round WaitFor external trig1
         ---
         person RevokeTrigger trig1",
        "trig1 revoked
         queued m2 internal_followup
         wait1 cancelled: its trigger was revoked
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn the_model_is_not_told_of_what_it_did_itself() {
    check(
        "person CreateTrigger hook
         operator hi
         round WaitFor external trig1
         operator hi
         ---
         round RevokeTrigger trig1
         round done",
        "trig1 revoked
         wait1 cancelled: its trigger was revoked
         end completed
         processed m2
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_person_can_end_any_wait() {
    check(
        "operator hi
         round WaitFor operator
         ---
         person CancelWait wait1
         person CancelWait wait1",
        "queued m2 internal_followup
         wait1 cancelled: cancelled_by ann
         StartModelTurn model_reentry_message m2
         turn local_continuation
         refused not_found",
    );
}

#[test]
fn the_model_can_end_any_wait() {
    check(
        "operator hi
         round WaitFor external c1
         operator hi
         ---
         round CancelWait wait1",
        "wait1 cancelled: cancelled_by exec2",
    );
}

#[test]
fn ending_an_approvals_wait_expires_it() {
    check(
        "operator hi
         round RequestApproval deploy
         ---
         person CancelWait wait1
         person DecideApproval appr1 grant",
        "queued m2 internal_followup
         wait1 cancelled: cancelled_by ann
         appr1 expired by wait_ended
         StartModelTurn model_reentry_message m2
         turn local_continuation
         refused not_pending",
    );
}

#[test]
fn an_agent_does_not_decide_its_own_approval() {
    check(
        "operator hi
         round RequestApproval deploy
         operator hi
         ---
         round DecideApproval appr1 grant",
        "DecideApproval refused not_yours",
    );
}

#[test]
fn an_approval_is_decided_once() {
    check(
        "operator hi
         round RequestApproval deploy
         ---
         person DecideApproval appr1 deny
         person DecideApproval appr1 grant",
        "appr1 denied by ann
         queued m2 internal_followup
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait
         refused not_pending",
    );
}

#[test]
fn an_approval_expires_by_its_default() {
    check(
        "operator hi
         round RequestApproval deadline=1m deploy
         ---
         advance 1m",
        "appr1 expired by deadline
         queued m2 internal_followup
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn waiting_for_an_unknown_task_is_refused() {
    check(
        "operator hi
         ---
         round WaitFor task t1",
        "WaitFor refused nothing_would_end_it",
    );
}

#[test]
fn waiting_for_any_task_with_none_running_is_refused() {
    check(
        "operator hi
         ---
         round WaitFor task",
        "WaitFor refused nothing_would_end_it",
    );
}

#[test]
fn waiting_for_an_unknown_timer_is_refused() {
    check(
        "operator hi
         ---
         round WaitFor timer timer_x",
        "WaitFor refused nothing_would_end_it",
    );
}

#[test]
fn waiting_for_any_timer_with_none_active_is_refused() {
    check(
        "operator hi
         ---
         round WaitFor timer",
        "WaitFor refused nothing_would_end_it",
    );
}

#[test]
fn waiting_for_a_revoked_trigger_is_refused() {
    check(
        "person CreateTrigger hook
         person RevokeTrigger trig1
         operator hi
         ---
         round WaitFor external trig1",
        "WaitFor refused nothing_would_end_it",
    );
}

#[test]
fn an_operator_wait_names_nothing() {
    check(
        "operator hi
         ---
         round WaitFor operator c1",
        "WaitFor refused no_resource_here",
    );
}

#[test]
fn a_wait_for_a_completed_item_is_refused() {
    check(
        "person CreateWorkItem build
         round CompleteWorkItem w1
         ---
         round WaitFor operator item=w1",
        "WaitFor refused not_open",
    );
}

#[test]
fn the_last_timer_takes_the_unnamed_timer_wait_with_it() {
    check(
        "person CreateTimer every=1h tea
         operator hi
         round WaitFor timer
         ---
         person CancelTimer timer1",
        "timer1 cancelled: cancelled_by ann
         queued m2 internal_followup
         wait1 cancelled: no timer is left
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn the_last_result_takes_the_unnamed_task_wait_with_it() {
    check(
        "task t1
         operator hi
         round WaitFor task
         operator hi
         task t1 ends
         ---
         round Tool
         tool call2 reads=t1",
        "read t1: task_output_returned_the_end
         dropped m3: result_read
         queued m4 internal_followup
         wait1 cancelled: no task is left",
    );
}

#[test]
fn switching_focus_keeps_waits() {
    check(
        "person CreateWorkItem build
         person CreateWorkItem test
         round WaitFor external c1
         ---
         person PickWorkItem w2
         waits",
        "w2 picked
         [wait1]",
    );
}

#[test]
fn a_sleep_takes_the_waits_on_its_timer_with_it() {
    check(
        "person CreateWorkItem build
         round Sleep 1h
         operator hi
         round WaitFor timer timer1
         ---
         person CancelWait wait1",
        "queued m3 internal_followup
         wait1 cancelled: cancelled_by ann
         timer1 cancelled: wait_ended
         queued m4 internal_followup
         wait2 cancelled: its timer was cancelled
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1",
    );
}

#[test]
fn waiting_for_a_timer_that_has_fired_for_the_last_time_is_refused() {
    check(
        "person CreateTimer after=1m tea
         advance 1m
         ---
         round WaitFor timer timer1
         round WaitFor timer",
        "WaitFor refused nothing_would_end_it
         WaitFor refused nothing_would_end_it",
    );
}

#[test]
fn a_wait_says_who_registered_it() {
    let mut story = Story::begin();
    for line in ["person WaitFor external c1", "operator hi", "round WaitFor external c2"] {
        story.tell(line).unwrap();
    }
    let sources: Vec<WaitSource> = story.state.planes.waits.open().values().map(|wait| wait.source).collect();
    assert_eq!(sources, [WaitSource::Operator, WaitSource::Model]);
}

/// A wait that got what it waited for says how often that came, and its turn says that it was awaited.
#[test]
fn a_wait_is_counted_and_its_turn_says_that_it_matched() {
    let mut story = Story::begin();
    for line in ["operator hi", "round WaitFor external c1", "event corr=c1 news"] {
        story.tell(line).unwrap();
    }
    let counts: Vec<u64> = story.facts.iter().filter_map(|(_, fact)| triggered(fact)).collect();
    assert_eq!(counts, [1]);
    let matched: Vec<bool> = story.facts.iter().filter_map(|(_, fact)| matched(fact)).collect();
    assert_eq!(matched, [false, true]);
}

fn triggered(fact: &Fact) -> Option<u64> {
    if let Fact::WaitingIntentTriggered(wait) = fact { Some(wait.trigger_count.into()) } else { None }
}

fn matched(fact: &Fact) -> Option<bool> {
    if let Fact::TurnStarted(turn) = fact { Some(turn.continuation.matched_waiting_reason) } else { None }
}

/// Whole: the message says which wait ended, and whose prompt is still unanswered.
#[test]
fn a_person_who_cancels_a_wait_is_named_to_the_agent() {
    check(
        "operator hi
         round WaitFor external c1
         ---
         person CancelWait wait1
         facts",
        r#"queued m2 internal_followup
         wait1 cancelled: cancelled_by ann
         StartModelTurn model_reentry_message m2
         turn local_continuation
         message.queued {"message_id":"m2","kind":"internal_followup","origin":{"kind":"system"},"trust":"trusted_system","priority":"normal","text":"The wait wait1 ended: ann cancelled it.","answers":"m1","causation_id":"wait1"}
         wait.cancelled {"waiting_intent_id":"wait1","evidence":["cancelled_by ann"]}
         posture.changed {"boundary":"message_admission","previous_status":"asleep","next_status":"awake_idle","task_ids":[],"evidence":["message_queued m2"]}
         scheduler.decision {"kind":"StartModelTurn","reason":"model_reentry_message","boundary":"message","model_reentry":true,"liveness_only":false,"message_id":"m2","ignored":[],"evidence":["message_queued m2 seq 24","local_continuation","no_wait_open"]}
         message.dequeued {"message_id":"m2"}
         turn.started {"turn_id":"turn2","exec_id":"exec2","turn_index":2,"message_id":"m2","continuation":{"trigger_kind":"internal_followup","class":"local_continuation","model_reentry":true,"matched_waiting_reason":false,"evidence":["no_wait_open"]},"answers":"m1"}
         turn.round_started {"exec_id":"exec2","round":1}"#,
    );
}

#[test]
fn a_turn_that_begins_is_recorded_whole() {
    check(
        "---
         operator hi
         facts",
        r#"queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         message.queued {"message_id":"m1","kind":"operator_prompt","origin":{"kind":"operator"},"trust":"trusted_operator","priority":"normal","text":"hi"}
         posture.changed {"boundary":"message_admission","previous_status":"asleep","next_status":"awake_idle","task_ids":[],"evidence":["message_queued m1"]}
         scheduler.decision {"kind":"StartModelTurn","reason":"model_reentry_message","boundary":"message","model_reentry":true,"liveness_only":false,"message_id":"m1","ignored":[],"evidence":["message_queued m1 seq 7","local_continuation","no_wait_open"]}
         message.dequeued {"message_id":"m1"}
         turn.started {"turn_id":"turn1","exec_id":"exec1","turn_index":1,"message_id":"m1","continuation":{"trigger_kind":"operator_input","class":"local_continuation","model_reentry":true,"matched_waiting_reason":false,"evidence":["no_wait_open"]},"answers":"m1"}
         turn.round_started {"exec_id":"exec1","round":1}"#,
    );
}

#[test]
fn an_agent_that_ends_its_own_wait_causes_the_message_itself() {
    check(
        "operator hi
         round CreateTimer after=1h tea
         round WaitFor timer
         operator again
         ---
         round CancelTimer timer1
         facts",
        r#"timer1 cancelled: cancelled_by exec2
         queued m3 internal_followup
         wait1 cancelled: no timer is left
         turn.provider_round_completed {"exec_id":"exec2","round":1,"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost_micro_usd":0}}
         turn.assistant_round_recorded {"exec_id":"exec2","round":1,"calls":[{"call_id":"call3","tool":"CancelTimer","input":{"words":"timer1"}}]}
         tool.started {"exec_id":"exec2","call_id":"call3","tool":"CancelTimer"}
         timer.cancelled {"timer_id":"timer1","evidence":["cancelled_by exec2"]}
         tool.finished {"exec_id":"exec2","call_id":"call3","tool":"CancelTimer","status":"completed","result":{"ended_waits":[],"status":"cancelled","timer_id":"timer1"}}
         turn.tool_round_completed {"exec_id":"exec2","round":1}
         turn.round_started {"exec_id":"exec2","round":2}
         message.queued {"message_id":"m3","kind":"internal_followup","origin":{"kind":"system"},"trust":"trusted_system","priority":"normal","text":"The wait wait1 ended: no timer is left.","answers":"m1","causation_id":"wait1","self_caused":true}
         wait.cancelled {"waiting_intent_id":"wait1","evidence":["no timer is left"]}"#,
    );
}
