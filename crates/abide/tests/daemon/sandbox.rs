//! The sandbox of commands, as the operator sets it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::hands::{LONG_MS, calls, exec, git, tool};
use crate::place::{Daemon, text};
use crate::served::{Served, until};

/// The output of a command, run for an agent that may reach the network or not.
fn said(served: &Served, agent: &str, network: bool, cmd: &str) -> Value {
    let folder = served.folder(&format!("work-{agent}"));
    let model = served.script(agent, &json!({ "rounds": [calls(exec(cmd, LONG_MS)), { "text": "Done." }] }));
    let body = json!({ "id": agent, "model": model, "workspace": folder, "network": network });
    served.post("/v1/agents", &body);
    let message = served.send(agent, "run it");
    served.until_told(agent, &message);
    served.results(agent, "ExecCommand")[0].clone()
}

fn names(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

/// Speaks to the daemon's own port.
fn knocks(served: &Served) -> String {
    let host = served.address().host;
    let (host, port) = host.split_once(':').unwrap();
    format!(
        "exec 3<>/dev/tcp/{host}/{port} && printf 'GET /healthz HTTP/1.0\\r\\nHost: {host}:{port}\\r\\n\\r\\n' >&3 && head -1 <&3"
    )
}

#[test]
fn a_required_sandbox_keeps_the_home_and_the_network_away() {
    let mut served = Served::start_with("sandbox = \"required\"\n");
    let home = served.place.home().canonicalize().unwrap();
    let outside = served.place.path("outside");
    let cmd = format!(
        "cat '{home}/token'; cat '{home}/ledger.db'; ls '{home}'; echo x > '{outside}'; ln -s '{home}/token' link; cat link; echo ours > ours; cat ours",
        home = home.display(),
        outside = outside.display(),
    );
    let ran = said(&served, "nosy", false, &cmd);
    assert_eq!((&ran["exit_code"], &ran["stdout"]), (&json!(0), &json!("ours\n")), "{ran}");
    assert!(!outside.exists());
    let folder = served.folder("work-nosy");
    assert_eq!(fs::read_to_string(folder.join("ours")).unwrap(), "ours\n");
    let token = served.address().token;
    assert!(!served.events("nosy").iter().any(|event| event.to_string().contains(&token)));

    // Files that tools read are kept as far away: by their path, and by a link that a command made.
    let reads = |path: &str| calls(tool("ReadFile", json!({ "path": path })));
    let rounds = json!([
        reads("link"), reads("../home/token"), reads(home.join("token").to_str().unwrap()), reads("ours"), { "text": "Done." }
    ]);
    served.post("/v1/agents/nosy/stop", &json!({}));
    served.create_in("reader", &folder, &rounds);
    let message = served.send("reader", "read");
    served.until_told("reader", &message);
    let results = served.results("reader", "ReadFile");
    assert!(results[..3].iter().all(|result| result["error"]["code"].is_string()), "{results:?}");
    assert_eq!(results[3]["content"], "ours\n");
    assert!(!results.iter().any(|result| result.to_string().contains(&token)));

    let summary = served.get("/v1/agents/nosy");
    let sandbox = &summary["execution"]["sandbox"];
    assert_eq!(sandbox["mode"], "required");
    let enforced = names(&sandbox["enforced"]);
    assert!(enforced.contains(&"filesystem") && enforced.contains(&"network"), "{sandbox}");

    // The network is off until the operator says otherwise.
    let cmd = knocks(&served);
    let ran = said(&served, "offline", false, &cmd);
    assert_ne!(ran["exit_code"], 0, "{ran}");
    let ran = said(&served, "online", true, &cmd);
    assert!(ran["stdout"].as_str().unwrap().contains("200"), "{ran}");
    let summary = served.get("/v1/agents/online");
    assert!(!names(&summary["execution"]["sandbox"]["enforced"]).contains(&"network"));
    served.stop_and_verify();
}

#[test]
fn a_sandbox_that_is_off_is_said_to_be_off() {
    let mut served = Served::start_with("sandbox = \"off\"\n");
    let outside = served.place.path("outside");
    let ran = said(&served, "free", false, &format!("echo x > '{}'", outside.display()));
    assert_eq!(ran["exit_code"], 0, "{ran}");
    assert!(outside.exists());
    let sandbox = &served.get("/v1/agents/free")["execution"]["sandbox"];
    assert_eq!((&sandbox["mode"], &sandbox["mechanism"]), (&json!("off"), &json!("none")));
    assert_eq!(names(&sandbox["enforced"]), ["processes", "memory"]);
    assert!(!sandbox["problems"].as_array().unwrap().is_empty());
    // On the command line, too.
    let shown = served.place.json(&["agent", "show", "free"]);
    assert_eq!(shown["execution"]["sandbox"]["mode"], "off");
    served.stop_and_verify();
}

/// With a `PATH` that has every program but bubblewrap.
fn up_without_bubblewrap(served: &mut Served) {
    let programs = served.folder("programs");
    for folder in ["/bin", "/usr/bin"] {
        for entry in fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.file_name() != "bwrap") {
            // /bin may be /usr/bin.
            let _there = symlink(entry.path(), programs.join(entry.file_name()));
        }
    }
    let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
    command.env("PATH", programs);
    served.daemon = Some(Daemon::of(command));
}

