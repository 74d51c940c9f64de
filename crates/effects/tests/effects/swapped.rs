//! A folder that an agent was given, and that a command of another agent of its tree replaces by a link meanwhile: nothing
//! that lies behind the link is read, written, bound or shown.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use abide_effects::executor::AllowFolder;
use abide_effects::policy::{Caller, Policy};
use abide_kernel::effect::{Effect, WorkspaceEffect};
use abide_kernel::id::AgentId;
use abide_kernel::refusal::ErrorCode;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::state::workspace::Workspace;
use abide_kernel::time::Time;
use abide_kernel::tool::ToolCall;
use abide_kernel::vocabulary::{ControlAction, WorkspaceMode};
use rustix::fs::{CWD, RenameFlags};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::calls::{parse, run};
use crate::executor::{Stage, result};
use crate::workspace::{everything, git, put};

const SECRET: &str = "TOP-SECRET";

/// An agent's folder `work/part`, a link `work/link` to a folder `theirs` of the user's, and an agent.
struct Swapped {
    stage: Stage,
    _ground: TempDir,
    work: PathBuf,
    part: PathBuf,
    theirs: PathBuf,
}

/// Swaps the folder and the link until it is dropped.
struct Swapping {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn exchange(work: &Path) {
    rustix::fs::renameat_with(CWD, work.join("part"), CWD, work.join("link"), RenameFlags::EXCHANGE).unwrap();
}

impl Swapped {
    fn new() -> Swapped {
        let ground = TempDir::new().unwrap();
        let root = ground.path().canonicalize().unwrap();
        let (work, part, theirs) = (root.join("work"), root.join("work/part"), root.join("theirs"));
        for (folder, text) in [(&part, "own"), (&theirs, SECRET)] {
            put(&folder.join("file"), text);
            put(&folder.join("AGENTS.md"), text);
            let skill = format!("---\nname: how\ndescription: {text}\n---\n{text}\n");
            put(&folder.join(".agents/skills/how/SKILL.md"), skill);
            git(folder, &["init", "-q", "-b", "main"]);
            git(folder, &["add", "-A"]);
            git(folder, &["commit", "-q", "-m", text]);
        }
        symlink(&theirs, work.join("link")).unwrap();
        Swapped { stage: Stage::new(), _ground: ground, work, part, theirs }
    }

    /// The agent went to the folder by itself, or was given it.
    fn places(&self) -> [ToolPlacement; 2] {
        let name = self.part.display().to_string();
        let bound = Workspace {
            workspace: name.clone(),
            root: name.clone(),
            mode: WorkspaceMode::Direct,
            worktree: None,
            note: None,
            attached_at: Time::EPOCH,
            seq: 1,
            removing: false,
            discard: false,
            kept: None,
        };
        let attached = vec![self.work.display().to_string(), name.clone()];
        let given = ToolPlacement { configured: Some(name), ..ToolPlacement::default() };
        [ToolPlacement { workspace: Some(bound), attached, ..ToolPlacement::default() }, given]
    }

    async fn call(&self, place: &ToolPlacement, tool: &str, input: Value) -> Value {
        let run = run(&self.stage.executor, &self.stage.agent, "exec_1", "call_1", place.clone());
        result(&run.job(tool, input).await).1
    }

    fn swapping(&self) -> Swapping {
        let (over, work) = (Arc::new(AtomicBool::new(false)), self.work.clone());
        let seen = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                exchange(&work);
            }
        });
        Swapping { over, thread: Some(thread) }
    }
}

