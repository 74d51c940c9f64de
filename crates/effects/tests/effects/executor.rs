//! Effects carried out for an agent, as the engine asks for them: real commands in a real folder.

use std::fs;
use std::path::{Path, PathBuf};

use abide_effects::Executor;
use abide_effects::executor::{ExecutorOptions, Job};
use abide_effects::process::Bounds;
use abide_effects::sandbox::Mode;
use abide_kernel::effect::{CommandEffect, Effect};
use abide_kernel::id::{AgentId, TaskId};
use abide_kernel::input::Input;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::time::Time;
use abide_kernel::tool::Command;
use abide_kernel::vocabulary::{TaskStatus, ToolStatus};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::calls::run;

pub(crate) struct Stage {
    pub(crate) executor: Executor,
    pub(crate) home: TempDir,
    pub(crate) agent: AgentId,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        Stage::at(TempDir::new().unwrap())
    }

    pub(crate) fn at(home: TempDir) -> Stage {
        let moment = || (Time::EPOCH, std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0));
        let program = PathBuf::from(env!("CARGO_BIN_EXE_effects-stand-in"));
        let setup = ExecutorOptions {
            program,
            home: home.path().to_path_buf(),
            sandbox: Mode::Auto,
            bounds: Bounds::default(),
            environment: Vec::new(),
            moment,
        };
        Stage { executor: Executor::new(setup).unwrap(), home, agent: AgentId::new("main").unwrap() }
    }

    /// The call, handed out; it runs when the job does.
    fn call(&self, call: &str, tool: &str, input: Value) -> Job {
        run(&self.executor, &self.agent, "exec_1", call, ToolPlacement::default()).job(tool, input)
    }

    fn folder(&self) -> PathBuf {
        self.home.path().join("agents/main/workspace")
    }
}

/// The outcome of the call.
pub(crate) fn result(inputs: &[Input]) -> (ToolStatus, Value) {
    match inputs.last() {
        Some(Input::FinishTool { status, result, .. }) => (*status, result.0.clone()),
        other => panic!("a call ends with its outcome, not with {other:?}"),
    }
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_calls_of_a_round_follow_each_other_as_they_were_written() {
    let stage = Stage::new();
    let write = |call: &str, word: &str| {
        let cmd = format!("sleep 0.05; echo {word} >> said");
        stage.call(call, "ExecCommand", json!({ "cmd": cmd }))
    };
    // Handed out in order, and polled in another.
    let (first, second) = (write("call_1", "one"), write("call_2", "two"));
    let look = stage.call("call_3", "ReadFile", json!({ "path": "said" }));
    let look = tokio::spawn(look);
    let second = tokio::spawn(second);
    tokio::task::yield_now().await;
    let first = tokio::spawn(first);
    assert_eq!(result(&look.await.unwrap()).1["content"], "one\ntwo\n");
    assert_eq!(result(&first.await.unwrap()).0, ToolStatus::Completed);
    assert_eq!(result(&second.await.unwrap()).1["exit_code"], 0);
    assert_eq!(lines(&stage.folder().join("said")), ["one", "two"]);
}

#[tokio::test]
async fn a_call_that_was_given_up_holds_nobody_up() {
    let stage = Stage::new();
    let endless = tokio::spawn(stage.call("call_1", "ExecCommand", json!({ "cmd": "sleep 1000" })));
    let next = stage.call("call_2", "ExecCommand", json!({ "cmd": "echo on" }));
    endless.abort();
    assert_eq!(result(&next.await).1["stdout"], "on\n");
}

#[tokio::test]
async fn the_output_of_old_tasks_goes() {
    let stage = Stage::new();
    let tasks = stage.home.path().join("agents/main/tasks");
    for number in 0..300 {
        fs::create_dir_all(tasks.join(format!("task_0{number:03}"))).unwrap();
    }
    result(&stage.call("call_1", "ExecCommand", json!({ "cmd": "true" })).await);
    let left: Vec<_> = fs::read_dir(&tasks).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), abide_effects::limits::OUTPUTS_KEPT);
    assert!(left.iter().all(|name| name.to_str().unwrap() >= "task_0044"), "the newest stay");
}

