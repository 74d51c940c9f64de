//! Turns that an agent causes itself are paced, and nobody else's (spec 13).

use crate::story::{Story, check, tell};

/// Two turns by the agent's own timer are as many as there may be; the third tick is there and waits.
const PACED: &str = "limits self_turns=2
     operator hi
     round CreateTimer every=1m tea
     round done
     advance 1m
     round done
     advance 1m
     round done
     advance 1m";

#[test]
fn past_so_many_within_an_hour_the_next_one_waits_and_the_operator_is_told_once() {
    check(
        &format!(
            "{}
             ---
             advance 1m
             advance 1m
             evidence
             closure
             wake?
             wakers
             advance 57m
             round done
             advance 1m",
            PACED.rsplit_once(" advance 1m").unwrap().0
        ),
        "queued m4 timer_tick
         timer1 fired in m4
         WaitForTimer self_turns_paced m4
         paced to 2 until +3660s
         told failure: a has caused 2 turns itself within an hour, by its own timers, tasks and messages; the next one begins at +3660s (1 message waiting). What you send is not held back. Raise `self_turns_per_hour` if this is what it should do.
         self_turns_per_hour 2, message m4 not_before +3660s seq 54
         waiting awaiting_timer sleeping
         +3660s: due
         the clock, at +3660s, a message from the operator
         StartModelTurn model_reentry_message m4
         timer1 missed 58 (+240s to +3660s) coalesced
         turn local_continuation
         end completed
         processed m4
         WaitForTimer active_timers
         queued m5 timer_tick
         timer1 fired in m5
         StartModelTurn model_reentry_message m5
         turn local_continuation",
    );
}

#[test]
fn what_comes_from_outside_does_not_wait_and_waits_behind_nothing() {
    check(
        &format!(
            "{PACED}
             ---
             operator what is it
             round done
             event news
             round done
             wake look
             round done
             task t1
             task t1 ends
             round done
             person CreateTimer after=1s biscuits
             advance 1s
             round done
             message channel_event from=b relayed=yes hello
             round done
             decide"
        ),
        "queued m5 operator_prompt
         StartModelTurn model_reentry_message m5
         turn local_continuation
         end completed
         processed m5
         told result: done
         WaitForTimer self_turns_paced m4
         queued m6 webhook_event
         StartModelTurn model_reentry_message m6
         turn local_continuation
         end completed
         processed m6
         WaitForTimer self_turns_paced m4
         hint operator coalesced
         EmitSystemTick wake_hint
         queued m7 wake_hint as next wake_hint:operator:1
         StartModelTurn model_reentry_message m7
         turn local_continuation
         end completed
         processed m7
         WaitForTimer self_turns_paced m4
         t1 created
         t1 completed
         queued m8 task_result
         result of t1 in m8
         StartModelTurn model_reentry_message m8 t1
         turn local_continuation shows t1
         read t1: round 1
         end completed
         processed m8
         WaitForTimer self_turns_paced m4
         timer2 at +181s
         queued m9 timer_tick
         timer2 fired in m9
         StartModelTurn model_reentry_message m9
         turn local_continuation
         end completed
         processed m9
         timer2 completed
         WaitForTimer self_turns_paced m4
         queued m10 channel_event
         StartModelTurn model_reentry_message m10
         turn local_continuation
         end completed
         processed m10
         WaitForTimer self_turns_paced m4
         WaitForTimer self_turns_paced m4",
    );
}

/// Triggers that are counted, and wait: each after a turn of its own kind has used up all that there may be.
#[test]
fn whatever_the_agent_does_to_itself_is_paced() {
    let own = [
        ("a timer", "round CreateTimer after=1s tea | round done", "advance 1s"),
        ("a sleep", "round Sleep 1s", "advance 1s"),
        ("a timer wait", "round WaitFor timer after=1s", "advance 1s"),
        ("a command", "round Tool make | task t1 call=call2 | tool call2 | round done", "task t1 ends"),
        ("a child", "task t1 child=a.1 | round done", "task t1 ends"),
        ("a deadline", "round RequestApproval deploy deadline=1s", "advance 1s"),
        ("another agent", "round done", "message channel_event from=b hello"),
        (
            "a recheck",
            "round CreateWorkItem build | round UpdateWorkItem w1 blocked=rain recheck=1s | round done",
            "advance 1s",
        ),
    ];
    for (what, first, then) in own {
        let mut story = Story::begin();
        let spend =
            "limits self_turns=1 | operator hi | round CreateTimer after=1s x | round done | advance 1s | round done";
        for line in spend.split(" | ").chain(["operator go"]).chain(first.split(" | ")).chain([then]) {
            story.tell(line).unwrap_or_else(|problem| panic!("{what}: {line}: {problem}"));
        }
        let waits = story.state.turns.current.is_none() && story.state.planes.queue.queued_own() == 1;
        assert!(waits, "{what}: {:?}", story.state.decision());
    }
}

#[test]
fn no_limit_is_no_pace() {
    let told = tell(
        "limits self_turns=0
         operator hi
         round CreateTimer every=1s tea
         round done
         again 300 advance 1s | round done
         ---
         advance 1s",
    );
    assert!(told.last().unwrap().starts_with("turn "), "{told:?}");
}

