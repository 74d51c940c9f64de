//! Commands, from their call to the turn that reads what came of them.

use std::fs;

use serde_json::{Value, json};

use crate::hands::{LONG_MS, TASK, calls, exec, lines, result, seq_of, tool, until_there};
use crate::served::{Served, of_kind, until};

#[test]
fn a_stop_in_the_moment_of_the_first_command_keeps_no_folder() {
    let mut served = Served::start();
    let folder = served.folder("work");
    served.create_in("next", &folder, &json!([]));
    served.script("next", &json!({ "rounds": [calls(exec("echo in", LONG_MS)), { "text": "Done." }], "loop": true }));
    for n in 0..6 {
        let first = format!("first-{n}");
        served.create_in(&first, &folder, &json!([calls(exec("sleep 600", LONG_MS)), { "text": "Never said." }]));
        served.send(&first, "go");
        served.until_called(&first, "ExecCommand", 1);
        served.post(&format!("/v1/agents/{first}/stop"), &json!({}));
        until("a folder that is free", || {
            let message = served.send("next", "your turn");
            served.until_told("next", &message);
            let results = served.results("next", "ExecCommand");
            (results.last().unwrap()["stdout"] == "in\n").then_some(())
        });
        served.post("/v1/agents/next/stop", &json!({}));
        served.post("/v1/agents/next/start", &json!({}));
    }
    served.until_no_process();
    served.stop_and_verify();
}

