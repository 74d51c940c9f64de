//! An agent in the user's own folder, and one in a worktree: what it can do to the user's repository.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use abide_effects::executor::AllowFolder;
use abide_effects::workspace::WritableSettings;
use abide_kernel::effect::{CommandEffect, Effect};
use abide_kernel::fact::WorkspaceAttached;
use abide_kernel::id::TaskId;
use abide_kernel::input::Input;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::state::workspace::Workspace;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::WorkspaceMode;
use serde_json::{Value, json};

use crate::calls::run;
use crate::executor::{Stage, result};
use crate::workspace::{Ground, everything, git, put};

/// A person who may use every folder.
fn any() -> AllowFolder {
    Box::new(|_, _| Ok(()))
}

/// An agent that works in a folder.
struct Agent {
    stage: Stage,
    ground: Ground,
    place: ToolPlacement,
}

impl Agent {
    fn in_folder() -> Agent {
        let ground = Ground::new();
        let place = ToolPlacement { configured: Some(ground.repo.display().to_string()), ..ToolPlacement::default() };
        Agent { stage: Stage::new(), ground, place }
    }

    async fn in_worktree() -> Agent {
        let (stage, ground) = (Stage::new(), Ground::new());
        let path = ground.repo.display().to_string();
        let attached = stage.executor.attach_folder(&stage.agent, path, WorkspaceMode::Worktree, any()).await.unwrap();
        let place = ToolPlacement { workspace: Some(bound(attached)), ..ToolPlacement::default() };
        Agent { stage, ground, place }
    }

    fn root(&self) -> PathBuf {
        self.place.workspace.as_ref().map_or_else(|| self.ground.repo.clone(), |bound| PathBuf::from(&bound.root))
    }

