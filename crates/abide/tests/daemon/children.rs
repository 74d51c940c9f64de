//! Children: what is handed to them, where they work, how they end, and that none of them is left behind.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::hands::{LONG_MS, TASK, calls, exec, git, result, tool};
use crate::served::{Served, until};

fn spawn(served: &Served, message: &str, mode: &str, rounds: &Value) -> Value {
    let name = format!("child-{}", message.replace(' ', "-"));
    let model = served.script(&name, &json!({ "rounds": rounds }));
    calls(tool("SpawnAgent", json!({ "message": message, "workspace_mode": mode, "model": model })))
}

fn wait_for_it() -> Value {
    calls(tool("WaitFor", json!({ "wake": "task_result", "resource": result(TASK, 1), "reason": "the child" })))
}

/// The id of the task and of the child of the agent's only spawn.
fn spawned(served: &Served, agent: &str) -> (String, String) {
    let made = until("a child", || served.results(agent, "SpawnAgent").into_iter().next());
    let text = |pointer: &str| made.pointer(pointer).unwrap_or_else(|| panic!("{made}")).as_str().unwrap().to_owned();
    (text(TASK), text("/agent_id"))
}

/// The last answer of the lead. It may have said before that it waits.
fn answer(served: &Served, message: &str) -> Value {
    let is_it = |brief: &Value| brief["message_id"] == message && brief["kind"] == "result";
    served.until_fact("lead", "brief.recorded", is_it)["text"].clone()
}

/// The number of an agent's worktrees.
fn worktrees(served: &Served, agent: &str) -> usize {
    let folder = served.place.home().join("worktrees").join(agent);
    fs::read_dir(folder).map_or(0, |entries| entries.count())
}

fn is_gone(served: &Served, child: &str) {
    served.until_fact(child, "agent.archived", |_| true);
    assert_eq!(worktrees(served, child), 0);
}

#[test]
fn a_child_works_in_a_worktree_of_its_own_and_what_it_says_comes_to_its_parent() {
    let mut served = Served::start_offering(&["child-build-it"]);
    let repo = served.repository("repo", 3);
    let work = "echo made > made; git add made; git -c user.name=c -c user.email=c@example.org commit -qm made; echo left > left";
    let child = json!([calls(exec(work, LONG_MS)), { "text": "It is built." }]);
    let rounds =
        json!([spawn(&served, "build it", "worktree", &child), wait_for_it(), { "text": "The child built it." }]);
    served.create_in("lead", &repo, &rounds);
    let message = served.send("lead", "have it built");
    let (task, child) = spawned(&served, "lead");
    assert_eq!(child, "lead.1");
    let ended = served.until_task("lead", &task, "completed");
    assert_eq!((&ended["kind"], &ended["child_agent_id"]), (&json!("child_agent_task"), &json!("lead.1")));
    assert_eq!(answer(&served, &message), "The child built it.");

    // It was told by its parent, and its words came back as a result that a turn read.
    let told = &served.facts(&child, "message.queued")[0];
    assert_eq!((&told["kind"], &told["trust"]), (&json!("channel_event"), &json!("trusted_integration")), "{told}");
    assert_eq!((&told["origin"]["kind"], &told["origin"]["id"]), (&json!("agent"), &json!("lead")));
    let results = served.facts("lead", "message.queued");
    let heard = results.iter().find(|message| message["task_id"] == task.as_str()).unwrap();
    let text = heard["text"].as_str().unwrap();
    assert!(text.contains("It is built.") && text.contains("abide/lead.1/") && text.contains(".patch"), "{text}");
    served.until_fact("lead", "task.result_delivered", |fact| fact["task_id"] == task.as_str());

    // The parent's folder is as it was; commits are on a branch, what was not committed is a patch, and nothing is left.
    is_gone(&served, &child);
    assert_eq!(git(&repo, &["status", "--porcelain"]), "");
    assert!(!repo.join("made").exists());
    assert_eq!(git(&repo, &["branch", "--list", "abide/*"]), "", "nothing comes into the user's repository by itself");
    let item = repo.to_str().unwrap().replace('/', "%2F");
    let fetched = served.post(&format!("/v1/agents/{child}/workspaces/{item}/fetch"), &json!({}));
    let branch = fetched["branches"][0]["branch"].as_str().unwrap();
    assert_eq!(git(&repo, &["show", &format!("{branch}:made")]), "made");
    let children = served.items("/v1/agents/lead/children");
    assert_eq!((children.len(), &children[0]["status"]), (1, &json!("completed")));
    served.stop_and_verify();
}

