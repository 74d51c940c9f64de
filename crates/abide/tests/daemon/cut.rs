//! `kill -9` in the middle of every kind of effect: what was cut off is said to be, nothing of it runs, nothing runs
//! twice, and the message that it was for gets one answer.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::hands::{LONG_MS, TASK, calls, exec, lines, result, tool};
use crate::served::{Served, of_kind, until};

/// The cut: what is under way in an agent of that name.
struct Cut {
    agent: &'static str,
    rounds: Vec<Value>,
    /// The script that the model plays after the restart, if it does not go on with the same one.
    after: Option<Vec<Value>>,
    /// The calls of its message, as they end.
    tools: &'static [(&'static str, &'static str)],
    /// A task of it is interrupted.
    task: bool,
}

/// A command that says in a file that it ran, and then does not end.
fn endless() -> String {
    "echo ran >> ran; while :; do sleep 0.05; done".to_owned()
}

/// These rounds; what tells of the end of a task has one of its own, whenever it comes.
fn script(rounds: &[Value]) -> Value {
    let told = json!({ "contains": "is interrupted", "rounds": [{ "text": "Told of its end." }] });
    json!({ "rounds": rounds, "when": [told] })
}

fn cuts() -> Vec<Cut> {
    let now = || json!({ "text": "After the cut." });
    let never = || json!({ "text": "Never said.", "delay_ms": LONG_MS });
    let wait = tool("TaskOutput", json!({ "task_id": result(TASK, 1), "timeout_ms": LONG_MS }));
    vec![
        Cut { agent: "model", rounds: vec![never()], after: Some(vec![now()]), tools: &[], task: false },
        Cut {
            agent: "inline",
            rounds: vec![calls(exec(&endless(), LONG_MS)), now()],
            after: None,
            tools: &[("ExecCommand", "unknown")],
            task: false,
        },
        Cut {
            agent: "promoted",
            rounds: vec![calls(exec(&endless(), 0)), never()],
            after: Some(vec![calls(exec(&endless(), 0)), now()]),
            tools: &[("ExecCommand", "completed")],
            task: true,
        },
        Cut {
            agent: "reading",
            rounds: vec![calls(exec(&endless(), 0)), calls(wait), now()],
            after: None,
            tools: &[("ExecCommand", "completed"), ("TaskOutput", "unknown")],
            task: true,
        },
        Cut {
            agent: "occupying",
            rounds: vec![calls(exec("echo ran >> ran", LONG_MS)), never()],
            after: Some(vec![calls(exec("echo ran >> ran", LONG_MS)), now()]),
            tools: &[("ExecCommand", "completed")],
            task: false,
        },
    ]
}

#[test]
fn every_kind_of_effect_is_cut_off_and_told() {
    let mut served = Served::start();
    let cuts = cuts();
    let folder = |served: &Served, agent: &str| -> PathBuf { served.folder(&format!("work-{agent}")) };
    let mut messages = Vec::new();
    for cut in &cuts {
        served.create_in(cut.agent, &folder(&served, cut.agent), &json!([]));
        served.script(cut.agent, &script(&cut.rounds));
        messages.push(served.send(cut.agent, "go on"));
    }
    // A person's own task has no turn around it.
    served.create_in("person", &folder(&served, "person"), &json!([{ "text": "Told of its end." }]));
    let own = served.run_task("person", &endless());
    for cut in &cuts {
        let rounds = if cut.agent == "inline" || cut.agent == "model" { 1 } else { 2 };
        match cut.agent {
            "reading" => served.until_called(cut.agent, "TaskOutput", 1),
            _ => until("rounds", || (served.facts(cut.agent, "turn.round_started").len() >= rounds).then_some(())),
        }
        if cut.agent != "model" {
            until("the command", || (lines(&folder(&served, cut.agent).join("ran")) == 1).then_some(()));
        }
    }
    until("the person's command", || (lines(&folder(&served, "person").join("ran")) == 1).then_some(()));
    served.until_task("person", &own, "running");
    assert!(served.processes().len() >= 4);
    served.kill();
    for cut in &cuts {
        if let Some(after) = &cut.after {
            served.script(cut.agent, &script(after));
        }
    }
    served.up();
    // Nothing of an earlier life runs by the time that anybody can ask.
    served.until_no_process();
    for (cut, message) in cuts.iter().zip(&messages) {
        check(&served, cut, message);
        assert_eq!(lines(&folder(&served, cut.agent).join("ran")), usize::from(cut.agent != "model"), "{}", cut.agent);
    }
    interrupted(&served, "person", &own);
    assert_eq!(lines(&folder(&served, "person").join("ran")), 1);
    // A folder that was locked is free, because its holder is gone.
    let released = served.until_fact("occupying", "workspace.released", |_| true);
    assert_eq!(released["evidence"], json!(["process_ended"]));
    served.create_in(
        "next",
        &folder(&served, "occupying"),
        &json!([calls(exec("echo next", LONG_MS)), { "text": "Mine." }]),
    );
    let message = served.send("next", "take it");
    served.until_told("next", &message);
    assert_eq!(served.results("next", "ExecCommand")[0]["stdout"], "next\n");
    served.stop_and_verify();
}

