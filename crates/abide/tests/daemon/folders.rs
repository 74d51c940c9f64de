//! Agents that work in the same folder: one writes at a time, readers never wait, and everybody is told who holds what.

use std::fs;

use serde_json::{Value, json};

use crate::hands::{LONG_MS, TASK, calls, exec, lines, result, tool, until_there};
use crate::served::{Served, until};

fn read(path: &str) -> Value {
    calls(tool("ReadFile", json!({ "path": path })))
}

fn write(path: &str) -> Value {
    calls(tool("WriteFile", json!({ "path": path, "content": "written\n" })))
}

/// The agent's answer.
fn told(served: &Served, agent: &str, text: &str) -> Value {
    let message = served.send(agent, text);
    served.until_told(agent, &message)["text"].clone()
}

fn why(served: &Served, agent: &str) -> Value {
    served.get(&format!("/v1/agents/{agent}/why"))
}

#[test]
fn an_agent_that_sleeps_with_nothing_to_do_holds_no_folder() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let writes = |text: &str| json!([calls(exec(&format!("echo {text} >> both"), 300)), { "text": "Written." }]);
    served.create_in("ada", &folder, &writes("ada"));
    served.create_in("ben", &folder, &writes("ben"));
    assert_eq!(told(&served, "ada", "write"), "Written.");
    served.until_fact("ada", "workspace.released", |fact| fact["error"].is_null());
    assert_eq!(served.get("/v1/agents/ada")["execution"]["occupied"], Value::Null);
    assert_eq!(told(&served, "ben", "write"), "Written.");
    assert_eq!(served.results("ben", "ExecCommand")[0]["exit_code"], 0);
    assert_eq!(fs::read_to_string(folder.join("both")).unwrap(), "ada\nben\n");
    served.stop_and_verify();
}

/// The holder's task runs on after its turn. Another agent reads meanwhile, is told who holds the folder when it wants to
/// write, and writes once the end of the task is recorded.
#[test]
fn a_task_keeps_the_folder_from_writers_and_not_from_readers() {
    let mut served = Served::start();
    let folder = served.folder("work");
    fs::write(folder.join("text"), "here\n").unwrap();
    served.create_in("ada", &folder, &json!([
        calls(exec(&format!("echo on > on; {}", until_there("go")), 0)), { "text": "It runs." }, { "text": "It ended." },
    ]));
    let ben = json!([
        read("text"),
        calls(tool("Grep", json!({ "pattern": "here" }))),
        calls(tool("Glob", json!({ "pattern": "*" }))),
        calls(exec("echo ben > ben", 300)),
        calls(tool("AgentGet", json!({}))),
        { "text": "Told who." },
        calls(exec("echo ben > ben", LONG_MS)),
        { "text": "Written." },
    ]);
    served.create_in("ben", &folder, &ben);
    assert_eq!(told(&served, "ada", "run"), "It runs.");
    until("the task", || folder.join("on").exists().then_some(()));
    assert_eq!(told(&served, "ben", "write"), "Told who.");
    assert_eq!(served.results("ben", "ReadFile")[0]["content"], "here\n");
    assert!(served.results("ben", "Grep")[0]["error"].is_null() && served.results("ben", "Glob")[0]["error"].is_null());
    let occupied = &served.results("ben", "ExecCommand")[0]["error"];
    let message = occupied["message"].as_str().unwrap();
    assert_eq!(occupied["code"], "occupied");
    assert!(message.contains("ada holds") && message.contains(" since 20"), "{message}");
    assert!(occupied["hint"].as_str().unwrap().contains("mode worktree"), "{occupied}");
    assert!(!folder.join("ben").exists());
    assert_eq!(served.results("ben", "AgentGet")[0]["execution"]["held_by"]["agent_id"], "ada");

    // Both sides can be asked.
    let ada = why(&served, "ada")["notes"].to_string();
    assert!(ada.contains("it holds") && ada.contains("since 20"), "{ada}");
    let ben = why(&served, "ben")["notes"].to_string();
    assert!(ben.contains("ada holds") && ben.contains("since 20"), "{ben}");

    // A person who gives the same folder to another agent is told.
    let made = served.post("/v1/agents", &json!({ "id": "cyd", "workspace": folder }));
    assert_eq!(made["execution"]["held_by"]["agent_id"], "ada", "{made}");
    let attached = served.call("POST", "/v1/agents/main/workspaces", &[], Some(&json!({ "path": folder })));
    assert_eq!(attached.status, 201, "{}", attached.body);
    assert_eq!(attached.body["held_by"]["agent_id"], "ada", "{}", attached.body);
    assert!(attached.body["held_by"]["since"].as_str().unwrap().starts_with("20"), "{}", attached.body);
    let said = served.place.run(&["agent", "create", "dan", "--workspace", folder.to_str().unwrap()]);
    assert!(said.err.contains("ada holds"), "{said:?}");
    let said = served.place.says(&["workspace", "attach", "--agent", "dan", folder.to_str().unwrap()]);
    assert!(said.contains("ada holds"), "{said}");

    fs::write(folder.join("go"), "").unwrap();
    let message = served.send("ben", "and now");
    assert_eq!(served.until_told("ben", &message)["text"], "Written.");
    assert!(folder.join("ben").exists());
    served.until_asleep("ada");
    assert_eq!(served.get("/v1/agents/dan")["execution"]["held_by"], Value::Null);
    served.stop_and_verify();
}