#[test]
fn a_child_outlives_a_crash_and_goes_with_its_parent() {
    let mut served = Served::start_offering(&["child-take-long"]);
    let repo = served.repository("repo", 3);
    let child = json!([
        calls(exec("echo x >> started; sleep 600", LONG_MS)),
        calls(exec("echo y >> again; sleep 600", LONG_MS)),
        { "text": "Never said." },
    ]);
    let rounds = json!([spawn(&served, "take long", "worktree", &child), wait_for_it(), { "text": "It was stopped." }]);
    served.create_in("lead", &repo, &rounds);
    served.send("lead", "go");
    let (task, child) = spawned(&served, "lead");
    served.until_task("lead", &task, "running");
    served.until_called(&child, "ExecCommand", 1);
    served.kill_and_up();
    // It goes on where it was, and its parent waits for the same task.
    served.until_called(&child, "ExecCommand", 2);
    assert_eq!(served.task("lead", &task)["status"], "running");
    assert_eq!(served.get("/v1/agents/lead")["active_children"][0]["child_agent_id"], child.as_str());
    served.until_asleep("lead");
    served.post("/v1/agents/lead/stop", &json!({}));
    let ended = served.until_task("lead", &task, "cancelled");
    assert!(ended["evidence"].to_string().contains("stop"), "{ended}");
    is_gone(&served, &child);
    served.until_no_process();
    served.stop_and_verify();
}

/// A child goes with its parent; by itself it is no agent that a person has to stop.
#[test]
fn stopping_all_agents_ends_their_children() {
    let mut served = Served::start_offering(&["child-take-long"]);
    let child = json!([calls(exec("sleep 600", LONG_MS)), { "text": "Never said." }]);
    let folder = served.folder("work");
    let rounds = json!([spawn(&served, "take long", "inherit", &child), wait_for_it(), { "text": "Never said." }]);
    served.create_in("lead", &folder, &rounds);
    served.send("lead", "go");
    let (task, child) = spawned(&served, "lead");
    served.until_task("lead", &task, "running");
    served.until_called(&child, "ExecCommand", 1);
    served.until_asleep("lead");
    assert_eq!(served.place.says(&["agent", "stop", "--all"]), "lead is stopped\nmain is stopped\n");
    served.until_task("lead", &task, "cancelled");
    is_gone(&served, &child);
    served.until_no_process();
    let started = served.place.json(&["agent", "start", "--all"]);
    assert_eq!(started["items"].as_array().unwrap().len(), 2, "{started}");
    served.stop_and_verify();
}

#[test]
fn nobody_but_agents_speaks_to_a_child_and_a_stopped_one_is_gone() {
    let mut served = Served::start_offering(&["child-wait"]);
    let child = json!([calls(exec("sleep 600", LONG_MS)), { "text": "Never said." }]);
    let rounds = json!([spawn(&served, "wait", "inherit", &child), wait_for_it(), { "text": "Somebody stopped it." }]);
    served.create_playing("lead", &rounds);
    let message = served.send("lead", "go");
    let (task, child) = spawned(&served, "lead");
    served.until_task("lead", &task, "running");
    served.until_called(&child, "ExecCommand", 1);
    let path = format!("/v1/agents/{child}/messages");
    let refused = served.call("POST", &path, &[], Some(&json!({ "text": "hello" })));
    assert_eq!((refused.status, &refused.body["code"]), (409, &json!("supervised")), "{}", refused.body);
    assert!(refused.body["hint"].as_str().unwrap().contains("lead"), "{}", refused.body);
    served.post(&format!("/v1/agents/{child}/stop"), &json!({}));
    let ended = served.until_task("lead", &task, "cancelled");
    assert!(ended["evidence"].to_string().contains("stopped_by_operator"), "{ended}");
    assert_eq!(answer(&served, &message), "Somebody stopped it.");
    is_gone(&served, &child);
    served.until_no_process();
    served.stop_and_verify();
}

#[test]
fn agents_write_to_each_other_and_the_message_says_whose_it_is() {
    let mut served = Served::start_offering(&["child-say-something"]);
    let child = json!([
        calls(tool("SendMessage", json!({ "agent_id": "lead", "text": "from below", "correlation_id": "c-1" }))),
        { "text": "Said it." },
    ]);
    let rounds = json!([
        spawn(&served, "say something", "inherit", &child),
        calls(tool("SendMessage", json!({ "agent_id": "neighbour", "text": "good morning" }))),
        calls(tool("SendMessage", json!({ "agent_id": "nobody", "text": "good morning" }))),
        calls(tool("SendMessage", json!({ "agent_id": "lead", "text": "to myself" }))),
        calls(tool("SpawnAgent", json!({ "message": "settle down", "name": "settler", "model": "script/echo" }))),
        calls(tool("SpawnAgent", json!({ "message": "again", "name": "settler" }))),
        { "text": "Said." },
    ]);
    served.create("neighbour", "script/echo");
    served.create_playing("lead", &rounds);
    let message = served.send("lead", "greet them");
    assert_eq!(answer(&served, &message), "Said.");
    let came_to = served.results("lead", "SendMessage");
    let codes: Vec<&Value> = came_to.iter().map(|result| &result["error"]["code"]).collect();
    assert_eq!(codes, [&Value::Null, &json!("not_found"), &json!("that_is_you")]);
    let said = served.until_fact("neighbour", "message.queued", |message| message["text"] == "good morning");
    assert_eq!((&said["message_id"], &said["trust"]), (&came_to[0]["message_id"], &json!("untrusted_external")));
    let below = served.until_fact("lead", "message.queued", |message| message["text"] == "from below");
    assert_eq!((&below["trust"], &below["correlation_id"]), (&json!("trusted_integration"), &json!("c-1")));
    let spawned = served.results("lead", "SpawnAgent");
    assert_eq!(spawned[1], json!({ "agent_id": "settler" }));
    assert_eq!(spawned[2]["error"]["code"], "exists");
    let settler = served.until_asleep("settler");
    assert_eq!(
        (&settler["identity"]["ownership"], &settler["identity"]["kind"]),
        (&json!("self_owned"), &json!("named"))
    );
    served.until_asleep("lead");
    served.stop_and_verify();
}

