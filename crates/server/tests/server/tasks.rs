//! Commands that people start, read, write to and end.

use abide_kernel::fact::TaskCreated;
use abide_kernel::id::{AgentId, TaskId, WorkItemId};
use abide_kernel::input::Input;
use abide_kernel::tool::Command;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::http::Ask;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_is_a_task_from_the_start() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let task = daemon.post("/v1/agents/a/tasks", json!({ "cmd": "make\nall", "workdir": "src" })).await.is(201);
    assert_eq!((&task["kind"], &task["status"]), (&json!("command_task"), &json!("queued")));
    assert_eq!((&task["summary"], &task["command"]), (&json!("make"), &json!("make\nall")));
    let one = format!("/v1/agents/a/tasks/{}", task["task_id"].as_str().unwrap());
    assert_eq!(daemon.get(&one).await["task_id"], task["task_id"]);
    assert_eq!(daemon.items("/v1/agents/a/tasks").await[0]["task_id"], task["task_id"]);
    let read = daemon.get(&format!("{one}/output?wait_ms=1")).await;
    assert_eq!((&read["output"], &read["next_offset"]), (&json!("hi\n"), &json!(3)));
    assert_eq!(read["task"]["task_id"], task["task_id"]);
    assert_eq!(daemon.get(&format!("{one}/output?offset=3")).await["output"], "");
    let taken = daemon.post(&format!("{one}/input"), json!({ "input": "yes\n" })).await.is(200);
    assert_eq!(taken, json!({ "accepted": true, "bytes": 4 }));
    daemon.post(&format!("{one}/input"), json!({ "input": "full" })).await.refused(409, "input_full");
}

/// A panic is answered as well, and its connection takes the next request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_crashes_is_answered() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let task = daemon.post("/v1/agents/a/tasks", json!({ "cmd": "true" })).await.is(201);
    let input = format!("/v1/agents/a/tasks/{}/input", task["task_id"].as_str().unwrap());
    daemon.post(&input, json!({ "input": "panic" })).await.refused(503, "crashed");
    daemon.post(&input, json!({ "input": "yes" })).await.is(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_no_sense_is_named() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let task = daemon.post("/v1/agents/a/tasks", json!({ "cmd": "true" })).await.is(201);
    let input = format!("/v1/agents/a/tasks/{}/input", task["task_id"].as_str().unwrap());
    for (path, body, pointer) in [
        ("/v1/agents/a/tasks", json!({}), ""),
        ("/v1/agents/a/tasks", json!({ "cmd": 1 }), "/cmd"),
        ("/v1/agents/a/tasks", json!({ "cmd": " \n" }), "/cmd"),
        ("/v1/agents/a/tasks", json!({ "cmd": "a\0b" }), "/cmd"),
        ("/v1/agents/a/tasks", json!({ "cmd": "a", "workdir": "a\0" }), "/workdir"),
        ("/v1/agents/a/tasks", json!({ "cmd": "a", "workdir": "x".repeat(5_000) }), "/workdir"),
        ("/v1/agents/a/tasks", json!({ "cmd": "a", "shell": "zsh" }), "/shell"),
        (&input, json!({ "input": "" }), "/input"),
        (&input, json!({ "input": "x".repeat(65_537) }), "/input"),
        (&input, json!({ "input": "x", "eof": true }), "/eof"),
    ] {
        let problem = daemon.post(path, body.clone()).await.refused(422, "wrong_fields");
        assert_eq!(problem["pointer"], pointer, "{path}: {problem}");
    }
    let output = input.replace("/input", "/output");
    daemon.ask(Ask::get(&format!("{output}?wait_ms=25001"))).await.refused(422, "wrong_fields");
    for (method, path) in [("GET", ""), ("GET", "/output"), ("POST", "/stop")] {
        let ask = Ask::new(method, &format!("/v1/agents/a/tasks/task_none{path}"));
        daemon.ask(ask).await.refused(404, "not_found");
    }
    daemon.post("/v1/agents/a/tasks/task_none/input", json!({ "input": "x" })).await.refused(404, "not_found");
    daemon.post("/v1/agents/nobody/tasks", json!({ "cmd": "true" })).await.refused(404, "not_found");
    daemon.halt("a").await;
    let problem = daemon.post("/v1/agents/a/tasks", json!({ "cmd": "true" })).await.refused(409, "stopped");
    assert_eq!(problem["hint"], "start it first: abide agent start a");
}

/// A repeat of a request whose answer got lost must not run the task again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_under_a_key_starts_nothing() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let run = |cmd: &str| Ask::post("/v1/agents/a/tasks").json(json!({ "cmd": cmd })).key("once");
    let first = daemon.ask(run("make")).await.is(201);
    assert_eq!(daemon.ask(run("make")).await.is(201), first);
    daemon.ask(run("make clean")).await.refused(422, "key_reused");
    assert_eq!(daemon.items("/v1/agents/a/tasks").await.len(), 1);
    let kinds = daemon.kinds("a").await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "task.created").count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tasks_of_one_work_item_can_be_listed() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let loose = daemon.post("/v1/agents/a/tasks", json!({ "cmd": "true" })).await.is(201);
    let item = daemon.post("/v1/agents/a/work-items", json!({ "objective": "build", "plan_status": "needs_input" }));
    let item = item.await.is(201);
    let item = item["work_item_id"].as_str().unwrap();
    let agent = AgentId::new("a").unwrap();
    let mut of_item = Vec::new();
    for number in 1..=3 {
        let command = Command { command: "make".to_owned(), ..Command::default() };
        let task = TaskCreated::of_command(TaskId::new(format!("task_z{number}")), command);
        let work_item_id = Some(WorkItemId::new(item));
        daemon.app.host.ask(&agent, Input::CreateTask(TaskCreated { work_item_id, ..task })).await.unwrap();
        of_item.push(json!(format!("task_z{number}")));
    }
    let ids = |items: &[Value]| items.iter().map(|task| task["task_id"].clone()).collect::<Vec<_>>();
    let fitting = daemon.items(&format!("/v1/agents/a/tasks?work_item_id={item}")).await;
    assert_eq!(ids(&fitting), of_item);
    // A page at a time, too: what does not fit takes no place in it.
    let first = daemon.get(&format!("/v1/agents/a/tasks?work_item_id={item}&limit=2")).await;
    let next = first["next"].as_str().unwrap();
    let second = daemon.get(&format!("/v1/agents/a/tasks?work_item_id={item}&limit=2&after={next}")).await;
    let pages = [first["items"].as_array().unwrap().clone(), second["items"].as_array().unwrap().clone()].concat();
    assert_eq!((ids(&pages), &second["next"]), (of_item.clone(), &Value::Null));
    let all = ids(&daemon.items("/v1/agents/a/tasks").await);
    assert_eq!(all, [vec![loose["task_id"].clone()], of_item].concat());
    assert!(daemon.items("/v1/agents/a/tasks?work_item_id=work_none").await.is_empty());
    daemon.ask(Ask::get("/v1/agents/a/tasks?work_item_id=")).await.refused(400, "bad_query");
}
