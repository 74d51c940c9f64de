//! Never silent, never in circles (spec 13).

use crate::story::{Story, check, tell};

#[test]
fn a_key_is_used_once_per_revision() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 plan=a
         ---
         round done
         round UpdateWorkItem w1 plan=b
         round done",
        "end completed
         processed m1
         EmitSystemTick queued_available w1
         queued m2 system_tick work_queue:queued_available:w1:2
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1
         w1 updated to 3
         end completed
         processed m2
         EmitSystemTick queued_available w1
         queued m3 system_tick work_queue:queued_available:w1:3
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1",
    );
}

#[test]
fn the_key_counts_on_with_every_attempt() {
    check(
        "person CreateWorkItem build
         round done
         ---
         task t1 item=w1
         round done
         advance 30s",
        "t1 created of w1
         EmitSystemTick queued_available w1
         queued m2 system_tick work_queue:queued_available:w1:1:1
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1
         end completed
         processed m2
         WaitForTimer tick_backoff w1
         EmitSystemTick queued_available w1
         queued m3 system_tick work_queue:queued_available:w1:1:2
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1",
    );
}

#[test]
fn one_tick_and_three_retries_then_the_operator() {
    check(
        "person CreateWorkItem build
         round done
         ---
         advance 29s
         advance 1s
         round done
         advance 119s
         advance 1s
         round done
         advance 599s
         advance 1s
         round done
         advance 24h
         decide",
        "EmitSystemTick queued_available w1
         queued m2 system_tick work_queue:queued_available:w1:1:1
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1
         end completed
         processed m2
         WaitForTimer tick_backoff w1
         EmitSystemTick queued_available w1
         queued m3 system_tick work_queue:queued_available:w1:1:2
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1
         end completed
         processed m3
         WaitForTimer tick_backoff w1
         EmitSystemTick queued_available w1
         queued m4 system_tick work_queue:queued_available:w1:1:3
         StartModelTurn model_reentry_message m4 w1
         turn local_continuation of w1
         end completed
         processed m4
         WaitForOperator no_progress_budget_spent w1
         WaitForOperator no_progress_budget_spent w1",
    );
}

#[test]
fn the_operators_next_message_restores_it() {
    check(
        "person CreateWorkItem build
         round done
         advance 30s
         round done
         advance 2m
         round done
         advance 10m
         round done
         ---
         operator go
         round done
         decide",
        "queued m5 operator_prompt
         StartModelTurn model_reentry_message m5
         turn local_continuation
         end completed
         processed m5
         told result: done
         EmitSystemTick queued_available w1
         queued m6 system_tick work_queue:queued_available:w1:1:4
         StartModelTurn model_reentry_message m6 w1
         turn local_continuation of w1
         Noop turn_in_progress",
    );
}

#[test]
fn a_bound_turn_counts_as_its_tick() {
    check(
        "stop
         person CreateWorkItem build
         person PickWorkItem w1
         operator hi
         start
         ---
         round done
         advance 30s",
        "end completed
         processed m1
         told result: done
         WaitForTimer tick_backoff w1 ignoring suppressed_after_reentry w1
         EmitSystemTick continue_active w1
         queued m2 system_tick work_queue:continue_active:w1:1
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1",
    );
}

#[test]
fn progress_makes_the_next_tick_due_at_once() {
    check(
        "person CreateWorkItem build
         ---
         round UpdateWorkItem w1 todo=x
         round done",
        "w1 updated to 2
         end completed
         processed m1
         EmitSystemTick queued_available w1
         queued m2 system_tick work_queue:queued_available:w1:2
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1",
    );
}

#[test]
fn a_changed_tree_is_progress() {
    check(
        "person CreateWorkItem build
         ---
         round tree=aaa done
         round tree=aaa done
         round tree=bbb done",
        "end completed
         processed m1
         EmitSystemTick queued_available w1
         queued m2 system_tick work_queue:queued_available:w1:1:1
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1
         end completed
         processed m2
         WaitForTimer tick_backoff w1
         stale
         unchanged",
    );
}

