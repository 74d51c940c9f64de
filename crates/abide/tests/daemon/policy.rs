//! The policy, from a model's call to a person's answer and back (issue 5.5).

use std::fs;

use serde_json::{Value, json};

use crate::hands::{LONG_MS, calls, exec, lines, tool};
use crate::served::{Served, of_kind, until};

/// Every command that writes into the log.
const ASK: &str = "[[rule]]\naction = \"ask\"\ncommand = \"*>> log\"\nwhy = \"the log is precious\"\n";
const WRITE: &str = "echo ran >> log";

fn served(policy: &str) -> Served {
    let mut served = Served::down("");
    served.place.write("home/policy.toml", policy);
    served.up();
    served
}

impl Served {
    /// The approvals that were asked for, once there are so many.
    fn until_asked(&self, id: &str, count: usize) -> Vec<String> {
        until(&format!("{count} approvals of {id}"), || {
            let asked = self.facts(id, "approval.requested");
            let ids = asked.iter().map(|asked| asked["approval_id"].as_str().unwrap().to_owned());
            (asked.len() >= count).then(|| ids.collect())
        })
    }

    fn answer(&self, id: &str, approval: &str, word: &str) -> u16 {
        self.call("POST", &format!("/v1/agents/{id}/approvals/{approval}/{word}"), &[], None).status
    }
}

#[test]
fn a_call_waits_for_a_person_everywhere_and_is_made_once() {
    let mut served = served(ASK);
    let folder = served.folder("work");
    let log = folder.join("log");
    let other = exec("echo other >> log", LONG_MS);
    let rounds = json!([
        { "text": "I need the log.", "tools": [exec(WRITE, LONG_MS), exec("echo free > free", LONG_MS)] },
        calls(other),
        calls(exec(WRITE, LONG_MS)),
        calls(exec(WRITE, LONG_MS)),
        { "text": "Only once, then." },
    ]);
    served.create_in("worker", &folder, &rounds);
    let message = served.send("worker", "write the log");
    let first = served.until_asked("worker", 1).remove(0);
    let summary = served.until_asleep("worker");
    assert_eq!(lines(&log), 0, "nobody said yes");
    assert_eq!(lines(&folder.join("free")), 1, "the other call of the round ran");
    let result = &served.results("worker", "ExecCommand")[0];
    assert_eq!((&result["error"]["code"], &result["approval_id"]), (&json!("needs_approval"), &json!(first)));
    // Every surface says what is asked, and how it is answered.
    let asks = "ExecCommand: echo ran >> log [the log is precious]";
    assert_eq!(summary["decision"]["reason"], "approval_pending");
    assert_eq!(summary["scheduling_posture"], "waiting_for_operator");
    assert_eq!(summary["pending_approvals"][0]["summary"], asks);
    let why = served.get("/v1/agents/worker/why")["sentence"].as_str().unwrap().to_owned();
    assert!(why.contains(asks) && why.contains(&format!("abide approval grant --agent worker {first}")), "{why}");

    served.kill_and_up();
    assert_eq!(served.get("/v1/agents/worker")["pending_approvals"][0]["approval_id"], json!(first));
    assert_eq!(served.answer("worker", &first, "grant"), 200);
    // It makes another call first: that needs a yes of its own, and the first one still stands.
    let second = served.until_asked("worker", 2).remove(1);
    served.until_asleep("worker");
    assert_eq!(lines(&log), 0, "a yes is for one call");
    assert_eq!(served.answer("worker", &second, "deny"), 200);
    let third = served.until_asked("worker", 3).remove(2);
    served.until_asleep("worker");
    assert_eq!(lines(&log), 1, "the same call ran, and the same again did not");
    assert_eq!(served.answer("worker", &third, "deny"), 200);
    let told = until("the answer", || {
        let briefs = served.facts("worker", "brief.recorded");
        briefs.into_iter().find(|brief| brief["message_id"] == message.as_str() && brief["kind"] == "result")
    });
    assert_eq!((&told["text"], lines(&log)), (&json!("Only once, then."), 1));

    assert_eq!(served.answer("worker", &first, "deny"), 409, "it is decided once");
    let approvals = served.items("/v1/agents/worker/approvals");
    let statuses: Vec<&Value> = approvals.iter().map(|approval| &approval["status"]).collect();
    assert_eq!(statuses.iter().filter(|status| **status == "granted").count(), 1, "{statuses:?}");
    let used = approvals.iter().find(|approval| approval["approval_id"] == first.as_str()).unwrap();
    assert!(used["used_at"].is_string(), "{used}");
    let events = served.events("worker");
    assert_eq!(of_kind(&events, "approval.used").len(), 1);
    served.stop_and_verify();
}