#[tokio::test]
async fn nobody_moves_on_while_a_command_of_theirs_runs() {
    let stage = Stage::new();
    let elsewhere = TempDir::new().unwrap();
    let elsewhere = elsewhere.path().canonicalize().unwrap().display().to_string();
    let promoted = stage.call("call_1", "ExecCommand", json!({ "cmd": "sleep 1000", "yield_time_ms": 0 })).await;
    assert_eq!(result(&promoted).1["disposition"], "promoted_to_task");
    let moves = |call: &str| {
        let place = ToolPlacement { attached: vec![elsewhere.clone()], ..ToolPlacement::default() };
        run(&stage.executor, &stage.agent, "exec_1", call, place).job("UseWorkspace", json!({ "path": elsewhere }))
    };
    assert_eq!(result(&moves("call_2").await).1["error"]["code"], "in_use");
    let task_id = TaskId::new(result(&promoted).1["task_handle"]["task_id"].as_str().unwrap());
    assert!(stage.executor.perform(&stage.agent, Effect::Command(CommandEffect::Close { task_id })).is_none());
    assert_eq!(result(&moves("call_3").await).1["cwd"], *elsewhere);
}

#[tokio::test]
async fn a_model_gets_no_worktree_of_what_it_could_have_borrowed_from_anybody() {
    let stage = Stage::new();
    let ground = crate::workspace::Ground::new();
    let (theirs, work) = (ground.repo.join(".git"), ground.repo.parent().unwrap().join("work"));
    crate::workspace::put(&work.join("own.txt"), "own");
    crate::workspace::git(&work, &["init", "-q"]);
    crate::workspace::git(&work, &["add", "."]);
    crate::workspace::git(&work, &["commit", "-q", "-m", "own"]);
    let place = ToolPlacement { attached: vec![work.display().to_string()], ..ToolPlacement::default() };
    let take = |call: &str| {
        let input = json!({ "path": work, "mode": "worktree" });
        run(&stage.executor, &stage.agent, "exec_1", call, place.clone()).job("UseWorkspace", input)
    };
    assert_eq!(result(&take("call_1").await).0, ToolStatus::Completed, "one of its own is fine");
    // Where its own branch leads to a commit of theirs, and its objects are theirs too.
    let branch = work.join(".git/refs/heads/main");
    fs::remove_file(&branch).ok();
    let branch = work.join(".git").join(lines(&work.join(".git/HEAD"))[0].strip_prefix("ref: ").unwrap());
    fs::remove_file(&branch).ok();
    std::os::unix::fs::symlink(theirs.join("refs/heads/main"), &branch).unwrap();
    let alternates = work.join(".git/objects/info/alternates");
    fs::write(&alternates, theirs.join("objects").to_str().unwrap()).unwrap();
    assert_eq!(result(&take("call_2").await).1["error"]["code"], "borrowed_objects");
    fs::remove_file(&alternates).unwrap();
    fs::remove_dir_all(work.join(".git/objects")).unwrap();
    std::os::unix::fs::symlink(theirs.join("objects"), work.join(".git/objects")).unwrap();
    assert_eq!(result(&take("call_3").await).1["error"]["code"], "borrowed_objects");
}

#[tokio::test]
async fn the_longest_command_that_is_taken_can_be_run() {
    let stage = Stage::new();
    let long = |bytes: usize| json!({ "cmd": format!("true {}", "a".repeat(bytes - "true ".len())) });
    let most = abide_kernel::limits::COMMAND_BYTES;
    assert_eq!(result(&stage.call("call_1", "ExecCommand", long(most)).await).1["exit_code"], 0);
    assert_eq!(result(&stage.call("call_2", "ExecCommand", long(most + 1)).await).1["error"]["code"], "invalid_input");
}

#[tokio::test]
async fn a_task_that_could_not_be_started_says_why() {
    let stage = Stage::new();
    let place = Box::new(ToolPlacement { configured: Some("/nowhere".to_owned()), ..ToolPlacement::default() });
    let command = Command { command: "true".to_owned(), workdir: None, tty: false, accepts_input: false };
    let command = Box::new(command);
    let start = Effect::Command(CommandEffect::Start { task_id: TaskId::new("task_1"), command, place });
    let said = stage.executor.perform(&stage.agent, start).unwrap().await;
    let [Input::EndTask { end, .. }] = said.as_slice() else { panic!("{said:?}") };
    let why = "not_started missing: /nowhere does not exist; create the folder first, or correct the path; \
               nothing else is used in its place";
    assert_eq!(end.evidence, [why]);
}

