//! Agents that would never come to rest by themselves: each is held, says why, and goes on when a person says so.

use serde_json::{Value, json};

use crate::hands::{calls, tool};
use crate::served::{Served, until};

/// An agent that plays these rounds for ever.
fn create_looping(served: &Served, id: &str, rounds: &Value) {
    let model = served.script(id, &json!({ "rounds": rounds, "loop": true }));
    served.create(id, &model);
}

fn why(served: &Served, agent: &str) -> Value {
    served.get(&format!("/v1/agents/{agent}/why"))
}

/// The explanation of `why`, once the agent rests for this reason.
fn until_held(served: &Served, agent: &str, reason: &str) -> Value {
    until(reason, || Some(why(served, agent)).filter(|why| why["decision"]["reason"] == reason))
}

fn turns(served: &Served, agent: &str) -> usize {
    served.facts(agent, "turn.started").len()
}

/// The failures that the operator was told of, that answer no message.
fn told(served: &Served, agent: &str) -> Vec<Value> {
    let briefs = served.facts(agent, "brief.recorded").into_iter();
    briefs.filter(|brief| brief["kind"] == "failure" && brief["message_id"].is_null()).collect()
}

#[test]
fn an_agent_whose_every_turn_makes_an_item_waits_for_the_operator() {
    let mut served = Served::start();
    create_looping(
        &served,
        "a",
        &json!([calls(tool("CreateWorkItem", json!({ "objective": "more" }))), { "text": "Made one." }]),
    );
    served.send("a", "go");
    let held = until_held(&served, "a", "work_ticks_spent");
    assert_eq!((&held["status"], &held["decision"]["kind"]), (&json!("asleep"), &json!("WaitForOperator")));
    assert!(held["sentence"].as_str().unwrap().ends_with("send it a message to go on."), "{held}");
    assert_eq!(turns(&served, "a"), 51, "one that was asked for, and fifty of its own");
    assert_eq!(told(&served, "a").len(), 1, "the operator is told once");
    let items = served.items("/v1/agents/a/work-items");
    assert_eq!((items.len(), &items[0]["readiness"]), (51, &json!("progress_spent")));
    served.kill_and_up();
    assert_eq!(turns(&served, "a"), 51, "a restart changes nothing");
    served.send("a", "go on");
    until("another fifty", || (turns(&served, "a") == 102).then_some(()));
    until_held(&served, "a", "work_ticks_spent");
    assert_eq!((turns(&served, "a"), told(&served, "a").len()), (102, 2));
    served.stop_and_verify();
}

#[test]
fn a_call_that_makes_the_same_thing_again_is_not_run_a_fourth_time() {
    let mut served = Served::start();
    create_looping(&served, "a", &json!([calls(tool("CreateWorkItem", json!({ "objective": "the same" })))]));
    let message = served.send("a", "go");
    served.until_told("a", &message);
    let events = served.events("a");
    let end = events.iter().position(|event| event["kind"] == "turn.terminal").unwrap();
    let made = events[..end].iter().filter(|event| event["kind"] == "work_item.created").count();
    let refused = events[..end].iter().filter(|event| event["data"]["repeated"] == true).count();
    assert_eq!((made, refused), (3, 12));
    // Its items are offered, and each of those turns ends in the same way; then all of it waits.
    until("a rest", || {
        let summary = served.get("/v1/agents/a");
        (summary["agent"]["status"] == "asleep" && summary["decision"]["kind"] == "WaitForOperator").then_some(())
    });
    let items = served.items("/v1/agents/a/work-items").len();
    assert!(items <= 3 * 51, "{items} items");
    served.stop_and_verify();
}