    async fn call(&self, tool: &str, input: Value) -> Value {
        let run = run(&self.stage.executor, &self.stage.agent, "exec_1", "call_1", self.place.clone());
        result(&run.job(tool, input).await).1
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

/// Records are known by their content: their folder may have any name, and a command need not have run before.
#[tokio::test]
async fn file_tools_do_not_write_into_records_that_have_another_name() {
    for prepared in [false, true] {
        let agent = Agent::in_folder();
        let repo = agent.ground.repo.clone();
        git(&repo, &["init", "-q", "--bare", "deep/bare.git"]);
        git(&repo, &["init", "-q", "--separate-git-dir", repo.join("records").to_str().unwrap(), "files"]);
        git(&repo.join("files"), &["commit", "-q", "--allow-empty", "-m", "first"]);
        // The records of a linked worktree have neither objects nor refs.
        git(&repo.join("files"), &["worktree", "add", "-q", repo.join("linked").to_str().unwrap()]);
        fs::rename(repo.join("records/worktrees/linked"), repo.join("moved")).unwrap();
        std::os::unix::fs::symlink("records/hooks", repo.join("link")).unwrap();
        fs::create_dir_all(repo.join("with_objects/objects")).unwrap();
        put(&repo.join("with_objects/HEAD"), "ref: refs/heads/main\n");
        put(&repo.join("with_objects/commondir"), "../records\n");
        if prepared {
            agent.quietly("true").await;
        }
        let before = everything(&repo);
        let patch = |path: &str| format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+evil\n");
        let delete = "--- a/records/HEAD\n+++ /dev/null\n@@ -1 +0,0 @@\n-ref: refs/heads/main\n";
        let moved = "diff --git a/kept.txt b/records/hooks/x\nrename from kept.txt\nrename to records/hooks/x\n";
        let edit = json!({ "path": "records/config", "old": "[core]", "new": "[core]\n\tfsmonitor = evil" });
        for (tool, input) in [
            ("WriteFile", json!({ "path": "deep/bare.git/hooks/post-update", "content": "evil" })),
            ("WriteFile", json!({ "path": "deep/bare.git/config", "content": "evil" })),
            ("WriteFile", json!({ "path": "records/hooks/new/pre-commit", "content": "evil" })),
            ("WriteFile", json!({ "path": "link/pre-commit", "content": "evil" })),
            ("WriteFile", json!({ "path": "records/commondir", "content": "../evil" })),
            ("WriteFile", json!({ "path": "moved/commondir", "content": "../evil" })),
            ("WriteFile", json!({ "path": "with_objects/config.worktree", "content": "evil" })),
            ("EditFile", edit),
            ("ApplyPatch", json!({ "patch": patch("records/hooks/post-merge") })),
            ("ApplyPatch", json!({ "patch": patch("deep/bare.git/info/attributes") })),
            ("ApplyPatch", json!({ "patch": delete })),
            ("ApplyPatch", json!({ "patch": moved })),
        ] {
            let answer = agent.call(tool, input.clone()).await;
            assert_eq!(answer["error"]["code"], "git_records", "{tool} {input}: {answer}");
        }
        assert_eq!(before, everything(&repo));
        let beside = agent.call("WriteFile", json!({ "path": "deep/file", "content": "ours" })).await;
        assert_eq!(beside["changed"][0]["action"], "created", "{beside}");
    }
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
        let run = run(&agent.stage.executor, &agent.stage.agent, exec, "call_1", agent.place.clone());
        run.job("ExecCommand", json!({ "cmd": "git rev-parse user/main" }))
    };
    assert_ne!(result(&seen("exec_1").await).1["stdout"], format!("{tip}\n"), "in the middle of a turn nothing moves");
    assert_eq!(result(&seen("exec_2").await).1["stdout"], format!("{tip}\n"));
}

#[tokio::test]
async fn the_users_large_files_can_be_read_beside_the_mirror() {
    let (stage, ground) = (Stage::new(), Ground::new());
    put(&ground.repo.join(".git/lfs/objects/ab/cd/large"), "large");
    let path = ground.repo.display().to_string();
    let attached = stage.executor.attach_folder(&stage.agent, path, WorkspaceMode::Worktree, any()).await.unwrap();
    let place = ToolPlacement { workspace: Some(bound(attached)), ..ToolPlacement::default() };
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
    let attach =
        || stage.executor.attach_folder(&stage.agent, ground.repo.display().to_string(), WorkspaceMode::Direct, any());
    assert_eq!(attach().await.unwrap().note, None);
    ground.git(&["config", "core.hooksPath", ".husky"]);
    assert!(attach().await.unwrap().note.unwrap().contains("/.husky, which the agent can write"));
    let place = ToolPlacement { configured: Some(ground.repo.display().to_string()), ..ToolPlacement::default() };
    let writable = async || stage.executor.writable_settings(&place).await.hooks;
    assert_eq!(writable().await, Some(ground.repo.join(".husky")));
    // A path that only looks as if it led elsewhere, and one that only looks as if it did not.
    let link = ground.repo.with_file_name("link");
    std::os::unix::fs::symlink(&ground.repo, &link).unwrap();
    ground.git(&["config", "core.hooksPath", link.join(".husky").to_str().unwrap()]);
    assert!(writable().await.is_some());
    for elsewhere in ["../hooks", ".git/hooks", "~/hooks", "~somebody/hooks"] {
        ground.git(&["config", "core.hooksPath", elsewhere]);
        assert_eq!(writable().await, None, "{elsewhere}");
    }
    assert_eq!(attach().await.unwrap().note, None);
    // Without the setting git takes its own folder, which may be a link.
    ground.git(&["config", "--unset", "core.hooksPath"]);
    assert_eq!(writable().await, None);
    let hooks = ground.repo.join(".git/hooks");
    fs::remove_dir_all(&hooks).unwrap();
    std::os::unix::fs::symlink("../tools/hooks", &hooks).unwrap();
    assert_eq!(writable().await, Some(hooks));
}

/// A command may make a repository in a folder of the user's: git follows its settings there.
#[tokio::test]
async fn a_repository_in_a_tracked_folder_is_named() {
    let agent = Agent::in_folder();
    agent.quietly("git init -q folder; git init -q new").await;
    let repo = agent.ground.repo.clone();
    let named = agent.stage.executor.writable_settings(&agent.place).await;
    assert_eq!(named.nested, [repo.join("folder")], "the user tracks no file in the other one");
    assert!(named.warnings().iter().any(|warning| warning.contains("has a .git of its own")));
    // The same where the folder is what the agent was given.
    let place =
        ToolPlacement { configured: Some(repo.join("folder").display().to_string()), ..ToolPlacement::default() };
    assert_eq!(agent.stage.executor.writable_settings(&place).await.nested, [repo.join("folder")]);
    fs::remove_dir_all(repo.join("folder/.git")).unwrap();
    assert_eq!(agent.stage.executor.writable_settings(&agent.place).await.nested, [] as [PathBuf; 0]);
}

#[tokio::test]
async fn settings_that_are_included_from_the_working_tree_are_named() {
    let (stage, ground) = (Stage::new(), Ground::new());
    let place = ToolPlacement { configured: Some(ground.repo.display().to_string()), ..ToolPlacement::default() };
    let writable = async || stage.executor.writable_settings(&place).await;
    assert_eq!(writable().await, WritableSettings::default());
    let outside = ground.repo.with_file_name("outside");
    // Relative to each file, by condition or not, there or not; a file outside may lead back, and a link may lead out.
    ground.git(&["config", "include.path", "../shared.gitconfig"]);
    ground.git(&["config", "includeIf.onbranch:topic.path", "../missing"]);
    ground.git(&["config", "--add", "include.path", outside.join("more").to_str().unwrap()]);
    ground.git(&["config", "--add", "include.path", "../link"]);
    ground.git(&["config", "--add", "include.path", "info/attributes"]);
    ground.git(&["config", "--add", "include.path", "~/elsewhere"]);
    ground.write("shared.gitconfig", "[include]\n\tpath = folder/inner\n\tpath = shared.gitconfig\n");
    ground.write("folder/inner", "[core]\n\thooksPath = tools/hooks\n");
    put(&outside.join("more"), "[include]\n\tpath = ../repo/back\n\tpath = alone\n");
    std::os::unix::fs::symlink(outside.join("alone"), ground.repo.join("link")).unwrap();
    let found = writable().await;
    let expected = ["back", "folder/inner", "link", "missing", "shared.gitconfig"].map(|name| ground.repo.join(name));
    assert_eq!(found.files, expected);
    assert_eq!(found.hooks, Some(ground.repo.join("tools/hooks")), "an included file sets it");
    let path = ground.repo.display().to_string();
    let attached = stage.executor.attach_folder(&stage.agent, path, WorkspaceMode::Direct, any()).await.unwrap();
    let note = attached.note.unwrap();
    assert!(note.contains("git reads settings from") && note.contains("shared.gitconfig, which the agent"), "{note}");
    // A file that includes without end is read to a bound.
    let many: String = (0..1_000).map(|n| format!("[include]\n\tpath = many{n}\n")).collect();
    ground.write("shared.gitconfig", many);
    let count = writable().await.files.len();
    assert!(count > 10 && count < 100, "{count}");
    let path = ground.repo.display().to_string();
    let attached = stage.executor.attach_folder(&stage.agent, path, WorkspaceMode::Worktree, any()).await.unwrap();
    let place = ToolPlacement { workspace: Some(bound(attached)), ..ToolPlacement::default() };
    assert_eq!(
        stage.executor.writable_settings(&place).await,
        WritableSettings::default(),
        "a worktree includes nothing"
    );
}

#[tokio::test]
async fn programs_that_settings_name_in_the_working_tree_are_named() {
    let (stage, ground) = (Stage::new(), Ground::new());
    let place = ToolPlacement { configured: Some(ground.repo.display().to_string()), ..ToolPlacement::default() };
    let writable = async || {
        let found = stage.executor.writable_settings(&place).await;
        found.programs.into_iter().map(|program| (program.setting, program.path)).collect::<Vec<_>>()
    };
    assert_eq!(writable().await, []);
    ground.write("folder/script", "");
    ground.write("script", "");
    let link = ground.repo.with_file_name("link");
    std::os::unix::fs::symlink(ground.repo.join("tools"), &link).unwrap();
    let settings = [
        ("alias.st", "!./tools/st", "tools/st"),
        ("core.fsmonitor", "tools/fsm", "tools/fsm"),
        ("core.sshcommand", "sh script -x", "script"),
        ("credential.https://host.helper", "!./tools/secret get", "tools/secret"),
        ("diff.word.command", "env LANG=C './tools/diff' --to", "tools/diff"),
        ("filter.x.clean", "folder/script %f", "folder/script"),
        ("gpg.program", "tools/gpg", "tools/gpg"),
        ("merge.x.driver", "./tools/merge %O", "tools/merge"),
    ];
    fs::create_dir(ground.repo.join("tools")).unwrap();
    for (key, value, _) in settings {
        ground.git(&["config", key, value]);
    }
    let expected = settings.map(|(key, _, path)| (key.to_owned(), ground.repo.join(path)));
    assert_eq!(writable().await, expected);
    let attach =
        || stage.executor.attach_folder(&stage.agent, ground.repo.display().to_string(), WorkspaceMode::Direct, any());
    let note = attach().await.unwrap().note.unwrap();
    assert!(note.contains("tools/fsm (core.fsmonitor names it), which the agent can write"), "{note}");
    for (key, _, _) in settings {
        ground.git(&["config", "--unset", key]);
    }
    // A link outside leads back; a program elsewhere, an alias of git's own and a flag are none of these.
    ground.git(&["config", "core.pager", link.join("pager").to_str().unwrap()]);
    for (key, value) in [("core.editor", "/usr/bin/vi"), ("alias.lg", "log ./x"), ("filter.y.clean", "sed s/a/b/")] {
        ground.git(&["config", key, value]);
    }
    assert_eq!(writable().await, [("core.pager".to_owned(), ground.repo.join("tools/pager"))]);
}

/// A folder of its own is no repository of the user's.
#[tokio::test]
async fn an_agents_own_folder_is_its_own() {
    let agent = Agent { stage: Stage::new(), ground: Ground::new(), place: ToolPlacement::default() };
    agent.quietly("git init -q . && git config core.editor vi && echo x > .git/hooks/x").await;
    agent.quietly("git config core.editor nano").await;
    assert!(Path::new(&agent.stage.home.path().join("agents/main/workspace/.git")).is_dir());
}

/// Without copying, as `mv` would from one mount to another.
fn rename(from: &str, to: &str) -> String {
    format!("python3 -c 'import os; os.rename(\"{from}\", \"{to}\")'")
}

/// A mount point can't be renamed, but a folder around it could be, and be made anew with other content.
#[tokio::test]
async fn folders_around_protected_parts_can_not_be_renamed() {
    let agent = Agent::in_folder();
    let nested = agent.ground.repo.join("deep/er/nested");
    fs::create_dir_all(&nested).unwrap();
    git(&nested, &["init", "-q"]);
    agent.ground.link("linked");
    let other = Ground::new();
    let url = other.repo.display().to_string();
    agent.ground.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "lib/sub"]);
    for folder in [
        ".git/info",
        ".git/objects",
        ".git/objects/info",
        ".git/modules",
        ".git/modules/lib",
        ".git/modules/lib/sub",
        ".git/modules/lib/sub/info",
        ".git/worktrees",
        "deep",
        "deep/er",
        "deep/er/nested/.git",
        "lib",
        "lib/sub",
    ] {
        agent.fails(&rename(folder, "moved")).await;
        agent.fails(&rename(folder, &format!("{folder}.old"))).await;
    }
    for file in
        [".git/worktrees/linked/commondir", ".git/modules/lib/sub/config", "lib/sub/.git", ".git/remotes/origin"]
    {
        agent.fails(&format!("echo x > {file}")).await;
    }
    agent
        .quietly("echo ours > deep/er/file && rm deep/er/file && git -C deep/er/nested commit -q --allow-empty -m x")
        .await;
}

