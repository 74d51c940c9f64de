//! The table of continuations (spec 8) over the public API: everything that can be sent from outside, against everything
//! that can be awaited. One row a test, one agent a cell.

use std::fs;

use serde_json::{Value, json};

use crate::hands::{TASK, calls, exec, result, tool, until_there};
use crate::served::{Served, until};

/// The content of a cell: how the message re-entered, or that it did not.
const TABLE: &str = "
                  operator  task      channel   webhook   callback  delivery  timer     wake    note    blank    blank_wake  own
nothing           local     local     local     local     local     local     local     local   local   reduced  reduced     -
question          expected  override  parked    parked    parked    local     local     parked  parked  reduced  reduced     expected
task              override  override  parked    parked    parked    local     local     parked  parked  reduced  reduced     expected
any_task          override  expected  parked    parked    parked    local     local     parked  parked  reduced  reduced     expected
event             override  override  parked    parked    parked    local     local     parked  parked  reduced  reduced     expected
any_event         override  override  expected  expected  expected  expected  local     parked  parked  reduced  reduced     expected
timer             override  override  parked    parked    parked    local     local     parked  parked  reduced  reduced     expected
any_timer         override  override  parked    parked    parked    local     expected  parked  parked  reduced  reduced     expected
question_of_item  expected  local     local     local     local     local     local     local   local   reduced  reduced     expected
task_of_item      local     local     local     local     local     local     local     local   local   reduced  reduced     expected
event_of_item     local     local     local     local     local     local     local     local   local   reduced  reduced     expected
timer_of_item     local     local     local     local     local     local     local     local   local   reduced  reduced     expected
";

/// Longer than any test.
const FAR_MS: u64 = 3_600_000;

/// The rounds after which an agent waits for this.
fn waiting(wait: &str, timer_ms: u64) -> Vec<Value> {
    let (kind, of_item) = match wait.strip_suffix("_of_item") {
        Some(kind) => (kind, true),
        None => (wait, false),
    };
    let mut rounds = Vec::new();
    if of_item {
        rounds.push(calls(tool("CreateWorkItem", json!({ "objective": "build", "plan_status": "ready" }))));
    }
    let mut input = match kind {
        "question" => json!({ "wake": "operator_input" }),
        "event" => json!({ "wake": "external", "resource": "order-7" }),
        "any_event" => json!({ "wake": "external" }),
        "timer" => json!({ "wake": "timer", "after_ms": timer_ms }),
        "any_timer" => {
            rounds.push(calls(tool("CreateTimer", json!({ "summary": "tea", "after_ms": timer_ms }))));
            json!({ "wake": "timer" })
        }
        "task" | "any_task" => {
            rounds.push(calls(exec(&until_there("go"), 0)));
            match kind {
                "task" => json!({ "wake": "task_result", "resource": result(TASK, 1) }),
                _ => json!({ "wake": "task_result" }),
            }
        }
        other => panic!("{other} is nothing to wait for"),
    };
    input["reason"] = json!("the one");
    if of_item {
        let back = u64::try_from(rounds.len()).unwrap();
        input["work_item_id"] = result("/work_item_id", back);
    }
    rounds.push(calls(tool("WaitFor", input)));
    rounds
}

struct Cell<'a> {
    served: &'a Served,
    agent: String,
    wait: &'a str,
}