fn check(served: &Served, cut: &Cut, message: &str) {
    let agent = cut.agent;
    let told = served.until_told(agent, message);
    assert_eq!((&told["kind"], &told["text"]), (&json!("result"), &json!("After the cut.")), "{agent}");
    if cut.task {
        let task = served.facts(agent, "task.created")[0]["task_id"].as_str().unwrap().to_owned();
        interrupted(served, agent, &task);
    }
    let summary = served.until_asleep(agent);
    assert_eq!(summary["owed_results"], json!([]), "{agent}");
    let events = served.events(agent);
    let of_it = |kind: &str| -> Vec<Value> {
        of_kind(&events, kind).into_iter().filter(|data| data["message_id"] == message).collect()
    };
    assert_eq!(of_it("brief.recorded").len(), 1, "{agent}: one answer");
    assert_eq!(of_it("message.processed").len(), 1, "{agent}");
    let aborted = of_it("exec.aborted");
    assert_eq!((aborted.len(), &aborted[0]["reason"]), (1, &json!("cut")), "{agent}");
    let tools: Vec<(String, String)> = of_kind(&events, "tool.finished")
        .iter()
        .map(|fact| (fact["tool"].as_str().unwrap().to_owned(), fact["status"].as_str().unwrap().to_owned()))
        .collect();
    let wanted: Vec<(String, String)> =
        cut.tools.iter().map(|(tool, status)| ((*tool).to_owned(), (*status).to_owned())).collect();
    assert_eq!(tools, wanted, "{agent}");
    let restarts = of_kind(&events, "control.applied");
    assert!(restarts.iter().any(|fact| fact["action"] == "restart" && fact["boundary"] == "bootstrap"), "{agent}");
    // The moment before the crash can be asked for as well as now.
    let cut_at = events.iter().find(|event| event["kind"] == "exec.aborted").unwrap()["seq"].as_u64().unwrap();
    let before = served.get(&format!("/v1/agents/{agent}/why?at={}", cut_at - 1));
    assert_ne!(before["sentence"], served.get(&format!("/v1/agents/{agent}/why"))["sentence"], "{agent}");
}

fn interrupted(served: &Served, agent: &str, task: &str) {
    let ended = served.until_task(agent, task, "interrupted");
    let evidence = ended["evidence"].as_array().unwrap();
    assert_eq!(evidence[0], "restart", "{agent}: {ended}");
    served.until_fact(agent, "task.result_delivered", |fact| fact["task_id"] == task);
}

/// A file is written as a whole or not at all, at whichever moment it is cut off.
#[test]
fn a_file_that_was_being_written_is_whole() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let content = "all of it\n".repeat(200_000);
    for n in 0..4 {
        let agent = format!("writer-{n}");
        let path = folder.join(&agent);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("file"), "as it was\n").unwrap();
        let write = tool("WriteFile", json!({ "path": "file", "content": content }));
        served.create_in(&agent, &path, &json!([calls(write), { "text": "After the cut." }]));
        let message = served.send(&agent, "write it");
        served.until_called(&agent, "WriteFile", 1);
        served.kill_and_up();
        assert_eq!(served.until_told(&agent, &message)["text"], "After the cut.");
        let finished = served.facts(&agent, "tool.finished");
        assert_eq!(finished.len(), 1);
        let found = fs::read_to_string(path.join("file")).unwrap();
        match finished[0]["status"].as_str().unwrap() {
            "completed" => assert!(found == content),
            status => assert!(status == "unknown" && (found == content || found == "as it was\n"), "{status}"),
        }
        served.until_asleep(&agent);
        assert_eq!(served.facts(&agent, "brief.recorded").len(), 1);
    }
    served.stop_and_verify();
}
