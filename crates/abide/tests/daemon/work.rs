//! Work items, ticks and waits over the public API, as the scheduler's contract has them.

use serde_json::{Value, json};

use crate::hands::{calls, result, seq_of, tool};
use crate::served::{Served, of_kind, until};

fn create(served: &Served, agent: &str, body: &Value) -> String {
    let item = served.post(&format!("/v1/agents/{agent}/work-items"), body);
    item["work_item_id"].as_str().unwrap().to_owned()
}

fn on(served: &Served, agent: &str, item: &str, action: &str, body: &Value) -> Value {
    served.post(&format!("/v1/agents/{agent}/work-items/{item}/{action}"), body)
}

/// The keys of all ticks so far.
fn ticks(served: &Served, agent: &str) -> Vec<String> {
    let ticks = served.facts(agent, "message.queued").into_iter().filter(|message| message["kind"] == "system_tick");
    ticks.filter_map(|tick| Some(tick["idempotency_key"].as_str()?.to_owned())).collect()
}

fn why(served: &Served, agent: &str) -> String {
    served.get(&format!("/v1/agents/{agent}/why"))["sentence"].as_str().unwrap().to_owned()
}

/// An agent that says something and never changes anything.
fn idler(served: &Served, agent: &str) {
    let model = served.script(agent, &json!({ "rounds": [{ "text": "Hm." }], "loop": true }));
    served.create(agent, &model);
    served.until_asleep(agent);
}

#[test]
fn a_model_reads_its_work_itself_and_its_neighbour() {
    let mut served = Served::start();
    served.create("neighbour", "script/echo");
    served.create_playing("reader", &json!([
        calls(tool("CreateWorkItem", json!({ "objective": "read", "plan": "slowly", "plan_status": "needs_input" }))),
        calls(tool("ListWorkItems", json!({ "filter": "waiting" }))),
        calls(tool("GetWorkItem", json!({ "work_item_id": result("/items/0/work_item_id", 1) }))),
        calls(tool("AgentGet", json!({}))),
        calls(tool("AgentGet", json!({ "agent_id": "neighbour" }))),
        calls(tool("AgentGet", json!({ "agent_id": "nobody" }))),
        calls(tool("GetWorkItem", json!({ "work_item_id": "work_none" }))),
        { "text": "Read." },
    ]));
    let message = served.send("reader", "read it all");
    assert_eq!(served.until_told("reader", &message)["text"], "Read.");
    let made = &served.results("reader", "CreateWorkItem")[0];
    assert_eq!((&made["plan"], &made["readiness"]), (&json!("slowly"), &json!("needs_input")));
    let listed = &served.results("reader", "ListWorkItems")[0];
    assert_eq!((listed["items"].as_array().unwrap().len(), &listed["truncated"]), (1, &json!(false)));
    assert!(listed["items"][0].get("plan").is_none(), "long texts come one item at a time");
    let got = served.results("reader", "GetWorkItem");
    // The turn that made it is about it, and it pays for that.
    let unpaid = |item: &Value| {
        let mut item = item.clone();
        item["used"] = Value::Null;
        item
    };
    assert_eq!(unpaid(&got[0]), unpaid(made));
    assert_eq!((&made["used"]["turns"], &got[0]["used"]["turns"]), (&json!(0), &json!(1)));
    assert_eq!(got[1]["error"]["code"], "not_found");
    let agents = served.results("reader", "AgentGet");
    assert_eq!(
        (&agents[0]["identity"]["id"], &agents[0]["agent"]["status"]),
        (&json!("reader"), &json!("awake_running"))
    );
    assert_eq!(agents[1]["identity"]["id"], "neighbour");
    assert_eq!(agents[2]["error"]["code"], "not_found");
    // A model sees an agent with the same fields as its operator does. Those of a record depend on what it holds.
    for (seen, id) in [(&agents[0], "reader"), (&agents[1], "neighbour")] {
        let shown = served.get(&format!("/v1/agents/{id}"));
        for part in ["", "/identity", "/agent", "/lifecycle", "/model", "/execution", "/execution/sandbox"] {
            let fields =
                |of: &Value| of.pointer(part).and_then(Value::as_object).map(|it| it.keys().cloned().collect());
            let (seen, shown): (Option<Vec<String>>, Option<Vec<String>>) = (fields(seen), fields(&shown));
            assert!(shown.is_some() && seen == shown, "{id}{part}: {seen:?} is not {shown:?}");
        }
    }
    served.stop_and_verify();
}

