//! The loop guard: calls that come to the same result again and again while one message is worked on.

use abide_kernel::limits::GUARDED_CALLS_MAX;

use crate::story::{check, tell};

#[test]
fn the_fourth_of_the_same_calls_is_not_run() {
    check(
        "operator hi
         round Tool look
         tool call1
         round Tool look
         tool call2
         round Tool look
         tool call3
         ---
         round Tool look
         effects
         round done",
        "Tool refused repeated_call
         call model exec1 round 5
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn calls_that_take_turns_are_the_same_calls() {
    check(
        "operator hi
         round Tool one
         tool call1
         round Tool two
         tool call2
         round Tool one
         tool call3
         round Tool two
         tool call4
         round Tool one
         tool call5
         round Tool two
         tool call6
         ---
         round Tool one
         round Tool two
         round Tool three",
        "Tool refused repeated_call
         Tool refused repeated_call",
    );
}

#[test]
fn another_result_begins_the_count_again() {
    check(
        "operator hi
         round Tool look
         tool call1 result=a
         round Tool look
         tool call2 result=a
         round Tool look
         tool call3 result=b
         round Tool look
         tool call4 result=b
         round Tool look
         tool call5 result=b
         ---
         round Tool look
         round Tool look there
         tool call7",
        "Tool refused repeated_call",
    );
}

#[test]
fn acts_and_refused_calls_count_too() {
    check(
        "operator hi
         round ShowTask t9
         round ShowTask t9
         round ShowTask t9
         ---
         round ShowTask t9
         round ListWorkItems all
         round ListWorkItems all
         round ListWorkItems all
         round ListWorkItems all",
        "ShowTask refused repeated_call
         ListWorkItems refused repeated_call",
    );
}

#[test]
fn of_one_round_three_of_the_same_are_run() {
    check(
        "operator hi
         ---
         round Tool look ; Tool look ; Tool look ; Tool look ; Tool other
         effects",
        "Tool refused repeated_call
         run Tool call1, run Tool call2, run Tool call3, run Tool call5",
    );
}

#[test]
fn another_message_begins_the_count_again() {
    check(
        "operator hi
         round Tool look
         tool call1
         round Tool look
         tool call2
         round Tool look
         tool call3
         round done
         operator more
         ---
         round Tool look
         effects",
        "run Tool call4",
    );
}

#[test]
fn a_turn_that_is_begun_again_may_try_once_more() {
    check(
        "operator hi
         round Tool look
         tool call1
         round Tool look
         tool call2
         round Tool look
         tool call3
         crash
         reload
         ---
         round Tool look
         tool call4
         round Tool look",
        "Tool refused repeated_call",
    );
}

#[test]
fn a_call_that_is_not_run_uses_up_no_yes() {
    check(
        "operator hi
         round Ask push
         operator go on
         round Ask push
         round Ask push
         round Ask push
         person DecideApproval appr1 grant
         ---
         round Ask push
         round done",
        "Ask refused repeated_call
         end completed
         processed m2
         told result: done
         StartModelTurn model_reentry_message m3
         wait1 triggered by m3
         turn resume_expected_wait",
    );
}

/// A dozen refused calls are enough: the turn ends, and a person is asked.
fn stubborn(first: &str) -> String {
    let run: String = (1..=3).map(|call| format!("round Tool look\ntool call{call}\n")).collect();
    format!("{first}\n{run}{}---\n", "round Tool look\n".repeat(11))
}

#[test]
fn a_model_that_does_not_stop_is_stopped_and_the_operator_is_asked() {
    check(&format!("{}round Tool look\nwhy\noperator try make instead\nround done", stubborn("operator hi")), "Tool refused repeated_call
         end aborted
         processed m1
         told failure: The turn went in circles: 12 calls were not run because they had come to the same result before. Say what it should do instead.
         wait1 operator_input
         WaitForOperator active_operator_wait
         a waits for your answer: The turn went in circles: 12 calls were not run because they had come to the same result before. Say what it should do instead.
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait
         end completed
         processed m2
         told result: done
         Sleep no_pending_scheduler_facts");
}

#[test]
fn work_that_went_in_circles_is_not_offered_until_somebody_answers() {
    check(
        &format!(
            "{}round Tool look\nitem w1\nadvance 2h\noperator try make instead",
            stubborn("person CreateWorkItem build")
        ),
        "Tool refused repeated_call
         end aborted
         processed m1
         told failure: The turn went in circles: 12 calls were not run because they had come to the same result before. Say what it should do instead.
         wait1 operator_input of w1
         WaitForOperator active_operator_wait w1
         waiting_for_operator revision 1
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait",
    );
}

#[test]
fn what_is_remembered_is_bounded() {
    let many: String = (1..=200).map(|call| format!("round Tool look {call}\ntool call{call}\n")).collect();
    let told = tell(&format!("operator hi\n{many}---\nround done"));
    assert_eq!(told.first().map(String::as_str), Some("end completed"), "{told:?}");
}

/// The input of a truncated call is not known: it is not the same call, and the turn does not go in circles.
#[test]
fn calls_that_are_cut_off_end_the_turn_with_what_cut_them() {
    check(
        "operator hi
         ---
         round Cut cut=yes
         round Cut cut=yes
         round Cut cut=yes",
        "Cut refused cut_off
         Cut refused cut_off
         Cut refused cut_off
         end provider_failed_needs_recovery
         processed m1
         told failure: The model's calls were cut off 3 times: it had written as much as it may before they were complete. \
         Raise max_output_tokens for it in config.toml, or ask for smaller parts.
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_call_that_is_complete_begins_the_count_of_cut_ones_again() {
    check(
        "operator hi
         round Cut cut=yes
         round Cut cut=yes
         round Tool look
         tool call3
         ---
         round Cut cut=yes
         round Cut cut=yes
         effects",
        "Cut refused cut_off
         Cut refused cut_off
         call model exec1 round 6",
    );
}

#[test]
fn a_turn_that_is_begun_again_may_be_cut_off_as_often() {
    check(
        "operator hi
         round Cut cut=yes
         round Cut cut=yes
         crash
         reload
         ---
         round Cut cut=yes
         effects",
        "Cut refused cut_off
         call model exec2 round 2",
    );
}

/// Only so many calls are remembered: the one that ended longest ago gives way.
#[test]
fn what_was_called_long_ago_is_forgotten() {
    let tries = |others: usize| {
        let looks = (1..=3).map(|call| format!("round Tool look\ntool call{call}\n"));
        let calls: Vec<String> = (0..others).map(|other| format!("Tool other{other}")).collect();
        let ends = (4..4 + others).map(|call| format!("tool call{call}\n"));
        let others = format!("round {}\n{}", calls.join(" ; "), ends.collect::<String>());
        tell(&format!("operator hi\n{}{others}---\nround Tool look", looks.collect::<String>()))
    };
    assert_eq!(tries(GUARDED_CALLS_MAX - 1), ["Tool refused repeated_call"]);
    assert_eq!(tries(GUARDED_CALLS_MAX), Vec::<String>::new());
}

/// A record that is made anew with each call differs by its id and its time, and by nothing else.
#[test]
fn a_fresh_id_is_no_new_result() {
    check(
        "operator hi
         round CreateWorkItem build
         round CreateWorkItem build
         round CreateWorkItem build
         ---
         round CreateWorkItem build
         round CreateWorkItem test
         round CreateTimer every=1h tea
         round CreateTimer every=1h tea
         round CreateTimer every=1h tea
         round CreateTimer every=1h tea
         round NotifyOperator look
         round NotifyOperator look
         round NotifyOperator look
         round NotifyOperator look",
        "CreateWorkItem refused repeated_call
         w4 created
         timer1 at +3600s every 3600s of w1
         timer2 at +3600s every 3600s of w1
         timer3 at +3600s every 3600s of w1
         CreateTimer refused repeated_call
         told result: look
         told result: look
         told result: look
         NotifyOperator refused repeated_call",
    );
}

#[test]
fn results_are_compared_without_ids_and_times() {
    let same = [
        (r#"{"task_id":"a","n":1}"#, r#"{"task_id":"b","n":1}"#),
        (r#"{"items":[{"created_at":"x","elapsed_ms":3}]}"#, r#"{"items":[{"created_at":"y","elapsed_ms":4}]}"#),
        (r#""made/019b76da-a800-7000-8000-000000000001!""#, r#""made/ffffffff-a800-7000-8000-000000000002!""#),
        (r#""at:2026-01-31T12:00:00.123Z""#, r#""at:2027-02-01T00:00:00+01:00""#),
        (r#""12:00:01""#, r#""23:59:59.5""#),
    ];
    let other = [
        (r#"{"task_id":"a","n":1}"#, r#"{"task_id":"a","n":2}"#),
        (r#"{"task_id":"a"}"#, r#"{"task_id":null}"#),
        (r#"{"items":[1]}"#, r#"{"items":[1,1]}"#),
        (r#"[1,23]"#, r#"[12,3]"#),
        (r#""2026-01-31""#, r#""2026-02-01""#),
        (r#""3""#, r#""4""#),
        (r#""version:1:2:3""#, r#""version:1:2:4""#),
    ];
    let refused = |first: &str, then: &str| {
        let told = tell(&format!(
            "operator hi\nround Tool look\ntool call1 result={first}\nround Tool look\ntool call2 result={then}
             round Tool look\ntool call3 result={first}\n---\nround Tool look"
        ));
        told == ["Tool refused repeated_call"]
    };
    for (first, then) in same {
        assert!(refused(first, then), "{first} and {then} are not the same");
    }
    for (first, then) in other {
        assert!(!refused(first, then), "{first} and {then} are the same");
    }
}

/// A long command that is run again after each change comes to what its task comes to, not to a task.
#[test]
fn a_call_whose_task_was_read_to_its_end_may_be_made_again() {
    let run = |call: u32, reads: &str| {
        format!(
            "round Tool make\ntask t{call} call=call{call}\ntool call{call}\n{}",
            reads.replace("T", &format!("t{call}"))
        )
    };
    let unread: String = (1..=3).map(|call| run(call, "")).collect();
    assert_eq!(tell(&format!("operator hi\n{unread}---\nround Tool make")), ["Tool refused repeated_call"]);
    let read: String = (1..=3).map(|call| run(call, "task T ends\nround WaitFor task T\n")).collect();
    assert_eq!(tell(&format!("operator hi\n{read}---\nround Tool make")), Vec::<String>::new());
}

/// The result of a task that was read makes room for its own call, and for no other.
#[test]
fn another_call_is_still_counted_after_a_task_was_read() {
    let look: String = (1..=3).map(|call| format!("round Tool look\ntool call{call}\n")).collect();
    let made = "round Tool make\ntask t1 call=call4\ntool call4\ntask t1 ends\nround WaitFor task t1";
    assert_eq!(tell(&format!("operator hi\n{look}{made}\n---\nround Tool look")), ["Tool refused repeated_call"]);
}

#[test]
fn no_limit_of_rounds_is_no_limit() {
    check(
        "limits rounds=0
         operator hi
         round Tool x
         tool call1
         ---
         round Tool y
         tool call2",
        "",
    );
}