/// Landlock can't forbid below a folder that it allows, so it can't protect the hooks of a repository that an agent works in.
#[test]
fn a_repository_that_the_sandbox_can_not_protect_is_not_worked_in_where_one_is_required() {
    let mut served = Served::down("sandbox = \"required\"\n");
    up_without_bubblewrap(&mut served);
    let repo = served.repository("repo", 1);
    let sandbox = served.get("/v1/sandbox");
    assert_ne!(sandbox["mechanism"], "bubblewrap");
    let lands = sandbox["mechanism"] == "landlock";
    let run = |agent: &str| {
        let message = served.send(agent, "run it");
        served.until_told(agent, &message);
        served.results(agent, "ExecCommand").pop().unwrap()
    };
    let rounds = json!([calls(exec("echo ran; echo x >> .git/config", LONG_MS)), { "text": "Done." }]);
    served.create_in("direct", &repo, &rounds);
    let refused = run("direct");
    assert_eq!(refused["error"]["code"], if lands { "unprotected" } else { "sandbox_required" }, "{refused}");
    assert!(!fs::read_to_string(repo.join(".git/config")).unwrap().ends_with("x\n"));
    // In a worktree there is nothing of the user's to protect, and a folder without a repository has none.
    served.create_playing("worktree", &rounds);
    served.post("/v1/agents/worktree/workspaces", &json!({ "path": repo, "mode": "worktree" }));
    served.create_in("plain", &served.folder("plain"), &rounds);
    for agent in ["worktree", "plain"] {
        let ran = run(agent);
        let expected = if lands { json!("ran\n") } else { Value::Null };
        assert_eq!(ran["stdout"], expected, "{agent}: {ran}");
    }
    let report = served.place.json(&["doctor"]);
    let problems: Vec<_> = report["checks"].as_array().unwrap().iter().filter(|it| it["name"] == "sandbox").collect();
    let told = problems.iter().any(|it| it["found"].as_str().unwrap().contains("hooks and settings"));
    assert_eq!(told, lands, "{report}");
    served.stop_and_verify();
}

