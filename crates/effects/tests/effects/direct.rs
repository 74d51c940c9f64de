//! An agent in the user's own folder, and one in a worktree: what it can do to the user's repository.

use std::fs;
use std::path::{Path, PathBuf};

use abide_kernel::agent::workspace::Workspace;
use abide_kernel::effect::{Effect, Place};
use abide_kernel::fact::WorkspaceAttached;
use abide_kernel::id::{CallId, ExecId};
use abide_kernel::input::Input;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::WorkspaceMode;
use serde_json::{Value, json};

use crate::hands::{Stage, result};
use crate::workspace::{Ground, everything, git, put};

/// An agent that works in a folder.
struct Agent {
    stage: Stage,
    ground: Ground,
    place: Place,
}

impl Agent {
    fn in_folder() -> Agent {
        let ground = Ground::new();
        let place = Place { configured: Some(ground.repo.display().to_string()), ..Place::default() };
        Agent { stage: Stage::new(), ground, place }
    }

    async fn in_worktree() -> Agent {
        let (stage, ground) = (Stage::new(), Ground::new());
        let path = ground.repo.display().to_string();
        let attached = stage.hands.attach(&stage.agent, path, WorkspaceMode::Worktree).await.unwrap();
        let place = Place { workspace: Some(bound(attached)), ..Place::default() };
        Agent { stage, ground, place }
    }

    fn root(&self) -> PathBuf {
        self.place.workspace.as_ref().map_or_else(|| self.ground.repo.clone(), |bound| PathBuf::from(&bound.root))
    }

    async fn call(&self, tool: &str, input: Value) -> Value {
        let (exec_id, call_id) = (ExecId::new("exec_1"), CallId::new("call_1"));
        let place = Box::new(self.place.clone());
        let effect = Effect::RunTool { exec_id, call_id, tool: tool.to_owned(), input, place };
        let inputs: Vec<Input> = self.stage.hands.perform(&self.stage.agent, effect).unwrap().await;
        result(&inputs).1
    }

    async fn run(&self, cmd: &str) -> (i64, String) {
        let ran = self.call("ExecCommand", json!({ "cmd": cmd, "yield_time_ms": 60_000 })).await;
        let said =
            format!("{}{}", ran["stdout"].as_str().unwrap_or_default(), ran["stderr"].as_str().unwrap_or_default());
        (ran["exit_code"].as_i64().unwrap_or_else(|| panic!("{ran}")), said)
    }

    /// It succeeds, and says nothing.
    async fn quietly(&self, cmd: &str) {
        assert_eq!(self.run(cmd).await, (0, String::new()), "{cmd}");
    }

    async fn fails(&self, cmd: &str) -> String {
        let (code, said) = self.run(cmd).await;
        assert_ne!(code, 0, "{cmd}: {said}");
        said
    }
}

fn bound(attached: WorkspaceAttached) -> Workspace {
    let WorkspaceAttached { workspace, root, mode, worktree, note } = attached;
    let (attached_at, seq) = (Time::EPOCH, 1);
    Workspace { workspace, root, mode, worktree, note, attached_at, seq, removing: false, discard: false, kept: None }
}

const WORK: &str = "set -e
    echo one > one; git add one; git commit -qm one
    git switch -qc topic; echo two > two; git add two; git commit -qm two
    echo changed > one; git stash -q; git stash pop -q; git reset -q --hard
    git switch -q -; echo three > three; git add three; git commit -qm three
    git rebase -q topic; git gc -q --prune=now; git fsck --no-dangling --no-progress";

#[tokio::test]
async fn git_works_in_the_users_folder_out_of_the_box() {
    let agent = Agent::in_folder();
    agent.quietly(WORK).await;
    assert_eq!(agent.ground.git(&["log", "--format=%s"]), "three\ntwo\none\nfirst");
    assert_eq!(agent.ground.git(&["status", "--porcelain"]), "");
    // A repository's own identity wins over the operator's.
    agent.ground.git(&["config", "user.name", "Grace"]);
    agent.quietly("git commit -q --allow-empty -m four").await;
    assert_eq!(agent.ground.git(&["log", "-1", "--format=%an"]), "Grace");
}

/// Where the user's next git would look for a program.
const NAMED: &[&str] =
    &["hooks/pre-commit", "config", "config.worktree", "commondir", "info/attributes", "objects/info/alternates"];