#[tokio::test]
async fn repositories_of_every_kind_are_found() {
    let agent = Agent::in_folder();
    let repo = agent.ground.repo.clone();
    git(&repo, &["init", "-q", "--bare", "bare"]);
    git(&repo, &["init", "-q", "--separate-git-dir", repo.join("apart").to_str().unwrap(), "files"]);
    // A folder that looks like a git directory hides nothing that lies in it.
    git(&repo, &["init", "-q", "fake/inner"]);
    for name in ["fake/objects", "fake/refs"] {
        fs::create_dir_all(repo.join(name)).unwrap();
    }
    put(&repo.join("fake/HEAD"), "");
    for git_dir in ["bare", "apart", "fake/inner/.git"] {
        agent.fails(&format!("echo x > {git_dir}/hooks/pre-commit")).await;
        agent.fails(&format!("echo x >> {git_dir}/config")).await;
        agent.fails(&rename(git_dir, "moved")).await;
        // The parts by which git knows one stay, or come back. A bare one is read-only as a whole.
        agent.fails(&rename(&format!("{git_dir}/refs"), "moved")).await;
        let (code, _) = agent.run(&format!("rm {git_dir}/HEAD")).await;
        assert_eq!(code != 0, git_dir == "bare");
        assert!(repo.join(git_dir).join("HEAD").exists());
        agent.fails(&format!("echo x >> {git_dir}/config")).await;
        agent.fails(&rename(git_dir, "moved")).await;
    }
    agent.fails("rm files/.git").await;
    std::os::unix::fs::symlink(repo.join("apart"), repo.join("fake/.git")).unwrap();
    let refused = agent.call("ExecCommand", json!({ "cmd": "true" })).await;
    assert_eq!(refused["error"]["code"], "unprotected", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("fake/.git is a symbolic link"), "{refused}");
}