#[test]
fn queued_work_is_offered_once_per_revision_and_never_takes_the_focus() {
    let mut served = Served::start();
    idler(&served, "a");
    let item = create(&served, "a", &json!({ "objective": "build" }));
    let backoff = |served: &Served| {
        until("backoff", || {
            let summary = served.until_asleep("a");
            (summary["decision"]["reason"] == "tick_backoff").then_some(summary)
        })
    };
    let offered = |served: &Served, key: &str| {
        until(key, || ticks(served, "a").iter().any(|tick| tick.starts_with(key)).then_some(()));
        backoff(served)["agent"]["current_work_item_id"].clone()
    };
    assert_eq!(offered(&served, &format!("work_queue:queued_available:{item}:1")), Value::Null);
    let turn = &served.facts("a", "turn.started")[0];
    assert_eq!(turn["work_item_id"], item.as_str(), "the turn is bound to it, the focus is not");
    assert!(why(&served, "a").starts_with("a worked on \"build\" and nothing changed; it tries again at 2"));
    served.kill_and_up();
    // A person picks it: that is a change, and it is offered as what is current.
    assert_eq!(on(&served, "a", &item, "pick", &json!({}))["current"], true);
    assert_eq!(offered(&served, &format!("work_queue:continue_active:{item}:1:")), item.as_str());
    // Another item is offered, and does not replace it; a new revision has new keys.
    let other = create(&served, "a", &json!({ "objective": "sweep" }));
    assert_eq!(offered(&served, &format!("work_queue:queued_available:{other}:1")), item.as_str());
    on(&served, "a", &item, "update", &json!({ "plan": "with bricks" }));
    assert_eq!(offered(&served, &format!("work_queue:continue_active:{item}:2")), item.as_str());
    // Completed, it has no focus, is offered no more and can't be picked.
    let done = on(&served, "a", &item, "complete", &json!({ "report": "built" }));
    assert_eq!((&done["state"], &done["current"]), (&json!("completed"), &json!(false)));
    assert_eq!(served.until_asleep("a")["agent"]["current_work_item_id"], Value::Null);
    let refused = served.call("POST", &format!("/v1/agents/a/work-items/{item}/pick"), &[], Some(&json!({})));
    assert_eq!((refused.status, &refused.body["code"]), (409, &json!("not_open")));
    let mut keys = ticks(&served, "a");
    let (all, events) = (keys.len(), served.events("a"));
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), all, "no key is used twice");
    let completed = seq_of(&events, "work_item.completed", |_| true);
    let late = events.iter().filter(|event| event["seq"].as_u64().unwrap() > completed);
    assert!(
        late.filter(|event| event["kind"] == "turn.started").all(|turn| turn["data"]["work_item_id"] != item.as_str())
    );
    served.stop_and_verify();
}

