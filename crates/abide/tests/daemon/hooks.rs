//! Deliveries to triggers' URLs while the daemon is killed and the network fails: each delivery counts once, and none is
//! lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::served::{Served, until};
use crate::wire::{Address, Wire};

const DELIVERIES: usize = 10_000;
const CLIENTS: usize = 16;
/// Every so many-th only wakes the agent; the others are messages.
const HINTS: usize = 10;
/// Every so many-th is sent twice by somebody who was answered.
const REPEATS: usize = 3;

/// The path of a trigger's URL: it stays good when the daemon comes back on another port.
fn path(trigger: &Value) -> String {
    let url = trigger["url"].as_str().unwrap();
    url[url.find("/hooks/").unwrap()..].to_owned()
}

/// The deliveries, each under its id, in an order that does not depend on the ids.
fn shuffled() -> Vec<usize> {
    let mut list: Vec<usize> = (0..DELIVERIES).chain((0..DELIVERIES).step_by(REPEATS)).collect();
    let mut drawn = 0x2545_f491_4f6c_dd1d_u64;
    for index in (1..list.len()).rev() {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        list.swap(index, usize::try_from(drawn >> 33).unwrap() % (index + 1));
    }
    list
}

struct Storm {
    /// Of messages, and of hints.
    paths: [String; 2],
    list: Vec<usize>,
    next: AtomicUsize,
    acknowledged: AtomicUsize,
    /// Where the daemon is now.
    address: Mutex<Address>,
}