fn tools_of(round: usize) -> [(&'static str, Value); 6] {
    let patch = "--- /dev/null\n+++ b/patched\n@@ -0,0 +1 @@\n+own\n";
    [
        ("ReadFile", json!({ "path": "file" })),
        ("WriteFile", json!({ "path": "written", "content": format!("own {round}") })),
        ("EditFile", json!({ "path": "file", "old": SECRET, "new": "own" })),
        ("Grep", json!({ "pattern": SECRET })),
        ("Glob", json!({ "pattern": "*" })),
        ("ApplyPatch", json!({ "patch": patch })),
    ]
}

#[tokio::test]
async fn a_file_tool_does_not_follow_a_link_in_place_of_the_workspace() {
    let at = Swapped::new();
    let before = everything(&at.theirs);
    for place in at.places() {
        let read = json!({ "path": "file" });
        assert_eq!(at.call(&place, "ReadFile", read.clone()).await["content"], "own");
        exchange(&at.work);
        for (tool, input) in tools_of(0) {
            assert_eq!(at.call(&place, tool, input).await["error"]["code"], "moved", "{tool}");
        }
        exchange(&at.work);
        assert_eq!(at.call(&place, "ReadFile", read).await["content"], "own");
    }
    assert_eq!(everything(&at.theirs), before);
}

#[tokio::test]
async fn a_file_tool_loses_a_race_for_the_workspace_itself() {
    let at = Swapped::new();
    let before = everything(&at.theirs);
    for place in at.places() {
        at.call(&place, "ReadFile", json!({ "path": "file" })).await;
        let (mut worked, mut refused) = (0, 0);
        let swapping = at.swapping();
        for round in 0..200 {
            for (tool, input) in tools_of(round) {
                let answer = at.call(&place, tool, input).await;
                assert!(!answer.to_string().contains(SECRET), "{tool}: {answer}");
                let is_moved = answer["error"]["code"] == "moved";
                refused += usize::from(is_moved);
                worked += usize::from(!is_moved);
            }
        }
        drop(swapping);
        assert!(worked > 0 && refused > 0, "{worked} {refused}");
        // As it was for the next one.
        if at.part.is_symlink() {
            exchange(&at.work);
        }
    }
    assert_eq!(everything(&at.theirs), before);
}

/// Another folder counts as another one, until the model chooses it.
#[tokio::test]
async fn a_workspace_that_another_folder_replaced_is_not_worked_in_unasked() {
    let at = Swapped::new();
    let [place, _] = at.places();
    let read = json!({ "path": "file" });
    assert_eq!(at.call(&place, "ReadFile", read.clone()).await["content"], "own");
    fs::rename(&at.part, at.work.join("old")).unwrap();
    put(&at.part.join("file"), "other");
    assert_eq!(at.call(&place, "ReadFile", read.clone()).await["error"]["code"], "moved");
    assert_eq!(at.call(&place, "ExecCommand", json!({ "cmd": "cat file" })).await["error"]["code"], "moved");
    let child = AgentId::new("main.1").unwrap();
    let of = at.part.display().to_string();
    assert_eq!(at.stage.executor.worktree_for_child(&child, of).await.unwrap_err().code, ErrorCode::Moved);
    let go = json!({ "path": at.part, "mode": "direct" });
    assert_eq!(at.call(&place, "UseWorkspace", go).await["cwd"], json!(at.part));
    assert_eq!(at.call(&place, "ReadFile", read).await["content"], "other");
}

/// A stop is no word about the folder: only a choice of this very one is.
#[tokio::test]
async fn an_agent_that_was_stopped_does_not_work_in_a_folder_that_replaced_its_own() {
    let at = Swapped::new();
    let (executor, agent) = (&at.stage.executor, &at.stage.agent);
    let (name, read) = (at.part.display().to_string(), json!({ "path": "file" }));
    for (round, place) in at.places().into_iter().enumerate() {
        let write = json!({ "path": "file", "content": "own" });
        assert_eq!(at.call(&place, "WriteFile", write.clone()).await["error"], Value::Null);
        let stop =
            Effect::Workspace(WorkspaceEffect::Release { workspace: name.clone(), action: Some(ControlAction::Stop) });
        assert_eq!(executor.perform(agent, stop).unwrap().await.len(), 1);
        // Its actions elsewhere meanwhile change nothing about this one.
        let elsewhere = ToolPlacement { configured: Some(at.theirs.display().to_string()), ..ToolPlacement::default() };
        assert_eq!(at.call(&elsewhere, "Glob", json!({ "pattern": "*" })).await["error"], Value::Null);
        fs::rename(&at.part, at.work.join(format!("old{round}"))).unwrap();
        put(&at.part.join("file"), "other");
        for (tool, input) in tools_of(0) {
            assert_eq!(at.call(&place, tool, input).await["error"]["code"], "moved", "{tool}");
        }
        let refused = at.call(&place, "ExecCommand", json!({ "cmd": "cat file" })).await;
        assert_eq!(refused["error"]["code"], "moved");
        assert!(refused["error"]["hint"].as_str().unwrap().contains("abide workspace attach"), "{refused}");
        // The operator means this one.
        let allow: AllowFolder = Box::new(|_, _| Ok(()));
        executor.attach_folder(agent, name.clone(), WorkspaceMode::Direct, allow).await.unwrap();
        assert_eq!(at.call(&place, "ReadFile", read.clone()).await["content"], "other");
        assert_eq!(at.call(&place, "ExecCommand", json!({ "cmd": "cat file" })).await["stdout"], "other");
    }
    // Of an agent that is gone, nothing is known.
    executor.forget_agent(agent);
    fs::rename(&at.part, at.work.join("gone")).unwrap();
    put(&at.part.join("file"), "new");
    assert_eq!(at.call(&at.places()[1], "ReadFile", read).await["content"], "new");
}

/// A reader takes no folder, but looks at it as a writer does.
#[tokio::test]
async fn a_reader_reads_only_where_the_agent_could_write() {
    let at = Swapped::new();
    let tools = || [("Glob", json!({ "pattern": "*" })), ("WriteFile", json!({ "path": "x", "content": "" }))];
    let home = at.stage.home.path().canonicalize().unwrap();
    for (folder, code) in [(home.parent().unwrap(), "contains_home"), (&home, "inside_home")] {
        let place = ToolPlacement { configured: Some(folder.display().to_string()), ..ToolPlacement::default() };
        for (tool, input) in tools() {
            assert_eq!(at.call(&place, tool, input).await["error"]["code"], code, "{tool}");
        }
    }
    // It is a link already when the agent reads for the first time.
    exchange(&at.work);
    for place in at.places() {
        for (tool, input) in tools() {
            assert_eq!(at.call(&place, tool, input).await["error"]["code"], "moved", "{tool}");
        }
    }
}

/// The moment between the look at a folder and its use is a judge's.
#[tokio::test]
async fn a_folder_that_is_swapped_while_it_is_judged_is_refused() {
    let at = Swapped::new();
    let ground = crate::workspace::Ground::empty();
    let swap = |_: &Path| {
        exchange(&at.work);
        Ok(())
    };
    let refused = ground.repositories().validate_judged(&at.part, swap).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Moved);
    exchange(&at.work);
    // A person's judge comes after the look: the worktree is made of no other repository.
    let work = at.work.clone();
    let allow: AllowFolder = Box::new(move |_, _| {
        exchange(&work);
        Ok(())
    });
    let part = at.part.display().to_string();
    let made = at.stage.executor.attach_folder(&at.stage.agent, part, WorkspaceMode::Worktree, allow).await;
    assert!(made.is_err(), "{made:?}");
}