#[test]
fn blocked_work_that_nothing_will_wake_is_told_once() {
    let mut served = Served::start();
    idler(&served, "a");
    let item = create(&served, "a", &json!({ "objective": "build", "plan_status": "needs_input" }));
    let summary = until("a question", || {
        let summary = served.until_asleep("a");
        (summary["decision"]["reason"] == "work_item_needs_input").then_some(summary)
    });
    assert_eq!(summary["scheduling_posture"], "waiting_for_operator");
    assert_eq!(why(&served, "a"), "a needs your input on \"build\"; send it a message.");
    let blocked = on(&served, "a", &item, "update", &json!({ "plan_status": "ready", "blocked_by": "rain" }));
    assert_eq!(blocked["readiness"], "blocked");
    served.until_fact("a", "brief.recorded", |brief| brief["work_item_id"] == item.as_str());
    served.kill_and_up();
    let told = |served: &Served| {
        let briefs = served.facts("a", "brief.recorded");
        briefs.iter().filter(|brief| brief["work_item_id"] == item.as_str()).count()
    };
    // It looks again, and has nothing new to say.
    served.post("/v1/agents/a/wake", &json!({ "reason": "look" }));
    let summary = served.until_asleep("a");
    assert_eq!((&summary["decision"]["kind"], told(&served)), (&json!("WaitForOperator"), 1));
    let sentence = why(&served, "a");
    assert!(sentence.contains("by rain") && sentence.contains(&format!("{item} --unblock`")), "{sentence}");
    assert!(ticks(&served, "a").iter().all(|key| !key.starts_with("work_queue")), "{:?}", ticks(&served, "a"));
    // A recheck reminds, and unblocks nothing.
    on(&served, "a", &item, "block", &json!({ "blocked_by": "rain", "recheck_after_ms": 50 }));
    served.until_fact("a", "work_item.recheck_fired", |_| true);
    served.until_asleep("a");
    assert_eq!(served.get(&format!("/v1/agents/a/work-items/{item}"))["blocked_by"], "rain");
    on(&served, "a", &item, "update", &json!({ "blocked_by": null }));
    until("an offer", || ticks(&served, "a").iter().any(|key| key.starts_with("work_queue")).then_some(()));
    served.until_asleep("a");
    served.stop_and_verify();
}

#[test]
fn work_that_waits_is_held_by_its_own_wait_alone() {
    let mut served = Served::start();
    let wait = json!({ "wake": "external", "resource": "order-7", "reason": "the paint" });
    let script = json!({ "rounds": [{ "text": "Hm." }], "loop": true, "when": [
        { "contains": "paint the fence", "rounds": [calls(tool("WaitFor", wait))] },
    ] });
    let model = served.script("a", &script);
    served.create("a", &model);
    let item = create(&served, "a", &json!({ "objective": "paint the fence" }));
    served.until_fact("a", "wait.created", |wait| wait["work_item_id"] == item.as_str());
    served.until_asleep("a");
    let shown = served.get(&format!("/v1/agents/a/work-items/{item}"));
    assert_eq!(shown["readiness"], "waiting_for_external");
    let sentence = "a sleeps until something outside happens, for \"paint the fence\" (order-7): the paint.";
    assert_eq!(why(&served, "a"), sentence);
    // Other work goes on meanwhile.
    let other = create(&served, "a", &json!({ "objective": "sweep" }));
    served.until_fact("a", "turn.started", |turn| turn["work_item_id"] == other.as_str());
    served.until_asleep("a");
    on(&served, "a", &other, "complete", &json!({ "report": "swept" }));
    assert_eq!(served.items("/v1/agents/a/waits")[0]["status"], "active");
    // The event that it waits for frees it; completing it would have ended the wait, too.
    let event = |text: &str, correlation: &str| {
        let event = json!({ "text": text, "kind": "webhook_event", "origin": "shop", "correlation_id": correlation });
        served.post("/v1/agents/a/messages", &event)["message_id"].clone()
    };
    let paint = event("here it is", "order-7");
    let turn = served.until_fact("a", "turn.started", |turn| turn["message_id"] == paint);
    assert_eq!(turn["continuation"]["class"], "resume_expected_wait");
    served.until_asleep("a");
    assert_eq!(served.items("/v1/agents/a/waits")[0]["status"], "triggered");
    on(&served, "a", &item, "complete", &json!({ "report": "painted" }));
    served.until_asleep("a");
    served.stop_and_verify();
}