#[test]
fn an_aborted_turn_counts_as_the_items_tick() {
    check(
        "person CreateWorkItem build
         ---
         abort",
        "cut abort
         aborted m1
         told failure: Aborted by the operator.
         WaitForTimer tick_backoff w1",
    );
}

#[test]
fn a_completed_item_drops_its_undelivered_tick() {
    check(
        "person CreateWorkItem build
         fail rate_limited after=1h
         ---
         person CompleteWorkItem w1",
        "dropped m1: work_item_completed
         w1 completed
         StayIdle already_asleep",
    );
}

#[test]
fn a_blocked_item_drops_its_undelivered_tick() {
    check(
        "person CreateWorkItem build
         fail rate_limited after=1h
         ---
         person UpdateWorkItem w1 blocked=rain",
        "w1 blocked
         dropped m1: work_item_not_runnable
         WaitForOperator work_item_blocked w1
         told failure: Nothing will wake the work item w1 (build): it is blocked by rain.",
    );
}

#[test]
fn work_that_nothing_wakes_is_told_once() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain
         round done
         ---
         operator hi
         round done
         person UpdateWorkItem w1 blocked=snow",
        "queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: done
         WaitForOperator work_item_blocked w1
         w1 blocked
         WaitForOperator work_item_blocked w1
         told failure: Nothing will wake the work item w1 (build): it is blocked by snow.",
    );
}

/// Events of the agent meanwhile do not count: the item is as it was.
#[test]
fn work_that_nothing_wakes_is_not_told_again() {
    let told = tell(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain
         round done
         crash
         stop
         start
         wake source=s look
         round done
         person PickWorkItem w1
         person CreateWorkItem sweep
         round done
         operator hi
         round CompleteWorkItem w2
         round done
         crash",
    );
    let told: Vec<&String> = told.iter().filter(|line| line.starts_with("told failure")).collect();
    assert_eq!(told, ["told failure: Nothing will wake the work item w1 (build): it is blocked by rain."]);
}

#[test]
fn a_recheck_reminds_and_unblocks_nothing() {
    check(
        "person CreateWorkItem build
         round UpdateWorkItem w1 blocked=rain recheck=1m
         round done
         ---
         advance 1m
         item w1
         round done",
        "w1 recheck
         queued m2 recheck
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1
         blocked revision 2
         end completed
         processed m2
         WaitForOperator work_item_blocked w1
         told failure: Nothing will wake the work item w1 (build): it is blocked by rain.",
    );
}

#[test]
fn oldest_queued_work_first() {
    check(
        "operator hi
         round CreateWorkItem build
         round CreateWorkItem test
         ---
         round done
         round done",
        "end completed
         processed m1
         told result: done
         EmitSystemTick queued_available w1
         queued m2 system_tick work_queue:queued_available:w1:1
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1
         end completed
         processed m2
         EmitSystemTick queued_available w2
         queued m3 system_tick work_queue:queued_available:w2:1
         StartModelTurn model_reentry_message m3 w2
         turn local_continuation of w2",
    );
}