/// The waiting call is under way, and `why` says for what; when the holder is done, it runs.
#[test]
fn a_call_waits_its_turn_and_why_says_for_what() {
    let mut served = Served::start();
    let folder = served.folder("work");
    served.create_in(
        "ada",
        &folder,
        &json!([
            calls(exec(&format!("echo on > on; {}", until_there("go")), LONG_MS)), { "text": "Done." },
        ]),
    );
    served.create_in("ben", &folder, &json!([calls(exec("cp go mine", LONG_MS)), { "text": "Written." }]));
    let first = served.send("ada", "work");
    until("the command", || folder.join("on").exists().then_some(()));
    let second = served.send("ben", "work too");
    let explained = until("the wait", || {
        let why = why(&served, "ben");
        why["sentence"].as_str().unwrap().contains("waits for the folder").then_some(why)
    });
    let sentence = explained["sentence"].as_str().unwrap();
    assert!(sentence.contains(folder.to_str().unwrap()) && sentence.contains("ada holds since 20"), "{sentence}");
    let on = explained["waiting_on"].to_string();
    assert!(on.contains("the folder") && on.contains("ada"), "{on}");
    let holder = why(&served, "ada")["notes"].to_string();
    assert!(holder.contains("ben waits for it"), "{holder}");
    fs::write(folder.join("go"), "").unwrap();
    assert_eq!(served.until_told("ada", &first)["text"], "Done.");
    assert_eq!(served.until_told("ben", &second)["text"], "Written.");
    assert!(folder.join("mine").exists());
    served.stop_and_verify();
}

/// A stop reaches an agent that waits for a folder, and what it waited for never runs.
#[test]
fn an_agent_that_waits_for_a_folder_can_be_stopped() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let endless = format!("echo on > on; {}", until_there("go"));
    served.create_in("ada", &folder, &json!([calls(exec(&endless, 0)), { "text": "It runs." }, { "text": "Over." }]));
    served.create_in("ben", &folder, &json!([calls(exec("echo ben > ben", LONG_MS)), { "text": "Never said." }]));
    assert_eq!(told(&served, "ada", "run"), "It runs.");
    served.send("ben", "write");
    until("the wait", || {
        why(&served, "ben")["sentence"].as_str().unwrap().contains("waits for the folder").then_some(())
    });
    served.post("/v1/agents/ben/stop", &json!({}));
    assert_eq!(served.get("/v1/agents/ben")["agent"]["status"], "stopped");
    until("nobody waits", || (!why(&served, "ada")["notes"].to_string().contains("ben waits")).then_some(()));
    fs::write(folder.join("go"), "").unwrap();
    served.until_fact("ada", "workspace.released", |_| true);
    assert!(!folder.join("ben").exists());
    served.stop_and_verify();
}

#[test]
fn nothing_is_held_after_a_crash() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let endless = "echo on > on; while :; do sleep 0.05; done";
    served.create_in(
        "ada",
        &folder,
        &json!([calls(exec(endless, 0)), { "text": "It runs." }, { "text": "It was cut." }]),
    );
    served.create_in("ben", &folder, &json!([
        calls(exec("echo ben > ben", 0)), { "text": "Told who." }, calls(exec("echo ben > ben", 0)), { "text": "Written." },
    ]));
    assert_eq!(told(&served, "ada", "run"), "It runs.");
    until("the task", || folder.join("on").exists().then_some(()));
    assert_eq!(told(&served, "ben", "write"), "Told who.");
    assert_eq!(served.results("ben", "ExecCommand")[0]["error"]["code"], "occupied");
    served.kill_and_up();
    let message = served.send("ben", "and now");
    served.until_told("ben", &message);
    assert!(served.results("ben", "ExecCommand")[1]["error"].is_null());
    until("the file", || folder.join("ben").exists().then_some(()));
    served.until_fact("ada", "workspace.released", |fact| fact["evidence"] == json!(["process_ended"]));
    served.stop_and_verify();
}

