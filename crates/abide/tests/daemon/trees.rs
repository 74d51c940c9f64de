//! Trees of agents: one message makes no more of them than the settings allow, and a stop of the agent at the top ends
//! all of them at once, also across a crash.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::hands::{calls, tool};
use crate::served::{Served, until};

/// Every agent that comes from one, with its events. Those that were named and never made have none.
type Tree = BTreeMap<String, Vec<Value>>;

/// An agent that makes children for ever, as do they.
fn create_growing(served: &Served) {
    let spawns: Vec<Value> =
        (0..60).map(|number| tool("SpawnAgent", json!({ "message": format!("m{number}") }))).collect();
    let waits = calls(tool("WaitFor", json!({ "wake": "operator_input", "reason": "more" })));
    let model = served.script("lead", &json!({ "loop": true, "rounds": [{ "tools": spawns }, waits] }));
    served.create("lead", &model);
}

/// Children and theirs, down to the last.
fn tree(served: &Served, top: &str) -> Tree {
    let mut tree = Tree::new();
    let mut waiting = children(&served.events(top));
    while let Some(id) = waiting.pop() {
        if served.call("GET", &format!("/v1/agents/{id}/events?limit=1"), &[], None).status == 404 {
            continue;
        }
        let events = served.events(&id);
        waiting.extend(children(&events));
        tree.insert(id, events);
    }
    tree
}

fn children(events: &[Value]) -> Vec<String> {
    let created = events.iter().filter(|event| event["kind"] == "task.created");
    created.filter_map(|event| Some(event["data"]["child_agent_id"].as_str()?.to_owned())).collect()
}

fn time(event: &Value) -> &str {
    event["at"].as_str().unwrap()
}

/// How many of them there were at once, at most, by the times of their making and their end.
fn most_at_once(tree: &Tree) -> usize {
    let mut changes: Vec<(&str, i32)> = Vec::new();
    for event in tree.values().flatten() {
        match event["kind"].as_str().unwrap() {
            "agent.created" => changes.push((time(event), 1)),
            "agent.archived" => changes.push((time(event), -1)),
            _ => {}
        }
    }
    // A place is taken after it was given back, perhaps in the same millisecond.
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    usize::try_from(most).unwrap()
}

/// A home whose only busy agent has so many agents below it that one of them was refused a child.
fn start_full(bound: usize) -> Served {
    let served = Served::start_with(&format!("tree_agents = {bound}\n"));
    create_growing(&served);
    served.send("lead", "go");
    let is_full = |child: &String| {
        let results = served.results(child, "SpawnAgent");
        results.iter().any(|result| result["error"]["code"] == "tree_full")
    };
    until("a full tree", || {
        // But for the agent itself, and the one that every home begins with.
        let made = served.items("/v1/agents").len() - 2;
        (made > bound / 2 && children(&served.events("lead")).iter().any(is_full)).then_some(())
    });
    served
}

/// Nothing began below the agent after it was stopped, and nobody is left there.
fn assert_ended(served: &Served, bound: usize) {
    // The agent itself, and the one that every home begins with.
    until("end of the tree", || (served.items("/v1/agents").len() == 2).then_some(()));
    let tree = tree(served, "lead");
    let most = most_at_once(&tree);
    assert!(most > bound / 2 && most <= bound, "{most} agents at once, {} in all", tree.len());
    let events = served.events("lead");
    let is_stop = |event: &&Value| event["kind"] == "control.applied" && event["data"]["action"] == "stop";
    let stopped = time(events.iter().find(is_stop).unwrap());
    let begins = ["agent.created", "turn.started", "turn.round_started", "tool.started", "task.created"];
    for (id, events) in &tree {
        let begun = events.iter().filter(|event| begins.iter().any(|kind| event["kind"] == *kind));
        let late: Vec<&Value> = begun.filter(|event| time(event) > stopped).collect();
        assert!(late.is_empty(), "{id} went on after {stopped}: {late:?}");
    }
}

#[test]
fn a_tree_is_bounded_and_ends_with_the_agent_at_its_top() {
    let mut served = start_full(96);
    served.post("/v1/agents/lead/stop", &json!({}));
    assert_ended(&served, 96);
    served.stop_and_verify();
}

#[test]
fn a_tree_that_was_stopped_does_not_go_on_after_a_crash() {
    let mut served = start_full(64);
    served.post("/v1/agents/lead/stop", &json!({}));
    served.kill_and_up();
    assert_ended(&served, 64);
    served.stop_and_verify();
}

/// A named agent does not stop with its maker, and only the count ends such a chain.
#[test]
fn a_chain_of_named_agents_is_bounded() {
    let mut served = Served::down("tree_agents = 4\n");
    let names: Vec<String> = (1..=5).map(|number| format!("named-{number}")).collect();
    let offered: Vec<&str> = names.iter().map(String::as_str).collect();
    served.offer(&offered);
    served.up();
    let makes = |name: &str, model: &str| {
        calls(tool("SpawnAgent", json!({ "message": "go on", "name": name, "model": model })))
    };
    let mut model = "script/echo".to_owned();
    for pair in names.windows(2).rev() {
        model = served.script(&pair[0], &json!({ "rounds": [makes(&pair[1], &model), { "text": "Made." }] }));
    }
    let more = makes("more", "script/echo");
    let done = json!({ "text": "Done." });
    let first = makes(&names[0], &model);
    served.create_playing("lead", &json!([first, done, more, done, more, done, more, done]));
    served.send("lead", "go");
    let is_there = || served.call("GET", "/v1/agents/named-4", &[], None).status == 200;
    let refused =
        until("a refusal", || is_there().then(|| served.results("named-4", "SpawnAgent").into_iter().next()).flatten());
    assert_eq!(refused["error"]["code"], "tree_full", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("4 agents come from lead"), "{refused}");
    let again = |served: &Served, times: usize| {
        let asked = served.send("lead", "another one");
        served.until_told("lead", &asked);
        served.results("lead", "SpawnAgent")[times].clone()
    };
    assert_eq!(again(&served, 1)["error"]["code"], "tree_full");
    served.kill_and_up();
    assert_eq!(again(&served, 2)["error"]["code"], "tree_full", "the number is in the records");
    // One that is deleted makes room.
    served.until_asleep("named-2");
    served.post("/v1/agents/named-2/stop", &json!({}));
    assert_eq!(served.call("DELETE", "/v1/agents/named-2", &[], None).status, 200);
    assert_eq!(again(&served, 3)["agent_id"], "more");
    served.stop_and_verify();
}
