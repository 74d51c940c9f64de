//! `kill -9` at any moment: what was acknowledged is never lost, never done twice, and never out of order.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::served::{Served, of_kind, until};
use crate::wire::{Address, Wire};

const KILLS: usize = 30;
const CLIENTS: u64 = 6;
const AGENTS: [&str; 4] = ["echo-a", "echo-b", "plays-a", "plays-b"];
const PRIORITIES: [&str; 3] = ["next", "normal", "background"];

/// Numbers that only look random; the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn up_to_ms(&mut self, ms: usize) -> Duration {
        Duration::from_millis(self.below(ms) as u64)
    }
}

/// State that the clients and the killer share.
#[derive(Default)]
struct Course {
    /// Where the daemon is; nowhere while it is down.
    address: Mutex<Option<Address>>,
    /// Messages that clients may still begin to send.
    granted: AtomicUsize,
    acknowledged: AtomicUsize,
    over: AtomicBool,
}

impl Course {
    fn address(&self) -> Option<Address> {
        self.address.lock().unwrap().clone()
    }

    fn move_to(&self, address: Option<Address>) {
        *self.address.lock().unwrap() = address;
    }

    /// Waits for leave to send one more. False: it is over.
    fn may_send(&self) -> bool {
        until("leave to send", || {
            let taken = self.granted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            match taken {
                Ok(_) => Some(true),
                Err(_) if self.over.load(Ordering::SeqCst) => Some(false),
                Err(_) => None,
            }
        })
    }
}

/// A message that a client tried to send.
struct Sent {
    client: u64,
    agent: &'static str,
    text: String,
    key: Option<String>,
    /// Its id and seq, if that was heard.
    acknowledged: Option<(String, u64)>,
}

fn client(number: u64, seed: u64, course: &Course) -> Vec<Sent> {
    let mut dice = Dice(seed ^ (number << 32));
    let mut sent = Vec::new();
    let mut connection: Option<(Address, Wire)> = None;
    while course.may_send() {
        let agent = AGENTS[dice.below(AGENTS.len())];
        let text = format!("client {number} says {}", sent.len());
        let key = (!dice.one_in(3)).then(|| format!("key-{number}-{}", sent.len()));
        let body = json!({ "text": text, "priority": PRIORITIES[dice.below(PRIORITIES.len())] });
        let mut post = || loop {
            let address = until("a daemon", || course.address());
            let wire = match &mut connection {
                Some((known, wire)) if *known == address => wire,
                Some(_) | None => &mut connection.insert((address.clone(), Wire::new(address.clone()))).1,
            };
            let headers: Vec<_> = key.iter().map(|key| ("idempotency-key", key.as_str())).collect();
            match wire.send("POST", &format!("/v1/agents/{agent}/messages"), &headers, Some(&body)) {
                Ok(answer) if answer.status == 202 => {
                    let id = answer.body["message_id"].as_str().unwrap().to_owned();
                    return Some((id, answer.body["seq"].as_u64().unwrap()));
                }
                // Somebody else's daemon has taken the port that ours had.
                Ok(answer) if answer.status == 401 && course.address() != Some(address) => {}
                Ok(answer) => panic!("{text}: {answer:?}"),
                Err(_) => {}
            }
            connection = None;
            // Without a key nobody can tell whether a repeat would be the second.
            key.as_ref()?;
        };
        let acknowledged = post();
        if acknowledged.is_some() && key.is_some() && dice.one_in(4) {
            assert_eq!(post(), acknowledged, "a repeat is answered like the first");
        }
        course.acknowledged.fetch_add(usize::from(acknowledged.is_some()), Ordering::SeqCst);
        sent.push(Sent { client: number, agent, text, key, acknowledged });
    }
    sent
}

/// Starts it, and ends it while it starts.
fn kill_while_starting(served: &Served, dice: &mut Dice) {
    let words = ["up", "--listen", "127.0.0.1:0", "--json"];
    let mut child = served.place.command(&words).stdout(Stdio::null()).spawn().unwrap();
    thread::sleep(dice.up_to_ms(150));
    child.kill().unwrap();
    child.wait().unwrap();
}

fn kill_again_and_again(served: &mut Served, seed: u64, course: &Course) {
    let mut dice = Dice(seed);
    for _ in 0..KILLS {
        let more = 6 + dice.below(20);
        course.granted.fetch_add(more, Ordering::SeqCst);
        let enough = course.acknowledged.load(Ordering::SeqCst) + dice.below(more / 2);
        until("acknowledgements", || (course.acknowledged.load(Ordering::SeqCst) >= enough).then_some(()));
        thread::sleep(dice.up_to_ms(30));
        served.kill();
        course.move_to(None);
        if dice.one_in(4) {
            kill_while_starting(served, &mut dice);
        }
        served.up();
        course.move_to(Some(served.address()));
    }
    course.over.store(true, Ordering::SeqCst);
}