#[test]
fn hooks_that_an_agent_can_write_are_named() {
    let mut served = Served::start();
    let repo = served.repository("repo", 1);
    crate::hands::git(&repo, &["config", "core.hooksPath", ".husky"]);
    let words = ["agent", "create", "worker", "--workspace", text(&repo)];
    let made = served.place.run(&words);
    let hooks = format!("your git runs hooks from {}, which the agent can write", repo.join(".husky").display());
    assert!(made.code == Some(0) && made.err.contains(&hooks), "{made:?}");
    assert!(served.place.says(&["agent", "show", "worker"]).contains(&hooks));
    let find = || {
        let report = served.place.json(&["doctor"]);
        let checks = report["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "hooks")
    };
    let found = find().unwrap();
    assert!(found["found"].as_str().unwrap().starts_with(&hooks), "{found}");
    assert!(found["fix"].as_str().unwrap().contains("have worker work in a worktree"), "{found}");
    served.post("/v1/agents/worker/workspaces", &json!({ "path": repo, "mode": "worktree" }));
    assert_eq!(find(), None, "a worktree has no hooks of the user's");
    served.stop_and_verify();
}

/// Files that the repository's and the user's own configuration include, and hooks that one of them sets.
#[test]
fn settings_that_an_agent_can_write_are_named() {
    let mut served = Served::down("");
    let repo = served.repository("repo", 1);
    let person = served.folder("person");
    let include = |path: &Path| format!("[include]\n\tpath = {}\n", path.display());
    fs::write(person.join(".gitconfig"), include(Path::new("more")) + &include(&repo.join("of-user"))).unwrap();
    fs::write(person.join("more"), "[core]\n\thooksPath = .husky\n").unwrap();
    crate::hands::git(&repo, &["config", "include.path", "../of-repository"]);
    crate::hands::git(&repo, &["config", "core.fsmonitor", "tools/fsm"]);
    let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
    command.env("HOME", &person);
    served.daemon = Some(Daemon::of(command));
    let made = served.place.run(&["agent", "create", "worker", "--workspace", text(&repo)]);
    let shown = served.place.says(&["agent", "show", "worker"]);
    let report = served.place.json(&["doctor"]);
    for (name, does, path) in [
        ("hooks", "runs hooks", ".husky"),
        ("settings", "reads settings", "of-user"),
        ("settings", "reads settings", "of-repository"),
    ] {
        let warning = format!("your git {does} from {}, which the agent can write", repo.join(path).display());
        assert!(made.err.contains(&warning), "{made:?}");
        assert!(shown.contains(&warning), "{shown}");
        let is_it = |check: &Value| check["name"] == name && check["found"].as_str().unwrap().starts_with(&warning);
        assert!(report["checks"].as_array().unwrap().iter().any(is_it), "{report}");
    }
    let program = format!("your git runs {} (core.fsmonitor names it)", repo.join("tools/fsm").display());
    assert!(made.err.contains(&program) && shown.contains(&program), "{made:?} {shown}");
    let is_it = |check: &Value| check["name"] == "programs" && check["found"].as_str().unwrap().starts_with(&program);
    assert!(report["checks"].as_array().unwrap().iter().any(is_it), "{report}");
    // A folder that git could take for a repository in the place of the user's.
    fs::write(repo.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    for folder in ["objects", "refs"] {
        fs::create_dir(repo.join(folder)).unwrap();
    }
    let shadow = format!("{} has HEAD, objects and refs", repo.display());
    assert!(served.place.says(&["agent", "show", "worker"]).contains(&shadow));
    let report = served.place.json(&["doctor"]);
    assert!(report.to_string().contains(&shadow) && report.to_string().contains("safe.bareRepository"), "{report}");
    fs::remove_file(repo.join("HEAD")).unwrap();
    served.post("/v1/agents/worker/workspaces", &json!({ "path": repo, "mode": "worktree" }));
    let around = served.get("/v1/agents/worker/surroundings");
    assert_eq!((&around["writable_hooks"], &around["writable_settings"]), (&Value::Null, &Value::Null), "{around}");
    // A home of dotfiles: the user's own file is a link into the folder.
    fs::remove_file(person.join(".gitconfig")).unwrap();
    symlink(repo.join("dotfile"), person.join(".gitconfig")).unwrap();
    served.create_in("other", &repo, &json!([{ "text": "Done." }]));
    let around = served.get("/v1/agents/other/surroundings");
    let named = [person.join(".gitconfig"), repo.join("of-repository")];
    assert_eq!(around["writable_settings"], json!(named), "{around}");
    served.stop_and_verify();
}

/// Where the disk is short for one agent, that agent waits and goes on by itself. The reserve is set so high that one
/// large file brings the disk below it: no disk is filled.
#[test]
fn an_agent_whose_command_fills_the_disk_waits_until_there_is_room() {
    const MOST: u64 = 1 << 30;
    let mut served = Served::down("");
    let found = rustix::fs::statvfs(served.place.path("home")).unwrap();
    let free = found.f_bavail * found.f_frsize;
    let large = MOST.min(free / 4);
    served.place.write("home/config.toml", format!("log = \"error\"\ndisk_reserve = \"{}B\"\n", free - large / 2));
    served.up();
    let fill = format!("fallocate -l {large} filler; while :; do echo more >> log; done");
    let rounds = json!([calls(exec(&fill, LONG_MS)), { "text": "Ended." }, { "text": "Goes on." }]);
    let folder = served.folder("work");
    served.create_in("greedy", &folder, &rounds);
    served.create_in(
        "other",
        &served.folder("elsewhere"),
        &json!([calls(exec("echo ours", LONG_MS)), { "text": "Done." }]),
    );
    served.send("greedy", "fill it");
    let short = served.until_fact("greedy", "disk.short", |_| true);
    assert!(short["evidence"].to_string().contains("the reserve is"), "{short}");
    let ended = until("end of the command", || served.results("greedy", "ExecCommand").pop());
    assert!(ended.to_string().contains("disk_reserve: "), "{ended}");
    let waiting = served.send("greedy", "go on");
    let why = until("a wait for the disk", || {
        let why = served.get("/v1/agents/greedy/why");
        (why["decision"]["reason"] == "disk_reserve").then_some(why)
    });
    assert!(why["sentence"].as_str().unwrap().contains("disk"), "{why}");
    let waited = served.place.run(&["send", "greedy", "and on", "--wait", "--timeout", "1s"]);
    assert_eq!(waited.err.matches("waits for room on a disk").count(), 1, "{}", waited.err);
    // Others go on, with commands too.
    let message = served.send("other", "run it");
    served.until_told("other", &message);
    assert_eq!(served.results("other", "ExecCommand")[0]["stdout"], "ours\n");
    assert!(!served.facts("greedy", "brief.recorded").iter().any(|brief| brief["message_id"] == waiting.as_str()));
    fs::remove_file(folder.join("filler")).unwrap();
    assert_eq!(served.until_told("greedy", &waiting)["text"], "Goes on.");
    // The daemon says so: the hold does not only run out.
    let events = served.events("greedy");
    let last = |kind: &str| events.iter().rfind(|event| event["kind"] == kind).unwrap();
    let (short, room) = (last("disk.short"), last("disk.has_room"));
    assert!(room["at"].as_str() < short["data"]["until"].as_str(), "{short} {room}");
    // The folders of an agent are measured for the operator.
    served.create("own", "script/echo");
    let task = served.run_task("own", "head -c 3000000 /dev/urandom > large");
    served.until_task("own", &task, "completed");
    let bytes = served.get("/v1/agents/own")["execution"]["disk_bytes"].as_u64().unwrap();
    assert!((3_000_000..4_000_000).contains(&bytes), "{bytes}");
    served.stop_and_verify();
}

/// A version that did not record the folders of agents may have given them: the ledger knows.
#[test]
fn programs_of_folders_that_were_given_before_an_upgrade_are_not_run() {
    let mut served = Served::start();
    let (workspace, repo) = (served.folder("ws"), served.repository("repo", 1));
    for agent in ["stays", "left"] {
        served.create_playing(agent, &json!([{ "text": "Done." }]));
        let folder = served.folder(&format!("ws/{agent}"));
        served.post(&format!("/v1/agents/{agent}/workspaces"), &json!({ "path": folder, "mode": "direct" }));
    }
    served.place.json(&["workspace", "detach", "--agent", "left", text(&workspace.join("left"))]);
    served.stop();
    let home = served.place.home();
    // There is none as long as no agent has used its folder.
    let _none = fs::remove_file(home.join("agent-folders.json"));
    let ran = served.place.path("ran");
    for agent in ["stays", "left"] {
        let program = workspace.join(agent).join("git");
        fs::write(&program, format!("#!/bin/sh\ntouch '{}'\nexec /usr/bin/git \"$@\"\n", ran.display())).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = |rest: &str| format!("{0}/stays:{0}/left:{rest}", workspace.display());
    let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
    command.env("PATH", path(&std::env::var("PATH").unwrap()));
    served.daemon = Some(Daemon::of(command));
    served.create_playing("new", &json!([{ "text": "Done." }]));
    served.post("/v1/agents/new/workspaces", &json!({ "path": repo, "mode": "worktree" }));
    assert!(!ran.exists());
    // Recorded by now, for commands that look at the home while nobody serves it.
    assert!(fs::read(home.join("agent-folders.json")).is_ok());
    served.stop_and_verify();
}

/// `.git/HEAD` can't be protected while a command runs: it is put back when the next daemon starts.
#[test]
fn the_users_repository_is_whole_after_a_kill_in_the_middle_of_a_command() {
    let mut served = Served::start();
    let repo = served.repository("repo", 1);
    served.create_in("direct", &repo, &json!([{ "text": "Done." }]));
    for damage in ["rm .git/HEAD", "echo nonsense > .git/HEAD", "rm .git/HEAD; chmod 0 .git/refs"] {
        let cmd = format!("{damage}; touch damaged; exec sleep 1000");
        served.run_task("direct", &cmd);
        until("the damage", || fs::remove_file(repo.join("damaged")).ok());
        served.kill_and_up();
        let head = fs::read_to_string(repo.join(".git/HEAD")).unwrap();
        assert_eq!(head, "ref: refs/heads/main\n", "{damage}");
        assert_eq!(git(&repo, &["status", "--porcelain"]), "", "{damage}");
        assert_eq!(git(&repo, &["log", "--format=%s"]), "first", "{damage}");
    }
    served.until_no_process();
    served.stop_and_verify();
}