/// Fixtures of a test that look like git directories are the user's files: nothing is made in them, and git can write them.
#[tokio::test]
async fn git_directories_that_are_tracked_are_left_to_git() {
    let agent = Agent::in_folder();
    let repo = agent.ground.repo.clone();
    for fixture in ["fix/.gitted", "fix/[x]"] {
        agent.ground.write(&format!("{fixture}/HEAD"), "ref: refs/heads/main\n");
        for name in ["config", "objects/keep", "refs/heads/keep"] {
            agent.ground.write(&format!("{fixture}/{name}"), "x\n");
        }
    }
    agent.ground.commit("fixtures");
    git(&repo, &["init", "-q", "--bare", "ignored/bare"]);
    let before = everything(&repo.join("ignored"));
    agent.quietly("true").await;
    assert_eq!(agent.ground.git(&["status", "--porcelain", "-uall"]), "");
    assert_eq!(before, everything(&repo.join("ignored")), "nothing is made in a bare repository");
    // Adding the user's bare repository to the index does not open it.
    agent.quietly("git add -f ignored/bare/HEAD").await;
    agent.fails("echo x >> ignored/bare/config").await;
    agent.fails("echo ../x > ignored/bare/commondir").await;
    agent.quietly("git rm -q --cached ignored/bare/HEAD").await;
    agent.quietly("git switch -qc topic; git rm -rq fix; git commit -qm removed; git switch -q main").await;
    agent.quietly("echo y > fix/.gitted/config; git stash -q -u; git stash pop -q; git reset -q --hard").await;
    agent.quietly("git checkout -q HEAD~1; test ! -e fix; git switch -q main").await;
    assert_eq!(agent.ground.git(&["status", "--porcelain", "-uall"]), "");
}

