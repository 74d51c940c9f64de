//! The wakers of an agent that `why` names: never nothing without a person being named.

use abide_kernel::decide;
use abide_kernel::explain::why;

use crate::story::{Story, check, tell};

#[test]
fn a_stopped_agent() {
    check(
        "stop
         operator hi
         ---
         wakers",
        "a start",
    );
}

#[test]
fn a_task_wait() {
    check(
        "task t1
         person CreateWorkItem build
         round WaitFor task t1
         ---
         wakers",
        "the end of the task t1 (make), a message from the operator",
    );
}

#[test]
fn an_external_wait() {
    check(
        "operator hi
         round WaitFor external c1
         event news
         ---
         wakers",
        "the external event it waits for, a message from the operator",
    );
}

#[test]
fn a_timer() {
    check(
        "person CreateTimer every=1h tea
         ---
         wakers",
        "the clock, at +3600s, a message from the operator",
    );
}

#[test]
fn a_question() {
    check(
        "operator hi
         round WaitFor operator
         ---
         wakers",
        "a message from the operator",
    );
}

#[test]
fn spent_progress() {
    check(
        "person CreateWorkItem build
         round a
         advance 30s
         round b
         advance 2m
         round c
         advance 10m
         round d
         ---
         wakers",
        "a message from the operator",
    );
}

#[test]
fn stuck_work() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain
         round done
         ---
         wakers",
        "a message from the operator",
    );
}

#[test]
fn a_spent_budget() {
    check(
        "budget turns=1
         operator hi
         round done
         operator hi
         ---
         wakers",
        "a person who raises the budget",
    );
}

#[test]
fn a_backoff() {
    check(
        "person CreateWorkItem build
         round done
         ---
         wakers",
        "the clock, at +30s, a message from the operator",
    );
}

/// Nothing comes of a tick that is due while a turn runs: the end of the turn sees to it.
#[test]
fn a_tick_that_comes_due_while_a_turn_runs() {
    check(
        "person CreateWorkItem build
         round done
         operator hi
         advance 40s
         ---
         wakers
         round done
         wakers",
        "a message from the operator
         end completed
         processed m2
         told result: done
         EmitSystemTick queued_available w1
         queued m3 system_tick work_queue:queued_available:w1:1:1
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1
         a message from the operator",
    );
}

/// The same with a message that is to be tried again.
#[test]
fn a_message_whose_time_comes_while_a_turn_runs() {
    check(
        "operator hi
         fail rate_limited after=1m
         wake source=s look
         ---
         wakers
         advance 2m
         wakers",
        "a message from the operator
         a message from the operator",
    );
}

#[test]
fn an_approval() {
    check(
        "operator hi
         round RequestApproval push it?
         ---
         wakers
         why",
        "an answer to the approval appr1, a message from the operator
         a waits for your approval: push it? `abide approval grant --agent a appr1`, or deny.",
    );
}

#[test]
fn a_stopped_agent_with_work() {
    check(
        "person CreateWorkItem build
         round done
         stop
         ---
         why",
        "a is stopped, with 1 open work item, and no message waits. Start it to go on.",
    );
}

#[test]
fn a_long_objective() {
    let objective = "build ".repeat(300);
    let told = tell(&format!("person CreateWorkItem {objective}\nround done\n---\nwhy\non"));
    assert!(told.iter().all(|line| line.len() < 400 && line.contains("build bu …")), "{told:?}");
}

/// A character that turns the text around could make it look like something else.
#[test]
fn hidden_characters_of_quoted_text_are_escaped() {
    let told = tell("person RequestApproval de\u{202e}ploy\n---\non");
    assert!(!told.is_empty() && told.iter().all(|line| line.contains(r"de\u{202e}ploy")), "{told:?}");
    let told = tell("operator go\nround Ask pu\u{202e}sh\nperson DecideApproval appr1 grant\n---\nnotes");
    assert!(told.concat().contains(r"run pu\u{202e}sh (appr1)"), "{told:?}");
}

