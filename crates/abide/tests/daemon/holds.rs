//! Turns that are held for the whole home: a key that does not work consumes no message, is tried once for all agents, and
//! what waited goes on when it works.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::odd_answers::{Provider, text};
use crate::place::Daemon;
use crate::served::{Served, until};

const AGENTS: [&str; 3] = ["a", "b", "c"];

/// A provider that refuses every key until it is told to accept it.
struct Gate {
    provider: Provider,
    accepts: Arc<AtomicBool>,
}

impl Gate {
    fn refusing(status: u16) -> Gate {
        let accepts = Arc::new(AtomicBool::new(false));
        let accepted = Arc::clone(&accepts);
        let provider =
            Provider::start(move |body, _| match accepted.load(Ordering::SeqCst) || body.contains("m-free") {
                true => text("Answered."),
                false => refusal(status),
            });
        Gate { provider, accepts }
    }

    fn accept(&self, accepts: bool) {
        self.accepts.store(accepts, Ordering::SeqCst);
    }

    fn calls(&self) -> usize {
        self.provider.asked().len()
    }

    fn settings(&self) -> String {
        let url = &self.provider.url;
        format!("model = \"script/echo\"\n[providers.odd]\nkind = \"openai-chat\"\nbase_url = \"{url}\"\n")
    }