impl Cell<'_> {
    fn path(&self, plane: &str) -> String {
        format!("/v1/agents/{}/{plane}", self.agent)
    }

    /// The agent waits, and nothing of it is left to do.
    fn set_up(&self, timer_ms: u64) {
        let mut rounds = if self.wait == "nothing" { Vec::new() } else { waiting(self.wait, timer_ms) };
        rounds.push(json!({ "text": "So it is." }));
        let spare = json!({ "wake": "external", "resource": "spare", "reason": "spare" });
        let script = json!({ "rounds": rounds, "loop": false, "when": [
            { "contains": "spare", "rounds": [calls(tool("WaitFor", spare))] },
        ] });
        let model = self.served.script(&self.agent, &script);
        let folder = self.served.folder(&self.agent);
        self.served.post("/v1/agents", &json!({ "id": self.agent, "model": model, "workspace": folder }));
        if self.wait == "nothing" {
            return;
        }
        self.served.send(&self.agent, "wait for it");
        self.served.until_fact(&self.agent, "wait.created", |_| true);
        // A message that comes into the turn that waits would be one of another cell.
        self.served.until_fact(&self.agent, "turn.terminal", |_| true);
    }

    /// Sends it; the id of the message that it became.
    fn trigger(&self, trigger: &str) -> Value {
        match trigger {
            "operator" => json!(self.served.send(&self.agent, "hello")),
            "task" => {
                let task = self.served.run_task(&self.agent, "true");
                self.queued(|message| message["task_id"] == task.as_str())
            }
            "channel" | "webhook" | "callback" => self.event(json!({ "kind": format!("{trigger}_event") })),
            "delivery" => self.deliver("news"),
            "blank" => self.deliver(""),
            "timer" => self.fire("tea"),
            "wake" => self.wake(&json!({ "reason": "look", "body": "at this" })),
            "blank_wake" => self.wake(&json!({ "reason": "look" })),
            "note" => {
                // By something that leaves the wait alone.
                let asked = if self.wait == "any_timer" { self.deliver("spare") } else { self.fire("spare") };
                let ended = |turn: &Value| turn["message_id"] == asked;
                self.served.until_fact(&self.agent, "turn.terminal", ended);
                let spare = self.served.facts(&self.agent, "wait.created");
                let spare = spare.iter().find(|wait| wait["reason"] == "spare").unwrap();
                let path = format!("{}/{}", self.path("waits"), spare["waiting_intent_id"].as_str().unwrap());
                assert_eq!(self.served.call("DELETE", &path, &[], None).status, 200);
                self.queued(|message| message["kind"] == "internal_followup")
            }
            "own" => self.own(),
            other => panic!("{other} is no trigger"),
        }
    }

    /// The very thing that is awaited.
    fn own(&self) -> Value {
        match self.wait.trim_end_matches("_of_item") {
            "question" => json!(self.served.send(&self.agent, "yes")),
            "task" | "any_task" => {
                let task = self.served.facts(&self.agent, "task.created")[0]["task_id"].clone();
                fs::write(self.served.folder(&self.agent).join("go"), "").unwrap();
                self.queued(|message| message["task_id"] == task)
            }
            "event" => self.event(json!({ "kind": "callback_event", "correlation_id": "order-7" })),
            "any_event" => self.event(json!({ "kind": "callback_event" })),
            "timer" | "any_timer" => self.served.until_fact(&self.agent, "timer.fired", |_| true)["message_id"].clone(),
            other => panic!("{other} is nothing to wait for"),
        }
    }

    fn queued(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        self.served.until_fact(&self.agent, "message.queued", is_it)["message_id"].clone()
    }

    fn event(&self, mut event: Value) -> Value {
        event["text"] = json!("news");
        self.served.post(&self.path("messages"), &event)["message_id"].clone()
    }

    fn deliver(&self, text: &str) -> Value {
        let made = self.served.post(&self.path("triggers"), &json!({ "name": "ci" }));
        let (_, path) = made["url"].as_str().unwrap().split_once("/hooks/").unwrap();
        let taken = crate::wire::Wire::new(self.served.address()).text(&format!("/hooks/{path}"), &[], text).unwrap();
        assert_eq!(taken.status, 202, "{}", taken.body);
        taken.body["message_id"].clone()
    }

    fn fire(&self, summary: &str) -> Value {
        let timer = self.served.post(&self.path("timers"), &json!({ "summary": summary, "after_ms": 1 }));
        let fired = |fired: &Value| fired["timer_id"] == timer["timer_id"];
        self.served.until_fact(&self.agent, "timer.fired", fired)["message_id"].clone()
    }

    fn wake(&self, hint: &Value) -> Value {
        self.served.post(&self.path("wake"), hint);
        self.queued(|message| message["kind"] == "system_tick")
    }

    /// The outcome of the message, once it is known; all views must agree.
    fn outcome(&self, trigger: &str, message: &Value) -> &'static str {
        let about = |event: &Value, kind: &str| event["kind"] == kind && event["data"]["message_id"] == *message;
        let ends = ["turn.started", "message.parked", "message.processed"];
        let event = until("an end of the message", || {
            let events = self.served.events(&self.agent);
            events.into_iter().find(|event| ends.iter().any(|kind| about(event, kind)))
        });
        let outcome = match event["kind"].as_str().unwrap() {
            "turn.started" => match event["data"]["continuation"]["class"].as_str().unwrap() {
                "local_continuation" => "local",
                "resume_override" => "override",
                "resume_expected_wait" => "expected",
                other => panic!("{other} re-entered"),
            },
            "message.parked" => "parked",
            _ => "reduced",
        };
        self.check(trigger, outcome, message, &event["data"]["continuation"]);
        outcome
    }

    fn check(&self, trigger: &str, outcome: &str, message: &Value, continuation: &Value) {
        let cell = format!("{trigger} while {} is awaited", self.wait);
        let decisions = self.served.items(&self.path("decisions"));
        let decision = decisions.iter().map(|entry| &entry["decision"]).find(|one| one["message_id"] == *message);
        let decision = decision.unwrap_or_else(|| panic!("{cell}: no decision"));
        let (kind, reason) = match outcome {
            "parked" => ("ReduceMessageOnly", "message_parked"),
            "reduced" => ("ReduceMessageOnly", "liveness_only_message"),
            _ => ("StartModelTurn", "model_reentry_message"),
        };
        assert_eq!((&decision["kind"], &decision["reason"]), (&json!(kind), &json!(reason)), "{cell}");
        assert_eq!(decision["model_reentry"], json!(kind == "StartModelTurn"), "{cell}");

        let summary = self.served.until_asleep(&self.agent);
        if kind == "StartModelTurn" {
            let trigger_kind = match trigger {
                "operator" => "operator_input",
                "task" => "task_result",
                "channel" | "webhook" | "callback" | "delivery" => "external_event",
                "timer" => "timer_fire",
                "wake" => "system_tick",
                "note" => "internal_followup",
                _ => continuation["trigger_kind"].as_str().unwrap(),
            };
            assert_eq!(continuation["trigger_kind"], trigger_kind, "{cell}");
            assert_eq!(continuation["matched_waiting_reason"], json!(outcome == "expected"), "{cell}");
            // An item that is free again is worked on, which is the last turn then.
            if !self.wait.ends_with("_of_item") || outcome != "expected" {
                assert_eq!(summary["continuation"], *continuation, "{cell}");
            }
        }
        let waits = self.served.items(&self.path("waits"));
        let the_one = waits.iter().find(|wait| wait["reason"] == "the one");
        let status = the_one.map_or("active", |wait| wait["status"].as_str().unwrap());
        assert_eq!(status, if outcome == "expected" { "triggered" } else { "active" }, "{cell}");

        let parked = u64::from(outcome == "parked");
        assert_eq!(summary["agent"]["parked"], parked, "{cell}");
        let why = self.served.get(&self.path("why"));
        let says = why["sentence"].as_str().unwrap().contains("1 message is parked behind what it waits for.");
        assert_eq!(says, outcome == "parked", "{cell}: {why}");
        if self.wait != "nothing" && outcome != "expected" {
            let on = why["waiting_on"].to_string();
            assert!(on.contains("the one"), "{cell}: {on}");
        }
    }
}