#[test]
fn a_command_ends_in_its_call_or_goes_on_as_a_task() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let long = format!("{}; echo finished; exit 5", until_there("go"));
    let again = tool("ExecCommand", json!({ "cmd": long, "yield_time_ms": 50, "start_new": true }));
    let wait = tool("WaitFor", json!({ "wake": "task_result", "resource": result(TASK, 3), "reason": "the build" }));
    let mut rounds = vec![
        calls(exec("echo out; echo err >&2; exit 3", LONG_MS)),
        calls(exec(&long, 50)),
        calls(exec(&long, 50)),
        calls(again),
        calls(wait),
        json!({ "text": "Never said.", "delay_ms": LONG_MS }),
        json!({ "text": "And the other." }),
    ];
    served.create_in("worker", &folder, &json!(rounds));
    served.send("worker", "build it");
    let wait = served.until_fact("worker", "wait.created", |_| true);
    let results = served.results("worker", "ExecCommand");
    let first = &results[0];
    assert_eq!((&first["disposition"], &first["exit_code"]), (&json!("completed"), &json!(3)));
    assert_eq!((&first["stdout"], &first["stderr"]), (&json!("out\n"), &json!("err\n")));
    let dispositions: Vec<&Value> = results[1..].iter().map(|result| &result["disposition"]).collect();
    assert_eq!(dispositions, ["promoted_to_task", "already_running", "promoted_to_task"]);
    let task = |n: usize| results[n].pointer(TASK).unwrap().as_str().unwrap().to_owned();
    assert_eq!(task(1), task(2));
    assert_ne!(task(1), task(3));
    assert!(wait["resource"].to_string().contains(&task(1)), "{wait}");
    let summary = served.until_asleep("worker");
    assert_eq!(summary["scheduling_posture"], "waiting_for_task");
    assert_eq!(summary["decision"]["kind"], "WaitForTask");
    // The wait, and the two commands whose ends are still to come.
    assert_eq!(served.get("/v1/agents/worker/why")["waiting_on"].as_array().unwrap().len(), 3);

    fs::write(folder.join("go"), "").unwrap();
    let (one, other) = (task(1), task(3));
    for task in [&one, &other] {
        let task = served.until_task("worker", task, "failed");
        assert_eq!((&task["exit_code"], &task["output"]["bytes"]), (&json!(5), &json!(9)));
    }
    // Taken, but not yet read: still owed, also after a crash, and it is the same delivery then.
    let turn = until("a turn about a result", || {
        let carriers = served.facts("worker", "task.result_queued");
        let turns = served.facts("worker", "turn.started");
        carriers.into_iter().find(|carrier| turns.iter().any(|turn| turn["message_id"] == carrier["message_id"]))
    });
    let owed = |served: &Served| {
        let summary = served.get("/v1/agents/worker");
        let owed = summary["owed_results"].as_array().unwrap().clone();
        owed.iter().map(|task| task["task_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(owed(&served).contains(&turn["task_id"].as_str().unwrap().to_owned()));
    served.kill();
    rounds[5] = json!({ "text": "The first is done." });
    served.script("worker", &json!({ "rounds": rounds }));
    served.up();
    for task in [&one, &other] {
        served.until_fact("worker", "task.result_delivered", |fact| fact["task_id"] == task.as_str());
    }
    served.until_asleep("worker");
    assert_eq!(owed(&served), Vec::<String>::new());
    let events = served.events("worker");
    for task in [&one, &other] {
        let of_it = |data: &Value| data["task_id"] == task.as_str();
        let ended = seq_of(&events, "task.failed", of_it);
        let queued = seq_of(&events, "message.queued", of_it);
        assert!(ended < queued, "the end is recorded before the result is queued");
        assert!(queued < seq_of(&events, "task.result_queued", of_it));
        let messages = of_kind(&events, "message.queued");
        let carriers: Vec<&Value> = messages.iter().filter(|message| of_it(message)).collect();
        assert_eq!(carriers.len(), 1, "one result is one message");
        let text = carriers[0]["text"].as_str().unwrap();
        assert!(text.contains("exit code 5") && text.contains("finished"), "{text}");
        let delivered = of_kind(&events, "task.result_delivered");
        assert_eq!(delivered.iter().filter(|fact| of_it(fact)).count(), 1);
    }
    served.stop_and_verify();
}

#[test]
fn the_output_of_a_task_is_read_and_settles_its_result() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let task = |back| result(TASK, back);
    let rounds = json!([
        calls(exec(&format!("printf abc; {}; printf def", until_there("go")), 0)),
        calls(tool("TaskOutput", json!({ "task_id": task(1), "block": false }))),
        calls(tool("TaskOutput", json!({ "task_id": task(2), "timeout_ms": 20 }))),
        calls(tool("TaskOutput", json!({ "task_id": task(3), "timeout_ms": LONG_MS }))),
        calls(tool("TaskOutput", json!({ "task_id": task(4), "offset": 3 }))),
        { "text": "Read." },
    ]);
    served.create_in("worker", &folder, &rounds);
    let message = served.send("worker", "read it");
    served.until_called("worker", "TaskOutput", 3);
    fs::write(folder.join("go"), "").unwrap();
    assert_eq!(served.until_told("worker", &message)["text"], "Read.");
    let results = served.results("worker", "TaskOutput");
    let statuses: Vec<&Value> = results.iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, ["not_ready", "timeout", "ready", "ready"]);
    assert!("abc".starts_with(results[0]["output"].as_str().unwrap()));
    assert_eq!(results[1]["task"]["status"], "running");
    assert_eq!(results[2]["output"], "abcdef");
    assert_eq!((&results[2]["task"]["status"], &results[2]["task"]["exit_code"]), (&json!("completed"), &json!(0)));
    assert_eq!((&results[3]["output"], &results[3]["next_offset"]), (&json!("def"), &json!(6)));
    // It was read: nobody is told again, and what would have told it is gone with a reason.
    let summary = served.until_asleep("worker");
    assert_eq!(summary["owed_results"], json!([]));
    let events = served.events("worker");
    assert_eq!(of_kind(&events, "turn.started").len(), 1);
    assert_eq!(of_kind(&events, "task.result_delivered").len(), 1);
    let carrier = &of_kind(&events, "task.result_queued")[0]["message_id"];
    let dropped = of_kind(&events, "message.dropped");
    assert_eq!((dropped.len(), &dropped[0]["message_id"]), (1, carrier));
    assert!(dropped[0].to_string().contains("result_read"), "{dropped:?}");
    // A person reads the same.
    let id = results[0]["task"]["task_id"].as_str().unwrap();
    let read = served.get(&format!("/v1/agents/worker/tasks/{id}/output?offset=2"));
    assert_eq!((&read["status"], &read["output"], &read["next_offset"]), (&json!("ready"), &json!("cdef"), &json!(6)));
    served.stop_and_verify();
}

