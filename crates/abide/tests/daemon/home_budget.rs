//! The home's spending limit for a day: no model is called once it is reached, nothing is lost meanwhile, and a person who
//! raises it lets every agent go on.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::odd_answers::{Provider, delta, stream};
use crate::served::{Served, until};

/// The cost of one answer: a thousand tokens at a dollar for a million, and as many at two.
const ANSWER: &str = "0.003";

/// These tests are about one day. Near its end they wait for the next one.
fn stay_clear_of_midnight() {
    const DAY: u64 = 86_400;
    const NEAR: u64 = 120;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let left = DAY - now % DAY;
    if left < NEAR {
        std::thread::sleep(Duration::from_secs(left + 1));
    }
}

fn provider() -> Provider {
    let usage = json!({ "prompt_tokens": 1_000, "completion_tokens": 1_000 });
    Provider::start(move |_, _| {
        let mut last = delta(&json!({}), Some("stop"));
        last["usage"] = usage.clone();
        stream(&[delta(&json!({ "content": "Answered." }), None), last])
    })
}

fn settings(provider: &Provider, daily_usd: &str) -> String {
    format!(
        "model = \"script/echo\"\n[budget]\ndaily_usd = {daily_usd}\n[providers.odd]\nkind = \"openai-chat\"\nbase_url = \
         \"{}\"\n[models.\"odd/m\"]\ninput_usd = 1\noutput_usd = 2\n",
        provider.url
    )
}

fn until_spent(served: &Served, agent: &str) -> Value {
    until(&format!("{agent} held by the home's budget"), || {
        let why = served.get(&format!("/v1/agents/{agent}/why"));
        (why["decision"]["reason"] == "home_budget_spent" && why["status"] == "asleep").then_some(why)
    })
}

fn told_failures(served: &Served, agents: &[&str]) -> usize {
    let of = |agent: &&str| {
        let briefs = served.facts(agent, "brief.recorded");
        briefs.into_iter().filter(|brief| brief["kind"] == "failure").count()
    };
    agents.iter().map(of).sum()
}

#[test]
fn no_model_is_called_past_the_homes_limit_and_raising_it_lets_every_agent_go_on() {
    stay_clear_of_midnight();
    let provider = provider();
    let mut served = Served::start_with(&settings(&provider, "0.006"));
    let agents = ["a", "b", "c"];
    for agent in agents {
        served.create(agent, "odd/m");
    }
    for (agent, cost) in [("a", ANSWER), ("b", ANSWER)] {
        served.until_told(agent, &served.send(agent, "hello"));
        let summary = served.get(&format!("/v1/agents/{agent}"));
        assert_eq!(summary["model"]["usage"]["cost_usd"].to_string(), cost);
    }
    let waiting: Vec<(&str, String)> = agents.iter().map(|agent| (*agent, served.send(agent, "more"))).collect();
    for agent in agents {
        let why = until_spent(&served, agent);
        let sentence = why["sentence"].as_str().unwrap();
        assert!(sentence.contains("the home's limit of $0.006 a day is reached"), "{sentence}");
        assert_eq!(served.get(&format!("/v1/agents/{agent}"))["agent"]["pending"], 1, "{agent}");
        assert_eq!(why["decision"]["kind"], "WaitForOperator");
    }
    assert_eq!(provider.asked().len(), 2, "nothing is asked past the limit");
    assert_eq!(told_failures(&served, &agents), 1, "the operator is told once for the whole home");
    let ran = served.place.run(&["send", "c", "--wait", "and more"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);

    // A new process adds up the day's costs from the ledger, and does not tell it again.
    served.kill_and_up();
    for agent in agents {
        served.until_fact(agent, "turns.released", |fact| fact["evidence"] == "restart");
        until_spent(&served, agent);
    }
    assert_eq!((provider.asked().len(), told_failures(&served, &agents)), (2, 1));

    served.stop();
    served.place.says(&["config", "set", "budget.daily_usd", "7.50"]);
    served.up();
    for (agent, message) in &waiting {
        assert_eq!(served.until_told(agent, message)["text"], "Answered.", "{agent}");
    }
    served.stop_and_verify();
}

/// A limit that let pass calls it cannot count would be no limit.
#[test]
fn a_model_without_a_price_is_not_called_where_the_home_is_limited() {
    let provider = provider();
    let settings = settings(&provider, "5").replace("input_usd = 1\noutput_usd = 2\n", "images = false\n");
    let mut served = Served::start_with(&settings);
    served.create("a", "odd/m");
    let message = served.send("a", "hello");
    let told = served.until_told("a", &message);
    assert_eq!(told["kind"], "failure");
    assert!(told["text"].as_str().unwrap().contains("unpriced"), "{told}");
    assert_eq!(provider.asked().len(), 0);
    // Scripts cost nothing.
    served.create("b", "script/echo");
    assert_eq!(served.until_told("b", &served.send("b", "hello"))["text"], "hello");
    served.stop_and_verify();
}

#[test]
fn doctor_recommends_a_limit_where_a_key_is_set() {
    let provider = provider();
    let served = Served::down(&settings(&provider, "0"));
    let checks = |served: &Served| -> Vec<Value> {
        let mut command = served.place.command(&["doctor", "--json"]);
        let ran = command.env("OPENAI_API_KEY", "sk-none").output().unwrap();
        let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
        report["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "spending").cloned().collect()
    };
    let found = checks(&served);
    assert_eq!((found.len(), &found[0]["verdict"]), (1, &json!("warn")), "{found:?}");
    assert!(found[0]["fix"].as_str().unwrap().contains("budget.daily_usd"), "{found:?}");
    served.place.says(&["config", "set", "budget.daily_usd", "20"]);
    assert_eq!(checks(&served)[0]["found"], "$20.00 a day for all agents together");
    for wrong in ["much", "1.0000001"] {
        let ran = served.place.run(&["config", "set", "budget.daily_usd", wrong]);
        assert_eq!(ran.code, Some(2), "{wrong}: {}", ran.err);
        assert!(ran.err.contains("is no amount in dollars"), "{}", ran.err);
    }
}
