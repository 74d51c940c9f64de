//! The verification plan of lifecycle control, line by line, and what control refuses (spec 2 to 4).

use abide_kernel::config::{Config, Identity};
use abide_kernel::fact::{AgentCreated, Fact};
use abide_kernel::id::{AgentId, Fresh};
use abide_kernel::input::Input;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::Status;
use abide_kernel::{AgentState, admit};
use serde_json::{Value, json};

use crate::story::{Story, check};

fn created(start: bool) -> AgentState {
    let id = AgentId::new("a").unwrap();
    let mut state = AgentState::empty(id.clone());
    let input = Input::Create { identity: Identity::named(id), config: Config::default(), start };
    admit(&mut state, input, Time::EPOCH, &mut Fresh::new(Time::EPOCH, 1)).unwrap();
    state
}

#[test]
fn creating_an_agent_starts_it_unless_told_otherwise() {
    assert_eq!(created(true).status(), Status::AwakeIdle);
    assert_eq!(created(false).status(), Status::Stopped);
}

#[test]
fn nothing_is_asked_of_an_agent_that_does_not_exist() {
    let mut state = AgentState::empty(AgentId::new("a").unwrap());
    let refusal = admit(&mut state, Input::Start, Time::EPOCH, &mut Fresh::new(Time::EPOCH, 1)).unwrap_err();
    assert_eq!((refusal.code.word(), state.seq), ("no_agent", 0));
}

/// No direct writes of a status remain: there is no status to write, only what it is computed from.
#[test]
fn no_status_is_stored() {
    let story = Story::begin();
    let stored: serde_json::Value = serde_json::from_slice(&story.state.snapshot()).unwrap();
    assert!(stored.get("control").is_some());
    assert!(stored.get("status").is_none());
}

/// Statuses of old records: read, never written.
#[test]
fn paused_reads_as_stopped_and_awaiting_task_as_awake_idle() {
    assert_eq!(Status::parse("paused"), Some(Status::Stopped));
    assert_eq!(Status::parse("awaiting_task"), Some(Status::AwakeIdle));
    assert!(Status::ALL.iter().all(|status| !["paused", "awaiting_task"].contains(&status.as_str())));
}

#[test]
fn stopped_agent_does_not_dequeue_queued_messages() {
    check(
        "stop
         ---
         operator hi
         event news
         advance 1h
         queue
         decide",
        "queued m1 operator_prompt
         queued m2 webhook_event
         m1 queued, m2 queued
         Stop stopped",
    );
}

#[test]
fn start_does_not_directly_create_a_model_turn() {
    check(
        "stop
         ---
         start
         kinds",
        "control start awake_idle
         Sleep no_pending_scheduler_facts
         control.admitted control.applied posture.changed scheduler.decision posture.changed",
    );
}

#[test]
fn start_hands_queued_work_to_the_scheduler() {
    check(
        "stop
         operator hi
         ---
         start
         kinds",
        "control start awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation
         control.admitted control.applied posture.changed scheduler.decision message.dequeued turn.started turn.round_started",
    );
}

#[test]
fn stop_aborts_the_current_run() {
    check(
        "operator hi
         ---
         stop
         kinds
         effects
         status",
        "cut stop
         requeued m1 stop
         control stop stopped
         Stop stopped
         control.admitted exec.aborted message.requeued control.applied posture.changed scheduler.decision
         end exec1
         stopped",
    );
}

/// The trail says what the agent was when control was asked for, also where control cut a turn first.
#[test]
#[allow(clippy::wildcard_enum_match_arm, reason = "two of many facts are looked at")]
fn control_is_applied_to_the_status_that_it_was_admitted_at() {
    let cases = [("operator hi", "stop", "awake_running"), ("operator hi", "crash", "awake_running")];
    for (before, action, was) in cases.into_iter().chain([("advance 1s", "stop", "asleep")]) {
        let mut story = Story::begin();
        story.tell(before).unwrap();
        let told = story.facts.len();
        story.tell(action).unwrap();
        let previous = story.facts[told..].iter().filter_map(|(_, fact)| match fact {
            Fact::ControlAdmitted(fact) => Some(("admitted", fact.previous_status)),
            Fact::ControlApplied(fact) => Some(("applied", fact.previous_status)),
            Fact::PostureChanged(fact) => Some(("changed", fact.previous_status)),
            _ => None,
        });
        let was = Status::parse(was).unwrap();
        let trail = [("admitted", was), ("applied", was), ("changed", was)];
        assert_eq!(previous.collect::<Vec<_>>(), trail, "{before}, {action}");
    }
}