#[tokio::test]
async fn a_model_binds_no_folder_that_a_swapped_link_leads_to() {
    let at = Swapped::new();
    let [place, _] = at.places();
    let known = [at.part.clone(), at.work.clone()].map(|path| json!(path));
    let (mut bound, mut refused) = (0, 0);
    let swapping = at.swapping();
    for round in 0..1_000 {
        let path = if round % 2 == 0 { &at.part } else { &at.work };
        let answer = at.call(&place, "UseWorkspace", json!({ "path": path, "mode": "direct" })).await;
        if answer["error"].is_null() {
            assert!(known.contains(&answer["cwd"]) && known.contains(&answer["workspace"]), "{answer}");
            bound += 1;
        } else {
            refused += 1;
        }
    }
    drop(swapping);
    assert!(bound > 0 && refused > 0, "{bound} {refused}");
}

#[tokio::test]
async fn a_model_gets_no_worktree_of_what_a_swapped_link_leads_to() {
    let at = Swapped::new();
    let [place, _] = at.places();
    let child = AgentId::new("main.1").unwrap();
    let of = at.part.display().to_string();
    exchange(&at.work);
    let refused = at.stage.executor.worktree_for_child(&child, of.clone()).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Moved);
    let go = json!({ "path": at.part, "mode": "worktree" });
    assert_eq!(at.call(&place, "UseWorkspace", go.clone()).await["error"]["code"], "not_attached");
    let shows = |root: &str| !fs::read_to_string(Path::new(root).join("file")).is_ok_and(|text| text == "own");
    let swapping = at.swapping();
    for _ in 0..8 {
        if let Ok(made) = at.stage.executor.worktree_for_child(&child, of.clone()).await {
            assert!(made.workspace == of && !shows(&made.root), "{made:?}");
        }
        let answer = at.call(&place, "UseWorkspace", go.clone()).await;
        if let Some(root) = answer["cwd"].as_str() {
            assert!(answer["workspace"] == json!(of) && !shows(root), "{answer}");
        }
    }
    drop(swapping);
}