fn row(wait: &str) {
    let mut lines = TABLE.trim().lines();
    let triggers: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let expected = lines.find_map(|line| line.strip_prefix(wait)?.strip_prefix(' ')).unwrap();
    let expected: Vec<&str> = expected.split_whitespace().collect();
    let mut served = Served::start();
    let outcomes: Vec<String> = triggers
        .iter()
        .zip(&expected)
        .map(|(trigger, expected)| {
            if *expected == "-" {
                return format!("{trigger} -");
            }
            let cell = Cell { served: &served, agent: trigger.replace('_', "-"), wait };
            cell.set_up(if *trigger == "own" { 50 } else { FAR_MS });
            let message = cell.trigger(trigger);
            format!("{trigger} {}", cell.outcome(trigger, &message))
        })
        .collect();
    let wanted: Vec<String> =
        triggers.iter().zip(&expected).map(|(trigger, cell)| format!("{trigger} {cell}")).collect();
    assert_eq!(outcomes, wanted, "while {wait} is awaited");
    served.stop_and_verify();
}

#[test]
fn while_nothing_is_awaited() {
    row("nothing");
}

#[test]
fn while_an_answer_is_awaited() {
    row("question");
}

#[test]
fn while_a_task_is_awaited() {
    row("task");
}

#[test]
fn while_any_task_is_awaited() {
    row("any_task");
}

#[test]
fn while_an_event_is_awaited() {
    row("event");
}

#[test]
fn while_any_event_is_awaited() {
    row("any_event");
}

#[test]
fn while_a_time_is_awaited() {
    row("timer");
}

#[test]
fn while_any_timer_is_awaited() {
    row("any_timer");
}

#[test]
fn while_an_item_awaits_an_answer() {
    row("question_of_item");
}

#[test]
fn while_an_item_awaits_a_task() {
    row("task_of_item");
}

#[test]
fn while_an_item_awaits_an_event() {
    row("event_of_item");
}

#[test]
fn while_an_item_awaits_a_time() {
    row("timer_of_item");
}