/// The facts about control that one line makes, as they are stored.
fn trail(before: &str, action: &str) -> Vec<(&'static str, Value)> {
    let mut story = Story::begin();
    for line in before.lines().map(str::trim) {
        story.tell(line).unwrap();
    }
    let told = story.facts.len();
    story.tell(action).unwrap();
    let kinds = ["control.admitted", "exec.aborted", "workspace.released", "control.applied", "posture.changed"];
    let about_control = story.facts[told..].iter().filter(|(_, fact)| kinds.contains(&fact.kind()));
    about_control.map(|(_, fact)| (fact.kind(), serde_json::from_slice(&fact.encode()).unwrap())).collect()
}

/// Each of the five says by itself what was asked, where, from which status to which, and what it affects.
#[test]
fn every_fact_about_control_has_full_evidence() {
    let scenes = [
        ("occupy ws\ntask t1\noperator hi", "stop", "stop", "control"),
        ("occupy ws\nstop", "release ws after=stop", "stop", "control"),
        ("stop", "start", "start", "control"),
        ("operator hi", "shutdown now", "shutdown", "shutdown"),
        ("task t1\noperator hi", "shutdown", "shutdown", "shutdown"),
        ("occupy ws\ntask t1\noperator hi", "crash", "restart", "bootstrap"),
        ("shutdown", "crash", "restart", "bootstrap"),
    ];
    for (before, action, name, boundary) in scenes {
        let trail = trail(before, action);
        assert!(!trail.is_empty(), "{action}");
        let by_control = trail.iter().filter(|(_, fact)| fact["boundary"] != "lifecycle_sleep");
        for (kind, fact) in by_control {
            assert_eq!((&fact["action"], &fact["boundary"]), (&json!(name), &json!(boundary)), "{action}: {kind}");
            for status in ["previous_status", "next_status"] {
                assert!(Status::parse(fact[status].as_str().unwrap_or_default()).is_some(), "{action}: {kind} {fact}");
            }
            assert!(fact["task_ids"].is_array(), "{action}: {kind} {fact}");
            let evidence = fact["evidence"].as_array().unwrap();
            assert!(!evidence.is_empty() && evidence.iter().all(|one| one != ""), "{action}: {kind} {fact}");
        }
    }
}

#[test]
fn a_stop_says_what_it_affects_on_every_fact() {
    let trail = trail("occupy ws\ntask t1\noperator hi", "stop");
    let kinds: Vec<&str> = trail.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, ["control.admitted", "exec.aborted", "control.applied", "posture.changed"]);
    let exec = &trail[1].1["exec_id"];
    for (kind, fact) in &trail {
        assert_eq!((&fact["exec_id"], &fact["workspace"]), (exec, &json!("ws")), "{kind}");
        assert_eq!(fact["task_ids"].as_array().unwrap().len(), 1, "{kind}");
        let statuses = (&fact["previous_status"], &fact["next_status"]);
        assert_eq!(statuses, (&json!("awake_running"), &json!("stopped")), "{kind}");
    }
}

#[test]
fn a_creation_that_starts_is_admitted_and_applied() {
    let story = Story::begin();
    let kinds: Vec<&str> = story.facts.iter().map(|(_, fact)| fact.kind()).take(4).collect();
    assert_eq!(kinds, ["agent.created", "control.admitted", "control.applied", "posture.changed"]);
    for (_, fact) in &story.facts[1..4] {
        let fact: Value = serde_json::from_slice(&fact.encode()).unwrap();
        assert_eq!((&fact["action"], &fact["boundary"]), (&json!("start"), &json!("bootstrap")));
        assert_eq!((&fact["previous_status"], &fact["next_status"]), (&json!("booting"), &json!("awake_idle")));
        assert_eq!(fact["evidence"], json!(["created"]));
    }
}