async fn is_protected(agent: &Agent, git_dir: &str) {
    for name in NAMED {
        agent.fails(&format!("echo x >> {git_dir}/{name}")).await;
        agent.fails(&format!("echo x > {git_dir}/new && mv -f {git_dir}/new {git_dir}/{name}")).await;
        agent.fails(&format!("ln -sfT /tmp/x {git_dir}/{name}")).await;
    }
    agent.fails(&format!("mv {git_dir}/hooks {git_dir}/away")).await;
    agent.fails(&format!("mv {git_dir} {git_dir}-away")).await;
    agent.fails(&format!("rm -rf {git_dir}/hooks {git_dir}/config")).await;
}

#[tokio::test]
async fn hooks_and_settings_of_the_users_repositories_are_read_only() {
    let agent = Agent::in_folder();
    let repo = agent.ground.repo.clone();
    let nested = repo.join("deep/nested");
    fs::create_dir_all(&nested).unwrap();
    git(&nested, &["init", "-q"]);
    let other = Ground::new();
    agent.ground.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "-q",
        "add",
        other.repo.to_str().unwrap(),
        "sub",
    ]);
    agent.ground.link("linked");
    is_protected(&agent, ".git").await;
    is_protected(&agent, "deep/nested/.git").await;
    is_protected(&agent, ".git/modules/sub").await;
    // The link of a module to its records, and the records of the user's own worktrees.
    agent.fails("echo 'gitdir: /tmp' > sub/.git").await;
    agent.fails("mv sub/.git sub/away").await;
    agent.fails("echo x >> .git/worktrees/linked/gitdir").await;
    agent.fails("git config core.fsmonitor /tmp/x").await;
    assert!(!repo.join(".git/hooks/pre-commit").exists());
    // Everything still works for the user.
    assert_eq!(agent.ground.git(&["fsck", "--no-progress", "--no-dangling"]), "");
    agent.ground.git(&["config", "user.name", "Ada"]);
    agent.ground.git(&["worktree", "list"]);
}

#[tokio::test]
async fn records_with_links_are_read_only_as_a_whole() {
    let agent = Agent::in_folder();
    let hooks = agent.ground.repo.join(".git/hooks");
    let _there = fs::remove_dir_all(&hooks);
    std::os::unix::fs::symlink(agent.ground.repo.join("scripts"), &hooks).unwrap();
    agent.fails("echo x > .git/x").await;
    agent.fails("rm .git/hooks").await;
    agent.quietly("git status --porcelain; echo x > file").await;
}

#[tokio::test]
async fn file_tools_do_not_write_into_records_of_git() {
    let agent = Agent::in_folder();
    let repo = &agent.ground.repo;
    std::os::unix::fs::symlink(".git", repo.join("link")).unwrap();
    let before = everything(&repo.join(".git"));
    let patch = "--- /dev/null\n+++ b/.git/hooks/post-checkout\n@@ -0,0 +1 @@\n+evil\n";
    for (tool, input) in [
        ("WriteFile", json!({ "path": ".git/hooks/pre-commit", "content": "evil" })),
        ("WriteFile", json!({ "path": "link/hooks/pre-commit", "content": "evil" })),
        ("WriteFile", json!({ "path": "sub/.git", "content": "gitdir: /tmp" })),
        ("WriteFile", json!({ "path": "sub/.GIT/config", "content": "evil" })),
        ("EditFile", json!({ "path": ".git/config", "old": "[core]", "new": "[core]\n\tfsmonitor = evil" })),
        ("ApplyPatch", json!({ "patch": patch })),
    ] {
        let answer = agent.call(tool, input.clone()).await;
        assert_eq!(answer["error"]["code"], "git_records", "{tool} {input}: {answer}");
    }
    assert_eq!(before, everything(&repo.join(".git")));
    assert!(!repo.join("sub").exists());
    let read = agent.call("ReadFile", json!({ "path": ".git/HEAD" })).await;
    assert!(read["content"].as_str().is_some_and(|text| text.contains("refs/heads/main")), "{read}");
}

