//! Commands and workspaces, as a person meets them on the command line.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::place::{Daemon, Place, document, text};

/// A place whose daemon can run commands: it has a `PATH`, and an agent that works in the folder `project`.
fn served() -> (Place, Daemon) {
    let place = Place::empty();
    fs::create_dir(place.path("project")).unwrap();
    let daemon = Daemon::start_with_path(&place);
    place.says(&["agent", "create", "scout", "--workspace", "project"]);
    (place, daemon)
}

fn project(place: &Place) -> PathBuf {
    place.path("project").canonicalize().unwrap()
}

/// One line of `agent show`.
fn row(place: &Place, name: &str) -> String {
    let shown = place.says(&["agent", "show", "scout"]);
    let found = shown.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("  "));
    found.unwrap_or_else(|| panic!("no {name} in {shown}")).trim().to_owned()
}

/// A command about a task of the agent.
fn task<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["task", words[0], "--agent", "scout"], &words[1..]].concat()
}

fn git(folder: &std::path::Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
    assert!(git.args(identity).args(args).output().unwrap().status.success(), "git {args:?}");
}

fn repository(place: &Place) -> PathBuf {
    let folder = project(place);
    place.write("project/README", "hello\n");
    git(&folder, &["init", "-q", "-b", "trunk"]);
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-q", "-m", "first"]);
    folder
}