#[test]
fn a_rate_limit_returns_the_message_to_the_front_of_its_lane() {
    check(
        "operator a
         operator b
         ---
         fail rate_limited after=1m
         decide
         queue
         advance 1m",
        "end provider_failed_needs_recovery
         requeued m1 provider_backoff until +60s
         WaitForTimer provider_backoff m1
         WaitForTimer provider_backoff m1
         m1 queued, m2 queued
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn another_lane_does_not_wait_behind_it() {
    check(
        "operator a
         ---
         fail rate_limited after=1m
         operator b
         task t1
         task t1 ends",
        "end provider_failed_needs_recovery
         requeued m1 provider_backoff until +60s
         WaitForTimer provider_backoff m1
         queued m2 operator_prompt
         WaitForTimer provider_backoff m1
         t1 created
         t1 completed
         queued m3 task_result
         result of t1 in m3
         StartModelTurn model_reentry_message m3 t1
         turn local_continuation shows t1",
    );
}

#[test]
fn backoff_grows_when_the_provider_names_no_time() {
    check(
        "operator a
         ---
         fail overloaded
         advance 2s
         fail timeout
         advance 10s
         fail disconnect
         advance 1m
         fail rate_limited",
        "end provider_failed_needs_recovery
         requeued m1 provider_backoff until +2s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +12s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +72s
         WaitForTimer provider_backoff m1
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end provider_failed_needs_recovery
         requeued m1 provider_backoff until +372s
         WaitForTimer provider_backoff m1",
    );
}

#[test]
fn a_refusal_ends_the_message_visibly() {
    check(
        "operator a
         ---
         fail refusal",
        "end provider_failed_needs_recovery
         processed m1: refusal: no
         told failure: refusal: no
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_context_that_is_too_long_ends_the_turn() {
    check(
        "operator a
         ---
         fail context_length
         operator b
         overflow",
        "end baseline_over_budget
         processed m1: context_length: no
         told failure: context_length: no
         Sleep no_pending_scheduler_facts
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end baseline_over_budget
         processed m2: what must always be shown needs 9 tokens, and its model has room for 8: give it a model with a larger window, raise that one's context_tokens in the settings, or shorten its instructions, its guides or what it was asked
         told failure: what must always be shown needs 9 tokens, and its model has room for 8: give it a model with a larger window, raise that one's context_tokens in the settings, or shorten its instructions, its guides or what it was asked
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_blank_hint_makes_a_retry_due_but_restores_no_budget() {
    check(
        "person CreateWorkItem build
         round done
         ---
         wake source=s
         round done
         wake source=s
         round done
         wake source=s
         round done
         wake source=s
         decide",
        "hint s triggered
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:s:1
         ReduceMessageOnly liveness_only_message m2
         processed m2: blank
         EmitSystemTick queued_available w1
         queued m3 system_tick work_queue:queued_available:w1:1:1
         StartModelTurn model_reentry_message m3 w1
         turn local_continuation of w1
         end completed
         processed m3
         WaitForTimer tick_backoff w1
         hint s triggered
         EmitSystemTick wake_hint
         queued m4 wake_hint as next wake_hint:s:2
         ReduceMessageOnly liveness_only_message m4
         processed m4: blank
         EmitSystemTick queued_available w1
         queued m5 system_tick work_queue:queued_available:w1:1:2
         StartModelTurn model_reentry_message m5 w1
         turn local_continuation of w1
         end completed
         processed m5
         WaitForTimer tick_backoff w1
         hint s triggered
         EmitSystemTick wake_hint
         queued m6 wake_hint as next wake_hint:s:3
         ReduceMessageOnly liveness_only_message m6
         processed m6: blank
         EmitSystemTick queued_available w1
         queued m7 system_tick work_queue:queued_available:w1:1:3
         StartModelTurn model_reentry_message m7 w1
         turn local_continuation of w1
         end completed
         processed m7
         WaitForOperator no_progress_budget_spent w1
         hint s triggered
         EmitSystemTick wake_hint
         queued m8 wake_hint as next wake_hint:s:4
         ReduceMessageOnly liveness_only_message m8
         processed m8: blank
         WaitForOperator no_progress_budget_spent w1
         WaitForOperator no_progress_budget_spent w1",
    );
}

const ENDLESS: &str = "a worked on its own for 50 turns in a row and has no fewer open work items than before";

/// Fifty turns that each made an item.
fn fifty_items() -> String {
    "person CreateWorkItem build\nround CreateWorkItem more\nagain 49 round done | round CreateWorkItem more".to_owned()
}

#[test]
fn after_fifty_work_ticks_in_a_row_work_waits_for_the_operator() {
    let told = tell(&format!(
        "{}
         ---
         round done
         closure
         posture
         wake?
         advance 24h
         why
         wakers
         list queued",
        fifty_items()
    ));
    assert_eq!(told[..3], ["end completed", "processed m50", "50 work ticks spent with 51 items open"]);
    assert!(told[3].starts_with(&format!("told failure: {ENDLESS} (51 work items)")), "{}", told[3]);
    assert_eq!(
        told[4..8],
        [
            "WaitForOperator work_ticks_spent",
            "waiting awaiting_operator_input sleeping",
            "waiting_for_operator",
            "never"
        ]
    );
    assert!(told[8].starts_with(ENDLESS) && told[8].ends_with("send it a message to go on."), "{}", told[8]);
    assert_eq!(told[9..], ["a message from the operator", "queued:"], "it is told once");
}

#[test]
fn the_operators_next_message_lets_work_go_on() {
    check(
        &format!(
            "{}
             round done
             ---
             event news
             round done
             operator go on
             round done
             round done",
            fifty_items()
        ),
        "queued m51 webhook_event
         StartModelTurn model_reentry_message m51
         turn local_continuation
         end completed
         processed m51
         WaitForOperator work_ticks_spent
         queued m52 operator_prompt
         StartModelTurn model_reentry_message m52
         turn local_continuation
         end completed
         processed m52
         told result: done
         EmitSystemTick queued_available w51
         queued m53 system_tick work_queue:queued_available:w51:1
         StartModelTurn model_reentry_message m53 w51
         turn local_continuation of w51
         end completed
         processed m53
         WaitForTimer tick_backoff w1",
    );
}

/// Tells each line, and says whether a turn runs after it.
fn runs_after(story: &mut Story, lines: &[String]) -> bool {
    lines.iter().for_each(|line| story.tell(line).unwrap());
    story.state.turns.current.is_some()
}

#[test]
fn an_agent_that_makes_an_item_for_each_that_it_finishes_comes_to_rest() {
    let mut story = Story::begin();
    story.tell("person CreateWorkItem first").unwrap();
    let goes_on = |turn: &usize| {
        let next = format!("round CompleteWorkItem w{turn} ; CreateWorkItem next");
        runs_after(&mut story, &[next, "round done".to_owned()])
    };
    assert_eq!((1..=100).take_while(goes_on).count(), 49);
    assert!(story.state.planes.work.is_spent());
}

#[test]
fn a_queue_that_drains_goes_on() {
    let mut story = Story::begin();
    let made: Vec<String> = (1..=120).map(|item| format!("CreateWorkItem item{item}")).collect();
    let lines = ["operator make them".to_owned(), format!("round {}", made.join(" ; ")), "round done".to_owned()];
    assert!(runs_after(&mut story, &lines));
    let goes_on =
        |turn: &usize| runs_after(&mut story, &[format!("round CompleteWorkItem w{turn}"), "round done".to_owned()]);
    assert_eq!((1..=200).take_while(goes_on).count(), 119);
    assert!(!story.state.planes.work.is_spent() && story.state.planes.work.items().is_empty());
}

/// From then on, what is left is what has to get less.
#[test]
fn a_row_begins_anew_at_the_fewest_items_that_there_were() {
    let mut story = Story::begin();
    let begun = ["stop", "person CreateWorkItem one", "person CreateWorkItem two", "start"];
    let spent = ["round UpdateWorkItem w1 plan=a", "round done", "round CompleteWorkItem w1"];
    assert!(runs_after(
        &mut story,
        &[&begun[..], &spent].concat().iter().map(|&line| line.to_owned()).collect::<Vec<_>>()
    ));
    assert_eq!(story.state.planes.work.tick_row().ticks, 1);
    story.tell("round done").unwrap();
    assert_eq!(story.state.planes.work.tick_row().ticks, 0);
    let goes_on = |turn: &usize| {
        runs_after(&mut story, &[format!("round UpdateWorkItem w2 plan={turn}"), "round done".to_owned()])
    };
    assert_eq!((1..=100).take_while(goes_on).count(), 49);
    assert!(story.state.planes.work.is_spent());
}

/// Also in the middle of a turn: what the person made is no sign that the agent goes in circles.
#[test]
fn items_that_a_person_makes_begin_the_row_anew() {
    let mut story = Story::begin();
    story.tell("person CreateWorkItem first").unwrap();
    for turn in 1..=49 {
        assert!(runs_after(&mut story, &[format!("round UpdateWorkItem w1 plan={turn}"), "round done".to_owned()]));
    }
    assert_eq!(story.state.planes.work.tick_row().ticks, 49);
    story.tell("person CreateWorkItem second").unwrap();
    assert!(runs_after(&mut story, &["round UpdateWorkItem w1 plan=b".to_owned(), "round done".to_owned()]));
    assert!(!story.state.planes.work.is_spent());
}

#[test]
fn a_turn_of_another_cause_begins_the_row_anew() {
    let mut story = Story::begin();
    story.tell("person CreateWorkItem build").unwrap();
    let work = |story: &mut Story, turns: std::ops::Range<usize>| {
        for turn in turns {
            let lines = [format!("round UpdateWorkItem w1 plan={turn}"), "round done".to_owned()];
            assert!(runs_after(story, &lines), "turn {turn}");
        }
    };
    work(&mut story, 1..49);
    story.tell("round UpdateWorkItem w1 plan=last").unwrap();
    story.tell("event news").unwrap();
    assert!(runs_after(&mut story, &["round done".to_owned()]));
    assert_eq!(story.state.planes.work.tick_row().ticks, 0);
    assert!(runs_after(&mut story, &["round done".to_owned()]));
    work(&mut story, 50..99);
}

/// A provider that can't be reached says nothing about the work: its message is taken again, and counts once.
#[test]
fn a_provider_that_fails_spends_no_offers() {
    check(
        "person CreateWorkItem build
         fail rate_limited after=1m
         advance 1m
         fail rate_limited after=1m
         advance 1m
         fail rate_limited after=1m
         advance 1m
         ---
         fail rate_limited after=1m
         item w1
         advance 5m
         round done
         item w1",
        "end provider_failed_needs_recovery
         requeued m1 provider_backoff until +480s
         WaitForTimer provider_backoff m1
         runnable revision 1
         StartModelTurn model_reentry_message m1 w1
         turn local_continuation of w1
         end completed
         processed m1
         WaitForTimer tick_backoff w1
         runnable revision 1",
    );
}

/// A failure that time does not mend ends the tick, so it counts: else the item would be offered for ever.
#[test]
fn a_failure_for_good_spends_an_offer() {
    check(
        "person CreateWorkItem build
         ---
         fail invalid",
        "end provider_failed_needs_recovery
         processed m1: invalid: no
         told failure: invalid: no
         WaitForTimer tick_backoff w1",
    );
}

#[test]
fn an_offer_of_work_is_recorded_whole() {
    check(
        "person CreateWorkItem build
         person PickWorkItem w1
         ---
         round done
         facts",
        r#"end completed
         processed m1
         EmitSystemTick continue_active w1
         queued m2 system_tick work_queue:continue_active:w1:1:1
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1
         turn.provider_round_completed {"exec_id":"exec1","round":1,"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost_micro_usd":0}}
         turn.assistant_round_recorded {"exec_id":"exec1","round":1,"text":"done"}
         turn.terminal {"exec_id":"exec1","turn_index":1,"message_id":"m1","terminal_kind":"completed","rounds":1,"last_assistant_message":"done"}
         message.processed {"message_id":"m1"}
         scheduler.decision {"kind":"EmitSystemTick","reason":"continue_active","boundary":"idle","model_reentry":false,"liveness_only":false,"work_item_id":"w1","ignored":[],"evidence":["runtime_idle","current_work_item_runnable","no_duplicate_tick_for_generation","work_item w1 revision 1 seq 7","key work_queue:continue_active:w1:1:1"]}
         message.queued {"message_id":"m2","kind":"system_tick","origin":{"kind":"system"},"trust":"trusted_system","priority":"normal","text":"Continue the current work item: build","work_item_id":"w1","tick":"continue_active","idempotency_key":"work_queue:continue_active:w1:1:1"}
         scheduler.decision {"kind":"StartModelTurn","reason":"model_reentry_message","boundary":"message","model_reentry":true,"liveness_only":false,"message_id":"m2","work_item_id":"w1","ignored":[],"evidence":["message_queued m2 seq 21","local_continuation","no_wait_open"]}
         message.dequeued {"message_id":"m2"}
         turn.started {"turn_id":"turn2","exec_id":"exec2","turn_index":2,"message_id":"m2","work_item_id":"w1","continuation":{"trigger_kind":"system_tick","class":"local_continuation","model_reentry":true,"matched_waiting_reason":false,"evidence":["no_wait_open"]}}
         turn.round_started {"exec_id":"exec2","round":1}"#,
    );
}