/// The settings are a fact of the agent: what they allow from now on lets go of what waits.
#[test]
fn a_raised_limit_takes_what_waited() {
    check(
        &format!("{PACED}\n---\nlimits self_turns=3\nkinds\nround done\nlimits self_turns=3"),
        "StartModelTurn model_reentry_message m4
         turn local_continuation
         limits.changed scheduler.decision message.dequeued turn.started turn.round_started
         end completed
         processed m4
         WaitForTimer active_timers
         unchanged",
    );
}

#[test]
fn a_message_that_is_taken_again_is_the_same_turn() {
    check(
        "limits self_turns=1
         operator hi
         round CreateTimer after=1s tea
         round done
         advance 1s
         ---
         fail rate_limited after=1m
         advance 1m
         crash
         stop
         start",
        "end provider_failed_needs_recovery
         requeued m2 provider_backoff until +61s
         WaitForTimer provider_backoff m2
         StartModelTurn model_reentry_message m2
         turn local_continuation
         cut cut
         requeued m2 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m2
         turn local_continuation
         cut stop
         requeued m2 stop
         control stop stopped
         Stop stopped
         control start awake_idle
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

#[test]
fn paced_messages_keep_their_order_and_are_all_taken() {
    check(
        "limits self_turns=1
         operator hi
         round CreateTimer after=1s one ; CreateTimer after=2s two ; CreateTimer after=3s three
         round done
         advance 1s
         round done
         ---
         advance 1s
         advance 1s
         reload
         crash
         queue
         advance 1h
         round done
         advance 1h
         round done",
        "queued m3 timer_tick
         timer2 fired in m3
         WaitForTimer self_turns_paced m3
         paced to 1 until +3601s
         told failure: a has caused 1 turn itself within an hour, by its own timers, tasks and messages; the next one begins at +3601s (1 message waiting). What you send is not held back. Raise `self_turns_per_hour` if this is what it should do.
         queued m4 timer_tick
         timer3 fired in m4
         WaitForTimer self_turns_paced m3
         unchanged
         m3 queued, m4 queued
         StartModelTurn model_reentry_message m3
         turn local_continuation
         end completed
         processed m3
         timer2 completed
         WaitForTimer self_turns_paced m4
         StartModelTurn model_reentry_message m4
         turn local_continuation
         end completed
         processed m4
         timer3 completed
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn the_operator_is_told_again_after_a_quiet_hour() {
    let told = tell(&format!(
        "{PACED}
         ---
         again 5 advance 1h | round done
         person CancelTimer timer1
         advance 2h
         operator again
         round CreateTimer every=1m tea
         round done
         again 3 advance 1m | round done"
    ));
    let paced: Vec<&String> = told.iter().filter(|line| line.starts_with("paced ")).collect();
    assert_eq!(paced.len(), 1, "{told:#?}");
}

/// Many turns of one minute are counted together, so that what is remembered is bounded.
#[test]
fn what_is_remembered_is_bounded() {
    let mut story = Story::begin();
    for line in ["limits self_turns=5000", "operator hi", "round CreateTimer every=5s tea", "round done"] {
        story.tell(line).unwrap();
    }
    // More than an hour, in turns of which each would take some twenty bytes.
    for _ in 0..800 {
        story.tell("advance 5s").unwrap();
        story.tell("round done").unwrap();
    }
    let pace = serde_json::to_string(&story.state.accounts.pace).unwrap();
    assert!(pace.len() < 61 * 100, "{} bytes", pace.len());
}

#[test]
fn a_turn_that_takes_too_many_rounds_ends_and_the_operator_is_asked() {
    check(
        "limits rounds=3
         operator hi
         round Tool one
         tool call1
         round Tool two
         tool call2
         ---
         round Tool three
         tool call3
         why
         operator go on
         round done",
        "end aborted
         processed m1
         told failure: The turn took 3 rounds, which is the limit (rounds_per_turn). Say how it should go on, or raise the limit in config.toml.
         wait1 operator_input
         WaitForOperator active_operator_wait
         a waits for your answer: The turn took 3 rounds, which is the limit (rounds_per_turn). Say how it should go on, or raise the limit in config.toml.
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait
         end completed
         processed m2
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn work_that_takes_too_many_rounds_is_not_offered_until_somebody_answers() {
    check(
        "limits rounds=1
         person CreateWorkItem build
         ---
         round Tool one
         tool call1
         item w1
         operator more
         round done",
        "end aborted
         processed m1
         told failure: The turn took 1 rounds, which is the limit (rounds_per_turn). Say how it should go on, or raise the limit in config.toml.
         wait1 operator_input of w1
         WaitForOperator active_operator_wait w1
         waiting_for_operator revision 1
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait
         end completed
         processed m2
         told result: done
         EmitSystemTick queued_available w1
         queued m3 system_tick work_queue:queued_available:w1:1:1
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1",
    );
}

#[test]
fn messages_that_wait_for_the_pace_are_counted() {
    let own = "limits self_turns=1
         operator hi
         round CreateTimer after=1m one ; CreateTimer after=2m two ; CreateTimer after=3m three
         round done
         advance 1m
         round done
         advance 1m
         advance 1m
         ---
         why";
    let why = tell(own).concat();
    assert!(why.contains("(2 messages waiting)"), "{why}");
}