#[test]
fn a_shutdown_says_why() {
    for (action, kinds) in [
        ("shutdown", vec!["control.admitted", "control.applied"]),
        ("shutdown now", vec!["exec.aborted", "control.admitted", "control.applied"]),
    ] {
        let trail = trail("operator hi", action);
        assert_eq!(trail.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), kinds);
        for (kind, fact) in trail {
            assert!(fact["evidence"].as_array().unwrap().contains(&json!("reason SIGTERM")), "{kind}: {fact}");
        }
    }
}

/// A status that the scheduler changes has evidence, too: the decision that put the agent to rest, the message that ended
/// the rest.
#[test]
fn a_change_of_posture_says_what_it_follows_from() {
    let woken = trail("advance 1s", "operator hi");
    assert_eq!((woken[0].0, &woken[0].1["boundary"]), ("posture.changed", &json!("message_admission")));
    let evidence = woken[0].1["evidence"][0].as_str().unwrap();
    assert!(evidence.starts_with("message_queued msg_"), "{evidence}");
    let rests = trail("operator hi", "round done");
    let (kind, slept) = rests.last().unwrap();
    assert_eq!((*kind, &slept["boundary"]), ("posture.changed", &json!("lifecycle_sleep")));
    assert_eq!(slept["evidence"], json!(["decision Sleep no_pending_scheduler_facts"]));
}