#[test]
fn a_command_from_its_start_to_its_end() {
    let (place, _daemon) = served();
    let run = |more: &[&str]| place.run(&[&["task", "run", "--agent", "scout"], more].concat());
    let ran = run(&["--wait", "printf one; sleep 0.5; printf ' two'; pwd >> file"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "one two\n", ""), "one line stays one");
    assert_eq!(fs::read_to_string(place.path("project/file")).unwrap(), format!("{}\n", text(&project(&place))));
    let failed = run(&["--wait", "echo no >&2; exit 3"]);
    assert_eq!((failed.code, failed.out.as_str()), (Some(1), "no\n"));
    assert!(failed.err.ends_with(" is failed, exit 3\n"), "{}", failed.err);

    // JSON lines: what it wrote, and in the end the task.
    let lines = run(&["--wait", "--json", "echo hi"]);
    let lines: Vec<Value> = lines.out.lines().map(|line| document(&format!("{line}\n"))).collect();
    let (last, written) = lines.split_last().unwrap();
    assert_eq!((&last["status"], &last["exit_code"]), (&json!("completed"), &json!(0)));
    assert_eq!(written.iter().filter_map(|read| read["output"].as_str()).collect::<String>(), "hi\n");

    let listed = place.json(&["task", "list", "--agent", "scout"]);
    let ids: Vec<&str> =
        listed["items"].as_array().unwrap().iter().map(|task| task["task_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3);
    let end = &ids[1][ids[1].len() - 8..];
    let shown = place.says(&["task", "show", "--agent", "scout", end]);
    let rows: Vec<&str> = shown.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(rows, ["task", "kind", "status", "exit", "made", "ended", "command", "output", "found"], "{shown}");
    assert_eq!(place.says(&["task", "output", "--agent", "scout", end]), "no\n");
    assert_eq!(place.json(&["task", "output", "--agent", "scout", ids[2]])["output"], "hi\n");
}

#[test]
fn a_command_that_is_talked_to_and_ended() {
    let (place, _daemon) = served();
    let made = place.json(&["task", "run", "--agent", "scout", "--accepts-input", "read a; echo got $a; sleep 1000"]);
    let id = made["task_id"].as_str().unwrap();
    let why = place.json(&["why", "scout"]);
    let said = why["sentence"].as_str().unwrap();
    assert!(said.starts_with(&format!("scout has nothing to do until the command {id} (read a; echo got")), "{said}");
    assert!(why["waiting_on"][0]["what"].as_str().unwrap().ends_with("its result comes as a message"), "{why}");
    // It begins in its own time; what comes before that is refused by its state.
    let mut took = place.run(&task(&["input", id, "tea"]));
    while took.code == Some(6) {
        took = place.run(&task(&["input", id, "tea"]));
    }
    assert_eq!(took.out, "it took 4 bytes\n");
    let huge = place.write("huge", "x".repeat(70_000));
    let refused = place.command(&task(&["input", id, "-"])).stdin(fs::File::open(huge).unwrap()).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("1 to 65536 bytes"), "{refused:?}");
    assert_eq!(row(&place, "commands"), "1 running");
    // It answers in its own time, too, and must not be ended before.
    while place.says(&task(&["output", id])) != "got tea\n" {}
    let stopped = place.says(&task(&["stop", id]));
    assert_eq!(stopped, format!("{id} was asked to end; once more, and it is made to\n"));
    assert_eq!(place.says(&task(&["output", id, "--follow"])), "got tea\n");
    assert_eq!(place.json(&task(&["show", id]))["status"], "cancelled");
    assert_eq!(place.run(&task(&["stop", id])).code, Some(6), "it is over");
    assert_eq!(place.run(&task(&["input", id, "more"])).code, Some(6), "it is over");
}

#[test]
fn what_is_refused_and_how() {
    let (place, _daemon) = served();
    for words in [["show", "task_none"], ["output", "task_none"], ["stop", "task_none"]] {
        let error = place.refused(8, &["task", words[0], "--agent", "scout", words[1]]);
        assert_eq!(error, "scout has no such task");
    }
    place.refused(8, &["task", "run", "--agent", "nobody", "true"]);
    place.refused(2, &["agent", "set", "scout"]);
    place.refused(8, &["workspace", "list", "--agent", "nobody"]);
    place.refused(8, &["workspace", "detach", "--agent", "scout", "nowhere"]);
    assert_eq!(place.run(&["task", "run", "--agent", "scout"]).code, Some(2), "nothing to run");
    assert_eq!(place.run(&["task", "run", "--agent", "scout", "ls", "-l"]).code, Some(2), "-l may be ours");
    assert_eq!(place.says(&["task", "run", "--agent", "scout", "--wait", "--", "echo", "-l"]), "-l\n");
    assert_eq!(place.run(&["agent", "set", "scout", "--network", "maybe"]).code, Some(2));
    let error = place.refused(1, &["task", "run", "--agent", "scout", " "]);
    assert_eq!(error, "say what to run in cmd");

    let home = text(&place.home().canonicalize().unwrap()).to_owned();
    let gone = place.path("gone");
    let gone = format!("{} does not exist", text(&gone));
    for (folder, said) in
        [("gone", gone.as_str()), (".", "contains the runtime's own folder"), (&home, "is part of"), ("/", "the root")]
    {
        for command in [&["agent", "create", "b", "--workspace"][..], &["agent", "set", "scout", "--workspace"]] {
            let error = place.refused(1, &[command, &[folder]].concat());
            assert!(error.contains(said), "{error}");
        }
        let error = place.refused(1, &["workspace", "attach", "--agent", "scout", folder]);
        assert!(error.contains(said), "{error}");
    }
    place.refused(8, &["agent", "show", "b"]);

    place.says(&["agent", "stop", "scout"]);
    assert_eq!(place.refused(6, &["task", "run", "--agent", "scout", "true"]), "a stopped agent runs no commands");
}

#[test]
fn settings_that_are_changed() {
    let (place, _daemon) = served();
    fs::create_dir(place.path("other")).unwrap();
    let other = place.path("other").canonicalize().unwrap();
    let said = place.says(&["agent", "set", "scout", "--network", "on", "--workspace", "other"]);
    assert_eq!(said, format!("scout is to work in {}, has network on\n", text(&other)));
    assert_eq!((row(&place, "network"), row(&place, "workspace")), ("on".to_owned(), text(&other).to_owned()));
    assert!(!row(&place, "sandbox").is_empty());
    place.write("told", "Be brief.");
    let set =
        place.json(&["agent", "set", "scout", "--instructions", "told", "--model", "script/echo", "--network", "off"]);
    assert_eq!((&set["execution"]["network"], &set["model"]["name"]), (&json!(false), &json!("script/echo")));
    place.refused(8, &["agent", "set", "nobody", "--network", "on"]);
    place.says(&["task", "run", "--agent", "scout", "--wait", "touch here"]);
    assert!(other.join("here").exists(), "it works where it was set to");
}

#[test]
fn a_worktree_from_its_making_to_its_patch() {
    let (place, _daemon) = served();
    let folder = repository(&place);
    let attached = place.json(&["workspace", "attach", "--agent", "scout", "--worktree", "project"]);
    let (root, branch) = (attached["root"].as_str().unwrap(), attached["branch"].as_str().unwrap());
    assert_eq!(attached["workspace"], text(&folder));
    let listed = place.says(&["workspace", "list", "--agent", "scout"]);
    let line = listed.lines().find(|line| line.contains("worktree")).unwrap();
    assert!(line.starts_with("attached") && line.ends_with(&format!("{root}, of {}", text(&folder))), "{listed}");
    assert_eq!(row(&place, "workspace"), format!("{root} (branch {branch}, a worktree of {})", text(&folder)));
    place.says(&["task", "run", "--agent", "scout", "--wait", "echo new > new; cat README"]);
    let notes = place.json(&["why", "scout"])["notes"].clone();
    assert!(notes[0].as_str().unwrap().starts_with(&format!("it works in {root}, a worktree of ")), "{notes}");
    // The result of its task is a message, and a turn may read it at any time; no folder is detached below a running turn.
    place.says(&["agent", "stop", "scout"]);
    let said = place.says(&["workspace", "detach", "--agent", "scout", root]);
    let listed = place.json(&["workspace", "list", "--agent", "scout"]);
    let gone = listed["items"].as_array().unwrap().iter().find(|item| item["root"] == root).unwrap();
    assert!(gone["status"] == "removed" && !PathBuf::from(root).exists(), "{gone}");
    let saved = gone["patch"].as_str().unwrap();
    assert_eq!(said, format!("{root} is gone; what was not committed is saved in {saved}\n"));
    let patches = place.json(&["workspace", "patches", "--agent", "scout"]);
    let patch = &patches["items"][0];
    assert_eq!((&patch["files"], &patch["branch"]), (&json!(["new"]), &json!(branch)));
    assert!(fs::read_to_string(patch["path"].as_str().unwrap()).unwrap().contains("+new"));
    let said = place.says(&["workspace", "patches", "--agent", "scout"]);
    assert!(said.starts_with("PATCH ") && said.contains("1 file"), "{said}");
    place.refused(8, &["workspace", "detach", "--agent", "scout", root]);
}

#[test]
fn detaching_names_everything_that_is_kept_and_that_goes() {
    let (place, _daemon) = served();
    repository(&place);
    let attach = || {
        let attached = place.json(&["workspace", "attach", "--agent", "scout", "--worktree", "project"]);
        attached["root"].as_str().unwrap().to_owned()
    };
    let run = |cmd: &str| place.says(&["task", "run", "--agent", "scout", "--wait", cmd]);
    let detach = |root: &str| {
        place.says(&["agent", "stop", "scout"]);
        let said = place.says(&["workspace", "detach", "--agent", "scout", root]);
        place.says(&["agent", "start", "scout"]);
        said
    };
    let root = attach();
    run(
        "echo 1 >> README; git stash -q; echo 2 >> README; git stash -q; git notes add -m note; mkdir x; echo 3 > x/y; chmod 0 x",
    );
    let said = detach(&root);
    assert!(said.contains(" stays, it could not be removed: ") && said.contains("chmod -R u+rwX"), "{said}");
    run(
        "chmod 700 x; rm -r x; echo out.bin > .git/info/exclude; git commit -q --allow-empty -m a; git commit -q --amend --allow-empty -m b",
    );
    let said = detach(&root);
    for line in [
        "there was nothing uncommitted in its files",
        "commits are kept for abide/scout/stash",
        "commits are kept for abide/scout/stash@1",
        "commits are kept for abide/scout/notes/commits",
        "abide workspace fetch --branch reflog/",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(said.starts_with(&format!("{root} is gone\n")), "{said}");
    let fetched = place.says(&["workspace", "fetch", "--agent", "scout"]);
    assert!(fetched.contains("abide/scout/stash@1 is now at "), "{fetched}");
}

/// The commands of the README's section, as they are written there.
#[test]
fn the_readme_runs_commands_as_it_shows() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let section = readme.split("## Running commands").nth(1).unwrap().split("\n## ").next().unwrap();
    let place = Place::empty();
    let _daemon = Daemon::start_with_path(&place);
    fs::create_dir(place.path("bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_abide"), place.path("bin/abide")).unwrap();
    let path = format!("{}:{}", text(&place.path("bin")), std::env::var("PATH").unwrap());
    let mut checked = 0;
    for block in section.split("```console\n").skip(1) {
        let mut lines = block.split("```").next().unwrap().lines().peekable();
        while let Some(line) = lines.next() {
            let mut script = line.strip_prefix("$ ").unwrap_or_else(|| panic!("{line} is no command")).to_owned();
            if script.contains("<<'JSON'") {
                for line in lines.by_ref() {
                    script.push_str(&format!("\n{line}"));
                    if line == "JSON" {
                        break;
                    }
                }
            }
            let mut shell = Command::new("sh");
            shell.current_dir(place.path("")).env("PATH", &path).env("ABIDE_HOME", place.home());
            let output = shell.args(["-c", &script]).output().unwrap();
            assert!(output.status.success(), "{script}: {output:?}");
            if let Some(expected) = lines.next_if(|line| !line.starts_with('$')) {
                assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{expected}\n"), "{script}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 2);
}

/// File tools do not open files that the sandbox hides from commands in a person's home.
#[test]
fn a_file_tool_opens_no_secret_of_the_person() {
    let place = Place::empty();
    place.write("project/.config/gh/hosts.yml", "secret");
    place.write("project/.config/plain", "plain");
    place.write("home/config.toml", "sandbox = \"required\"\n");
    let mut command = place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", project(&place));
    let _daemon = Daemon::of(command);
    let read = |path: &str| json!({ "tools": [{ "name": "ReadFile", "input": { "path": path } }] });
    let rounds = [read("gh/hosts.yml"), read("plain"), json!({ "text": "Done." })];
    place.write("script.json", json!({ "rounds": rounds }).to_string());
    place.says(&["agent", "create", "scout", "--workspace", "project/.config", "--model", "script/script.json"]);
    assert_eq!(place.says(&["send", "scout", "--wait", "read"]), "Done.\n");
    let said = place.run(&["transcript", "scout", "--json"]).out;
    assert!(said.contains("permission_denied") && said.contains("plain") && !said.contains("secret"), "{said}");
}

#[test]
fn what_an_agent_is_told_of_where_it_works_is_shown() {
    let place = Place::empty();
    place.write("work/AGENTS.md", "Speak plainly.\n");
    place.write("work/.agents/skills/release/SKILL.md", "---\ndescription: How we release.\n---\nTag it.\n");
    place.write("home/skills/bare/SKILL.md", "no head\n");
    let read = json!({ "tools": [{ "name": "ReadSkill", "input": { "skill": "release" } }] });
    place.write("play.json", json!({ "rounds": [read, { "text": "Read." }] }).to_string());
    let _daemon = Daemon::start_with_path(&place);
    place.says(&["agent", "create", "scout", "--workspace", "work", "--model", "script/play.json"]);
    let shown = place.says(&["agent", "show", "scout"]);
    let row = |name: &str| shown.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim_start();
    assert_eq!((row("guides"), row("skills")), ("AGENTS.md", "release"));
    assert!(row("broken").starts_with("$ABIDE_HOME/skills/bare: its first line is not `---`"), "{shown}");
    let around = place.json(&["agent", "show", "scout"])["surroundings"].clone();
    assert_eq!(around["guides"], json!([{ "path": "AGENTS.md", "bytes": 15, "truncated": false }]));
    assert_eq!(around["skills"][0]["source"], ".agents/skills/release");
    assert_eq!(place.says(&["send", "scout", "go", "--wait", "--timeout", "30"]), "Read.\n");
    let said = place.json(&["transcript", "scout"]);
    let result = said["items"].as_array().unwrap().iter().find(|entry| entry["role"] == "tool_result").unwrap();
    assert_eq!((&result["status"], &result["json"]["content"]), (&json!("completed"), &json!("Tag it.\n")));
}
