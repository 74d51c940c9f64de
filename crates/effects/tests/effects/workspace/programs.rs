//! The daemon never runs a program that an agent could have written, though a folder of its PATH lies in a workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use abide_effects::Executor;
use abide_effects::executor::ExecutorOptions;
use abide_effects::process::Bounds;
use abide_effects::sandbox::Mode;
use abide_kernel::id::AgentId;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{ToolStatus, WorkspaceMode};
use serde_json::{Value, json};

use super::Ground;
use crate::calls::run;
use crate::executor::result;

/// Set for a test that runs again as a process with another PATH.
const GROUND: &str = "ABIDE_TEST_GROUND";

/// Runs a test again as a process of its own, whose PATH begins with `bin` of the repository.
fn again(test: &str, ground: &Ground) {
    let path = std::env::var_os("PATH").unwrap();
    let folders = [ground.repo.join("bin")].into_iter().chain(std::env::split_paths(&path));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&format!("workspace::programs::{test}"), "--exact", "--nocapture"]);
    command.env(GROUND, ground.repo.parent().unwrap()).env("PATH", std::env::join_paths(folders).unwrap());
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && words.contains("1 passed"), "{words}");
}

fn executor(home: &Path) -> Executor {
    let moment = || (Time::EPOCH, std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_effects-stand-in"));
    let home = home.to_path_buf();
    Executor::new(ExecutorOptions {
        program,
        home,
        sandbox: Mode::Auto,
        bounds: Bounds::default(),
        environment: Vec::new(),
        moment,
    })
    .unwrap()
}

async fn call(executor: &Executor, repo: &Path, tool: &str, input: Value) -> (ToolStatus, Value) {
    let place = ToolPlacement { configured: Some(repo.display().to_string()), ..ToolPlacement::default() };
    result(&run(executor, &AgentId::new("main").unwrap(), "exec_1", "call_1", place).job(tool, input).await)
}

fn planted(escaped: &Path) -> String {
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|folder| folder.join("git"));
    let real = real.filter(|git| git.is_file()).last().unwrap();
    format!("#!/bin/sh\n: > '{}'\nexec '{}' \"$@\"\n", escaped.display(), real.display())
}

#[tokio::test]
async fn a_git_that_an_agent_put_into_path_is_never_run_by_the_daemon() {
    const NAME: &str = "a_git_that_an_agent_put_into_path_is_never_run_by_the_daemon";
    let Some(root) = std::env::var_os(GROUND).map(PathBuf::from) else {
        let ground = Ground::new();
        // The daemon that the agent did this under, and the next one.
        again(NAME, &ground);
        return again(NAME, &ground);
    };
    let (repo, home, escaped) = (root.join("repo"), root.join("home"), root.join("escaped"));
    let executor = executor(&home);
    let first = !repo.join("bin/git").exists();
    if first {
        let script = planted(&escaped).replace('\'', r"'\''");
        let cmd = format!("mkdir -p bin; printf %s '{script}' > bin/git; chmod +x bin/git");
        let (_, said) = call(&executor, &repo, "ExecCommand", json!({ "cmd": cmd })).await;
        assert!(repo.join("bin/git").is_file(), "{said}");
    }
    let agent = AgentId::new(if first { "one" } else { "two" }).unwrap();
    let path = repo.display().to_string();
    let attached = executor.attach_folder(&agent, path, WorkspaceMode::Worktree, Box::new(|_, _| Ok(()))).await;
    assert!(Path::new(&attached.unwrap().root).join("kept.txt").is_file());
    assert!(!escaped.exists());
}

#[tokio::test]
async fn a_file_tool_writes_no_program_where_commands_can_only_read() {
    let Some(root) = std::env::var_os(GROUND).map(PathBuf::from) else {
        let ground = Ground::new();
        ground.write("bin/tool", "#!/bin/sh\n");
        return again("a_file_tool_writes_no_program_where_commands_can_only_read", &ground);
    };
    let (repo, executor) = (root.join("repo"), executor(&root.join("home")));
    // The operator who attaches it is told.
    let (agent, path) = (AgentId::new("main").unwrap(), repo.display().to_string());
    let attached = executor.attach_folder(&agent, path, WorkspaceMode::Direct, Box::new(|_, _| Ok(()))).await.unwrap();
    let note = attached.note.unwrap();
    assert!(note.contains(&format!("can only read {}", repo.join("bin").display())), "{note}");
    let (_, refused) = call(&executor, &repo, "WriteFile", json!({ "path": "bin/git", "content": "x" })).await;
    assert!(refused.to_string().contains("read_only"), "{refused}");
    let patch = "--- a/bin/tool\n+++ b/bin/tool\n@@ -1 +1 @@\n-#!/bin/sh\n+#!/bin/bash\n";
    let (_, refused) = call(&executor, &repo, "ApplyPatch", json!({ "patch": patch })).await;
    assert!(refused.to_string().contains("read_only"), "{refused}");
    let (status, _) = call(&executor, &repo, "WriteFile", json!({ "path": "other/git", "content": "x" })).await;
    assert_eq!(status, ToolStatus::Completed);
}