#[tokio::test]
async fn a_task_that_is_stopped_before_it_runs_is_cancelled_and_not_given_up() {
    let stage = Stage::new();
    let command = Command { command: "sleep 600".to_owned(), workdir: None, tty: false, accepts_input: false };
    let (task_id, place) = (TaskId::new("task_1"), Box::new(ToolPlacement::default()));
    let start = Effect::Command(CommandEffect::Start { task_id: task_id.clone(), command: Box::new(command), place });
    let start = stage.executor.perform(&stage.agent, start).unwrap();
    let stop = Effect::Command(CommandEffect::End { task_id: task_id.clone(), force: false });
    let said = stage.executor.perform(&stage.agent, stop).unwrap().await;
    assert!(said.is_empty(), "its end is for whoever starts it to tell: {said:?}");
    let said = start.await;
    let [Input::EndTask { status: TaskStatus::Cancelled, end }] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(end.evidence, ["not_started: it was stopped before"]);
}

#[tokio::test]
async fn a_folder_that_was_turned_into_a_link_is_not_gone_to() {
    let stage = Stage::new();
    let ground = TempDir::new().unwrap();
    let root = ground.path().canonicalize().unwrap();
    let (work, part, theirs) = (root.join("work"), root.join("work/part"), root.join("theirs"));
    fs::create_dir_all(&part).unwrap();
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("file"), "secret").unwrap();
    let name = |path: &Path| path.display().to_string();
    let call = |call: &str, tool: &str, input: Value, place: &ToolPlacement| {
        run(&stage.executor, &stage.agent, "exec_1", call, place.clone()).job(tool, input)
    };
    // Both were allowed, one by the operator and one because it lies in it.
    let attached = ToolPlacement { attached: vec![name(&work), name(&part)], ..ToolPlacement::default() };
    let configured = ToolPlacement { configured: Some(name(&part)), ..attached.clone() };
    let read = json!({ "path": "file" });
    let go = json!({ "path": part });
    assert_eq!(result(&call("call_1", "UseWorkspace", go.clone(), &attached).await).0, ToolStatus::Completed);
    assert_eq!(result(&call("call_2", "ExecCommand", json!({ "cmd": "true" }), &configured).await).1["exit_code"], 0);
    fs::remove_dir(&part).unwrap();
    std::os::unix::fs::symlink(&theirs, &part).unwrap();
    assert_eq!(result(&call("call_3", "UseWorkspace", go, &attached).await).1["error"]["code"], "not_attached");
    assert_eq!(result(&call("call_4", "ReadFile", read, &configured).await).1["error"]["code"], "moved");
    let ran = result(&call("call_5", "ExecCommand", json!({ "cmd": "cat file" }), &configured).await).1;
    assert_eq!(ran["error"]["code"], "moved");
}

#[tokio::test]
async fn what_was_bound_as_a_worktree_is_not_worked_in_itself() {
    let stage = Stage::new();
    let ground = crate::workspace::Ground::new();
    let place = ToolPlacement { branched: vec![ground.repo.display().to_string()], ..ToolPlacement::default() };
    let go = |call: &str, mode: &str| {
        let input = json!({ "path": ground.repo, "mode": mode });
        run(&stage.executor, &stage.agent, "exec_1", call, place.clone()).job("UseWorkspace", input)
    };
    assert_eq!(result(&go("call_1", "direct").await).1["error"]["code"], "not_attached");
    assert_eq!(result(&go("call_2", "worktree").await).0, ToolStatus::Completed);
}

#[tokio::test]
async fn views_of_repositories_that_a_killed_daemon_left_go_with_the_next_start() {
    let home = TempDir::new().unwrap();
    let left = home.path().join("scratch/git-left");
    fs::create_dir_all(left.join("git/objects")).unwrap();
    let _stage = Stage::at(home);
    assert!(!left.exists());
}
