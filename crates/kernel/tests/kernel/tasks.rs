//! Tasks: one monotonic reducer (spec contract), and results as obligations (spec 10).

use abide_kernel::fact::TaskCreated;
use abide_kernel::id::TaskId;
use abide_kernel::input::Input;
use abide_kernel::state::task::may_become;
use abide_kernel::tool::Command;
use abide_kernel::vocabulary::{TaskStatus, WaitPolicy};

use crate::story::{Story, check, tell};

/// Every pair of statuses: a row is where a task is, a column where it would go.
#[test]
fn statuses_are_monotonic() {
    let table: Vec<String> = TaskStatus::ALL
        .iter()
        .map(|from| {
            let cells: String =
                TaskStatus::ALL.iter().map(|to| if may_become(*from, *to) { 'x' } else { '.' }).collect();
            format!("{cells} {from}")
        })
        .collect();
    // queued, running, cancelling, completed, failed, cancelled, interrupted
    let expected = [
        ".xxxxxx queued",
        "..xxxxx running",
        "..xxxxx cancelling",
        "....... completed",
        "....... failed",
        "....... cancelled",
        "....... interrupted",
    ];
    assert_eq!(table, expected);
}

#[test]
fn a_result_is_persisted_before_it_is_queued() {
    check(
        "task t1
         task t1 runs
         ---
         task t1 ends
         kinds",
        "t1 completed
         queued m1 task_result
         result of t1 in m1
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation shows t1
         task.completed message.queued task.result_queued posture.changed scheduler.decision message.dequeued turn.started turn.round_started",
    );
}

#[test]
fn late_and_doubled_reports_change_nothing() {
    check(
        "task t1
         task t1 runs
         task t1 runs
         task t1 ends
         task t1 ends failed
         task t1 runs
         task t1
         round done
         task t1 runs
         owed",
        "t1 created
         t1 running
         t1 ignored running: task_is running
         unchanged
         t1 completed
         queued m1 task_result
         result of t1 in m1
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation shows t1
         t1 ignored failed: task_is completed
         unchanged
         t1 ignored running: task_is completed
         unchanged
         t1 ignored queued: created_twice
         unchanged
         read t1: round 1
         end completed
         processed m1
         Sleep no_pending_scheduler_facts
         t1 ignored running: task_is completed
         unchanged
         []",
    );
}

#[test]
fn an_unknown_task_is_evidence() {
    check(
        "task t9 runs
         task t9 ends",
        "t9 ignored running: unknown_task
         unchanged
         t9 ignored completed: unknown_task
         unchanged",
    );
}

#[test]
fn an_end_is_terminal() {
    check(
        "task t1
         task t1 ends running",
        "t1 created
         refused not_terminal",
    );
}

#[test]
fn a_task_asked_twice_is_forced() {
    check(
        "task t1
         operator hi
         ---
         round StopTask t1
         effects
         round StopTask t1
         effects
         task t1 runs
         task t1 ends cancelled",
        "t1 cancelling
         end t1, call model exec1 round 2
         t1 cancelling force
         end t1 force, call model exec1 round 3
         t1 ignored running: task_is cancelling
         unchanged
         t1 cancelled: stopped_by exec1
         queued m2 task_result
         result of t1 in m2",
    );
}

#[test]
fn a_result_is_read_when_a_round_that_showed_it_commits() {
    check(
        "task t1
         ---
         task t1 ends
         owed
         round ok
         owed",
        "t1 completed
         queued m1 task_result
         result of t1 in m1
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation shows t1
         [t1]
         read t1: round 1
         end completed
         processed m1
         Sleep no_pending_scheduler_facts
         []",
    );
}

#[test]
fn focus_that_moved_drops_no_result() {
    check(
        "operator hi
         round CreateWorkItem build
         round CreateWorkItem test
         round PickWorkItem w1
         task t1 item=w1
         round PickWorkItem w2
         ---
         task t1 ends
         round done",
        "t1 completed
         queued m2 task_result
         result of t1 in m2
         end completed
         processed m1
         told result: done
         StartModelTurn model_reentry_message m2 w1 t1
         turn local_continuation of w1 shows t1",
    );
}