#[test]
fn nothing_to_do() {
    check(
        "operator hi
         round done
         ---
         wakers",
        "a message from the operator",
    );
}

#[test]
fn a_quarantined_agent() {
    check(
        "quarantine bad
         ---
         wakers",
        "a start",
    );
}

#[test]
fn a_clock_and_a_task_and_a_message() {
    check(
        "person CreateTimer every=1h tea
         task t1
         operator hi
         fail rate_limited after=1m
         ---
         wakers",
        "the clock, at +60s, the end of the task t1 (make), a message from the operator that is not put behind what waits (`abide send --priority next`)",
    );
}

/// Until the daemon is back nobody is there to hear the operator: what is said meanwhile is kept, and wakes nobody.
#[test]
fn an_agent_that_shuts_down() {
    check(
        "operator hi
         shutdown
         round Tool make
         ---
         wakers
         crash
         wakers",
        "the daemon, when it is back
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         a message from the operator",
    );
}

#[test]
fn work_behind_a_sleep() {
    check(
        "operator hi
         round CreateWorkItem build ; Sleep 1h
         ---
         wakers",
        "the clock, at +3600s, a message from the operator",
    );
}

#[test]
fn a_hint_whose_source_has_a_parked_tick() {
    check(
        "operator hi
         round WaitFor operator
         wake source=s one
         wake source=s two
         ---
         hints
         wakers",
        "s
         a message from the operator",
    );
}

/// Nothing is to be done, and what was done last went wrong: a person who asks wants to know both.
#[test]
fn a_turn_that_failed() {
    check(
        "operator hi
         fail invalid
         ---
         why
         operator more
         round done
         why",
        "a has nothing to do: its last turn failed (provider_failed_needs_recovery): invalid: no. A message will wake it.
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: done
         Sleep no_pending_scheduler_facts
         a has nothing to do; a message will wake it.",
    );
}

/// The part that always has to be shown does not fit: the numbers are there, and what to do.
#[test]
fn a_model_with_too_little_room() {
    check(
        "models acme/small
         operator hi
         overflow
         ---
         why",
        "a has nothing to do: its last turn failed (baseline_over_budget): what must always be shown needs 9 tokens, and acme/small has room for 8: give it a model with a larger window, raise that one's context_tokens in the settings, or shorten its instructions, its guides or what it was asked. A message will wake it.",
    );
}

/// Which model failed and how, on one line, however much its provider wrote.
#[test]
fn a_message_that_is_tried_again_later() {
    let no = |times: usize| vec!["no"; times].join(" ");
    check(
        "models acme/small
         operator hi
         fail overloaded jitter=32768 page=500
         ---
         why
         notes",
        &format!(
            "a waits until +2s and asks again then: acme/small failed (overloaded: {} …).
             acme/small failed at +0s, overloaded: {} …",
            no(103),
            no(107),
        ),
    );
}

#[test]
fn a_command_that_is_awaited() {
    check(
        "task t1
         task t1 runs
         operator build it
         round WaitFor task t1
         ---
         why
         on",
        "a sleeps until the command t1 (make) ends; it was started at +0s.
         a task's result (t1) for the agent: later, since +0s
         the command t1 (make), running: its end wakes the agent, since +0s",
    );
}

#[test]
fn commands_that_nobody_awaits() {
    check(
        "task t1
         task t1 runs
         ---
         why
         on
         task t2
         why
         stop
         why
         on",
        "a has nothing to do until the command t1 (make) ends; a message will wake it too.
         the command t1 (make), running: its result comes as a message, since +0s
         t2 created
         a has nothing to do until one of 2 tasks ends; a message will wake it too.
         t1 cancelling
         t2 cancelling
         control stop stopped
         Stop stopped
         a is stopped, and no message waits. Start it when there is something to do. 2 tasks of it are still ending.
         the command t1 (make), cancelling: it was asked to end, and asked once more it is made to, since +0s
         the command t2 (make), cancelling: it was asked to end, and asked once more it is made to, since +0s",
    );
}