/// A child in its parent's folder is an agent of its own. A parent that waits holds nothing; one whose task still runs
/// does, and the child is told so.
#[test]
fn a_parent_and_its_child_take_turns() {
    let mut served = Served::start_offering(&["child"]);
    let folder = served.folder("work");
    let child = json!([
        calls(exec("echo child >> both", 300)),
        calls(tool("TaskList", json!({}))),
        { "text": "The child is done." },
    ]);
    let model = served.script("child", &json!({ "rounds": child, "loop": true }));
    let spawn =
        || calls(tool("SpawnAgent", json!({ "message": "write", "workspace_mode": "inherit", "model": model })));
    let wait = || calls(tool("WaitFor", json!({ "wake": "task_result", "resource": result(TASK, 1), "reason": "it" })));
    let lead = json!([
        calls(exec("echo parent >> both", LONG_MS)), spawn(), wait(), { "text": "First." },
        calls(exec(&format!("echo on > on; {}", until_there("go")), 0)), spawn(), wait(), { "text": "Second." },
        { "text": "The task ended." },
    ]);
    served.create_in("lead", &folder, &lead);
    let message = served.send("lead", "go");
    let is_it = |brief: &Value| brief["message_id"] == message.as_str() && brief["kind"] == "result";
    assert_eq!(served.until_fact("lead", "brief.recorded", is_it)["text"], "First.");
    assert_eq!(fs::read_to_string(folder.join("both")).unwrap(), "parent\nchild\n");
    let message = served.send("lead", "and with a task");
    let is_it = |brief: &Value| brief["message_id"] == message.as_str() && brief["kind"] == "result";
    assert_eq!(served.until_fact("lead", "brief.recorded", is_it)["text"], "Second.");
    let children = served.items("/v1/agents/lead/children");
    let second = children[1]["child_agent_id"].as_str().unwrap();
    let refused = &served.results(second, "ExecCommand")[0]["error"];
    assert_eq!(refused["code"], "occupied", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("lead holds"), "{refused}");
    assert_eq!(lines(&folder.join("both")), 2);
    fs::write(folder.join("go"), "").unwrap();
    served.until_fact("lead", "task.completed", |_| true);
    served.stop_and_verify();
}

/// A file tool waits like a command, and so does a person's task.
#[test]
fn file_tools_and_tasks_of_people_wait_too() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let endless = format!("echo on > on; {}", until_there("go"));
    served.create_in("ada", &folder, &json!([calls(exec(&endless, 0)), { "text": "It runs." }, { "text": "Over." }]));
    served.create_in("ben", &folder, &json!([write("ben"), { "text": "Written." }]));
    served.create_in("cyd", &folder, &json!([{ "text": "Told of the task." }]));
    assert_eq!(told(&served, "ada", "run"), "It runs.");
    let message = served.send("ben", "write");
    until("the wait", || {
        why(&served, "ben")["sentence"].as_str().unwrap().contains("waits for the folder").then_some(())
    });
    let task = served.run_task("cyd", "echo cyd > cyd");
    assert!(!folder.join("ben").exists());
    fs::write(folder.join("go"), "").unwrap();
    assert_eq!(served.until_told("ben", &message)["text"], "Written.");
    served.until_task("cyd", &task, "completed");
    assert!(folder.join("ben").exists() && folder.join("cyd").exists());
    served.stop_and_verify();
}

/// Two daemons of the same machine know nothing of each other, but the kernel does.
#[test]
fn two_homes_share_a_folder_in_turns() {
    let (mut here, mut there) = (Served::start(), Served::start());
    let folder = here.folder("work");
    let endless = format!("echo on > on; {}", until_there("go"));
    here.create_in("ada", &folder, &json!([calls(exec(&endless, 0)), { "text": "It runs." }, { "text": "Over." }]));
    there.create_in("ben", &folder, &json!([
        calls(exec("echo ben > ben", 0)), { "text": "Told who." }, calls(exec("echo ben > ben", LONG_MS)), { "text": "Written." },
    ]));
    assert_eq!(told(&here, "ada", "run"), "It runs.");
    until("the task", || folder.join("on").exists().then_some(()));
    assert_eq!(told(&there, "ben", "write"), "Told who.");
    let refused = &there.results("ben", "ExecCommand")[0]["error"];
    assert_eq!(refused["code"], "occupied", "{refused}");
    let pid = here.daemon.as_ref().unwrap().pid();
    assert!(refused["message"].as_str().unwrap().contains(&format!("process {pid}")), "{refused}");
    // A daemon that is killed lets go.
    here.kill();
    assert_eq!(told(&there, "ben", "and now"), "Written.");
    assert!(folder.join("ben").exists());
    there.stop_and_verify();
}

/// Another folder at the same path is not the one that was meant: neither a stop nor a start says so, but a person can.
#[test]
fn a_folder_that_was_replaced_is_worked_in_once_a_person_attaches_it() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let try_it = || [calls(exec("echo ada > ada", LONG_MS)), read("ada"), json!({ "text": "Tried." })];
    served.create_in("ada", &folder, &json!([try_it(), try_it(), try_it()].concat()));
    assert_eq!(told(&served, "ada", "first"), "Tried.");
    served.post("/v1/agents/ada/stop", &json!({}));
    fs::rename(&folder, folder.with_file_name("old")).unwrap();
    fs::create_dir(&folder).unwrap();
    served.post("/v1/agents/ada/start", &json!({}));
    assert_eq!(told(&served, "ada", "second"), "Tried.");
    for tool in ["ExecCommand", "ReadFile"] {
        let refused = &served.results("ada", tool)[1]["error"];
        assert_eq!(refused["code"], "moved", "{tool}: {refused}");
    }
    assert!(!folder.join("ada").exists());
    served.place.says(&["workspace", "attach", "--agent", "ada", folder.to_str().unwrap()]);
    assert_eq!(told(&served, "ada", "third"), "Tried.");
    assert_eq!(served.results("ada", "ReadFile")[2]["content"], "ada\n");
    served.stop_and_verify();
}