#[test]
fn turns_that_an_agent_causes_itself_are_paced_and_nobody_elses() {
    let mut served = Served::start_with("self_turns_per_hour = 5\n");
    served.create_playing(
        "a",
        &json!([
            calls(tool("CreateTimer", json!({ "summary": "tick", "every_ms": 100 }))),
            { "text": "It ticks." },
        ]),
    );
    served.script(
        "a",
        &json!({ "loop": true, "rounds": [
            calls(tool("CreateTimer", json!({ "summary": "tick", "every_ms": 100 }))),
            { "text": "It ticks." },
            { "text": "Tick." }, { "text": "Tick." }, { "text": "Tick." }, { "text": "Tick." }, { "text": "Tick." },
            { "text": "Asked." }, { "text": "Asked." }, { "text": "Asked." }, { "text": "Asked." },
        ]}),
    );
    served.send("a", "go");
    let held = until_held(&served, "a", "self_turns_paced");
    assert_eq!((turns(&served, "a"), told(&served, "a").len()), (6, 1), "{held}");
    assert_eq!(held["decision"]["kind"], "WaitForTimer");
    let paced = &served.facts("a", "self_turns.paced")[0];
    assert_eq!(paced["per_hour"], 5);
    assert!(held["sentence"].as_str().unwrap().contains(paced["not_before"].as_str().unwrap()), "{held}");
    // Nobody's but its own: a person, a person's timer, and also after a restart.
    let asked = served.send("a", "what is it");
    assert_eq!(served.until_told("a", &asked)["text"], "Asked.");
    served.kill_and_up();
    let timer = json!({ "summary": "look", "after_ms": 50 });
    let timer = served.post("/v1/agents/a/timers", &timer)["timer_id"].as_str().unwrap().to_owned();
    served.until_fact("a", "timer.completed", |fact| fact["timer_id"] == timer.as_str());
    until("its turn", || (turns(&served, "a") == 8).then_some(()));
    let held = until_held(&served, "a", "self_turns_paced");
    assert_eq!((turns(&served, "a"), told(&served, "a").len()), (8, 1), "told once: {held}");
    // Its tick is there and is not lost; another limit takes it at once.
    served.stop();
    served.place.write("home/config.toml", "log = \"error\"\nself_turns_per_hour = 0\n");
    served.up();
    let asked = served.send("a", "and now");
    served.until_told("a", &asked);
    until("ticks", || (turns(&served, "a") > 12).then_some(()));
    served.post("/v1/agents/a/stop", &json!({}));
    served.stop_and_verify();
}

#[test]
fn agents_that_write_to_each_other_for_ever_are_paced() {
    let mut served = Served::start_with("self_turns_per_hour = 10\n");
    let writes = |to: &str| json!([calls(tool("SendMessage", json!({ "agent_id": to, "text": "and you?" }))), { "text": "Sent." }]);
    create_looping(&served, "a", &writes("b"));
    create_looping(&served, "b", &writes("a"));
    served.send("a", "begin");
    let both = |agent: &str| why(&served, agent)["decision"]["reason"].clone();
    until("a rest", || {
        let held = [both("a"), both("b")];
        held.contains(&json!("self_turns_paced")).then_some(held)
    });
    assert!(turns(&served, "a") + turns(&served, "b") <= 24, "{} and {}", turns(&served, "a"), turns(&served, "b"));
    served.stop_and_verify();
}

#[test]
fn a_turn_without_end_is_ended_and_the_operator_is_asked() {
    let mut served = Served::start_with("rounds_per_turn = 4\n");
    let looks: Vec<Value> =
        (0..9).map(|number| calls(tool("AgentGet", json!({ "agent_id": format!("nobody{number}") })))).collect();
    create_looping(&served, "a", &json!(looks));
    let message = served.send("a", "go");
    let told = served.until_told("a", &message);
    assert!(told["text"].as_str().unwrap().contains("rounds_per_turn"), "{told}");
    let asked = until_held(&served, "a", "active_operator_wait");
    assert_eq!(asked["decision"]["kind"], "WaitForOperator");
    let ends = served.facts("a", "turn.terminal");
    assert_eq!((ends.len(), &ends[0]["rounds"], &ends[0]["terminal_kind"]), (1, &json!(4), &json!("aborted")));
    served.stop_and_verify();
}
