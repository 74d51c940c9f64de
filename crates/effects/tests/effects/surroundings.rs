//! Guides and skills as an agent's model meets them: real folders, and what people and other agents may put in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use abide_effects::Executor;
use abide_effects::executor::ExecutorOptions;
use abide_effects::limits;
use abide_effects::policy::{CallPolicy, Policy};
use abide_effects::process::Bounds;
use abide_effects::sandbox::Mode;
use abide_effects::surroundings::Surroundings;
use abide_kernel::id::AgentId;
use abide_kernel::input::Input;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::time::Time;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::calls::{Run, run};

/// A home, and a project with a folder `w` in it that the agent works in.
struct Stage {
    executor: Executor,
    ground: TempDir,
    agent: AgentId,
    place: ToolPlacement,
    policy: Arc<Policy>,
}

impl Stage {
    fn new() -> Stage {
        let ground = TempDir::new().unwrap();
        for folder in ["home", "project/w"] {
            fs::create_dir_all(ground.path().join(folder)).unwrap();
        }
        let program = PathBuf::from(env!("CARGO_BIN_EXE_effects-stand-in"));
        let moment = || (Time::EPOCH, std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0));
        let setup = ExecutorOptions {
            program,
            home: ground.path().join("home"),
            sandbox: Mode::Auto,
            bounds: Bounds::default(),
            environment: Vec::new(),
            moment,
        };
        let workspace = ground.path().canonicalize().unwrap().join("project/w").display().to_string();
        let place = ToolPlacement { configured: Some(workspace), ..ToolPlacement::default() };
        Stage {
            executor: Executor::new(setup).unwrap(),
            ground,
            agent: AgentId::new("main").unwrap(),
            place,
            policy: Arc::default(),
        }
    }

    /// From where the home and the project lie.
    fn path(&self, name: &str) -> PathBuf {
        self.ground.path().canonicalize().unwrap().join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn skill(&self, folder: &str, description: &str) {
        let name = Path::new(folder).file_name().unwrap().to_str().unwrap();
        self.put(&format!("{folder}/SKILL.md"), format!("---\nname: {name}\ndescription: {description}\n---\n"));
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    async fn around(&self) -> Surroundings {
        self.executor.read_surroundings(&self.agent, &self.place, Arc::clone(&self.policy)).await
    }

    /// Guides as `path: text`.
    async fn guides(&self) -> Vec<String> {
        let around = self.around().await;
        assert_eq!(around.broken, []);
        around.guides.iter().map(|guide| format!("{}: {}", guide.path, guide.text)).collect()
    }

    /// Skills as `source: description`.
    async fn skills(&self) -> Vec<String> {
        let skills = self.around().await.skills;
        skills.iter().map(|skill| format!("{}: {}", skill.source, skill.description)).collect()
    }

    async fn broken(&self) -> Vec<String> {
        let broken = self.around().await.broken;
        broken.iter().map(|broken| format!("{}: {}", broken.path, broken.problem)).collect()
    }

    async fn read(&self, input: Value) -> Value {
        let policy = CallPolicy { policy: Arc::clone(&self.policy), approved: None };
        let run = Run { policy, ..run(&self.executor, &self.agent, "exec_1", "call_1", self.place.clone()) };
        match run.job("ReadSkill", input).await.as_slice() {
            [Input::FinishTool { result, .. }] => result.0.clone(),
            other => panic!("reading records its result and nothing more: {other:?}"),
        }
    }

    async fn refused(&self, input: Value, code: &str) -> Value {
        let error = self.read(input).await["error"].clone();
        assert_eq!(error["code"], code, "{error}");
        error
    }
}

#[tokio::test]
async fn where_nothing_is_nothing_is_found() {
    let mut stage = Stage::new();
    assert_eq!(stage.around().await, Surroundings::default());
    // One that has no folder yet gets none by being looked at.
    stage.place = ToolPlacement::default();
    assert_eq!(stage.around().await, Surroundings::default());
    assert!(!stage.path("home/agents").exists());
    stage.place.configured = Some("/nowhere".to_owned());
    assert_eq!(stage.around().await, Surroundings::default());
}

/// A guide or a skill may be a link to a file that the agent may not read.
#[tokio::test]
async fn files_that_the_policy_keeps_from_being_read_are_neither_guides_nor_skills() {
    let mut stage = Stage::new();
    stage.put("project/w/hidden/a", "---\nname: leak\ndescription: secret\n---\nsecret\n");
    stage.link("project/w/AGENTS.md", "hidden/a");
    stage.link("project/w/.agents/skills/leak/SKILL.md", "../../../hidden/a");
    stage.skill("project/w/.agents/skills/open", "fine");
    stage.link("project/w/.agents/skills/open/more", "../../../hidden/a");
    assert_eq!((stage.around().await.guides.len(), stage.skills().await.len()), (1, 2), "without a policy");
    for action in ["deny", "ask"] {
        let rule = format!("[[rule]]\naction = \"{action}\"\ntool = \"ReadFile\"\npath = \"hidden/**\"\n");
        stage.policy = Arc::new(Policy::parse(&rule).unwrap());
        let around = stage.around().await;
        assert_eq!(around.guides, []);
        assert!(!format!("{around:?}").contains("secret"), "{around:?}");
        assert_eq!(stage.skills().await, [".agents/skills/open: fine"]);
        stage.refused(json!({ "skill": "open", "path": "more" }), "permission_denied").await;
        stage.refused(json!({ "skill": "leak" }), "broken_skill").await;
    }
}

#[tokio::test]
async fn that_there_is_nothing_is_known_without_looking_only_where_nothing_can_be() {
    let mut stage = Stage::new();
    let nothing = |stage: &Stage| stage.executor.has_no_surroundings(&stage.agent, &stage.place);
    assert!(!nothing(&stage), "a project may have everything");
    stage.place = ToolPlacement::default();
    assert!(nothing(&stage));
    fs::create_dir(stage.path("home/skills")).unwrap();
    assert!(!nothing(&stage));
    fs::remove_dir(stage.path("home/skills")).unwrap();
    assert!(nothing(&stage));
    let root = stage.path("project/w").display().to_string();
    let bound = json!({ "workspace": &root, "root": &root, "mode": "direct", "attached_at": Time::EPOCH, "seq": 1 });
    stage.place.workspace = Some(serde_json::from_value(bound).unwrap());
    assert!(!nothing(&stage));
    stage.place.workspace = None;
    fs::create_dir_all(stage.path("home/agents/main/workspace")).unwrap();
    assert!(!nothing(&stage));
}

#[tokio::test]
async fn guides_come_from_the_workspace_up_to_the_top_of_its_repository() {
    let stage = Stage::new();
    stage.put("AGENTS.md", "beyond");
    stage.put("project/AGENTS.md", "top");
    stage.put("project/w/AGENTS.md", "own");
    stage.put("project/w/deep/AGENTS.md", "deep");
    assert_eq!(stage.guides().await, ["AGENTS.md: own"], "no repository, no folders above");
    fs::create_dir(stage.path("project/.git")).unwrap();
    assert_eq!(stage.guides().await, ["../AGENTS.md: top", "AGENTS.md: own"]);
    stage.put("project/w/AGENTS.md", " \n");
    assert_eq!(stage.guides().await, ["../AGENTS.md: top"], "one that says nothing is none");
    // A worktree or a submodule has a file there.
    stage.put("project/w/.git", "gitdir: elsewhere");
    assert_eq!(stage.guides().await, Vec::<String>::new());
}

#[tokio::test]
async fn nothing_of_the_runtimes_own_folder_is_a_guide() {
    let mut stage = Stage::new();
    fs::create_dir(stage.path(".git")).unwrap();
    for folder in [".", "home", "home/worktrees"] {
        stage.put(&format!("{folder}/AGENTS.md"), "not for agents");
    }
    stage.put("home/worktrees/main/1/AGENTS.md", "own");
    // Its link to the repository is gone: a command can do that.
    stage.place.configured = Some(stage.path("home/worktrees/main/1").display().to_string());
    assert_eq!(stage.guides().await, ["AGENTS.md: own"]);
}

#[tokio::test]
async fn a_guide_is_cut_at_a_line_and_what_lies_nearest_has_room_first() {
    let stage = Stage::new();
    fs::create_dir(stage.path("project/.git")).unwrap();
    let line = format!("{}\n", "x".repeat(99));
    stage.put("project/w/AGENTS.md", line.repeat(1_000));
    stage.put("project/AGENTS.md", "y\n".repeat(limits::GUIDE_BYTES));
    let guides = stage.around().await.guides;
    let [top, own] = guides.as_slice() else { panic!("{guides:?}") };
    assert!(own.truncated && own.text == line.repeat(limits::GUIDE_BYTES / line.len()));
    assert!(top.truncated && top.text == "y\n".repeat(limits::GUIDE_BYTES / 2));
    // Two more than there is room for, the nearest of them whole.
    let stage = Stage::new();
    fs::create_dir(stage.path(".git")).unwrap();
    for folder in [".", "project", "project/w"] {
        stage.put(&format!("{folder}/AGENTS.md"), "z".repeat(30 << 10));
    }
    let lengths: Vec<(usize, bool)> =
        stage.around().await.guides.iter().map(|guide| (guide.text.len(), guide.truncated)).collect();
    assert_eq!(lengths, [(4 << 10, true), (30 << 10, false), (30 << 10, false)]);
    stage.put("project/w/AGENTS.md", "ä".repeat(limits::GUIDE_BYTES));
    assert_eq!(stage.around().await.guides[2].text.len(), limits::GUIDE_BYTES, "a line without end");
}

#[tokio::test]
async fn no_guide_leads_out_of_where_it_lies() {
    let stage = Stage::new();
    fs::create_dir(stage.path("project/.git")).unwrap();
    stage.put("project/secret", "secret");
    stage.put("project/notes.md", "notes");
    stage.put("project/w/notes.md", "own notes");
    stage.link("project/w/AGENTS.md", "notes.md");
    stage.link("project/AGENTS.md", "./notes.md");
    assert_eq!(stage.guides().await, ["../AGENTS.md: notes", "AGENTS.md: own notes"], "a link beside it is fine");
    // The agent turns what it may write to; above, a link could lead through that.
    fs::remove_file(stage.path("project/w/notes.md")).unwrap();
    stage.link("project/w/notes.md", "../secret");
    fs::remove_file(stage.path("project/AGENTS.md")).unwrap();
    stage.link("project/AGENTS.md", "w/notes.md");
    let out = "it leads out of the folder that it has to lie in: copy it there";
    assert_eq!(stage.broken().await, [format!("AGENTS.md: {out}"), format!("../AGENTS.md: {out}")]);
    assert_eq!(stage.around().await.guides, []);
}

#[tokio::test]
async fn what_is_no_text_is_named_and_holds_nobody_up() {
    let stage = Stage::new();
    let pipe = stage.path("project/w/AGENTS.md");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    assert_eq!(stage.broken().await, ["AGENTS.md: AGENTS.md is a pipe"]);
    for (bytes, problem) in [(&b"a\0b"[..], "it is not text"), (b"a\xffb", "it is not UTF-8")] {
        fs::remove_file(&pipe).unwrap();
        fs::write(&pipe, bytes).unwrap();
        assert_eq!(stage.broken().await, [format!("AGENTS.md: {problem}")]);
    }
}

#[tokio::test]
async fn a_workspace_that_was_turned_into_a_link_has_nothing() {
    let stage = Stage::new();
    stage.put("theirs/AGENTS.md", "theirs");
    fs::remove_dir(stage.path("project/w")).unwrap();
    stage.link("project/w", stage.path("theirs"));
    assert_eq!(stage.around().await, Surroundings::default());
}

#[tokio::test]
async fn skills_are_found_in_three_places_and_the_workspace_wins() {
    let stage = Stage::new();
    stage.skill("home/skills/pdf", "theirs");
    stage.skill("home/skills/mail", "mail");
    assert_eq!(stage.skills().await, ["$ABIDE_HOME/skills/mail: mail", "$ABIDE_HOME/skills/pdf: theirs"]);
    stage.skill("project/w/.claude/skills/pdf", "second");
    stage.skill("project/w/.claude/skills/web", "web");
    stage.skill("project/w/.agents/skills/pdf", "first");
    stage.link("project/w/.agents/skills/xls", "../../shared/xls");
    stage.skill("project/w/shared/xls", "linked");
    stage.put("project/w/.agents/skills/README.md", "no skill");
    let expected = [
        ".agents/skills/pdf: first",
        ".agents/skills/xls: linked",
        ".claude/skills/web: web",
        "$ABIDE_HOME/skills/mail: mail",
    ];
    assert_eq!(stage.skills().await, expected);
    assert_eq!(stage.broken().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_broken_skill_is_named_with_what_is_wrong() {
    let stage = Stage::new();
    stage.put("secret/SKILL.md", "---\nname: secret\ndescription: d\n---\n");
    stage.put("home/skills/bare/SKILL.md", "# Bare\n");
    stage.put("home/skills/empty/notes.md", "");
    stage.put("home/skills/endless/SKILL.md", format!("---\nname: a\n{}", "x: y\n".repeat(10_000)));
    fs::create_dir_all(stage.path("home/skills/folder/SKILL.md")).unwrap();
    stage.link("home/skills/out", stage.path("secret"));
    assert_eq!(stage.skills().await, Vec::<String>::new());
    let expected = [
        "bare: its first line is not `---`: a skill begins with its name and description",
        "empty: there is no SKILL.md in it",
        "endless: nothing ends its head: a line of `---` has to come within 16384 bytes",
        "folder: folder/SKILL.md is a folder",
        "out: it leads out of the folder that it has to lie in: copy it there",
    ];
    assert_eq!(stage.broken().await, expected.map(|line| format!("$ABIDE_HOME/skills/{line}")));
    let error = stage.refused(json!({ "skill": "bare" }), "broken_skill").await;
    assert!(error["message"].as_str().unwrap().contains("its first line is not `---`"), "{error}");
}

#[tokio::test]
async fn there_is_a_last_skill_that_is_told() {
    let stage = Stage::new();
    for number in 0..70 {
        stage.skill(&format!("project/w/.agents/skills/s{number:02}"), "d");
    }
    let around = stage.around().await;
    assert_eq!((around.skills.len(), around.skills[63].name.as_str()), (64, "s63"));
    assert_eq!(stage.broken().await, [".agents/skills/s64: there are more than 64 skills: it is left out"]);
}

#[tokio::test]
async fn a_skill_is_read_in_three_steps() {
    let stage = Stage::new();
    let text = "---\nname: pdf\ndescription: Reads PDF.\n---\n\n# PDF\nUse tools/read.py.\n";
    stage.put("home/skills/pdf/SKILL.md", text);
    stage.put("home/skills/pdf/tools/read.py", "print(1)\n");
    stage.put("home/skills/pdf/.hidden", "");
    stage.put("home/skills/pdf/a.md", "one\ntwo\nthree\n");
    let around = stage.around().await;
    assert_eq!((around.skills[0].name.as_str(), around.skills[0].description.as_str()), ("pdf", "Reads PDF."));
    let whole = json!({
        "content": "\n# PDF\nUse tools/read.py.\n", "lines": 7, "truncated": false,
        "source": "$ABIDE_HOME/skills/pdf", "files": ["a.md", "tools/read.py"],
    });
    assert_eq!(stage.read(json!({ "skill": "pdf" })).await, whole);
    let file = stage.read(json!({ "skill": "pdf", "path": "tools/read.py" })).await;
    assert_eq!(file, json!({ "content": "print(1)\n", "lines": 1, "truncated": false }));
    let part = stage.read(json!({ "skill": "pdf", "path": "a.md", "offset": 2, "limit": 1 })).await;
    assert_eq!((&part["content"], &part["next_offset"]), (&json!("two\n"), &json!(3)));
    stage.put("home/skills/bare/SKILL.md", "---\ndescription: d\n---\n");
    assert_eq!(stage.read(json!({ "skill": "bare" })).await["content"], "");
    assert!(!stage.path("home/agents").exists(), "no folder is made for it");
}

#[tokio::test]
async fn a_skill_opens_nothing_but_what_lies_with_it() {
    let stage = Stage::new();
    stage.put("secret", "secret");
    stage.put("home/token", "token");
    stage.skill("home/skills/pdf", "d");
    stage.link("home/skills/pdf/up", "../../token");
    stage.link("home/skills/pdf/absolute", stage.path("secret"));
    for path in ["../../token", "/etc/passwd", "a/../../../token"] {
        stage.refused(json!({ "skill": "pdf", "path": path }), "invalid_input").await;
    }
    for path in ["up", "absolute"] {
        stage.refused(json!({ "skill": "pdf", "path": path }), "outside_workspace").await;
    }
    let missing = stage.refused(json!({ "skill": "pdf", "path": "none.md" }), "not_found").await;
    assert!(missing["hint"].as_str().unwrap().contains("lists the files"), "{missing}");
    stage.refused(json!({ "skill": "../pdf" }), "not_found").await;
    let near = stage.refused(json!({ "skill": "pfd" }), "not_found").await;
    assert_eq!(near["hint"], "did you mean pdf? The skills are: pdf");
}

#[tokio::test]
async fn the_files_of_a_skill_are_listed_up_to_a_bound() {
    let stage = Stage::new();
    stage.skill("home/skills/big", "d");
    for number in 0..250 {
        stage.put(&format!("home/skills/big/{number:03}"), "");
    }
    stage.link("home/skills/big/round", ".");
    let read = stage.read(json!({ "skill": "big" })).await;
    assert_eq!(read["files"].as_array().unwrap().len(), limits::SKILL_FILES);
    assert_eq!(read["note"], "it has more files than the 200 that are listed");
}
