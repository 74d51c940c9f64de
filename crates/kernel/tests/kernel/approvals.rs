//! Calls that wait for a person: asked once, made once, and nothing but that call (issue 5.5).

use abide_kernel::limits::{CALL_PERMIT_MS, CALL_PERMITS_MAX};

use crate::story::{Story, check};

/// The outcome of a call that is asked for in a turn about `m2`.
const ASKED_AGAIN: &str = "wait2 operator_input on appr2
     appr2 asked
     Ask refused needs_approval
     end completed
     processed m2
     WaitForOperator approval_pending";

#[test]
fn a_call_is_asked_for_and_made_once_it_is_granted() {
    check(
        "operator go
         round Ask push
         why
         on
         person DecideApproval appr1 grant
         notes
         round Ask push
         effects
         notes",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         wait1 operator_input on appr1
         appr1 asked
         Ask refused needs_approval
         end completed
         processed m1
         told ack: Waiting.
         WaitForOperator approval_pending
         a waits for your approval: run push. `abide approval grant --agent a appr1`, or deny.
         an answer from the operator (appr1) for the agent: run push, since +0s
         the approval appr1: run push
         appr1 granted by ann
         queued m2 internal_followup
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait
         it may do this once, until 2026-01-02T00:00:00.004Z: run push (appr1)
         appr1 used for call2
         run Ask call2",
    );
}

#[test]
fn a_yes_is_for_one_call() {
    let twice = "operator go
         round Ask push
         person DecideApproval appr1 grant
         ---
         round Ask push ; Ask push
         tool call2";
    check(twice, &format!("appr1 used for call2\n{ASKED_AGAIN}"));
}

#[test]
fn another_call_needs_its_own_yes() {
    let other = "operator go
         round Ask push
         person DecideApproval appr1 grant
         ---
         round Ask pull";
    check(other, ASKED_AGAIN);
}

#[test]
fn what_was_denied_is_not_made() {
    let denied = "operator go
         round Ask push
         person DecideApproval appr1 deny
         ---
         round Ask push";
    check(denied, ASKED_AGAIN);
}

#[test]
fn a_deadline_decides_by_its_default() {
    let expired = "appr1 expired by deadline
         queued m2 internal_followup
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait";
    let story = |default: &str| {
        format!("operator go\nround Ask deadline=1m default={default} push\n---\nadvance 1m\nround Ask push")
    };
    check(&story("deny"), &format!("{expired}\n{ASKED_AGAIN}"));
    check(&story("grant"), &format!("{expired}\nappr1 used for call2"));
}

#[test]
fn a_deadline_that_passes_while_stopped_decides_at_the_start() {
    check(
        "operator go
         round Ask deadline=1m default=grant push
         ---
         stop
         advance 5m
         start
         round Ask push",
        "control stop stopped
         Stop stopped
         control start awake_idle
         appr1 expired by deadline
         queued m2 internal_followup
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait
         appr1 used for call2",
    );
}

/// Its deadline has passed, and would have granted it; but nobody is asked any more.
#[test]
fn a_question_that_ended_with_its_wait_grants_nothing() {
    let cancelled = "operator go
         round Ask deadline=1m default=grant push
         stop
         advance 5m
         person CancelWait wait1
         start
         ---
         round Ask push";
    check(cancelled, ASKED_AGAIN);
}

#[test]
fn nobody_is_asked_twice_about_one_call() {
    check(
        "operator go
         round Ask push
         operator hm
         ---
         round Ask push
         round still waiting",
        "Ask refused needs_approval
         end completed
         processed m2
         told result: still waiting
         WaitForOperator approval_pending",
    );
}

#[test]
fn the_other_calls_run_and_an_interjection_is_heard() {
    check(
        "operator go
         ---
         interject also
         round Ask push ; Tool build
         effects
         tool call2
         round Ask push
         round ok",
        "queued m2 operator_prompt as interject
         interjected m2 into m1
         wait1 operator_input on appr1
         appr1 asked
         Ask refused needs_approval
         run Tool call2
         Ask refused needs_approval
         end completed
         processed m1
         told ack: ok
         WaitForOperator approval_pending",
    );
}