/// An index or a commit of an agent's makes no fixture of the user's bare repository, in whatever repository it is.
#[tokio::test]
async fn a_repository_of_the_agents_opens_no_bare_repository_of_the_users() {
    let agent = Agent::in_folder();
    let repo = agent.ground.repo.clone();
    git(&repo, &["init", "-q", "--bare", "mirrors/x.git"]);
    let track = |name: &str| {
        format!("git update-index --add --cacheinfo 100644,$(echo x | git hash-object -w --stdin),{name}.git/HEAD")
    };
    agent.quietly(&format!("cd mirrors; git init -q .; {}; {}; git commit -qm x", track("x"), track("y"))).await;
    agent.quietly(&format!("{}; git commit -qm z", track("more/z"))).await;
    for later in ["mirrors/y.git", "more/z.git"] {
        git(&repo, &["init", "-q", "--bare", later]);
    }
    let write = |name: &str| format!("echo evil > {name}.git/hooks/post-receive");
    for name in ["mirrors/x", "mirrors/y", "more/z"] {
        agent.fails(&write(name)).await;
    }
    let Agent { stage: Stage { executor, home, .. }, ground, place } = agent;
    drop(executor);
    let mut agent = Agent { stage: Stage::at(home), ground, place };
    for name in ["mirrors/x", "mirrors/y", "more/z"] {
        agent.fails(&write(name)).await;
    }
    // A person's word counts anew, for the repository that was named.
    let path = repo.display().to_string();
    agent.stage.executor.attach_folder(&agent.stage.agent, path, WorkspaceMode::Direct, any()).await.unwrap();
    agent.quietly(&write("more/z")).await;
    agent.fails(&write("mirrors/y")).await;
    // Going to a folder in the workspace is no such word.
    agent.place.configured = Some(repo.join("mirrors").display().to_string());
    agent.fails(&write("x")).await;
}

/// git replaces its settings by renaming, which takes the mount on them away in the sandbox.
#[tokio::test]
async fn a_command_ends_when_the_users_git_takes_a_protection_away() {
    let agent = Agent::in_folder();
    let running = agent.call("ExecCommand", json!({ "cmd": "sleep 30", "yield_time_ms": 50 })).await;
    let task_id = TaskId::new(running["task_handle"]["task_id"].as_str().unwrap());
    agent.ground.git(&["remote", "add", "origin", "https://example.org/x"]);
    let ended = agent
        .stage
        .executor
        .perform(&agent.stage.agent, Effect::Command(CommandEffect::Await { task_id }))
        .unwrap()
        .await;
    let Some(Input::EndTask { end, .. }) = ended.into_iter().next() else { panic!("it has not ended") };
    let config = agent.ground.repo.join(".git/config");
    let said = format!("unprotected: {} could not be protected", config.display());
    assert!(end.evidence.iter().any(|evidence| evidence.starts_with(&said)), "{end:?}");
    agent.fails("echo x >> .git/config").await;
}

#[tokio::test]
async fn many_repositories_are_protected_and_too_many_are_named() {
    let agent = Agent::in_folder();
    agent.quietly("for i in $(seq 90); do git init -q many/r$i; done").await;
    agent.fails("echo x >> many/r90/.git/config").await;
    agent.quietly("git -C many/r90 commit -q --allow-empty -m x").await;
    for n in 0..1_000 {
        let git_dir = agent.ground.repo.join(format!("more/r{n}/.git"));
        put(&git_dir.join("HEAD"), "ref: refs/heads/main\n");
        fs::create_dir(git_dir.join("objects")).unwrap();
        fs::create_dir(git_dir.join("refs")).unwrap();
    }
    let refused = agent.call("ExecCommand", json!({ "cmd": "true" })).await;
    assert_eq!(refused["error"]["code"], "too_many_repositories", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("/more/r"), "{refused}");
    assert!(refused["error"]["hint"].as_str().unwrap().contains("rm -rf"), "{refused}");
}

/// A layout that git takes for a repository, with a program that it runs, in the folder where the command runs.
const SHADOW: &str = "mkdir -p objects refs; cp .git/HEAD HEAD
    printf '#!/bin/sh\ntouch pwned\nexit 1\n' > .x; chmod +x .x
    printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = '$PWD'\n\tfsmonitor = '$PWD'/.x\n' > config";