impl Storm {
    /// Sends one after another, each until it is acknowledged.
    fn run(&self) {
        let mut wire = Wire::new(self.address.lock().unwrap().clone());
        while let Some(number) = self.list.get(self.next.fetch_add(1, Ordering::Relaxed)).copied() {
            let (path, id) = (&self.paths[usize::from(number % HINTS == 0)], format!("delivery-{number}"));
            let body = json!({ "number": number });
            until("an acknowledgement", || match wire.send("POST", path, &[("webhook-id", &id)], Some(&body)) {
                Ok(answer) if answer.status == 202 => Some(()),
                Ok(answer) => {
                    // A repeat that is under way, a full queue, a daemon on its way: to be sent again.
                    assert!(matches!(answer.status, 409 | 429 | 503), "{answer:?}");
                    None
                }
                Err(_) => {
                    wire = Wire::new(self.address.lock().unwrap().clone());
                    None
                }
            });
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Until so many are acknowledged.
    fn until(&self, count: usize) {
        until("deliveries", || (self.acknowledged.load(Ordering::Relaxed) >= count).then_some(()));
    }
}

/// 5.9: duplicated and reordered, while the agent is stopped, started and its daemon killed.
#[test]
fn ten_thousand_deliveries_each_count_once_through_stops_starts_and_kills() {
    let mut served = Served::start_with("hook_rate = 1000000\n");
    served.create("a", "script/echo");
    let create =
        |mode: &str| path(&served.post("/v1/agents/a/triggers", &json!({ "name": mode, "delivery_mode": mode })));
    let paths = [create("enqueue_message"), create("wake_hint")];
    let list = shuffled();
    let total = list.len();
    let storm = Arc::new(Storm {
        paths,
        list,
        next: AtomicUsize::new(0),
        acknowledged: AtomicUsize::new(0),
        address: Mutex::new(served.address()),
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let storm = Arc::clone(&storm);
            thread::spawn(move || storm.run())
        })
        .collect();
    for part in 1..=6 {
        let stops = part % 2 == 1;
        served.post(&format!("/v1/agents/a/{}", if stops { "stop" } else { "start" }), &json!({}));
        storm.until(total * part / 7);
        if part % 3 != 0 {
            served.kill_and_up();
            *storm.address.lock().unwrap() = served.address();
        }
    }
    clients.into_iter().for_each(|client| client.join().unwrap());
    served.post("/v1/agents/a/stop", &json!({}));

    let counts: BTreeMap<String, u64> = served
        .items("/v1/agents/a/triggers")
        .into_iter()
        .map(|trigger| (trigger["name"].as_str().unwrap().to_owned(), trigger["delivery_count"].as_u64().unwrap()))
        .collect();
    let hints = DELIVERIES.div_ceil(HINTS) as u64;
    let expected = [("enqueue_message".to_owned(), DELIVERIES as u64 - hints), ("wake_hint".to_owned(), hints)];
    assert_eq!(counts, BTreeMap::from(expected));

    let (mut delivered, mut queued, mut processed) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for event in served.events("a") {
        let data = &event["data"];
        let (counts, key) = match event["kind"].as_str().unwrap() {
            "trigger.delivered" => (&mut delivered, &data["delivery_id"]),
            "message.queued" if data["trigger_id"].is_string() && data["json"].is_object() => {
                (&mut queued, &data["idempotency_key"])
            }
            "message.processed" => (&mut processed, &data["message_id"]),
            _ => continue,
        };
        *counts.entry(key.as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    assert_eq!(delivered.len(), DELIVERIES);
    assert_eq!(queued.len() as u64, DELIVERIES as u64 - hints);
    assert!(!processed.is_empty(), "the agent never ran");
    for counts in [delivered, queued, processed] {
        let twice: Vec<_> = counts.into_iter().filter(|(_, count)| *count != 1).collect();
        assert_eq!(twice, Vec::<(String, i32)>::new());
    }
    served.stop_and_verify();
}

const SECRET: &str = "It's a Secret to Everybody";

/// GitHub's documented example: the signature of `Hello, World!` under that secret.
const HELLO: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

/// A model makes a trigger, waits for it, is resumed by a delivery and ends it. It has seen the URL; nobody sees the
/// secret, and that goes with the trigger.
#[test]
fn a_models_trigger_resumes_it_and_its_secret_is_in_no_record() {
    let mut served = Served::start();
    served.create_playing(
        "a",
        &json!([
            { "tools": [{ "name": "CreateTrigger", "input": { "name": "ci", "secret": SECRET } }] },
            { "tools": [{ "name": "WaitFor", "input": { "wake": "external", "resource": { "$result": "/trigger_id" }, "reason": "ci" } }] },
            { "tools": [{ "name": "RevokeTrigger", "input": { "trigger_id": { "$result": "/trigger_id", "back": 2 } } }] },
            { "text": "It came." },
        ]),
    );
    served.send("a", "wait for it");
    let made = served.until_fact("a", "tool.finished", |fact| fact["tool"] == "CreateTrigger");
    let made = &made["result"];
    served.until_fact("a", "wait.created", |_| true);
    let file = served.place.home().join("triggers").join(made["trigger_id"].as_str().unwrap());
    assert!(file.exists());
    let why = served.get("/v1/agents/a/why");
    let named = format!("a delivery to the URL of its trigger ci ({})", made["trigger_id"].as_str().unwrap());
    assert!(why["would_wake"].as_array().unwrap().contains(&json!(named)), "{why}");
    // The process that made it need not be the one that takes what comes in.
    served.kill_and_up();
    let path = path(made);
    let mut wire = Wire::new(served.address());
    assert_eq!(wire.text(&path, &[], "Hello, World!").unwrap().status, 401);
    assert_eq!(wire.text(&path, &[("x-hub-signature-256", HELLO)], "Hello, World!").unwrap().status, 202);
    served.until_fact("a", "trigger.revoked", |_| true);
    until("the secret to go", || (!file.exists()).then_some(()));
    assert_eq!(wire.text(&path, &[("x-hub-signature-256", HELLO)], "Hello, World!").unwrap().status, 404);
    let records = format!("{:?}{:?}", served.events("a"), served.items("/v1/agents/a/transcript"));
    assert!(records.contains("kept outside of the records"), "{records}");
    assert!(!records.contains(SECRET), "{records}");
    served.stop_and_verify();
}

/// A crash between keeping a secret and recording its trigger leaves a secret of nothing.
#[test]
fn a_secret_without_its_trigger_goes_at_the_next_start() {
    let mut served = Served::start();
    let body = json!({ "name": "ci", "secret": SECRET });
    let made = served.post("/v1/agents/main/triggers", &body)["trigger_id"].as_str().unwrap().to_owned();
    served.kill();
    let folder = served.place.home().join("triggers");
    let stray = folder.join("trig_019b76da-a800-7000-8000-0000000000ab");
    std::fs::copy(folder.join(&made), &stray).unwrap();
    served.up();
    assert!(!stray.exists());
    assert!(folder.join(&made).exists());
    served.post("/v1/agents/main/stop", &json!({}));
    assert_eq!(served.call("DELETE", "/v1/agents/main", &[], None).status, 200);
    until("the secret of a deleted agent to go", || (!folder.join(&made).exists()).then_some(()));
}