#[test]
fn an_acknowledged_message_outlives_every_kill() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let given = std::env::var("ABIDE_TEST_SEED").ok().map(|seed| seed.parse().unwrap());
    let seed = given.unwrap_or_else(|| now.as_secs() ^ u64::from(now.subsec_nanos()));
    eprintln!("ABIDE_TEST_SEED={seed}");
    let mut served = Served::start();
    let rounds = json!([
        { "text": "Looking.", "tools": [{ "name": "CancelTimer", "input": { "timer_id": "timer_none" } }], "delay_ms": 4 },
        { "text": "Found it.", "delay_ms": 8 },
        { "text": "At once." },
    ]);
    let plays = served.script("plays", &json!({ "rounds": rounds, "loop": true }));
    for agent in AGENTS {
        served.create(agent, if agent.starts_with("echo") { "script/echo" } else { &plays });
    }
    let course = &Course::default();
    course.move_to(Some(served.address()));
    let sent: Vec<Sent> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(move || client(n, seed, course))).collect();
        kill_again_and_again(&mut served, seed, course);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    for agent in AGENTS {
        let summary = served.until_asleep(agent);
        assert_eq!(summary["agent"]["current_run_id"], Value::Null, "no turn is left running");
        check(agent, &served.events(agent), &sent);
    }
    assert!(sent.iter().filter(|sent| sent.acknowledged.is_some()).count() > KILLS);
    assert_eq!(served.post("/v1/ledger/verify", &json!({}))["intact"], true);
    served.stop_and_verify();
}

fn text<'a>(data: &'a Value, name: &str) -> &'a str {
    data[name].as_str().unwrap_or_default()
}

/// The ids of the messages in these facts, in order.
fn ids(facts: &[Value]) -> Vec<&str> {
    facts.iter().map(|fact| text(fact, "message_id")).collect()
}

/// The same, each where it first came.
fn first<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    ids.iter().copied().filter(|id| seen.insert(*id)).collect()
}

fn count(ids: &[&str], id: &str) -> usize {
    ids.iter().filter(|other| **other == id).count()
}

/// Invariants of the events of one agent, after any number of crashes of its daemon.
fn check(agent: &str, events: &[Value], sent: &[Sent]) {
    let queued = of_kind(events, "message.queued");
    let by_seq: BTreeMap<u64, &Value> = events.iter().map(|event| (event["seq"].as_u64().unwrap(), event)).collect();
    assert!(by_seq.keys().copied().eq(1..=events.len() as u64), "{agent}: the events have a gap");

    let sent: Vec<&Sent> = sent.iter().filter(|sent| sent.agent == agent).collect();
    for sent in &sent {
        let kept = queued.iter().filter(|message| message["text"] == sent.text.as_str()).collect::<Vec<_>>();
        match &sent.acknowledged {
            None => assert!(kept.len() <= 1, "{}: kept {} times", sent.text, kept.len()),
            Some((id, seq)) => {
                assert_eq!(kept.len(), 1, "{}: acknowledged, and kept {} times", sent.text, kept.len());
                assert_eq!(kept[0]["message_id"], id.as_str());
                assert_eq!(kept[0]["idempotency_key"].as_str(), sent.key.as_deref());
                assert_eq!((&by_seq[seq]["kind"], &by_seq[seq]["data"]), (&json!("message.queued"), kept[0]));
            }
        }
    }
    for client in 0..CLIENTS {
        let seqs =
            sent.iter().filter(|sent| sent.client == client).filter_map(|sent| Some(sent.acknowledged.as_ref()?.1));
        assert!(seqs.is_sorted_by(|one, next| one < next), "{agent}: what client {client} said is out of order");
    }
    let said: BTreeSet<&str> = sent.iter().map(|sent| sent.text.as_str()).collect();
    assert!(queued.iter().all(|message| said.contains(text(message, "text"))), "nobody sent some of these");

    let processed = of_kind(events, "message.processed");
    let mut given_up = of_kind(events, "message.aborted");
    given_up.retain(|aborted| aborted["given_up"] == true);
    let mut cut = of_kind(events, "exec.aborted");
    cut.retain(|aborted| aborted["reason"] == "cut");
    let started = of_kind(events, "turn.started");
    let mut completed = of_kind(events, "turn.terminal");
    completed.retain(|terminal| terminal["terminal_kind"] == "completed");
    let briefs = of_kind(events, "brief.recorded");
    for message in &queued {
        let id = text(message, "message_id");
        let what = format!("{agent}: {} ({id})", text(message, "text"));
        // Three crashes without a round between, and a message is a question to the operator.
        let lost = count(&ids(&given_up), id);
        assert!(lost == 0 || count(&ids(&cut), id) >= 3, "{what} was given up too early");
        assert_eq!(count(&ids(&processed), id) + lost, 1, "{what} is not done exactly once");
        assert_eq!(count(&ids(&completed), id) + lost, 1, "{what} has not exactly one turn that ended");
        let told: Vec<&Value> = briefs.iter().filter(|brief| brief["message_id"] == id).collect();
        assert_eq!(told.len(), 1, "{what} has not exactly one answer");
        assert_eq!(told[0]["kind"], if lost == 0 { "result" } else { "failure" }, "{what}");
        if lost == 0 && agent.starts_with("echo") {
            assert_eq!(told[0]["text"], message["text"]);
        }
    }
    for priority in PRIORITIES {
        let lane: Vec<Value> = queued.iter().filter(|message| message["priority"] == priority).cloned().collect();
        let lane = ids(&lane);
        let of_lane = |facts: &[&str]| -> Vec<String> {
            facts.iter().filter(|id| lane.contains(id)).map(|id| (*id).to_owned()).collect()
        };
        assert_eq!(of_lane(&first(&ids(&started))), lane, "{agent}: {priority} is out of order");
        let done: Vec<&str> = lane.iter().copied().filter(|id| count(&ids(&given_up), id) == 0).collect();
        assert_eq!(of_lane(&ids(&processed)), done, "{agent}: {priority} ends out of order");
    }
}