/// git passes over a `.git` that is no git directory, and would go on to the folder around it.
#[tokio::test]
async fn a_repository_of_the_agents_does_not_take_the_place_of_the_users() {
    for (harm, said) in [
        ("rm .git/HEAD", "HEAD was missing"),
        ("echo nonsense > .git/HEAD", "HEAD was missing or no HEAD"),
        ("printf 'ref: \\014refs/heads/main\\n' > .git/HEAD", "HEAD was missing or no HEAD"),
        ("printf 'ref:%247srefs/heads/main' > .git/HEAD", "HEAD was missing or no HEAD"),
        ("mkdir -p .git/HEAD.abide/x; rm .git/HEAD", "HEAD was missing or no HEAD"),
        ("mkdir -p .git/HEAD.damaged/x; rm .git/HEAD; mkdir .git/HEAD", "HEAD was missing or no HEAD"),
        ("rm .git/HEAD; mkdir -p .git/HEAD/x", "the folder in place of HEAD is now called HEAD.abide-"),
        ("rm .git/HEAD; chmod 500 .git", "HEAD was missing or no HEAD"),
        ("rm .git/HEAD; chmod 0 .git", "HEAD was missing or no HEAD"),
        (
            "rm .git/HEAD; rmdir refs objects; echo > objects; cp objects refs; chmod +x objects refs",
            "git_dir_shadowed",
        ),
        ("rm .git/HEAD; rm -r refs objects; echo .git > commondir", "git_dir_shadowed"),
        ("ln -sfT refs/heads/main .git/HEAD", "HEAD was missing or no HEAD"),
        ("ln -sfT ../x .git/HEAD", "HEAD was missing or no HEAD"),
        ("rm .git/HEAD; mkdir .git/HEAD", "HEAD was missing or no HEAD"),
        ("rm .git/HEAD; mkfifo .git/HEAD", "HEAD was missing or no HEAD"),
        ("chmod 0 .git/HEAD", "HEAD was missing or no HEAD"),
        ("chmod 0 .git/refs", "permissions of refs"),
        ("chmod 0 .git/objects", "permissions of objects"),
        ("chmod 0 .git", "its permissions"),
        ("python3 -c 'import os; os.rename(\".git/refs\", \".git/refs0\")' 2>/dev/null", "git_dir_shadowed"),
        ("python3 -c 'import os; os.rename(\".git/objects\", \"o\")' 2>/dev/null", "git_dir_shadowed"),
        ("rm -rf .git/refs 2>/dev/null", "git_dir_shadowed"),
    ] {
        let agent = Agent::in_folder();
        let repo = agent.ground.repo.clone();
        let cmd = format!("{SHADOW}\n{harm}; true");
        let ran = agent.call("ExecCommand", json!({ "cmd": cmd, "yield_time_ms": 60_000 })).await;
        assert_eq!(ran["exit_code"], 0, "{harm}: {ran}");
        let evidence = ran["evidence"].to_string();
        assert!(evidence.contains(said), "{harm}: {evidence}");
        assert!(evidence.contains("safe.bareRepository explicit"), "{harm}: {evidence}");
        assert_eq!(agent.ground.git(&["rev-parse", "--absolute-git-dir"]), repo.join(".git").display().to_string());
        agent.ground.git(&["status", "--porcelain"]);
        assert!(!repo.join("pwned").exists(), "{harm}");
        // The layout stays for the operator to look at, and no command starts beside it.
        let refused = agent.call("ExecCommand", json!({ "cmd": "true" })).await;
        assert_eq!(refused["error"]["code"], "unprotected", "{harm}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("has HEAD, objects and refs"), "{refused}");
        let named = agent.stage.executor.writable_settings(&agent.place).await;
        assert_eq!(named.shadowing, Some(repo.clone()));
        fs::remove_file(repo.join("HEAD")).unwrap();
        agent.quietly("git status --porcelain > /dev/null").await;
    }
}

/// git writes reflogs, the index and the messages of commits through links.
#[tokio::test]
async fn links_that_a_command_made_in_a_git_directory_are_removed() {
    let agent = Agent::in_folder();
    let (repo, outside) = (agent.ground.repo.clone(), agent.ground.dir.path().join("outside"));
    put(&outside, "mine\n");
    std::os::unix::fs::symlink("../mine", repo.join(".git/mine")).unwrap();
    std::os::unix::fs::symlink("../mine", repo.join(".git/turned")).unwrap();
    let links = ["logs/HEAD", "logs/refs/heads/objects/ab/link", "COMMIT_EDITMSG", "index", "objects/ab", "turned"];
    for link in links {
        let made =
            format!("mkdir -p $(dirname .git/{link}); rm -rf .git/{link}; ln -s {} .git/{link}", outside.display());
        let ran = agent.call("ExecCommand", json!({ "cmd": made, "yield_time_ms": 60_000 })).await;
        assert_eq!(ran["exit_code"], 0, "{link}: {ran}");
        let evidence = ran["evidence"].to_string();
        let said =
            format!("git_dir_restored {}: {link} is a new link to {}", repo.join(".git").display(), outside.display());
        assert!(evidence.contains(&said), "{link}: {evidence}");
        let left = repo.join(".git").join(link);
        assert!(link == "turned" || left.symlink_metadata().is_err(), "{link}");
    }
    for kept in [".git/mine", ".git/turned"] {
        assert_eq!(fs::read_link(repo.join(kept)).unwrap(), Path::new("../mine"), "the user's links stay");
    }
    // A folder that is closed hides no link.
    agent.run(&format!("ln -s {} .git/logs/HEAD; chmod 0 .git/logs", outside.display())).await;
    agent.ground.git(&["commit", "-q", "--allow-empty", "-m", "after"]);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "mine\n");
    let ran = agent.call("ExecCommand", json!({ "cmd": WORK, "yield_time_ms": 60_000 })).await;
    assert_eq!(ran.get("evidence"), None, "{ran}");
}