#[test]
fn stop_releases_workspace_occupancy() {
    check(
        "occupy ws
         operator hi
         ---
         stop
         effects
         release ws
         start",
        "cut stop
         requeued m1 stop
         control stop stopped
         Stop stopped
         end exec1, release ws
         released ws
         control start awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn a_stop_asks_for_the_release_of_no_folder_that_is_not_held() {
    check(
        "use /w
         operator hi
         occupy /w
         round done
         release /w
         operator again
         ---
         stop
         effects",
        "cut stop
         requeued m2 stop
         control stop stopped
         Stop stopped
         end exec2",
    );
}

/// A folder is held until the turn has ended and no command runs, whichever comes last.
#[test]
fn a_folder_is_let_go_of_when_the_last_use_of_it_ends() {
    check(
        "operator hi
         occupy ws
         ---
         round done
         effects
         release ws
         release ws",
        "end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts
         release ws
         released ws
         unchanged",
    );
    check(
        "operator hi
         occupy ws
         task t1
         round done
         effects
         ---
         task t1 ends completed
         effects",
        "t1 completed
         queued m2 task_result
         result of t1 in m2
         StartModelTurn model_reentry_message m2 t1
         turn local_continuation shows t1
         close t1, release ws, call model exec2 round 1",
    );
}

/// A check of a timer is a command, too.
#[test]
fn a_folder_is_let_go_of_when_a_check_is_cancelled() {
    check(
        "person CreateTimer every=1h check=look tea
         operator hi
         occupy ws
         advance 1h
         round done
         effects
         ---
         person CancelTimer timer1
         effects",
        "timer1 missed 1 (+3600s to +3600s) cancelled
         timer1 cancelled: cancelled_by ann
         StayIdle already_asleep
         end check timer1, release ws",
    );
}

/// The outcome of a call may come in when its turn was aborted already.
#[test]
fn a_folder_that_is_heard_of_too_late_is_let_go_of() {
    check(
        "operator hi
         abort
         ---
         occupy ws
         effects",
        "release ws",
    );
}

#[test]
fn a_failed_release_is_shown() {
    check(
        "occupy ws
         stop
         ---
         release ws error=busy",
        "released ws error busy",
    );
}

#[test]
fn stop_clears_sleep_and_wake_posture() {
    check(
        "operator hi
         round Sleep 1h
         ---
         stop
         waits
         timers
         wake?",
        "wait1 cancelled: stop
         timer1 cancelled: wait_ended
         control stop stopped
         Stop stopped
         []
         []
         never",
    );
}

#[test]
fn stop_keeps_hints_that_say_something() {
    check(
        "operator hi
         wake source=s
         wake source=t news
         ---
         stop
         hints
         start",
        "cut stop
         requeued m1 stop
         hint s ignored
         control stop stopped
         Stop stopped
         t
         control start awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn stop_cancels_tasks_through_the_reducer() {
    check(
        "task t1
         task t2
         task t2 runs
         operator hi
         ---
         stop
         effects
         task t1 ends cancelled
         task t2 ends interrupted",
        "cut stop
         requeued m1 stop
         t1 cancelling
         t2 cancelling
         control stop stopped
         Stop stopped
         end exec1, end t1, end t2
         t1 cancelled: stop
         queued m2 task_result
         result of t1 in m2
         t2 interrupted: stop
         queued m3 task_result
         result of t2 in m3",
    );
}

#[test]
fn a_result_after_stop_is_evidence_and_starts_no_turn() {
    check(
        "task t1
         stop
         ---
         task t1 ends
         owed
         status
         start",
        "t1 completed: stop
         queued m1 task_result
         result of t1 in m1
         [t1]
         stopped
         control start awake_idle
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation shows t1",
    );
}

#[test]
fn a_stopped_timer_wakes_nobody_and_is_looked_at_after_start() {
    check(
        "person CreateTimer every=1m tea
         stop
         ---
         advance 5m
         start",
        "control start awake_idle
         queued m1 timer_tick
         timer1 fired in m1
         timer1 missed 4 (+60s to +240s) coalesced
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn stop_keeps_work_waits_and_messages() {
    check(
        "person CreateWorkItem build
         round WaitFor external c1
         ---
         stop
         waits
         item w1
         start",
        "control stop stopped
         Stop stopped
         [wait1]
         waiting_for_external revision 1
         control start awake_idle
         WaitForExternalChange work_item_external_wait w1",
    );
}

#[test]
fn start_is_for_stopped_agents() {
    check(
        "start
         operator hi
         start",
        "refused not_stopped
         queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         refused not_stopped",
    );
}

#[test]
fn stop_on_a_stopped_agent_changes_nothing() {
    check(
        "stop
         ---
         stop",
        "unchanged",
    );
}

#[test]
fn a_stopped_agent_emits_no_tick() {
    check(
        "stop
         ---
         person CreateWorkItem build
         wake source=s
         advance 1h
         decide
         start",
        "w1 created
         hint s ignored
         Stop stopped
         control start awake_idle
         EmitSystemTick queued_available w1
         queued m1 system_tick work_queue:queued_available:w1:1
         StartModelTurn model_reentry_message m1 w1
         turn local_continuation of w1",
    );
}

#[test]
fn abort_needs_a_turn() {
    check("abort", "refused no_turn");
}

#[test]
fn a_forked_agent_starts_stopped_and_owns_nothing() {
    check(
        "task t1
         person CreateTimer every=1h tea
         person CreateTrigger hook
         operator hi
         round WaitFor external c1
         occupy ws
         ---
         fork b
         status",
        "forked b
         t1 interrupted: fork
         wait1 cancelled: fork
         timer1 cancelled: fork
         trig1 revoked
         released ws
         queued m2 task_result
         result of t1 in m2
         Stop stopped
         stopped",
    );
}

#[test]
fn compaction_changes_no_decision() {
    check(
        "operator hi
         round WaitFor external c1
         ---
         decide
         compact
         decide
         waits",
        "WaitForExternalChange active_agent_waiting_intents
         WaitForExternalChange active_agent_waiting_intents
         [wait1]",
    );
}

#[test]
fn a_checkpoint_holds_while_its_item_is_the_same() {
    check(
        "person CreateWorkItem build
         checkpoint
         ---
         round done",
        "end completed checkpoint
         processed m1
         WaitForTimer tick_backoff w1",
    );
}

#[test]
fn a_changed_item_makes_a_checkpoint_void() {
    check(
        "person CreateWorkItem build
         checkpoint
         round UpdateWorkItem w1 plan=x
         ---
         round done",
        "end completed
         processed m1
         EmitSystemTick queued_available w1
         queued m2 system_tick work_queue:queued_available:w1:2
         StartModelTurn model_reentry_message m2 w1
         turn local_continuation of w1",
    );
}

#[test]
fn a_shutdown_at_once_gives_the_message_back_without_waiting_for_the_model() {
    check(
        "operator hi
         ---
         shutdown now
         decide
         boot",
        "cut shutdown
         requeued m1 shutdown
         control shutdown awake_idle
         Stop shutdown_requested
         Stop shutdown_requested
         control restart awake_idle
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn only_a_stopped_agent_is_deleted_and_then_nothing_is_asked_of_it() {
    check(
        "archive
         stop
         ---
         archive
         start
         operator hi
         decide",
        "archived
         refused archived
         refused archived
         Stop stopped",
    );
}

#[test]
fn what_a_provider_wants_back_survives_a_failed_round() {
    let mut story = Story::begin();
    story.tell("operator hi").unwrap();
    story.tell("fail rate_limited carry=three").unwrap();
    assert_eq!(story.state.models.carry, Some(Value::from("three").into()));
}

/// A ledger that ends right after the creation of an agent: its next boot starts it.
#[test]
fn an_agent_that_was_cut_while_it_was_made_is_started_at_boot() {
    let id = AgentId::new("a").unwrap();
    let mut state = AgentState::empty(id.clone());
    let created = AgentCreated { identity: Identity::named(id), config: Config::default(), start: true };
    state.apply(Time::EPOCH, &created.into()).unwrap();
    assert_eq!(state.status(), Status::Booting);
    let boot = Input::Boot { context: abide_kernel::input::BootContext::default() };
    let booted = admit(&mut state, boot, Time::EPOCH, &mut Fresh::new(Time::EPOCH, 1)).unwrap();
    let statuses = |fact: &Fact| {
        if let Fact::ControlApplied(applied) = fact {
            Some((applied.previous_status, applied.next_status))
        } else {
            None
        }
    };
    let applied = booted.facts.iter().find_map(statuses);
    assert_eq!(applied, Some((Status::Booting, Status::AwakeIdle)));
    assert_eq!(state.status(), Status::AwakeIdle);
}

#[test]
fn what_does_not_run_is_not_shut_down() {
    check(
        "stop
         ---
         shutdown
         start
         shutdown
         shutdown",
        "unchanged
         control start awake_idle
         Sleep no_pending_scheduler_facts
         control shutdown asleep
         Stop shutdown_requested
         unchanged",
    );
}

#[test]
fn a_folder_is_held_while_a_command_runs() {
    check(
        "use /w
         occupy /w
         operator hi
         task t1
         task t1 runs
         ---
         round done
         effects
         task t1 ends
         round done
         effects",
        "end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts
         t1 completed
         queued m2 task_result
         result of t1 in m2
         StartModelTurn model_reentry_message m2 t1
         turn local_continuation shows t1
         read t1: round 1
         end completed
         processed m2
         Sleep no_pending_scheduler_facts
         release /w",
    );
}

#[test]
fn an_agent_is_created_once() {
    let mut story = Story::begin();
    let identity = Identity::named(story.state.id().clone());
    let input = Input::Create { identity, config: Config::default(), start: true };
    let refusal = admit(&mut story.state, input, story.now, &mut Fresh::new(story.now, 9)).unwrap_err();
    assert_eq!((refusal.code.word(), refusal.message.as_str()), ("exists", "an agent called a exists already"));
}

#[test]
fn a_folder_that_is_bound_already_is_chosen_again() {
    check(
        "use /w
         use /v
         ---
         use /w
         notes",
        "it works in /w",
    );
}

#[test]
fn a_quarantined_agent_that_holds_nothing_has_nothing_to_stop() {
    check(
        "quarantine bad
         ---
         stop",
        "unchanged",
    );
}

#[test]
fn a_quarantined_agent_that_holds_a_task_lets_go_of_it() {
    check(
        "task t1
         task t1 runs
         quarantine bad
         ---
         stop
         effects",
        "t1 cancelling
         control stop stopped
         end t1",
    );
}

#[test]
fn a_quarantined_agent_that_holds_a_folder_lets_go_of_it() {
    check(
        "use /w
         occupy /w
         quarantine bad
         ---
         stop
         effects",
        "control stop stopped
         release /w",
    );
}

/// It is too long to be typed once more, and a hyphen at its beginning would be read as an option.
#[test]
fn a_long_message_that_is_given_up_is_quoted_in_part() {
    check(
        "operator aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa
         crash
         crash
         ---
         crash",
        r#"cut cut
         aborted m1 given_up
         told failure: Your message "aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa  …" was given up: the process ended 3 times while it was being worked on. `abide transcript a` has all of it (seq 7). To send it again: abide send a TEXT
         wait1 operator_input
         control restart awake_idle
         WaitForOperator active_operator_wait"#,
    );
}

#[test]
fn a_message_that_would_read_as_an_option_is_not_to_be_typed() {
    check(
        "operator -x
         crash
         crash
         ---
         crash",
        r#"cut cut
         aborted m1 given_up
         told failure: Your message "-x" was given up: the process ended 3 times while it was being worked on. `abide transcript a` has all of it (seq 7). To send it again: abide send a TEXT
         wait1 operator_input
         control restart awake_idle
         WaitForOperator active_operator_wait"#,
    );
}

#[test]
fn a_shutdown_is_recorded_whole() {
    check(
        "task t1
         task t1 runs
         operator hi
         ---
         shutdown
         facts",
        r#"t1 cancelling
         control shutdown awake_running
         Stop shutdown_requested
         control.admitted {"action":"shutdown","boundary":"shutdown","previous_status":"awake_running","next_status":"awake_running","task_ids":["t1"],"evidence":["reason SIGTERM"]}
         task.cancelling {"task_id":"t1","evidence":["shutdown"]}
         control.applied {"action":"shutdown","boundary":"shutdown","previous_status":"awake_running","next_status":"awake_running","task_ids":["t1"],"evidence":["reason SIGTERM"]}
         scheduler.decision {"kind":"Stop","reason":"shutdown_requested","boundary":"idle","model_reentry":false,"liveness_only":false,"ignored":[],"evidence":["shutdown_requested"]}"#,
    );
}

#[test]
fn a_quarantine_is_recorded_whole() {
    check(
        "---
         quarantine bad
         facts",
        r#"quarantined bad
         Stop quarantined
         agent.quarantined {"reason":"bad"}
         posture.changed {"boundary":"bootstrap","previous_status":"asleep","next_status":"stopped","task_ids":[],"evidence":["quarantined bad"]}
         scheduler.decision {"kind":"Stop","reason":"quarantined","boundary":"idle","model_reentry":false,"liveness_only":false,"ignored":[],"evidence":["quarantined bad"]}"#,
    );
}

#[test]
fn a_quarantine_of_a_stopped_agent_changes_no_posture() {
    check(
        "stop
         ---
         quarantine bad
         facts",
        r#"quarantined bad
         Stop quarantined
         agent.quarantined {"reason":"bad"}
         scheduler.decision {"kind":"Stop","reason":"quarantined","boundary":"idle","model_reentry":false,"liveness_only":false,"ignored":[],"evidence":["quarantined bad"]}"#,
    );
}

/// Where there are two, each has to be named.
#[test]
fn a_worktree_is_known_by_the_folder_that_it_is_of() {
    check(
        "use /w
         use /h/1 of=/r
         ---
         person DetachWorkspace /r
         effects
         use /h/2 of=/q
         use /h/3 of=/q
         person DetachWorkspace /q",
        "remove /h/1
         refused not_found",
    );
}
