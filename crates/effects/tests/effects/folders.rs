//! Locks on folders: one agent writes in a folder at a time, and another one waits for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_effects::Executor;
use abide_effects::executor::Job;
use abide_kernel::effect::{CommandEffect, Effect, WorkspaceEffect};
use abide_kernel::id::{AgentId, TaskId};
use abide_kernel::input::Input;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::tool::Command;
use abide_kernel::vocabulary::{TaskStatus, ToolStatus};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::calls::run;
use crate::executor::{Stage, result};

/// Agents of one daemon in folders outside of its home.
struct Ground {
    stage: Stage,
    folder: TempDir,
}

impl Ground {
    fn new() -> Ground {
        Ground { stage: Stage::new(), folder: TempDir::new().unwrap() }
    }

    fn path(&self, below: &str) -> PathBuf {
        let path = self.folder.path().canonicalize().unwrap().join(below);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn call(&self, who: &str, folder: &Path, tool: &str, input: Value) -> Job {
        call(&self.stage.executor, who, folder, tool, input)
    }

    fn exec(&self, who: &str, folder: &Path, cmd: &str, yield_ms: u64) -> Job {
        self.call(who, folder, "ExecCommand", json!({ "cmd": cmd, "yield_time_ms": yield_ms }))
    }

    fn write(&self, who: &str, folder: &Path) -> Job {
        self.call(who, folder, "WriteFile", json!({ "path": who, "content": "x" }))
    }

    /// Lets go of the folder, as the end of a turn does.
    async fn end_turn(&self, who: &str, folder: &Path) -> Vec<Input> {
        let effect =
            Effect::Workspace(WorkspaceEffect::Release { workspace: folder.display().to_string(), action: None });
        self.stage.executor.perform(&agent(who), effect).unwrap().await
    }
}

fn agent(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

fn call(executor: &Executor, who: &str, folder: &Path, tool: &str, input: Value) -> Job {
    let place = ToolPlacement { configured: Some(folder.display().to_string()), ..ToolPlacement::default() };
    run(executor, &agent(who), &format!("exec_{who}"), &format!("call_{who}"), place).job(tool, input)
}

fn code(inputs: &[Input]) -> Value {
    result(inputs).1["error"]["code"].clone()
}

fn is_done(inputs: &[Input]) {
    let (status, result) = result(inputs);
    assert_eq!(status, ToolStatus::Completed, "{result}");
}

#[tokio::test(start_paused = true)]
async fn a_folder_is_held_until_the_turn_ends_and_readers_do_not_wait() {
    let ground = Ground::new();
    let folder = ground.path("");
    let written = ground.write("ada", &folder).await;
    is_done(&written);
    assert!(written.iter().any(|input| matches!(input, Input::OccupyWorkspace { .. })), "{written:?}");
    // Readers neither wait nor take a lock.
    let began = Instant::now();
    for (tool, input) in [
        ("ReadFile", json!({ "path": "ada" })),
        ("Glob", json!({ "pattern": "*" })),
        ("Grep", json!({ "pattern": "x" })),
    ] {
        let read = ground.call("ben", &folder, tool, input).await;
        is_done(&read);
        assert_eq!(read.len(), 1, "{read:?}");
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    // A writing tool waits ten seconds, a command as long as it says.
    let refused = ground.write("ben", &folder).await;
    assert_eq!((code(&refused), began.elapsed().as_secs()), (json!("occupied"), 10));
    let error = &result(&refused).1["error"];
    assert!(error["message"].as_str().unwrap().starts_with("ada holds "), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("mode worktree"), "{error}");
    let began = Instant::now();
    assert_eq!(code(&ground.exec("ben", &folder, "true", 300).await), json!("occupied"));
    assert_eq!(began.elapsed().as_millis(), 300);
    let released = ground.end_turn("ada", &folder).await;
    assert!(matches!(released.as_slice(), [Input::ReleaseWorkspace { error: None, .. }]), "{released:?}");
    is_done(&ground.write("ben", &folder).await);
}

#[tokio::test]
async fn inside_and_around_count_and_beside_does_not() {
    let ground = Ground::new();
    let middle = ground.path("middle");
    is_done(&ground.write("ada", &middle).await);
    for (below, free) in [("", false), ("middle/inner", false), ("middle-too", true)] {
        let folder = ground.path(below);
        let tried = ground.exec("ben", &folder, "true", 0).await;
        assert_eq!(code(&tried) != json!("occupied"), free, "{below}");
    }
    // The same agent may go on inside.
    is_done(&ground.write("ada", &ground.path("middle/inner")).await);
}

#[tokio::test]
async fn writers_take_turns_in_the_order_in_which_they_came() {
    let ground = Ground::new();
    let folder = ground.path("");
    is_done(&ground.write("ada", &folder).await);
    let second = tokio::spawn(ground.exec("ben", &folder, "echo ben >> order", 60_000));
    waits(&ground, "ben", &folder).await;
    let third = tokio::spawn(ground.exec("cyd", &folder, "echo cyd >> order", 60_000));
    waits(&ground, "cyd", &folder).await;
    // The next turn of the first comes at once, and is behind them all the same.
    let end = ground.stage.executor.perform(
        &agent("ada"),
        Effect::Workspace(WorkspaceEffect::Release { workspace: folder.display().to_string(), action: None }),
    );
    let again = tokio::spawn(ground.exec("ada", &folder, "echo ada >> order", 60_000));
    end.unwrap().await;
    is_done(&second.await.unwrap());
    assert!(!third.is_finished() && !again.is_finished());
    ground.end_turn("ben", &folder).await;
    is_done(&third.await.unwrap());
    ground.end_turn("cyd", &folder).await;
    is_done(&again.await.unwrap());
    assert_eq!(fs::read_to_string(folder.join("order")).unwrap(), "ben\ncyd\nada\n");
}

/// Until a call of the agent waits for its folder.
async fn waits(ground: &Ground, who: &str, folder: &Path) {
    let place = ToolPlacement { configured: Some(folder.display().to_string()), ..ToolPlacement::default() };
    while ground.stage.executor.folder_use(&agent(who), &place).await.awaited.is_none() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_task_keeps_the_folder_until_its_end_is_durable() {
    let ground = Ground::new();
    let folder = ground.path("");
    let promoted = ground.exec("ada", &folder, "sleep 1000", 0).await;
    let task_id = TaskId::new(result(&promoted).1["task_handle"]["task_id"].as_str().unwrap());
    let end = Effect::Workspace(WorkspaceEffect::Release { workspace: folder.display().to_string(), action: None });
    let end = tokio::spawn(ground.stage.executor.perform(&agent("ada"), end).unwrap());
    assert_eq!(code(&ground.exec("ben", &folder, "true", 50).await), json!("occupied"));
    let waiting = tokio::spawn(ground.exec("ben", &folder, "true", 60_000));
    waits(&ground, "ben", &folder).await;
    assert!(!end.is_finished() && !waiting.is_finished());
    assert!(ground.stage.executor.perform(&agent("ada"), Effect::Command(CommandEffect::Close { task_id })).is_none());
    is_done(&waiting.await.unwrap());
    assert_eq!(end.await.unwrap().len(), 1);
}

/// A call that is cut off while it waits leaves the line; one that is cut off at work leaves the folder.
#[tokio::test]
async fn a_call_that_is_cut_off_holds_nobody_up() {
    let ground = Ground::new();
    let folder = ground.path("");
    let endless = tokio::spawn(ground.exec("ada", &folder, "echo on > on; sleep 1000", 60_000));
    while !folder.join("on").exists() {
        tokio::task::yield_now().await;
    }
    let waiting = tokio::spawn(ground.exec("ben", &folder, "true", 60_000));
    waits(&ground, "ben", &folder).await;
    let third = tokio::spawn(ground.exec("cyd", &folder, "true", 60_000));
    waits(&ground, "cyd", &folder).await;
    waiting.abort();
    endless.abort();
    is_done(&third.await.unwrap());
}

/// A person's task that waits for a folder can be stopped, and never runs.
#[tokio::test]
async fn a_task_that_waits_for_a_folder_is_stopped_at_once() {
    let ground = Ground::new();
    let folder = ground.path("");
    is_done(&ground.write("ada", &folder).await);
    let place = ToolPlacement { configured: Some(folder.display().to_string()), ..ToolPlacement::default() };
    let command = Box::new(Command { command: "echo ben > ben".to_owned(), ..Command::default() });
    let (task_id, executor) = (TaskId::new("task_1"), &ground.stage.executor);
    let start = Effect::Command(CommandEffect::Start { task_id: task_id.clone(), command, place: Box::new(place) });
    let start = tokio::spawn(executor.perform(&agent("ben"), start).unwrap());
    waits(&ground, "ben", &folder).await;
    assert!(
        executor
            .perform(&agent("ben"), Effect::Command(CommandEffect::End { task_id, force: false }))
            .unwrap()
            .await
            .is_empty()
    );
    let said = start.await.unwrap();
    assert!(matches!(said.as_slice(), [Input::EndTask { status: TaskStatus::Cancelled, .. }]), "{said:?}");
    ground.end_turn("ada", &folder).await;
    is_done(&ground.write("cyd", &folder).await);
    assert!(!folder.join("ben").exists());
}

/// Neither does one that failed for another reason.
#[tokio::test]
async fn a_call_that_fails_lets_go() {
    let ground = Ground::new();
    let folder = ground.path("");
    let wrong = json!({ "cmd": "true", "workdir": "nowhere" });
    assert_eq!(code(&ground.call("ada", &folder, "ExecCommand", wrong).await), json!("no_workdir"));
    is_done(&ground.write("ben", &folder).await);
}

#[tokio::test]
async fn two_homes_see_each_other_in_a_folder() {
    let (here, there) = (Ground::new(), Stage::new());
    let folder = here.path("");
    is_done(&here.write("ada", &folder).await);
    let write = || call(&there.executor, "ben", &folder, "ExecCommand", json!({ "cmd": "true", "yield_time_ms": 0 }));
    let refused = write().await;
    assert_eq!(code(&refused), json!("occupied"));
    let who = format!("process {}", std::process::id());
    assert!(result(&refused).1["error"]["message"].as_str().unwrap().contains(&who), "{refused:?}");
    let place = ToolPlacement { configured: Some(folder.display().to_string()), ..ToolPlacement::default() };
    assert!(there.executor.folder_use(&agent("ben"), &place).await.held_by.is_some());
    let waiting =
        tokio::spawn(call(&there.executor, "ben", &folder, "WriteFile", json!({ "path": "b", "content": "" })));
    here.end_turn("ada", &folder).await;
    is_done(&waiting.await.unwrap());
    assert_eq!(code(&here.exec("ada", &folder, "true", 0).await), json!("occupied"));
}

/// An agent that was given no folder has one in the home, which only those that it made may share.
#[tokio::test]
async fn a_child_works_in_the_own_folder_of_the_agent_that_made_it() {
    let ground = Ground::new();
    let call = |who: &str, place: ToolPlacement| {
        let (who, exec, call) = (agent(who), format!("exec_{who}"), format!("call_{who}"));
        run(&ground.stage.executor, &who, &exec, &call, place)
            .job("ExecCommand", json!({ "cmd": "cat made || echo here > made" }))
    };
    is_done(&call("ada", ToolPlacement::default()).await);
    let own = ground.stage.executor.workspace_of(&agent("ada"), &ToolPlacement::default());
    ground.end_turn("ada", &own).await;
    let configured = Some(own.display().to_string());
    let child =
        ToolPlacement { configured: configured.clone(), makers: vec![agent("ada")], ..ToolPlacement::default() };
    let ran = call("ada.1", child).await;
    assert_eq!(result(&ran).1["stdout"], "here\n", "{ran:?}");
    ground.end_turn("ada.1", &own).await;
    assert_eq!(code(&call("eve", ToolPlacement { configured, ..ToolPlacement::default() }).await), "inside_home");
}