#[test]
fn a_deadline_answers_by_its_default() {
    let rule = |default: &str| {
        format!("[[rule]]\naction = \"ask\"\nagent = \"{default}\"\ndeadline = \"1s\"\ndefault = \"{default}\"\n")
    };
    let mut served = served(&format!("{}{}", rule("deny"), rule("grant")));
    for (agent, ran) in [("deny", 0), ("grant", 1)] {
        let folder = served.folder(agent);
        let rounds = json!([calls(exec(WRITE, LONG_MS)), calls(exec(WRITE, LONG_MS)), { "text": "Done." }]);
        served.create_in(agent, &folder, &rounds);
        served.send(agent, "go");
        // Both asked first; a yes is used up, a no is asked about again.
        served.until_fact(agent, "approval.decided", |decided| decided["status"] == "expired");
        until("the second call", || (served.results(agent, "ExecCommand").len() >= 2).then_some(()));
        assert_eq!(lines(&folder.join("log")), ran, "{agent}");
        assert_eq!(served.facts(agent, "approval.used").len(), ran, "{agent}");
    }
    served.stop_and_verify();
}

#[test]
fn what_is_denied_never_runs_and_an_edit_counts_from_the_next_call_on() {
    let mut served = served("[[rule]]\naction = \"deny\"\ntool = \"Exec*\"\nwhy = \"no commands here\"\n");
    let folder = served.folder("work");
    let round = || [calls(exec(WRITE, LONG_MS)), json!({ "text": "Well." })];
    let rounds: Vec<Value> = [round(), round(), round()].into_iter().flatten().collect();
    served.create_in("worker", &folder, &json!(rounds));
    let go = |served: &Served| {
        let message = served.send("worker", "go");
        served.until_told("worker", &message);
        served.results("worker", "ExecCommand").pop().unwrap()
    };
    let refused = go(&served);
    assert_eq!(refused["error"]["code"], "refused_by_policy");
    assert!(refused["error"]["message"].as_str().unwrap().contains("no commands here"), "{refused}");
    // One that does not read changes nothing.
    served.place.write("home/policy.toml", "[[rule]]\naction = \"alow\"\n");
    assert_eq!(go(&served)["error"]["code"], "refused_by_policy");
    let report = served.place.run(&["doctor", "--json"]);
    assert!(report.out.contains("policy.toml, line 2: no action is called"), "{}", report.out);
    served.place.write("home/policy.toml", "# nothing is held back\n");
    assert_eq!(go(&served)["exit_code"], 0);
    assert_eq!(lines(&folder.join("log")), 1);
    served.stop_and_verify();
}

#[test]
fn a_policy_that_does_not_read_starts_no_daemon() {
    let served = Served::down("");
    served.place.write("home/policy.toml", "[[rule]]\naction = \"ask\"\ncomand = \"x\"\n");
    let error = served.place.refused(1, &["up", "--listen", "127.0.0.1:0"]);
    let said = "home/policy.toml, line 3: no key of a rule is called \"comand\"; did you mean command?";
    assert!(error.contains(said), "{error}");
    fs::remove_file(served.place.path("home/policy.toml")).unwrap();
}

/// A rule about an agent's id binds its children and the agents that it names itself, after a restart, and when their
/// maker is gone.
#[test]
fn a_rule_binds_what_an_agent_makes() {
    let policy = "[[rule]]\naction = \"allow\"\ncommand = \"*\"\nagent = \"ops-*\"\n\
        [[rule]]\naction = \"deny\"\ncommand = \"touch secret*\"\nagent = \"worker\"\n";
    let mut served = Served::down("");
    served.place.write("home/policy.toml", policy);
    served.offer(&["touches"]);
    served.up();
    let folder = served.folder("work");
    let touch = || calls(exec("touch secret", LONG_MS));
    let model = served.script("touches", &json!({ "rounds": [touch(), { "text": "Tried." }], "loop": true }));
    let spawn = |name: Option<&str>| {
        let input = json!({ "message": "go", "name": name, "workspace_mode": "inherit", "model": model });
        calls(tool("SpawnAgent", input))
    };
    let rounds = json!([touch(), spawn(None), spawn(Some("ops-evil")), { "text": "Done." }]);
    served.create_in("worker", &folder, &rounds);
    let message = served.send("worker", "go");
    served.until_fact("worker", "brief.recorded", |brief| {
        brief["message_id"] == message.as_str() && brief["kind"] == "result"
    });
    let refused = |agent: &str, times: usize| {
        until("the call", || (served.results(agent, "ExecCommand").len() >= times).then_some(()));
        let code = served.results(agent, "ExecCommand").pop().unwrap()["error"]["code"].clone();
        assert_eq!(code, "refused_by_policy", "{agent}");
    };
    for agent in ["worker", "worker.1", "ops-evil"] {
        refused(agent, 1);
    }
    assert_eq!(served.get("/v1/agents/ops-evil")["identity"]["makers"], json!(["worker"]));

    // The maker goes, and the daemon starts again; a fork is bound as well.
    served.until_fact("worker.1", "agent.archived", |_| true);
    served.until_asleep("worker");
    served.post("/v1/agents/worker/stop", &json!({}));
    assert_eq!(served.call("DELETE", "/v1/agents/worker", &[], None).status / 100, 2);
    let seq = served.until_asleep("ops-evil")["at_seq"].clone();
    served.kill_and_up();
    served.place.says(&["ledger", "fork", "ops-evil", "--at", &seq.to_string(), "--as", "ops-fork"]);
    served.post("/v1/agents/ops-fork/start", &json!({}));
    for agent in ["ops-evil", "ops-fork"] {
        served.send(agent, "again");
        until("the second call", || (served.results(agent, "ExecCommand").len() >= 2).then_some(()));
        let code = served.results(agent, "ExecCommand").pop().unwrap()["error"]["code"].clone();
        assert_eq!(code, "refused_by_policy", "{agent}");
    }
    assert!(!folder.join("secret").exists());
    served.stop_and_verify();
}

