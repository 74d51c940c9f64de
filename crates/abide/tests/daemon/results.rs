//! A result is owed until a turn has read it, and is read once, even if the agent or the daemon that waited for it crashed.

use std::fs;

use serde_json::{Value, json};

use crate::hands::{LONG_MS, TASK, calls, exec, result, tool, until_there};
use crate::served::{Served, of_kind};

fn wait_for_task(back: u64) -> Value {
    calls(tool("WaitFor", json!({ "wake": "task_result", "resource": result(TASK, back), "reason": "the build" })))
}

fn id(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap().to_owned()
}

/// Exactly one turn read it, nothing of it is owed, and no message about it is left.
fn read_once(served: &Served, agent: &str, task: &str) {
    served.until_fact(agent, "task.result_delivered", |fact| fact["task_id"] == task);
    let summary = served.until_asleep(agent);
    assert_eq!(summary["owed_results"], json!([]));
    let events = served.events(agent);
    let about = |kind: &str| of_kind(&events, kind).into_iter().filter(|fact| fact["task_id"] == task).count();
    assert_eq!(about("task.result_delivered"), 1);
    let turns = of_kind(&events, "turn.started");
    let showing = turns.iter().filter(|turn| turn["presents"].to_string().contains(task)).count();
    assert!(showing <= 1, "{turns:?}");
    assert!(about("message.queued") <= 1, "one result is one message");
    let open = served.items(&format!("/v1/agents/{agent}/messages"));
    assert!(open.iter().all(|message| !matches!(message["status"].as_str(), Some("queued" | "parked"))), "{open:?}");
}

#[test]
fn failure_01_a_result_that_comes_after_focus_moved() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let item = |back| result("/work_item_id", back);
    served.create_in(
        "worker",
        &folder,
        &json!([
            calls(tool("CreateWorkItem", json!({ "objective": "build it", "plan_status": "ready" }))),
            calls(tool("PickWorkItem", json!({ "work_item_id": item(1) }))),
            calls(exec(&until_there("go"), 0)),
            wait_for_task(1),
            { "text": "The other thing waits for a word." },
            { "text": "It is built." },
        ]),
    );
    served.send("worker", "build it");
    served.until_fact("worker", "wait.created", |_| true);
    served.until_asleep("worker");
    let other = json!({ "objective": "sweep", "plan_status": "needs_input" });
    let other = served.post("/v1/agents/worker/work-items", &other);
    let picked = served.post(&format!("/v1/agents/worker/work-items/{}/pick", id(&other, "work_item_id")), &json!({}));
    assert_eq!(picked["current"], true);
    let task = id(&served.facts("worker", "task.created")[0], "task_id");
    fs::write(folder.join("go"), "").unwrap();
    read_once(&served, "worker", &task);
    assert_eq!(served.get("/v1/agents/worker")["agent"]["current_work_item_id"], other["work_item_id"]);
    let wait = &served.items("/v1/agents/worker/waits")[0];
    assert_eq!(wait["status"], "triggered", "the wait was its own, wherever the focus is");
    served.stop_and_verify();
}

#[test]
fn a_result_that_comes_after_the_wait_was_cancelled() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let rounds = json!([
        calls(exec(&until_there("go"), 0)), wait_for_task(1),
        { "text": "Then I do not wait." }, { "text": "It is built." },
    ]);
    served.create_in("worker", &folder, &rounds);
    served.send("worker", "build it");
    let wait = served.until_fact("worker", "wait.created", |_| true);
    let path = format!("/v1/agents/worker/waits/{}", id(&wait, "waiting_intent_id"));
    assert_eq!(served.call("DELETE", &path, &[], None).status, 200);
    served.until_asleep("worker");
    let task = id(&served.facts("worker", "task.created")[0], "task_id");
    assert!(served.facts("worker", "task.result_delivered").is_empty());
    fs::write(folder.join("go"), "").unwrap();
    read_once(&served, "worker", &task);
    served.stop_and_verify();
}

#[test]
fn a_result_that_comes_after_a_restart() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let rounds =
        json!([calls(exec(&until_there("go"), 0)), wait_for_task(1), { "text": "It was cut off." }, { "text": "?" }]);
    served.create_in("worker", &folder, &rounds);
    served.send("worker", "build it");
    served.until_fact("worker", "wait.created", |_| true);
    served.until_asleep("worker");
    let task = id(&served.facts("worker", "task.created")[0], "task_id");
    served.kill_and_up();
    read_once(&served, "worker", &task);
    assert_eq!(served.task("worker", &task)["status"], "interrupted", "nobody knows how it would have ended");
    served.kill_and_up();
    read_once(&served, "worker", &task);
    assert_eq!(served.facts("worker", "turn.started").len(), 2);
    served.stop_and_verify();
}

#[test]
fn a_result_that_comes_before_the_wait_was_registered() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let rounds = json!([
        calls(exec(&until_there("go"), 0)),
        calls(exec(&until_there("recorded"), LONG_MS)),
        wait_for_task(2),
        { "text": "It had ended already." },
    ]);
    served.create_in("worker", &folder, &rounds);
    let message = served.send("worker", "build it");
    served.until_called("worker", "ExecCommand", 2);
    let task = id(&served.facts("worker", "task.created")[0], "task_id");
    fs::write(folder.join("go"), "").unwrap();
    served.until_task("worker", &task, "completed");
    fs::write(folder.join("recorded"), "").unwrap();
    assert_eq!(served.until_told("worker", &message)["text"], "It had ended already.");
    read_once(&served, "worker", &task);
    let waited = &served.results("worker", "WaitFor")[0];
    assert_eq!(waited["delivered"]["task_id"], task.as_str(), "{waited}");
    assert!(served.items("/v1/agents/worker/waits").is_empty(), "nothing had to be waited for");
    assert_eq!(served.facts("worker", "turn.started").len(), 1);
    served.stop_and_verify();
}
