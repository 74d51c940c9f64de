//! A home and the daemon that serves it, which a test may end and start again.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Daemon, Place};
use crate::wire::{Address, Answer, Stream, Wire};

/// How long anything may take that is sure to come. Nobody waits so long but for what never comes.
const PATIENCE: Duration = Duration::from_secs(90);

pub const STOPPED: &str = "{\"event\":\"stopped\"}\n";

pub struct Served {
    pub place: Place,
    pub daemon: Option<Daemon>,
}

impl Served {
    pub fn start() -> Served {
        Served::start_with("")
    }

    /// With more settings.
    pub fn start_with(settings: &str) -> Served {
        let mut served = Served::down(settings);
        served.up();
        served
    }

    /// With scripts that a model may give to the agents it makes, by the names of their files.
    pub fn start_offering(scripts: &[&str]) -> Served {
        let mut served = Served::down("");
        served.offer(scripts);
        served.up();
        served
    }

    /// Names scripts in the settings, for the next start.
    pub fn offer(&self, scripts: &[&str]) {
        let path = self.place.home().join("config.toml");
        let mut settings = std::fs::read_to_string(&path).unwrap();
        for name in scripts {
            let file = self.place.path(&format!("{name}.json"));
            settings.push_str(&format!("[models.\"script/{}\"]\n", file.display()));
        }
        std::fs::write(path, settings).unwrap();
    }

    /// A home that nobody serves yet.
    pub fn down(settings: &str) -> Served {
        let place = Place::empty();
        place.write("home/config.toml", format!("log = \"error\"\n{settings}"));
        Served { place, daemon: None }
    }

    pub fn up(&mut self) {
        assert!(self.daemon.is_none(), "it is up");
        self.daemon = Some(Daemon::start(&self.place, &[]));
    }

    /// As `kill -9` would.
    pub fn kill(&mut self) {
        self.daemon.take().unwrap().kill();
    }

    /// Ends it well, as a service manager would.
    pub fn stop(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.gone(PATIENCE), (Some(0), STOPPED.to_owned()));
    }

    pub fn kill_and_up(&mut self) {
        self.kill();
        self.up();
    }

    pub fn address(&self) -> Address {
        let url = &self.daemon.as_ref().unwrap().url;
        let token = std::fs::read_to_string(self.place.home().join("token")).unwrap();
        Address { host: url.strip_prefix("http://").unwrap().to_owned(), token: token.trim().to_owned() }
    }

    pub fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Answer {
        let answer = Wire::new(self.address()).send(method, path, headers, body);
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub fn get(&self, path: &str) -> Value {
        let answer = self.call("GET", path, &[], None);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    /// A request that is expected to succeed.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.call("POST", path, &[], Some(body));
        assert!(matches!(answer.status, 200..=202), "{path}: {} {}", answer.status, answer.body);
        answer.body
    }

    /// The model that plays this script. Written again, it goes on with the new rounds. The file is replaced by a rename:
    /// the daemon may read it at any moment, and must never see half of it.
    pub fn script(&self, name: &str, script: &Value) -> String {
        let path = self.place.path(&format!("{name}.json"));
        std::fs::rename(self.place.write(&format!("{name}.json.new"), script.to_string()), &path).unwrap();
        format!("script/{}", path.display())
    }

    pub fn create(&self, id: &str, model: &str) {
        self.post("/v1/agents", &json!({ "id": id, "model": model }));
    }

    /// An agent that plays these rounds, under its own name.
    pub fn create_playing(&self, id: &str, rounds: &Value) {
        let model = self.script(id, &json!({ "rounds": rounds }));
        self.create(id, &model);
    }

    /// The id of the message.
    pub fn send(&self, id: &str, text: &str) -> String {
        self.send_as(id, text, "normal")
    }

    pub fn send_as(&self, id: &str, text: &str, priority: &str) -> String {
        let body = json!({ "text": text, "priority": priority });
        let accepted = self.post(&format!("/v1/agents/{id}/messages"), &body);
        accepted["message_id"].as_str().unwrap().to_owned()
    }

    /// All of an agent's events so far. Reading them wakes nobody.
    pub fn events(&self, id: &str) -> Vec<Value> {
        self.items(&format!("/v1/agents/{id}/events"))
    }

    /// All items of a list, page by page.
    pub fn items(&self, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.get(&format!("{path}?limit=1000{after}"));
            items.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return items,
            }
        }
    }

    /// The data of all events of one kind.
    pub fn facts(&self, id: &str, kind: &str) -> Vec<Value> {
        of_kind(&self.events(id), kind)
    }

    /// The data of the first event of a kind that has this, once there is one.
    pub fn until_fact(&self, id: &str, kind: &str, has: impl Fn(&Value) -> bool) -> Value {
        until(&format!("{kind} of {id}"), || self.facts(id, kind).into_iter().find(|data| has(data)))
    }

    /// The notice about a message, once it is sent.
    pub fn until_told(&self, id: &str, message: &str) -> Value {
        self.until_fact(id, "brief.recorded", |brief| brief["message_id"] == message)
    }

    /// The summary, once the agent has nothing to do.
    pub fn until_asleep(&self, id: &str) -> Value {
        until(&format!("sleep of {id}"), || {
            let summary = self.get(&format!("/v1/agents/{id}"));
            (summary["agent"]["status"] == "asleep" && summary["agent"]["pending"] == 0).then_some(summary)
        })
    }

    pub fn follow(&self, path: &str, last_event_id: Option<&str>) -> Stream {
        Stream::open(&self.address(), path, last_event_id).unwrap()
    }

    /// Ends it well, and looks whether everything that it left is whole.
    pub fn stop_and_verify(&mut self) {
        self.stop();
        let report = self.place.json(&["ledger", "verify"]);
        assert_eq!(report["intact"], true, "{report}");
    }
}

/// The data of all events of one kind.
pub fn of_kind(events: &[Value], kind: &str) -> Vec<Value> {
    events.iter().filter(|event| event["kind"] == kind).map(|event| event["data"].clone()).collect()
}

/// Looks again and again until there is something to see.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < PATIENCE, "no {what} after {PATIENCE:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