#[test]
fn a_search_shows_nothing_that_may_not_be_read() {
    let mut served = served("[[rule]]\naction = \"deny\"\ntool = \"ReadFile\"\npath = \"hidden/**\"\n");
    let folder = served.folder("work");
    served.place.write("work/hidden/a", "canary in hidden\n");
    served.place.write("work/open", "canary in open\n");
    std::os::unix::fs::symlink("hidden", folder.join("link")).unwrap();
    let grep = |path: &str| tool("Grep", json!({ "pattern": "canary", "path": path }));
    let read = tool("ReadFile", json!({ "path": "link/a" }));
    let rounds = json!([{ "tools": [grep("hidden"), grep("link"), grep("."), read] }, { "text": "Looked." }]);
    served.create_in("worker", &folder, &rounds);
    let message = served.send("worker", "look");
    served.until_told("worker", &message);
    let found = served.results("worker", "Grep");
    assert_eq!(found[0]["error"]["code"], "refused_by_policy");
    assert_eq!(found[1]["error"]["code"], "refused_by_policy");
    assert_eq!(found[2]["matches"].as_array().unwrap().len(), 1, "{}", found[2]);
    assert!(found[2]["note"].as_str().unwrap().contains("policy"), "{}", found[2]);
    assert_eq!(served.results("worker", "ReadFile")[0]["error"]["code"], "refused_by_policy");
    assert!(!json!(served.events("worker")).to_string().contains("canary in hidden"));
    served.stop_and_verify();
}

/// A name of a model may lead to any file of the machine.
#[test]
fn a_model_chooses_among_the_models_that_the_operator_named() {
    let mut served =
        Served::down("fallback = [\"ollama/named\"]\n[models.\"ollama/tabled\"]\nwindow_tokens = 100000\n");
    served.offer(&["offered"]);
    served.up();
    let offered = served.script("offered", &json!({ "rounds": [{ "text": "Here." }] }));
    let secret = served.place.write("secret", "\"CANARY\"");
    let other = format!("script/{}", secret.display());
    let spawn =
        |model: &str, name: Option<&str>| tool("SpawnAgent", json!({ "message": "go", "model": model, "name": name }));
    let own = format!("script/{}", served.place.path("lead.json").display());
    let mut tools = vec![spawn(&other, None), spawn(&other, Some("reader")), spawn("anthropic/any", None)];
    tools.extend([offered.as_str(), "script/echo", "ollama/named", "ollama/tabled"].map(|model| spawn(model, None)));
    served.create_playing("lead", &json!([{ "tools": tools }, { "text": "Done." }]));
    let message = served.send("lead", "go");
    served.until_fact("lead", "brief.recorded", |brief| {
        brief["message_id"] == message.as_str() && brief["kind"] == "result"
    });
    let made = served.results("lead", "SpawnAgent");
    for refused in &made[..3] {
        assert_eq!(refused["error"]["code"], "model_not_offered", "{refused}");
        let hint = refused["error"]["hint"].as_str().unwrap();
        for name in [own.as_str(), offered.as_str(), "script/echo", "ollama/named", "ollama/tabled", "config.toml"] {
            assert!(hint.contains(name), "{name}: {hint}");
        }
    }
    assert!(made[3..].iter().all(|made| made["agent_id"].is_string()), "{made:?}");
    assert_eq!(served.call("GET", "/v1/agents/reader", &[], None).status, 404);
    assert!(!json!(served.events("lead")).to_string().contains("CANARY"));
    served.post("/v1/agents/lead/stop", &json!({}));
    served.stop_and_verify();
}