#[test]
fn a_task_is_written_to_and_stopped() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let talks = tool(
        "ExecCommand",
        json!({ "cmd": "read line; echo got $line; echo heard > heard; cat",
        "yield_time_ms": 0, "accepts_input": true }),
    );
    let rounds = json!([
        calls(talks),
        calls(tool("TaskInput", json!({ "task_id": result(TASK, 1), "input": "hello\n" }))),
        calls(exec(&until_there("heard"), LONG_MS)),
        calls(tool("TaskStop", json!({ "task_id": result(TASK, 3) }))),
        calls(tool("TaskOutput", json!({ "task_id": result(TASK, 4), "timeout_ms": LONG_MS }))),
        { "text": "Stopped." },
    ]);
    served.create_in("worker", &folder, &rounds);
    let message = served.send("worker", "talk");
    served.until_told("worker", &message);
    assert_eq!(served.results("worker", "TaskInput"), [json!({ "accepted": true, "bytes": 6 })]);
    let stopped = &served.results("worker", "TaskStop")[0];
    assert_eq!((&stopped["forced"], &stopped["task"]["status"]), (&json!(false), &json!("cancelling")));
    let read = &served.results("worker", "TaskOutput")[0];
    assert_eq!((&read["task"]["status"], &read["output"]), (&json!("cancelled"), &json!("got hello\n")));
    // A task that ignores the first request to stop is forced by the second; a person's commands are no different.
    let deaf = served.run_task("worker", "trap '' TERM; echo deaf > deaf; while :; do sleep 0.05; done");
    until("a deaf command", || folder.join("deaf").exists().then_some(()));
    assert_eq!(served.stop_task("worker", &deaf)["forced"], false);
    assert_eq!(served.stop_task("worker", &deaf)["forced"], true);
    let ended = served.until_task("worker", &deaf, "cancelled");
    assert_eq!(ended["signal"], 9, "{ended}");
    served.until_no_process();
    let refused = served.call("POST", &format!("/v1/agents/worker/tasks/{deaf}/stop"), &[], Some(&json!({})));
    assert_eq!((refused.status, &refused.body["code"]), (409, &json!("not_running")), "{}", refused.body);
    served.until_asleep("worker");
    served.stop_and_verify();
}

#[test]
fn stop_ends_commands_and_lets_go_of_the_folder() {
    let mut served = Served::start();
    let folder = served.folder("work");
    // It hears the signal and says a last word; another does not hear it at all.
    let hears = "trap 'echo late; echo late >> late; exit 0' TERM; echo on > hears; while :; do sleep 0.02; done";
    let deaf = "trap '' TERM; echo on > deaf; while :; do sleep 0.02; echo x >> deaf; done";
    let rounds = json!([
        calls(exec(hears, 0)),
        calls(exec(deaf, 0)),
        { "text": "Both run." }, { "text": "One ended." }, { "text": "Two ended." },
    ]);
    served.create_in("worker", &folder, &rounds);
    served.create_in("other", &folder, &json!([
        calls(exec("echo mine > mine", 300)), { "text": "Refused, and going on." },
        calls(exec("wc -l < deaf > count; cp count mine; sleep 0.1; wc -l < deaf", LONG_MS)), { "text": "Now it went." },
    ]));
    let message = served.send("worker", "run both");
    served.until_told("worker", &message);
    until("both commands", || (folder.join("hears").exists() && folder.join("deaf").exists()).then_some(()));
    // The folder is taken: the second agent is told by whom, and its turn goes on.
    let message = served.send("other", "work there too");
    assert_eq!(served.until_told("other", &message)["text"], "Refused, and going on.");
    let refused = &served.results("other", "ExecCommand")[0]["error"];
    assert_eq!(refused["code"], "occupied");
    assert!(refused["message"].as_str().unwrap().contains("worker"), "{refused}");
    assert!(!folder.join("mine").exists());

    let tasks: Vec<String> = served
        .facts("worker", "task.created")
        .iter()
        .map(|task| task["task_id"].as_str().unwrap().to_owned())
        .collect();
    let turns = served.facts("worker", "turn.started").len();
    served.post("/v1/agents/worker/stop", &json!({}));
    for task in &tasks {
        let ended = served.until_task("worker", task, "cancelled");
        assert!(ended["evidence"].as_array().unwrap().contains(&json!("stop")), "{ended}");
    }
    let released = served.until_fact("worker", "workspace.released", |_| true);
    assert_eq!((&released["workspace"], &released["error"]), (&json!(folder), &Value::Null));
    served.until_no_process();
    let events = served.events("worker");
    let released = seq_of(&events, "workspace.released", |_| true);
    for task in &tasks {
        assert!(
            seq_of(&events, "task.cancelled", |data| data["task_id"] == task.as_str()) < released,
            "nothing writes there"
        );
    }
    assert_eq!(lines(&folder.join("late")), 1);
    let message = served.send("other", "and now");
    assert_eq!(served.until_told("other", &message)["text"], "Now it went.");
    assert!(folder.join("mine").exists());

    // A result wakes no agent while the agent is stopped, in this daemon or the next; then it is delivered.
    served.kill_and_up();
    assert_eq!(served.facts("worker", "turn.started").len(), turns);
    let summary = served.get("/v1/agents/worker");
    assert_eq!(
        (&summary["agent"]["status"], summary["owed_results"].as_array().unwrap().len()),
        (&json!("stopped"), 2)
    );
    served.post("/v1/agents/worker/start", &json!({}));
    for task in &tasks {
        served.until_fact("worker", "task.result_delivered", |fact| fact["task_id"] == task.as_str());
    }
    served.until_asleep("worker");
    let said = served.facts("worker", "message.queued");
    let late = said.iter().find(|message| message["task_id"] == tasks[0].as_str()).unwrap();
    assert!(late["text"].as_str().unwrap().contains("late"), "{late}");
    served.stop_and_verify();
}