#[test]
fn a_yes_ends_with_its_work_item() {
    let completed = "person CreateWorkItem build
         round PickWorkItem w1
         round Ask push
         person DecideApproval appr1 grant
         ---
         round CompleteWorkItem w1
         round Ask push";
    check(completed, &format!("w1 completed\n{ASKED_AGAIN}"));
}

#[test]
fn a_yes_holds_for_a_day() {
    let later = |span: &str| {
        format!(
            "operator go
             round Ask push
             person DecideApproval appr1 grant
             round later
             advance {span}
             operator go
             ---
             notes
             round Ask push"
        )
    };
    let still = "it may do this once, until 2026-01-02T00:00:00.004Z: run push (appr1)\nappr1 used for call2";
    check(&later("23h"), still);
    let over = ASKED_AGAIN.replace("m2", "m3").replace("processed m3", "processed m3\ntold ack: Waiting.");
    check(&later("24h"), &over);
}

/// The yes outlives a crash; the call that was made with it is not made again without another.
#[test]
fn a_crash_neither_loses_a_yes_nor_uses_it_twice() {
    let crashes = "operator go
         round Ask push
         person DecideApproval appr1 grant
         crash
         ---
         round Ask push
         crash
         round Ask push";
    let cut = "appr1 used for call2
         call2 unknown
         cut cut
         requeued m2 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m2
         turn resume_expected_wait";
    check(crashes, &format!("{cut}\n{ASKED_AGAIN}"));
}

/// Each yes counts until it is used; of more than there is room for, the oldest gives way.
#[test]
fn yeses_are_kept_side_by_side_up_to_a_bound() {
    let mut story = Story::begin();
    story.tell("operator hi").unwrap();
    for number in 1..=CALL_PERMITS_MAX + 1 {
        story.tell(&format!("round Ask push{number}")).unwrap();
        story.tell(&format!("person DecideApproval appr{number} grant")).unwrap();
        let grants = story.state.planes.approvals.permits();
        assert_eq!(grants.len(), number.min(CALL_PERMITS_MAX));
        assert_eq!(grants.back().unwrap().call, format!("push{number}"));
    }
    assert_eq!(story.state.planes.approvals.permits()[0].call, "push2");
}

/// A yes that nobody used is over after its time, to the millisecond.
#[test]
fn a_grant_ends_at_its_time() {
    for (later, calls) in [(CALL_PERMIT_MS - 1, &["one", "two"][..]), (CALL_PERMIT_MS, &["two"])] {
        let mut story = Story::begin();
        let asked =
            ["operator go", "round Ask one", "operator go", "round Ask two", "person DecideApproval appr1 grant"];
        asked.iter().for_each(|line| story.tell(line).unwrap());
        // The decision itself takes a millisecond.
        story.tell(&format!("advance {}ms", later - 1)).unwrap();
        story.tell("person DecideApproval appr2 grant").unwrap();
        let grants: Vec<&str> =
            story.state.planes.approvals.permits().iter().map(|grant| grant.call.as_str()).collect();
        assert_eq!(grants, calls);
    }
}

#[test]
fn a_yes_is_told_until_its_time() {
    check(
        "operator go
         round Ask push
         person DecideApproval appr1 grant
         ---
         advance 86399998ms
         notes
         error e
         notes
         advance 0s
         error f
         notes",
        "it may do this once, until 2026-01-02T00:00:00.004Z: run push (appr1)
         e
         it may do this once, until 2026-01-02T00:00:00.004Z: run push (appr1)
         f",
    );
}

#[test]
fn a_yes_holds_to_its_last_millisecond() {
    check(
        "operator go
         round Ask push
         person DecideApproval appr1 grant
         ---
         advance 86399998ms
         round Ask push",
        "appr1 used for call2",
    );
}

#[test]
fn a_yes_ends_at_its_time() {
    check(
        "operator go
         round Ask push
         person DecideApproval appr1 grant
         ---
         advance 86399999ms
         round Ask push",
        "wait2 operator_input on appr2
         appr2 asked
         Ask refused needs_approval
         end completed
         processed m2
         WaitForOperator approval_pending",
    );
}