#[tokio::test]
async fn guides_and_skills_come_from_no_folder_that_a_swapped_link_leads_to() {
    let at = Swapped::new();
    let executor = &at.stage.executor;
    for place in at.places() {
        let around = executor.read_surroundings_blocking(&at.stage.agent, &place, &Policy::default());
        assert!(around.guides.iter().any(|guide| guide.text == "own") && around.skills.len() == 1, "{around:?}");
        let swapping = at.swapping();
        for _ in 0..2_000 {
            let around = executor.read_surroundings_blocking(&at.stage.agent, &place, &Policy::default());
            assert!(!format!("{around:?}").contains(SECRET), "{around:?}");
        }
        for _ in 0..500 {
            let skill = at.call(&place, "ReadSkill", json!({ "skill": "how" })).await;
            assert!(!skill.to_string().contains(SECRET), "{skill}");
        }
        drop(swapping);
        if at.part.is_symlink() {
            exchange(&at.work);
        }
    }
}

#[test]
fn a_path_in_a_workspace_that_became_a_link_is_judged_as_one_that_leads_out() {
    let at = Swapped::new();
    let rules = "[[rule]]\naction = \"allow\"\ntool = \"ReadFile\"\npath = \"file\"\n\
                 [[rule]]\naction = \"deny\"\ntool = \"ReadFile\"";
    let policy = Policy::parse(rules).unwrap();
    let agent = AgentId::new("main").unwrap();
    let caller = Caller { agent: &agent, makers: &[], workspace: Some(&at.part), root: None, rule_folders: &[] };
    let input = json!({ "path": "file" });
    let judge = || policy.judge(&caller, "ReadFile", &input, parse("ReadFile", &input));
    assert!(matches!(judge(), ToolCall::Executor(_)), "{:?}", judge());
    exchange(&at.work);
    assert!(matches!(judge(), ToolCall::Refused(_)), "{:?}", judge());
}

#[tokio::test]
async fn a_model_chooses_no_folder_of_the_system_and_no_whole_home() {
    let at = Swapped::new();
    let person = at.stage.executor.person().canonicalize().unwrap();
    for (folder, code) in [(Path::new("/etc"), "system_folder"), (&person, "whole_home")] {
        let place = ToolPlacement { attached: vec![folder.display().to_string()], ..ToolPlacement::default() };
        let answer = at.call(&place, "UseWorkspace", json!({ "path": folder, "mode": "direct" })).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
}