#[tokio::test]
async fn an_agent_in_a_worktree_reaches_the_users_repository_neither_to_write_nor_to_read() {
    let agent = Agent::in_worktree().await;
    let repo = agent.ground.repo.clone();
    let before = everything(&repo);
    agent.quietly(WORK).await;
    agent.quietly("git branch -qD topic; git config core.editor vi").await;
    agent.run("git update-ref refs/heads/main HEAD; rm -rf \"$(git rev-parse --git-common-dir)\"/objects/pack/*").await;
    let user = repo.display();
    agent.fails(&format!("cat {user}/kept.txt")).await;
    agent.fails(&format!("ls {user}/.git")).await;
    agent.fails(&format!("echo x > {user}/x")).await;
    // The mirror is there for reading.
    let mirror = "$(cat .git/objects/info/alternates)";
    agent.fails(&format!("echo x > {mirror}/x")).await;
    agent.fails(&format!("rm -rf {mirror}/pack")).await;
    agent.fails(&format!("git --git-dir {mirror}/.. update-ref -d refs/abide/base/main/x")).await;
    assert_eq!(before, everything(&repo));
    assert_eq!(agent.ground.git(&["fsck", "--no-progress"]), "");
}

#[tokio::test]
async fn commits_of_a_worktree_bear_the_agents_name_where_the_operator_has_none() {
    let agent = Agent::in_worktree().await;
    agent.quietly("echo x > x; git add x; git commit -qm x").await;
    let name = git(&agent.root(), &["log", "-1", "--format=%an"]);
    let own = std::process::Command::new("git").args(["config", "--global", "user.name"]).output().unwrap();
    let own = String::from_utf8(own.stdout).unwrap();
    assert_eq!(name, if own.trim().is_empty() { "main" } else { own.trim() });
}

#[tokio::test]
async fn the_users_branches_come_with_the_next_turn() {
    let agent = Agent::in_worktree().await;
    agent.quietly("git rev-parse -q --verify user/main > /dev/null").await;
    put(&agent.ground.repo.join("second"), "");
    agent.ground.commit("second");
    let tip = agent.ground.git(&["rev-parse", "HEAD"]);
    let seen = |exec: &str| {
        let (exec_id, call_id) = (ExecId::new(exec), CallId::new("call_1"));
        let (tool, input) = ("ExecCommand".to_owned(), json!({ "cmd": "git rev-parse user/main" }));
        let place = Box::new(agent.place.clone());
        let effect = Effect::RunTool { exec_id, call_id, tool, input, place };
        agent.stage.hands.perform(&agent.stage.agent, effect).unwrap()
    };
    assert_ne!(result(&seen("exec_1").await).1["stdout"], format!("{tip}\n"), "in the middle of a turn nothing moves");
    assert_eq!(result(&seen("exec_2").await).1["stdout"], format!("{tip}\n"));
}

#[tokio::test]
async fn the_users_large_files_can_be_read_beside_the_mirror() {
    let (stage, ground) = (Stage::new(), Ground::new());
    put(&ground.repo.join(".git/lfs/objects/ab/cd/large"), "large");
    let path = ground.repo.display().to_string();
    let attached = stage.hands.attach(&stage.agent, path, WorkspaceMode::Worktree).await.unwrap();
    let place = Place { workspace: Some(bound(attached)), ..Place::default() };
    let agent = Agent { stage, ground, place };
    // Where git-lfs looks: beside the objects that the repository borrows.
    let large = "$(cat .git/objects/info/alternates)/../lfs/objects/ab/cd";
    assert_eq!(agent.run(&format!("cat {large}/large")).await, (0, "large".to_owned()));
    agent.fails(&format!("echo x > {large}/x")).await;
    agent.fails(&format!("ls {}/.git/config", agent.ground.repo.display())).await;
}

#[tokio::test]
async fn hooks_in_the_working_tree_are_named_when_it_is_attached() {
    let (stage, ground) = (Stage::new(), Ground::new());
    let attach = || stage.hands.attach(&stage.agent, ground.repo.display().to_string(), WorkspaceMode::Direct);
    assert_eq!(attach().await.unwrap().note, None);
    ground.git(&["config", "core.hooksPath", ".husky"]);
    assert!(attach().await.unwrap().note.unwrap().contains("/.husky, which the agent can write"));
}

/// A folder of its own is no repository of the user's.
#[tokio::test]
async fn an_agents_own_folder_is_its_own() {
    let agent = Agent { stage: Stage::new(), ground: Ground::new(), place: Place::default() };
    agent.quietly("git init -q . && git config core.editor vi && echo x > .git/hooks/x").await;
    agent.quietly("git config core.editor nano").await;
    assert!(Path::new(&agent.stage.home.path().join("agents/main/workspace/.git")).is_dir());
}