fn use_workspace(path: &str, mode: &str) -> Value {
    tool("UseWorkspace", json!({ "path": path, "mode": mode }))
}

/// Rules are about paths of the folder that the operator gave, wherever in it an agent chooses to work.
#[test]
fn a_rule_about_paths_holds_wherever_an_agent_chooses_to_work() {
    let mut served = Served::down("");
    let deny = "[[rule]]\naction = \"deny\"\ntool = \"ReadFile\"\npath = \"hidden/**\"\n\
        [[rule]]\naction = \"deny\"\npath = \"deploy/**\"\n";
    served.place.write("home/policy.toml", deny);
    served.offer(&["reads"]);
    served.up();
    let folder = served.folder("work");
    for name in ["hidden/h", "hidden/nested/n", "deploy/d"] {
        served.place.write(&format!("work/{name}"), "canary\n");
    }
    served.repository("work/hidden/repo", 1);
    let (read, grep) =
        (|path: &str| tool("ReadFile", json!({ "path": path })), tool("Grep", json!({ "pattern": "a" })));
    let write = tool("WriteFile", json!({ "path": "written", "content": "x" }));
    let model = served.script("reads", &json!({ "rounds": [calls(read("h")), { "text": "Tried." }], "loop": true }));
    let spawn = |name: Option<&str>| {
        tool("SpawnAgent", json!({ "message": "go", "name": name, "workspace_mode": "inherit", "model": model }))
    };
    let deploy = folder.join("deploy").display().to_string();
    let repo = folder.join("hidden/repo").display().to_string();
    let rounds = json!([
        calls(use_workspace("hidden", "direct")),
        { "tools": [read("h"), grep, read("nested/n")] },
        calls(spawn(None)),
        calls(spawn(Some("heir"))),
        calls(use_workspace(&deploy, "direct")),
        calls(write),
        // Its files are those of hidden/repo, wherever they lie.
        calls(use_workspace(&repo, "worktree")),
        { "tools": [read("file-0"), grep] },
        { "text": "Tried." },
    ]);
    served.create_in("worker", &folder, &rounds);
    let message = served.send("worker", "go");
    served.until_fact("worker", "brief.recorded", |brief| {
        brief["message_id"] == message.as_str() && brief["kind"] == "result"
    });
    for (name, count) in [("ReadFile", 3), ("Grep", 2), ("WriteFile", 1)] {
        let results = served.results("worker", name);
        assert_eq!(results.len(), count, "{name}");
        assert!(results.iter().all(|result| result["error"]["code"] == "refused_by_policy"), "{name}: {results:?}");
    }
    for agent in ["worker.1", "heir"] {
        until("the call", || (!served.results(agent, "ReadFile").is_empty()).then_some(()));
        assert_eq!(served.results(agent, "ReadFile")[0]["error"]["code"], "refused_by_policy", "{agent}");
    }
    assert!(!folder.join("deploy/written").exists());
    served.until_fact("worker.1", "agent.archived", |_| true);
    served.until_asleep("heir");
    served.stop_and_verify();
}

/// The calls of a reply are judged before the first of them runs, which may turn the link that the second goes through.
#[test]
fn a_call_is_judged_by_where_it_leads_when_it_runs() {
    let mut served = served("[[rule]]\naction = \"ask\"\npath = \"deploy/**\"\n");
    let folder = served.folder("work");
    for name in ["deploy", "docs"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    std::os::unix::fs::symlink("docs", folder.join("link")).unwrap();
    let turn = |to: &str| exec(&format!("ln -sfn {to} link"), LONG_MS);
    let write = || tool("WriteFile", json!({ "path": "link/file", "content": "x" }));
    let rounds = json!([
        { "tools": [turn("deploy"), write()] },
        calls(write()),
        calls(write()),
        { "text": "Written." },
    ]);
    served.create_in("worker", &folder, &rounds);
    let message = served.send("worker", "go");
    let approval = served.until_asked("worker", 1).remove(0);
    served.until_asleep("worker");
    let results = served.results("worker", "WriteFile");
    let codes: Vec<&Value> = results.iter().map(|result| &result["error"]["code"]).collect();
    assert_eq!(codes, ["needs_approval"; 2], "{results:?}");
    assert_eq!((&results[0]["approval_id"], &results[1]["approval_id"]), (&Value::Null, &json!(approval)));
    assert!(!folder.join("deploy/file").exists());
    let asked = served.facts("worker", "approval.requested").remove(0);
    assert_eq!(asked["summary"], "WriteFile link/file (leads to deploy/file)");
    assert_eq!(served.answer("worker", &approval, "grant"), 200);
    served.until_fact("worker", "brief.recorded", |brief| {
        brief["message_id"] == message.as_str() && brief["kind"] == "result"
    });
    assert!(folder.join("deploy/file").exists());
    served.stop_and_verify();
}
