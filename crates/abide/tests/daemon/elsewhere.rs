//! Failures that people reported after running systems like this one for months: each is a test, and its number is its
//! place in that list. Four of the ten are in the file of their subject: a result after focus moved (`results`), an agent
//! that owns only a timer (`timers`), output without end (`bounds`), and many writers on one file (the ledger's own tests).

use std::fs;

use serde_json::{Value, json};

use crate::served::{Served, until};

/// A number of the daemon's, by its name.
fn metric(served: &Served, name: &str) -> u64 {
    let page = served.get("/metrics");
    let line = page.as_str().unwrap().lines().find_map(|line| line.strip_prefix(&format!("abide_{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

fn reason(served: &Served, agent: &str) -> String {
    served.get(&format!("/v1/agents/{agent}"))["decision"]["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn failure_03_a_cancelled_timer_leaves_no_backlog_of_turns() {
    let mut served = Served::start();
    served.create_playing("busy", &json!([{ "text": "That took long.", "delay_ms": 3_000 }, { "text": "Too many." }]));
    let message = served.send("busy", "take your time");
    served.until_fact("busy", "turn.started", |_| true);
    let timer = served.post("/v1/agents/busy/timers", &json!({ "summary": "tick", "every_ms": 100 }));
    served.until_fact("busy", "timer.fired", |_| true);
    let path = format!("/v1/agents/busy/timers/{}", timer["timer_id"].as_str().unwrap());
    assert_eq!(served.call("DELETE", &path, &[], None).status, 200);
    assert_eq!(served.until_told("busy", &message)["text"], "That took long.");
    served.until_asleep("busy");
    assert_eq!(served.facts("busy", "turn.started").len(), 1, "no tick of it became a turn");
    assert_eq!(served.facts("busy", "timer.fired").len(), 1, "and there was never more than one");
    served.stop_and_verify();
}

#[test]
fn failure_04_work_that_does_not_change_is_not_worked_on_for_ever() {
    let mut served = Served::start();
    served.create("looper", "script/echo");
    served.post("/v1/agents/looper/work-items", &json!({ "objective": "go round" }));
    // Every hint makes the next try due at once; the tries are counted all the same.
    until("a question to the operator", || {
        served.until_asleep("looper");
        if reason(&served, "looper") == "no_progress_budget_spent" {
            return Some(());
        }
        served.post("/v1/agents/looper/wake", &json!({ "reason": "now" }));
        None
    });
    let turns = served.facts("looper", "turn.started").len();
    assert_eq!(turns, 4, "one tick and three retries");
    for _ in 0..3 {
        served.post("/v1/agents/looper/wake", &json!({ "reason": "now" }));
        served.until_asleep("looper");
    }
    assert_eq!(served.facts("looper", "turn.started").len(), turns);
    let keys: Vec<Value> =
        served.facts("looper", "message.queued").iter().map(|tick| tick["idempotency_key"].clone()).collect();
    for (index, key) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(key), "{key} was used twice");
    }
    served.stop_and_verify();
}

#[test]
fn failure_05_the_ledger_grows_by_what_happened_and_no_more() {
    let mut served = Served::start();
    served.create("talker", "script/echo");
    let size = |served: &Served| {
        let stats = served.get("/v1/ledger/stats");
        stats["facts"].as_u64().unwrap_or_else(|| panic!("{stats}"))
    };
    let say = |served: &Served, count: usize| {
        for n in 0..count {
            let message = served.send("talker", &format!("hello {n}"));
            served.until_told("talker", &message);
        }
        served.until_asleep("talker");
        size(served)
    };
    let (first, second, third) = (say(&served, 5), say(&served, 20), say(&served, 20));
    assert!(first < second);
    assert_eq!(second - first, third - second, "as many facts for as many turns, however long the history");
    // Looking, asking why and resting write nothing.
    for _ in 0..20 {
        served.get("/v1/agents/talker/why");
        served.get("/v1/agents/talker");
    }
    assert_eq!(size(&served), third);
    served.stop_and_verify();
}

#[test]
fn failure_06_a_start_reads_nobody_who_has_nothing_to_do() {
    let mut served = Served::start();
    for n in 0..150 {
        served.create(&format!("sleeper-{n}"), "script/echo");
    }
    let far = json!({ "summary": "much later", "after_ms": 86_400_000 });
    served.post("/v1/agents/sleeper-7/timers", &far);
    served.post("/v1/agents/sleeper-8/stop", &json!({}));
    served.send("sleeper-8", "for later");
    until("rest", || (metric(&served, "agents_awake") == 0).then_some(()));
    served.kill_and_up();
    served.get("/v1/agents");
    assert_eq!(metric(&served, "loads_total"), 0);
    served.send("sleeper-9", "hello");
    served.until_asleep("sleeper-9");
    assert_eq!(metric(&served, "loads_total"), 1);
    served.stop_and_verify();
}

#[test]
fn failure_07_agents_that_wait_take_no_processor_time() {
    let mut served = Served::start();
    for n in 0..50 {
        let id = format!("waiter-{n}");
        served.create(&id, "script/echo");
        served.post(&format!("/v1/agents/{id}/timers"), &json!({ "summary": "later", "after_ms": 3_600_000 }));
    }
    until("rest", || (metric(&served, "agents_awake") == 0).then_some(()));
    let pid: u32 = serde_json::from_slice::<Value>(&fs::read(served.place.home().join("daemon.json")).unwrap())
        .unwrap()["pid"]
        .as_u64()
        .and_then(|pid| u32::try_from(pid).ok())
        .unwrap();
    // Hundredths of a second that it ran, of its own and of the system's.
    let ran = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<u64> =
            stat.rsplit(") ").next().unwrap().split(' ').filter_map(|field| field.parse().ok()).collect();
        fields[10] + fields[11]
    };
    let (before, commits) = (ran(), metric(&served, "commits_total"));
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert!(ran() - before < 40, "it ran for {} of 400 hundredths of a second", ran() - before);
    assert_eq!(metric(&served, "commits_total"), commits);
    served.stop_and_verify();
}

#[test]
fn failure_10_a_wake_that_comes_to_nothing_says_so() {
    let mut served = Served::start();
    served.create("stuck", "script/echo");
    served.post("/v1/agents/stuck/stop", &json!({}));
    let woken = served.post("/v1/agents/stuck/wake", &json!({ "reason": "wake up" }));
    assert_eq!(woken["disposition"], "ignored");
    assert!(woken["reason"].as_str().unwrap().contains("start it"), "{woken}");
    assert_eq!(served.facts("stuck", "wake_hint.ignored").len(), 1);
    let why = served.get("/v1/agents/stuck/why");
    assert!(why["sentence"].as_str().unwrap().contains("stopped"), "{why}");
    assert_eq!(served.facts("stuck", "turn.started").len(), 0);
    served.stop_and_verify();
}