#[test]
fn a_cancelled_wait_drops_no_result() {
    check(
        "task t1
         operator hi
         round WaitFor task t1
         person CancelWait wait1
         ---
         task t1 ends
         owed
         round done",
        "t1 completed
         queued m3 task_result
         result of t1 in m3
         [t1]
         end completed
         processed m2
         told result: done
         StartModelTurn model_reentry_message m3 t1
         turn local_continuation shows t1",
    );
}

#[test]
fn a_result_that_is_read_by_the_model_is_not_delivered_again() {
    check(
        "task t1
         operator hi
         task t1 ends
         ---
         round Tool
         tool call1 reads=t1
         owed
         round done",
        "read t1: task_output_returned_the_end
         dropped m2: result_read
         []
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_wait_for_an_owed_result_gets_it_now() {
    check(
        "task t1
         operator hi
         task t1 ends
         ---
         round WaitFor task t1
         owed
         round done",
        "read t1: wait_for_found_it_owed
         dropped m2: result_read
         delivered t1
         []
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_wait_for_any_result_gets_one_now() {
    check(
        "task t1
         operator hi
         task t1 ends
         ---
         round WaitFor task",
        "read t1: wait_for_found_it_owed
         dropped m2: result_read
         delivered t1",
    );
}

#[test]
fn a_result_is_read_once() {
    check(
        "task t1
         task t1 ends
         round ok
         operator hi
         ---
         round Tool
         tool call1 reads=t1
         round WaitFor task t1",
        "WaitFor refused nothing_would_end_it",
    );
}

#[test]
fn reading_a_result_ends_every_wait_that_names_it() {
    check(
        "person CreateWorkItem build
         task t1
         round WaitFor task t1
         operator hi
         task t1 ends
         ---
         round Tool
         tool call2 reads=t1",
        "read t1: task_output_returned_the_end
         dropped m3: result_read
         wait1 triggered",
    );
}

#[test]
fn a_turn_without_a_round_queues_the_result_again() {
    check(
        "task t1
         task t1 ends
         ---
         abort
         owed",
        "cut abort
         aborted m1
         told failure: Aborted by the operator.
         queued m2 task_result
         result of t1 in m2
         StartModelTurn model_reentry_message m2 t1
         turn local_continuation shows t1
         [t1]",
    );
}

#[test]
fn a_provider_failure_replays_the_delivery() {
    check(
        "task t1
         task t1 ends
         ---
         fail rate_limited after=1m
         owed
         advance 1m
         round ok
         owed",
        "end provider_failed_needs_recovery
         requeued m1 provider_backoff until +60s
         WaitForTimer provider_backoff m1
         [t1]
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation shows t1
         read t1: round 1
         end completed
         processed m1
         Sleep no_pending_scheduler_facts
         []",
    );
}

#[test]
fn a_failure_that_time_does_not_mend_keeps_the_result_owed() {
    check(
        "task t1
         task t1 ends
         ---
         fail invalid
         owed
         operator again
         round ok
         owed",
        "end provider_failed_needs_recovery
         aborted m1 given_up
         told failure: invalid: no
         wait1 operator_input
         WaitForOperator active_operator_wait
         [t1]
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait shows t1
         read t1: round 1
         end completed
         processed m2
         told result: ok
         Sleep no_pending_scheduler_facts
         []",
    );
}

#[test]
fn a_poisonous_result_stays_owed_for_the_operator() {
    check(
        "task t1
         task t1 ends
         crash
         crash
         ---
         crash
         owed
         decide
         operator what
         round ok
         owed",
        "cut cut
         aborted m1 given_up
         told failure: A message (task_result) \"Task t1 (make) is completed, exit code 0\" was given up: the process ended 3 times while it was being worked on. The result of t1 is kept; your next message brings it: abide send a TEXT
         wait1 operator_input
         control restart awake_idle
         WaitForOperator active_operator_wait
         [t1]
         WaitForOperator active_operator_wait
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         wait1 triggered by m2
         turn resume_expected_wait shows t1
         read t1: round 1
         end completed
         processed m2
         told result: ok
         Sleep no_pending_scheduler_facts
         []",
    );
}

#[test]
fn a_result_that_waits_for_the_operator_comes_with_an_interjection_too() {
    check(
        "task t1
         task t1 ends
         crash
         crash
         crash
         event hello
         ---
         interject what
         round hm
         round ok
         owed",
        "queued m3 operator_prompt as interject
         interjected m3 into m2
         wait1 triggered by m3
         read t1: round 2
         end completed
         processed m2
         Sleep no_pending_scheduler_facts
         []",
    );
}

#[test]
fn a_replay_is_the_same_delivery() {
    check(
        "task t1
         task t1 ends
         ---
         crash
         round ok
         owed",
        "cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation shows t1
         read t1: round 1
         end completed
         processed m1
         Sleep no_pending_scheduler_facts
         []",
    );
}

#[test]
fn a_stop_before_the_round_keeps_the_result_owed() {
    check(
        "task t1
         task t1 ends
         ---
         stop
         owed
         start",
        "cut stop
         requeued m1 stop
         control stop stopped
         Stop stopped
         [t1]
         control start awake_idle
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation shows t1",
    );
}

#[test]
fn a_result_read_before_a_cut_is_not_owed_again() {
    check(
        "task t1
         task t1 ends
         round Tool make
         ---
         crash
         owed",
        "call1 unknown
         cut cut
         requeued m1 crash
         control restart awake_idle
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation
         []",
    );
}

#[test]
fn a_delegation_is_a_record_and_blocks_nobody() {
    check(
        "person CreateWorkItem build
         task t1 item=w1 child=kid
         item w1
         task t1 ends",
        "w1 created
         EmitSystemTick queued_available w1
         queued m1 system_tick work_queue:queued_available:w1:1
         StartModelTurn model_reentry_message m1 w1
         turn local_continuation of w1
         t1 created of w1
         w1 delegated to kid
         runnable revision 1
         t1 completed
         w1 delegation t1 completed
         queued m2 task_result
         result of t1 in m2",
    );
}

#[test]
fn completing_an_item_is_not_blocked_by_a_task() {
    check(
        "person CreateWorkItem build
         task t1
         task t2 item=w1
         ---
         round CompleteWorkItem w1
         task t2 ends",
        "w1 completed
         t2 completed
         queued m2 task_result
         result of t2 in m2",
    );
}

/// A child works for an item that is open; one that is completed delegates nothing.
#[test]
fn only_an_open_item_is_delegated() {
    let kinds = |lines: &str| tell(&format!("{lines}\n---\nkinds")).join(" ");
    let made = "person CreateWorkItem build\nperson CreateWorkItem paint\nround CompleteWorkItem w1";
    assert!(kinds(&format!("{made}\ntask t1 child=a.1 item=w2")).contains("work_item.delegated"));
    assert!(!kinds(&format!("{made}\ntask t1 child=a.1 item=w1")).contains("work_item.delegated"));
}

#[test]
fn a_result_comes_from_its_task() {
    let mut story = Story::begin();
    for line in ["operator hi", "task t1", "task t1 runs", "task t1 ends failed"] {
        story.tell(line).unwrap();
    }
    let message =
        story.state.planes.queue.entries().find(|entry| entry.message.task_id().is_some()).unwrap().message.clone();
    let message = serde_json::to_value(&*message).unwrap();
    assert_eq!(message["origin"], serde_json::json!({ "kind": "task", "id": "t1" }));
    assert_eq!(message["text"], "Task t1 (make) is failed, exit code 0");
}

#[test]
fn blocking_tasks_are_counted_while_they_are_open() {
    let mut story = Story::begin();
    story.tell("operator hi").unwrap();
    let mut counts = Vec::new();
    for name in ["t1", "t2"] {
        let task = TaskCreated::of_command(TaskId::new(name), Command::default());
        story.input(Input::CreateTask(TaskCreated { wait_policy: WaitPolicy::Blocking, ..task }));
        counts.push(story.state.planes.tasks.blocking());
    }
    story.tell("task t3").unwrap();
    for line in ["task t1 runs", "task t1 ends", "task t3 ends", "task t2 ends failed"] {
        story.tell(line).unwrap();
        counts.push(story.state.planes.tasks.blocking());
    }
    assert_eq!(counts, [1, 2, 2, 1, 1, 0]);
}

#[test]
fn a_late_report_asks_for_nothing() {
    check(
        "task t1
         task t1 runs
         ---
         task t1
         effects
         task t1 ends
         task t1 ends
         effects",
        "t1 ignored queued: created_twice
         unchanged
         t1 completed
         queued m1 task_result
         result of t1 in m1
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation shows t1
         t1 ignored completed: task_is completed
         unchanged",
    );
}

#[test]
fn a_command_whose_turn_was_aborted_is_ended_when_it_runs() {
    check(
        "operator hi
         round Tool make
         task t1 call=call1
         abort
         ---
         task t1 runs",
        "t1 running
         t1 cancelling",
    );
}

#[test]
fn a_persons_command_is_a_task_of_an_agent_that_runs() {
    check(
        "stop
         ---
         person RunCommand make
         start
         person RunCommand make
         answer
         facts
         effects",
        r#"refused stopped
         control start awake_idle
         Sleep no_pending_scheduler_facts
         task1 created
         {"child_agent_id":null,"command":"make","created_at":"2026-01-01T00:00:00.005Z","ended_at":null,"evidence":[],"exit_code":null,"granted":null,"kind":"command_task","output":{"bytes":0,"truncated":false},"recovery":null,"signal":null,"status":"queued","summary":"make","task_id":"task1","used":null,"work_item_id":null}
         task.created {"task_id":"task1","task_kind":"command_task","wait_policy":"background","summary":"make","command":"make"}
         start task1 make"#,
    );
}

#[test]
fn a_list_of_tasks_is_shown_whole() {
    check(
        "task t1
         task t2
         task t1 ends
         ---
         person ListTasks
         answer",
        r#"{"items":[{"child_agent_id":null,"command":null,"created_at":"2026-01-01T00:00:00.002Z","ended_at":"2026-01-01T00:00:00.004Z","evidence":[],"exit_code":0,"granted":null,"kind":"command_task","output":{"bytes":0,"truncated":false},"recovery":null,"signal":null,"status":"completed","summary":"make","task_id":"t1","used":null,"work_item_id":null},{"child_agent_id":null,"command":null,"created_at":"2026-01-01T00:00:00.003Z","ended_at":null,"evidence":[],"exit_code":null,"granted":null,"kind":"command_task","output":{"bytes":0,"truncated":false},"recovery":null,"signal":null,"status":"queued","summary":"make","task_id":"t2","used":null,"work_item_id":null}],"truncated":false}"#,
    );
}

#[test]
fn the_end_of_a_task_is_recorded_whole() {
    check(
        "task t1
         ---
         task t1 ends
         facts",
        r#"t1 completed
         queued m1 task_result
         result of t1 in m1
         StartModelTurn model_reentry_message m1 t1
         turn local_continuation shows t1
         task.completed {"task_id":"t1","exit_code":0}
         message.queued {"message_id":"m1","kind":"task_result","origin":{"kind":"task","id":"t1"},"trust":"trusted_system","priority":"next","text":"Task t1 (make) is completed, exit code 0","task_id":"t1"}
         task.result_queued {"task_id":"t1","message_id":"m1"}
         posture.changed {"boundary":"message_admission","previous_status":"asleep","next_status":"awake_idle","task_ids":[],"evidence":["message_queued m1"]}
         scheduler.decision {"kind":"StartModelTurn","reason":"model_reentry_message","boundary":"message","model_reentry":true,"liveness_only":false,"message_id":"m1","task_id":"t1","ignored":[],"evidence":["message_queued m1 seq 9","local_continuation","no_wait_open"]}
         message.dequeued {"message_id":"m1"}
         turn.started {"turn_id":"turn1","exec_id":"exec1","turn_index":1,"message_id":"m1","continuation":{"trigger_kind":"task_result","class":"local_continuation","model_reentry":true,"matched_waiting_reason":false,"evidence":["no_wait_open"]},"presents":["t1"]}
         turn.round_started {"exec_id":"exec1","round":1}"#,
    );
}