    /// A daemon with three agents that use the same key, each with two messages. The first agent finds out about the key.
    fn served(&self, more: &str) -> (Served, Vec<(&'static str, String)>) {
        let served = Served::start_with(&format!("{}{more}", self.settings()));
        let mut sent = Vec::new();
        for agent in AGENTS {
            served.create(agent, "odd/m");
            sent.push((agent, served.send(agent, "one")));
            until_held(&served, agent, "model_key");
            sent.push((agent, served.send(agent, "two")));
        }
        (served, sent)
    }
}

fn refusal(status: u16) -> String {
    let body = json!({ "error": { "message": "This key is no good.", "type": "invalid_request_error" } }).to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// The explanation of `why`, once no turn of the agent starts for this reason.
fn until_held(served: &Served, agent: &str, reason: &str) -> Value {
    until(&format!("{agent} held by {reason}"), || {
        let why = served.get(&format!("/v1/agents/{agent}/why"));
        (why["decision"]["reason"] == reason && why["status"] == "asleep").then_some(why)
    })
}

fn pending(served: &Served, agent: &str) -> Value {
    served.get(&format!("/v1/agents/{agent}"))["agent"]["pending"].clone()
}

/// Everything that the operator was told of failures, over all agents.
fn told_failures(served: &Served, agents: &[&str]) -> Vec<Value> {
    let of =
        |agent: &&str| served.facts(agent, "brief.recorded").into_iter().filter(|brief| brief["kind"] == "failure");
    agents.iter().flat_map(of).collect()
}

/// Each message has its answer, once and in order.
fn until_all_answered(served: &Served, sent: &[(&str, String)]) {
    for (agent, message) in sent {
        assert_eq!(served.until_told(agent, message)["text"], "Answered.", "{agent}");
    }
    for agent in AGENTS {
        let ours: Vec<Value> = sent.iter().filter(|(of, _)| *of == agent).map(|(_, message)| json!(message)).collect();
        let processed: Vec<Value> =
            served.facts(agent, "message.processed").iter().map(|fact| fact["message_id"].clone()).collect();
        assert_eq!(processed, ours, "{agent}");
    }
}

#[test]
fn a_refused_key_consumes_nothing_and_a_test_that_succeeds_lets_every_agent_go_on() {
    let gate = Gate::refusing(401);
    let command = "echo $ABIDE_NOTIFY_KIND $ABIDE_AGENT >> told";
    let (mut served, sent) = gate.served(&format!("[notify]\ncommand = {}\n", json!(command)));
    assert_eq!(gate.calls(), 1, "one call for the whole home");
    for agent in AGENTS {
        let why = until_held(&served, agent, "model_key");
        assert!(why["sentence"].as_str().unwrap().contains("This key is no good."), "{why}");
        assert_eq!(pending(&served, agent), 2, "{agent}");
        assert_eq!(served.facts(agent, "message.processed"), Vec::<Value>::new(), "{agent}");
    }
    assert_eq!(told_failures(&served, &AGENTS).len(), 1, "it is told once for the whole home");

    let ran = served.place.run(&["send", "b", "three", "--wait", "--json"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(4), ""), "{}", ran.err);
    let told: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(told["code"], "waits_for_person", "{told}");
    assert!(told["error"].as_str().unwrap().contains("abide model test"), "{told}");
    let mut sent = sent;
    sent.push(("b", told["message_id"].as_str().unwrap().to_owned()));

    // A test that fails changes nothing.
    assert_eq!(served.place.run(&["model", "test", "odd/m"]).code, Some(1));
    assert_eq!(pending(&served, "a"), 2);
    gate.accept(true);
    served.place.says(&["model", "test", "odd/m"]);
    until_all_answered(&served, &sent);
    assert_eq!(gate.calls(), 1 + 2 + 7, "a refused call, two tests, seven answers");
    let told = fs::read_to_string(served.place.path("home/told")).unwrap();
    assert_eq!(told, "failure a\n", "no agent is told as blocked beside that");
    // Once it has worked, the next failure is news again.
    gate.accept(false);
    served.send("a", "again");
    until_held(&served, "a", "model_key");
    assert_eq!(told_failures(&served, &AGENTS).len(), 2);
    served.stop_and_verify();
}

#[test]
fn a_new_process_tries_each_key_once_and_at_once() {
    let gate = Gate::refusing(401);
    let (mut served, sent) = gate.served("");
    assert_eq!(gate.calls(), 1);
    served.kill_and_up();
    for agent in AGENTS {
        served.until_fact(agent, "turns.released", |fact| fact["evidence"] == "restart");
        until_held(&served, agent, "model_key");
    }
    assert_eq!(gate.calls(), 2, "one call for all of them");
    assert_eq!(told_failures(&served, &AGENTS).len(), 2, "one more, because a person restarted it");
    gate.accept(true);
    served.stop();
    served.up();
    until_all_answered(&served, &sent);
    served.stop_and_verify();
}

#[test]
fn a_key_that_is_not_set_holds_messages_until_it_is() {
    let gate = Gate::refusing(401);
    gate.accept(true);
    let mut served = Served::down(&format!("{}key_env = \"ODD_KEY\"\n", gate.settings()));
    let up = |served: &mut Served, key: Option<&str>| {
        let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
        command.envs(key.map(|key| ("ODD_KEY", key)));
        served.daemon = Some(Daemon::of(command));
    };
    up(&mut served, Some("sk-1"));
    served.create("a", "odd/m");
    served.stop();
    up(&mut served, None);
    let message = served.send("a", "hello");
    let why = until_held(&served, "a", "model_key");
    assert!(why["sentence"].as_str().unwrap().contains("ODD_KEY"), "{why}");
    assert_eq!(gate.calls(), 0);
    served.stop();
    up(&mut served, Some("sk-1"));
    assert_eq!(served.until_told("a", &message)["text"], "Answered.");
    served.stop_and_verify();
}

#[test]
fn a_model_that_a_key_may_not_use_holds_nobody_who_uses_another() {
    let gate = Gate::refusing(403);
    let mut served = Served::start_with(&gate.settings());
    served.create("a", "odd/m");
    served.create("b", "odd/m-free");
    served.send("a", "hello");
    until_held(&served, "a", "model_key");
    let message = served.send("b", "hello");
    assert_eq!(served.until_told("b", &message)["text"], "Answered.");
    until_held(&served, "a", "model_key");
    assert_eq!(gate.calls(), 2);
    served.stop_and_verify();
}

#[test]
fn a_fallback_answers_meanwhile_and_the_refused_key_is_not_asked_each_time() {
    let gate = Gate::refusing(401);
    let mut served = Served::start_with(&gate.settings());
    served.post("/v1/agents", &json!({ "id": "a", "model": "odd/m", "fallback": ["script/echo"] }));
    for text in ["one", "two", "three"] {
        let message = served.send("a", text);
        assert_eq!(served.until_told("a", &message)["text"], text);
    }
    assert_eq!(gate.calls(), 1);
    assert_eq!(told_failures(&served, &["a"]).len(), 1);
    // An agent without another model is held, and that is told.
    served.create("b", "odd/m");
    served.send("b", "hello");
    until_held(&served, "b", "model_key");
    assert_eq!((gate.calls(), told_failures(&served, &["b"]).len()), (1, 1));
    served.stop_and_verify();
}

#[test]
fn a_script_plays_a_key_that_fails_and_works_again_by_itself() {
    let mut served = Served::start();
    let rounds = json!([{ "text": "Hello." }, { "error": "auth", "retry_after_ms": 300 }, { "text": "Back." }]);
    served.create_playing("a", &rounds);
    served.until_told("a", &served.send("a", "hello"));
    let message = served.send("a", "go on");
    assert_eq!(served.until_told("a", &message)["text"], "Back.");
    let held = served.facts("a", "turns.held");
    assert_eq!((held.len(), &held[0]["cause"]), (1, &json!("model_key")), "{held:?}");
    assert_eq!(served.facts("a", "turns.released")[0]["evidence"], "due");
    served.stop_and_verify();
}

/// A summary from the records is worse than the model's, and stays: a key that fails for a while must not leave one.
#[test]
fn a_key_that_fails_while_the_past_is_summarised_changes_nothing_of_it() {
    const SUMMARY: &str = "The operator counts sheep.";
    let accepts = Arc::new(AtomicBool::new(false));
    let accepted = Arc::clone(&accepts);
    let provider = Provider::start(move |body, _| match body.contains("[abide to be summarised]") {
        true if accepted.load(Ordering::SeqCst) => text(SUMMARY),
        true => refusal(401),
        false => text("Counted."),
    });
    let mut served = provider.served("window_tokens = 20000\nmax_output_tokens = 2000\ncontext_tokens = 16000");
    let message = until("a summary to be asked for", || {
        let message = served.send("thinker", &"baa ".repeat(700));
        until("an answer or a hold", || {
            let answered =
                served.facts("thinker", "brief.recorded").iter().any(|brief| brief["message_id"] == *message);
            (answered || !served.facts("thinker", "turns.held").is_empty()).then_some(())
        });
        (!served.facts("thinker", "turns.held").is_empty()).then_some(message)
    });
    let asked = provider.asked();
    assert!(asked.last().unwrap().contains("[abide to be summarised]"), "nothing was asked after the refusal");
    assert_eq!(served.facts("thinker", "context.compacted"), Vec::<Value>::new());
    accepts.store(true, Ordering::SeqCst);
    served.place.says(&["model", "test", "odd/m"]);
    assert_eq!(served.until_told("thinker", &message)["text"], "Counted.");
    assert_eq!(served.facts("thinker", "context.compacted")[0]["summary"], SUMMARY);
    served.stop_and_verify();
}