#[test]
fn a_result_that_nobody_has_read() {
    check(
        "stop
         task t1
         task t1 ends
         ---
         on
         start
         on",
        "the result of the command t1 (make), completed, which no turn has read: it is kept until the agent starts, since +0s
         control start awake_idle
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation shows t1
         the running turn exec1, since +0s
         the result of the command t1 (make), completed, which no turn has read: the running turn shows it, since +0s",
    );
}

#[test]
fn a_turn_that_waits_for_its_model() {
    check(
        "models a/one b/two
         operator hi
         advance 5m
         fail rate_limited after=1h
         advance 2h
         ---
         why
         in_use
         round done
         in_use",
        "a is running a turn since +300s, and waits for b/two (round 1).
         b/two
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts
         a/one",
    );
}

#[test]
fn a_turn_that_runs_something() {
    check(
        "operator hi
         round Tool make
         ---
         why",
        "a is running a turn; under way in it: Tool.",
    );
}

#[test]
fn where_it_works() {
    check(
        "use /w
         ---
         notes
         occupy /w
         notes
         use /h/1 of=/w
         notes",
        "it works in /w
         it works in /w, and holds it: no other agent writes there until its turn and its tasks are over
         it works in /h/1, a worktree of /w on branch abide/a-1",
    );
}

#[test]
fn a_worktree_that_goes_or_does_not() {
    check(
        "use /h/1 of=/w
         ---
         person DetachWorkspace /h/1
         notes
         removed /h/1 error=busy
         notes
         person DetachWorkspace /h/1
         removed /h/1
         notes",
        "it works in /h/1, a worktree of /w on branch abide/a-1
         the worktree /h/1 (branch abide/a-1) is being removed; what is not committed in it is saved as a patch first
         it works in /h/1, a worktree of /w on branch abide/a-1
         the worktree /h/1 (branch abide/a-1) could not be removed, and is as it was: busy; once that is mended: abide workspace detach --agent a /h/1",
    );
}

#[test]
fn a_workspace_that_was_not_let_go_of() {
    check(
        "use /w
         occupy /w
         stop
         release /w error=EIO
         ---
         why
         notes",
        "a is stopped, and no message waits. Start it when there is something to do. Not all went well: the workspace /w could not be released: EIO.
         it works in /w, and holds it: no other agent writes there until its turn and its tasks are over
         the workspace /w could not be released: EIO; `abide agent start a` and then stop, or `abide daemon restart`, tries again",
    );
}