/// The table of spec 8: what a trigger with no wait of its own does where nothing, and where something is awaited.
#[test]
fn a_trigger_is_taken_as_the_table_says() {
    let mut served = Served::start();
    let wait = json!({ "wake": "external", "resource": "order-7", "reason": "the paint" });
    let script = json!({ "rounds": [{ "text": "Hm." }], "loop": true, "when": [
        { "contains": "hold on", "rounds": [calls(tool("WaitFor", wait))] },
    ] });
    let model = served.script("a", &script);
    served.create("a", &model);
    let class = |message: &str| {
        let turn = served.until_fact("a", "turn.started", |turn| turn["message_id"] == message);
        served.until_asleep("a");
        turn["continuation"]["class"].as_str().unwrap().to_owned()
    };
    let event = |text: &str| {
        let event = json!({ "text": text, "kind": "channel_event", "origin": "room" });
        served.post("/v1/agents/a/messages", &event)["message_id"].as_str().unwrap().to_owned()
    };
    let queued = |has: &dyn Fn(&Value) -> bool| {
        let message = served.until_fact("a", "message.queued", |message| has(message));
        message["message_id"].as_str().unwrap().to_owned()
    };
    let result = || {
        let task = served.run_task("a", "true");
        queued(&|message| message["kind"] == "task_result" && message["task_id"] == task.as_str())
    };
    let tick = || {
        let timer = served.post("/v1/agents/a/timers", &json!({ "summary": "tea", "after_ms": 1 }));
        queued(&|message| message["kind"] == "timer_tick" && message["timer_id"] == timer["timer_id"])
    };
    let hint = |body: &str| {
        served.post("/v1/agents/a/wake", &json!({ "reason": "look", "source": body, "body": body }));
        queued(&|message| message["kind"] == "system_tick" && message["text"] == body)
    };
    let status = |message: &str| {
        let messages = served.items("/v1/agents/a/messages");
        messages.iter().find(|it| it["message_id"] == message).unwrap()["status"].as_str().unwrap().to_owned()
    };
    let parked = |message: &str| until("a parked message", || (status(message) == "parked").then_some(()));

    // Nothing is awaited.
    let local = [served.send("a", "hello"), event("news"), result(), hint("one")];
    for message in &local {
        assert_eq!(class(message), "local_continuation");
    }
    let first_tick = class(&tick());
    served.post("/v1/agents/a/wake", &json!({ "reason": "look", "source": "nothing to say" }));
    let blank = queued(&|message| message["kind"] == "system_tick" && message["origin"]["id"] == "nothing to say");
    until("a reduced hint", || (status(&blank) == "processed").then_some(()));
    assert!(served.facts("a", "turn.started").iter().all(|turn| turn["message_id"] != blank.as_str()));
    // Something is.
    served.send("a", "hold on");
    served.until_fact("a", "wait.created", |_| true);
    served.until_asleep("a");
    assert_eq!(class(&served.send("a", "still there?")), "resume_override");
    assert_eq!(class(&result()), "resume_override");
    assert_eq!(class(&tick()), first_tick, "a timer stands on its own");
    let kept = [event("other news"), hint("two")];
    kept.iter().for_each(|message| parked(message));
    assert!(why(&served, "a").ends_with("2 messages are parked behind what it waits for."), "{}", why(&served, "a"));
    // No message was mistaken for the awaited one; the parked ones are taken once that has come.
    assert_eq!(served.items("/v1/agents/a/waits")[0]["status"], "active");
    let order = json!({ "text": "paint", "kind": "webhook_event", "correlation_id": "order-7" });
    let order = served.post("/v1/agents/a/messages", &order)["message_id"].as_str().unwrap().to_owned();
    assert_eq!(class(&order), "resume_expected_wait");
    for message in &kept {
        assert_eq!(class(message), "local_continuation");
    }
    let turns = of_kind(&served.events("a"), "turn.started");
    for message in local.iter().chain(&kept) {
        assert_eq!(turns.iter().filter(|turn| turn["message_id"] == message.as_str()).count(), 1);
    }
    served.stop_and_verify();
}