#[test]
fn completing_a_work_item_is_not_held_up_by_an_unrelated_task() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let rounds = json!([
        calls(exec(&until_there("go"), 0)),
        calls(tool("CreateWorkItem", json!({ "objective": "paint the fence", "plan_status": "ready" }))),
        calls(tool("PickWorkItem", json!({ "work_item_id": result("/work_item_id", 1) }))),
        calls(tool("CompleteWorkItem", json!({ "work_item_id": result("/work_item_id", 2), "report": "green" }))),
        { "text": "Painted." },
        { "text": "The other thing is done, too." },
    ]);
    served.create_in("worker", &folder, &rounds);
    let message = served.send("worker", "paint it");
    assert_eq!(served.until_told("worker", &message)["text"], "Painted.");
    let summary = served.until_asleep("worker");
    assert_eq!(served.facts("worker", "work_item.completed").len(), 1);
    assert_eq!((&summary["scheduling_posture"], &summary["closure"]["outcome"]), (&json!("idle"), &json!("completed")));
    let task = served.facts("worker", "task.created")[0]["task_id"].as_str().unwrap().to_owned();
    assert_eq!(served.task("worker", &task)["status"], "running");
    fs::write(folder.join("go"), "").unwrap();
    served.until_fact("worker", "task.result_delivered", |fact| fact["task_id"] == task.as_str());
    served.until_asleep("worker");
    assert_eq!(served.facts("worker", "turn.started").len(), 2);
    served.stop_and_verify();
}

#[test]
fn a_word_in_between_keeps_what_a_long_call_did() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let rounds = json!([
        calls(exec(&format!("echo began >> effects; {}; echo ended >> effects; exit 7", until_there("go")), LONG_MS)),
        { "text": "Both." },
    ]);
    served.create_in("worker", &folder, &rounds);
    let message = served.send("worker", "take long");
    until("the command", || (lines(&folder.join("effects")) == 1).then_some(()));
    let word = served.send_as("worker", "hurry", "interject");
    let statuses = |served: &Served| {
        let messages = served.items("/v1/agents/worker/messages");
        let of = |id: &str| messages.iter().find(|message| message["message_id"] == id).unwrap()["status"].clone();
        (of(&message), of(&word))
    };
    assert_eq!(statuses(&served), (json!("dequeued"), json!("queued")), "it waits for a safe point");
    fs::write(folder.join("go"), "").unwrap();
    assert_eq!(served.until_told("worker", &message)["text"], "Both.");
    served.until_asleep("worker");
    assert_eq!(statuses(&served), (json!("processed"), json!("interjected")));
    assert_eq!(served.results("worker", "ExecCommand")[0]["exit_code"], 7);
    let joined = &served.facts("worker", "message.interjected")[0];
    assert_eq!((&joined["message_id"], &joined["joined"]), (&json!(word), &json!(message)));
    let events = served.events("worker");
    assert!(seq_of(&events, "tool.finished", |_| true) < seq_of(&events, "message.interjected", |_| true));
    assert_eq!((lines(&folder.join("effects")), of_kind(&events, "turn.started").len()), (2, 1));
    served.stop_and_verify();
}