/// Permissions are changed of no file but the git directory's own.
#[tokio::test]
async fn a_link_in_a_git_directory_changes_no_permissions_elsewhere() {
    use std::os::unix::fs::PermissionsExt;
    let agent = Agent::in_folder();
    for (name, is_folder) in [("key", false), ("keys", true)] {
        let outside = agent.ground.dir.path().join(name);
        if is_folder {
            fs::create_dir(&outside).unwrap();
        } else {
            put(&outside, "x");
        }
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o600)).unwrap();
        let path = outside.display();
        agent.run(&format!("git init -q {name}; rm -rf {name}/.git/refs; ln -s {path} {name}/.git/refs; true")).await;
        agent.run("true").await;
        assert_eq!(fs::metadata(&outside).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// A git directory that could not be put back keeps commands from starting until it is.
#[tokio::test]
async fn no_command_starts_beside_a_git_directory_that_could_not_be_put_back() {
    let agent = Agent::in_folder();
    let (repo, heads) = (agent.ground.repo.clone(), agent.stage.home.path().join("heads"));
    let git_dir = repo.join(".git");
    let head: Vec<u8> = b"ref: refs/heads/main\n".to_vec();
    let record = json!({ "label": "t", "heads": [{ "root": repo, "git_dir": ".git", "head": head }] });
    agent.quietly("true").await;
    put(&heads.join("unsettled-1"), record.to_string());
    // A file in place of a folder can't be put back.
    fs::rename(git_dir.join("refs"), git_dir.join("refs0")).unwrap();
    put(&git_dir.join("refs"), "");
    fs::remove_file(git_dir.join("HEAD")).unwrap();
    let refused = agent.call("ExecCommand", json!({ "cmd": "true" })).await;
    assert_eq!(refused["error"]["code"], "unprotected", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("could not be restored"), "{refused}");
    let named = abide_effects::process::unsettled_git_dirs(agent.stage.home.path());
    assert!(named[0].contains(git_dir.to_str().unwrap()), "{named:?}");
    fs::remove_file(git_dir.join("refs")).unwrap();
    fs::rename(git_dir.join("refs0"), git_dir.join("refs")).unwrap();
    agent.quietly("git status --porcelain > /dev/null").await;
    assert_eq!(abide_effects::process::unsettled_git_dirs(agent.stage.home.path()), Vec::<String>::new());
}

/// A command that ran when the daemon was killed: its record is in the home, as that of an earlier life.
#[tokio::test]
async fn a_git_directory_that_was_damaged_when_the_daemon_was_killed_is_restored_at_boot() {
    let agent = Agent::in_folder();
    let heads = agent.stage.home.path().join("heads");
    let running = agent.call("ExecCommand", json!({ "cmd": "sleep 1000", "yield_time_ms": 50 })).await;
    let task = TaskId::new(running["task_handle"]["task_id"].as_str().unwrap());
    let records: Vec<PathBuf> = fs::read_dir(&heads).unwrap().map(|entry| entry.unwrap().path()).collect();
    let record = fs::read(&records[0]).unwrap();
    let (executor, name) = (&agent.stage.executor, &agent.stage.agent);
    let _none = executor
        .perform(name, Effect::Command(CommandEffect::End { task_id: task.clone(), force: true }))
        .unwrap()
        .await;
    let _ended = executor.perform(name, Effect::Command(CommandEffect::Await { task_id: task })).unwrap().await;
    assert_eq!(fs::read_dir(&heads).unwrap().count(), 0, "a command that ended leaves no record");
    put(&heads.join("earlier-0"), record);
    let head = agent.ground.repo.join(".git/HEAD");
    fs::remove_file(&head).unwrap();
    let link = agent.ground.repo.join(".git/COMMIT_EDITMSG");
    let _none = fs::remove_file(&link);
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();
    let Agent { stage: Stage { executor, home, .. }, ground, .. } = agent;
    drop(executor);
    let _next = Stage::at(home);
    assert_eq!(fs::read_to_string(head).unwrap(), "ref: refs/heads/main\n");
    assert!(link.symlink_metadata().is_err(), "links that the command made go, too");
    assert_eq!(ground.git(&["status", "--porcelain"]), "");
    assert_eq!(fs::read_dir(heads).unwrap().count(), 0);
}

/// Nothing was recorded of a command that a daemon did not see end.
#[tokio::test]
async fn a_git_directory_that_is_damaged_is_named_before_a_command_starts() {
    let agent = Agent::in_folder();
    agent.quietly("true").await;
    let head = agent.ground.repo.join(".git/HEAD");
    for damage in ["", "nonsense"] {
        fs::write(&head, damage).unwrap();
        let refused = agent.call("ExecCommand", json!({ "cmd": "true" })).await;
        let (code, message) = (&refused["error"]["code"], refused["error"]["message"].as_str().unwrap());
        assert!(code == "unprotected" && message.contains(".git is no git directory any more"), "{refused}");
        assert!(refused["error"]["hint"].as_str().unwrap().contains(".git/HEAD"), "{refused}");
    }
    fs::write(&head, "ref: refs/heads/main\n").unwrap();
    agent.quietly(WORK).await;
}

/// Swaps two names of a folder again and again, as fast as the next command is started.
const SWAP: &str = "import ctypes, time
rename = ctypes.CDLL(None).renameat2
end = time.time() + 60
while time.time() < end:
    rename(-100, b'{a}', -100, b'{b}', 2); time.sleep(.002); rename(-100, b'{a}', -100, b'{b}', 2); time.sleep(.006)";

/// A command that runs swaps a part of a repository for a link while others are started: none of them is shown where
/// the link leads.
#[tokio::test]
async fn a_swapped_link_shows_no_command_what_lies_outside() {
    let agent = Agent::in_folder();
    put(&agent.ground.dir.path().join("secret/token"), "TOP-SECRET");
    let secret = agent.ground.dir.path().canonicalize().unwrap().join("secret");
    // Made by the agent while its first command runs, so that no mount of that one holds them.
    let swap = SWAP.replace("{a}", "n/.git/hooks").replace("{b}", "n/link");
    put(&agent.ground.repo.join("swap.py"), swap);
    let running = agent.call("ExecCommand", json!({ "cmd": "sleep 0.3; python3 swap.py", "yield_time_ms": 50 })).await;
    let task = running["task_handle"]["task_id"].as_str().unwrap_or_else(|| panic!("{running}")).to_owned();
    agent.run(&format!("git init -q n; ln -s {} n/link", secret.display())).await;
    let mut started = 0;
    for _ in 0..80 {
        let looked = agent
            .call(
                "ExecCommand",
                json!({ "cmd": "cat n/.git/hooks/token n/link/token", "yield_time_ms": 60_000, "start_new": true }),
            )
            .await;
        assert!(!looked.to_string().contains("TOP-SECRET"), "{looked}");
        started += usize::from(looked["exit_code"].is_i64());
    }
    assert!(started > 0, "some are started all the same");
    let _ended = agent
        .stage
        .executor
        .perform(&agent.stage.agent, Effect::Command(CommandEffect::End { task_id: TaskId::new(task), force: true }))
        .unwrap()
        .await;
}

#[tokio::test]
async fn a_repository_whose_path_is_not_text_is_named() {
    let agent = Agent::in_folder();
    let odd = agent.ground.repo.join(std::ffi::OsStr::from_bytes(b"odd \xff"));
    fs::create_dir(&odd).unwrap();
    git(&odd, &["init", "-q"]);
    let refused = agent.call("ExecCommand", json!({ "cmd": "true" })).await;
    assert_eq!(refused["error"]["code"], "not_utf8", "{refused}");
    fs::remove_dir_all(&odd).unwrap();
    agent.quietly("true").await;
}

/// Links and a `HEAD` of one command must not pass for the user's own when another one starts meanwhile.
#[tokio::test]
async fn commands_that_overlap_leave_no_link_and_no_damage_behind() {
    let agent = Agent::in_folder();
    let (repo, outside) = (agent.ground.repo.clone(), agent.ground.dir.path().join("outside"));
    put(&outside, "mine\n");
    let link = repo.join(".git/COMMIT_EDITMSG");
    let make = format!("ln -sfT {} .git/COMMIT_EDITMSG", outside.display());
    let first = format!("{make}; until [ -e second ]; do sleep 0.05; done");
    let running = agent.call("ExecCommand", json!({ "cmd": first, "yield_time_ms": 50 })).await;
    assert!(running["task_handle"]["task_id"].is_string(), "{running}");
    while !link.is_symlink() {
        tokio::task::yield_now().await;
    }
    // The link goes when the first command has ended; the second makes it again, and spoils `HEAD`.
    let second =
        format!("touch second; while [ -L .git/COMMIT_EDITMSG ]; do sleep 0.05; done; {make}; echo > .git/HEAD");
    let ran = agent.call("ExecCommand", json!({ "cmd": second, "yield_time_ms": 60_000, "start_new": true })).await;
    assert_eq!(ran["exit_code"], 0, "{ran}");
    assert!(ran["evidence"].to_string().contains("COMMIT_EDITMSG is a new link"), "{ran}");
    assert!(!link.is_symlink(), "{ran}");
    assert_eq!(agent.ground.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
}