/// A person who repeats it by hand has to know that it may have happened.
#[test]
fn a_call_that_was_cut_off() {
    check(
        "operator hi
         round Tool make
         crash
         ---
         notes
         round done
         notes",
        "Tool (call1) was cut off at 2026-01-01T00:00:00.004Z; whether it did its work is unknown, and it is not run again: look before you repeat it (seq 17)
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

/// The command writes where it was started, whatever the agent chose since.
#[test]
fn a_worktree_that_was_left_with_a_command_in_it_stays() {
    check(
        "use /h/1 of=/w
         task t1
         task t1 runs
         use /w
         ---
         person DetachWorkspace /h/1
         stop
         task t1 ends cancelled
         person DetachWorkspace /h/1
         effects",
        "refused in_use
         t1 cancelling
         control stop stopped
         Stop stopped
         t1 cancelled: stop
         queued m1 task_result
         result of t1 in m1
         remove /h/1",
    );
}

#[test]
fn a_change_of_models_leaves_the_folder_that_it_works_in() {
    check(
        "use /w
         ---
         models a/b
         notes",
        "it works in /w",
    );
}

#[test]
fn messages_to_a_stopped_agent_are_counted() {
    check(
        "stop
         ---
         operator hi
         why
         operator ho
         why",
        "queued m1 operator_prompt
         a is stopped; 1 message waits for it. Start it to go on.
         queued m2 operator_prompt
         a is stopped; 2 messages wait for it. Start it to go on.",
    );
}

#[test]
fn an_error_of_an_agent_that_runs_has_no_advice() {
    check(
        "use /w
         occupy /w
         operator hi
         error bad
         ---
         notes",
        "it works in /w, and holds it: no other agent writes there until its turn and its tasks are over
         bad",
    );
}

#[test]
fn a_turn_without_a_model_names_none() {
    check(
        "operator hi
         ---
         why",
        "a is running a turn.",
    );
}

/// Of two waits for something outside, the sentence is about the one that the decision names.
#[test]
fn of_two_waits_the_one_of_the_item_is_told() {
    check(
        "operator hi
         round WaitFor external c2
         person CreateWorkItem build
         round WaitFor external c1 item=w1
         ---
         decide
         why",
        "WaitForExternalChange work_item_external_wait w1
         a sleeps until something outside happens, for \"build\" (c1): later.",
    );
}

/// A decision may be older than the state that it is explained by.
#[test]
fn a_decision_that_is_no_longer_so_is_explained_all_the_same() {
    let mut story = Story::begin();
    for line in ["person CreateWorkItem build", "round done"] {
        story.tell(line).unwrap();
    }
    let decision = decide(&story.state, story.now);
    for line in ["operator hi", "round UpdateWorkItem w1 plan=a"] {
        story.tell(line).unwrap();
    }
    assert_eq!(why(&story.state, decision).sentence, "a sleeps until a timer fires, for \"build\".");
}

#[test]
fn every_call_that_was_cut_off_is_named() {
    check(
        "operator hi
         round Tool a ; Tool b
         crash
         ---
         notes",
        "Tool (call2) was cut off at 2026-01-01T00:00:00.004Z; whether it did its work is unknown, and it is not run again: look before you repeat it (seq 19)
         Tool (call1) was cut off at 2026-01-01T00:00:00.004Z; whether it did its work is unknown, and it is not run again: look before you repeat it (seq 18)",
    );
}

#[test]
fn a_model_that_rested_long_enough_is_not_told() {
    check(
        "models a/one b/two
         operator hi
         fail rate_limited after=1m
         ---
         advance 59999ms
         error e
         notes",
        "e
         this turn thinks with b/two; a/one failed at +0s, rate_limited: no",
    );
}

#[test]
fn questions_say_what_holds_if_nobody_answers() {
    check(
        "person RequestApproval deadline=1h x
         person RequestApproval deadline=1h default=grant y
         ---
         on",
        "an answer from the operator (appr1) for the agent: x, since +0s
         an answer from the operator (appr2) for the agent: y, since +0s
         the approval appr1: x (until +3600s, then denied)
         the approval appr2: y (until +3600s, then granted)",
    );
}

#[test]
fn a_check_that_runs_is_what_the_agent_waits_for() {
    check(
        "person CreateTimer every=1h check=look tea
         ---
         why
         advance 1h
         why
         on",
        "a sleeps until +3600s.
         timer1 check of +3600s
         WaitForTimer active_timers
         a sleeps until the check of timer1 is over.
         the check of timer1 (look), which was due then, since +3600s",
    );
}

#[test]
fn a_failure_is_told_beside_what_the_agent_waits_for() {
    check(
        "operator hi
         fail invalid
         person CreateTimer every=1h tea
         ---
         why",
        "a sleeps until +3600s. Its last turn failed (provider_failed_needs_recovery): invalid: no.",
    );
}

#[test]
fn a_long_command_is_named_in_part() {
    check(
        "task t1 summary=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
         ---
         on",
        "the command t1 (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa …), queued: its result comes as a message, since +0s",
    );
}