/// The runtime names children so. A model that took the names of another agent's children would keep it from having any.
#[test]
fn a_model_takes_no_name_of_another_agents_child() {
    let mut served = Served::start();
    let take = |name: &str| tool("SpawnAgent", json!({ "message": "x", "name": name, "model": "script/echo" }));
    let names = ["worker.1", "worker.02", "lead.7", "no-such.1", "worker.1.2", "worker.v1", "worker-1"];
    served.create_playing("lead", &json!([{ "tools": names.map(take) }, { "text": "Tried." }]));
    let message = served.send("lead", "take them");
    assert_eq!(answer(&served, &message), "Tried.");
    let results = served.results("lead", "SpawnAgent");
    let codes: Vec<&Value> = results.iter().map(|result| &result["error"]["code"]).collect();
    let reserved = json!("reserved_name");
    let expected = [&reserved, &reserved, &reserved, &reserved, &reserved, &Value::Null, &Value::Null];
    assert_eq!(codes, expected);
    assert!(results[0]["error"]["hint"].as_str().unwrap().contains("does not end in a dot and a number"));
    let work =
        json!([calls(tool("SpawnAgent", json!({ "message": "x", "model": "script/echo" }))), { "text": "Made." }]);
    served.create_playing("worker", &work);
    let message = served.send("worker", "make one");
    served.until_told("worker", &message);
    assert_eq!(served.results("worker", "SpawnAgent")[0]["agent_id"], "worker.1");
    // The operator may.
    served.create("operators.1", "script/echo");
    for agent in ["lead", "worker", "worker.v1", "worker-1", "operators.1"] {
        served.until_asleep(agent);
    }
    served.stop_and_verify();
}

/// The calls of a round run beside each other; what they say does not.
#[test]
fn what_is_said_first_is_heard_first() {
    let mut served = Served::start();
    let say = |text: &str| tool("SendMessage", json!({ "agent_id": "settler", "text": text }));
    let settle = tool("SpawnAgent", json!({ "message": "0", "name": "settler", "model": "script/echo" }));
    let words: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let mut tools = vec![settle, say(" ")];
    tools.extend(words.iter().skip(1).map(|word| say(word)));
    tools.push(tool("AgentGet", json!({ "agent_id": "settler" })));
    served.create_playing("lead", &json!([{ "tools": tools }, { "text": "Said." }]));
    let message = served.send("lead", "settle it");
    assert_eq!(answer(&served, &message), "Said.");
    assert_eq!(served.results("lead", "SendMessage")[0]["error"]["code"], "empty");
    assert_eq!(served.results("lead", "AgentGet")[0]["identity"]["id"], "settler");
    let heard = served.facts("settler", "message.queued");
    let heard: Vec<&str> = heard.iter().map(|message| message["text"].as_str().unwrap()).collect();
    assert_eq!(heard, words);
    served.until_asleep("settler");
    served.stop_and_verify();
}

#[test]
fn a_child_that_can_not_be_made_is_a_failed_task_that_says_why() {
    let mut served = Served::start_offering(&["child-work-apart"]);
    let folder = served.folder("plain");
    let rounds =
        json!([spawn(&served, "work apart", "worktree", &json!([])), wait_for_it(), { "text": "No git here." }]);
    served.create_in("lead", Path::new(&folder), &rounds);
    let message = served.send("lead", "go");
    let (task, _) = spawned(&served, "lead");
    let ended = served.until_task("lead", &task, "failed");
    assert_eq!(answer(&served, &message), "No git here.");
    let heard = served.facts("lead", "message.queued");
    let heard = heard.iter().find(|message| message["task_id"] == task.as_str()).unwrap();
    assert!(heard["text"].as_str().unwrap().contains("git"), "{ended} {heard}");
    served.stop_and_verify();
}
