//! A daemon in this process: a host on a real ledger in a folder of its own, and the server on a free port.

use std::sync::Arc;
use std::time::Duration;

use abide_api::Client;
use abide_engine::{Clock, Host};
use abide_kernel::config::DefaultModels;
use abide_ledger::{Ledger, OpenError};
use abide_server::{Access, App, Hooks, Limits, Options, Rate, ReadWorkspaceSettings, Server, WorkspaceSettings};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::file_secrets::FileSecrets;
use crate::hands::Hands;
use crate::http::{Answer, Ask, read_answer};
use crate::schema;
use crate::services::CountingServices;

/// The token that lies in the home.
pub const ADMIN: &str = "abide_the_admin_token_of_these_tests";

#[derive(Debug)]
pub struct Daemon {
    pub home: TempDir,
    pub hands: Arc<Hands>,
    pub services: Arc<CountingServices>,
    pub app: Arc<App>,
    pub address: String,
    limits: Limits,
    close: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// Waits for what must come. A test that waits in vain says so before its runner gives it up.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(60), future).await {
        Ok(done) => done,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

/// The ledger, once its previous holder has released it.
async fn open(home: &TempDir) -> Ledger {
    loop {
        match Ledger::open(home.path(), abide_ledger::Options::default()) {
            Ok(ledger) => return ledger,
            Err(OpenError::Held { .. } | OpenError::HeldByUnknown { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

impl Daemon {
    pub async fn start() -> Daemon {
        Daemon::with(Limits::default()).await
    }

    pub async fn with(limits: Limits) -> Daemon {
        Daemon::on(TempDir::new().unwrap(), limits).await
    }

    /// On a home that may have been served before.
    pub async fn on(home: TempDir, limits: Limits) -> Daemon {
        let ledger = open(&home).await;
        let access = Access::read(ledger.clone(), ADMIN).unwrap();
        let hands = Arc::new(Hands::default());
        let perform: Arc<dyn abide_engine::Perform> = Arc::clone(&hands) as _;
        let host = Host::start(ledger, perform, Clock::System).unwrap();
        let services = Arc::new(CountingServices::default());
        let hooks = Arc::new(
            Hooks::open(home.path(), FileSecrets::of(home.path()), None, Rate { per_second: 1, burst: 40 }).unwrap(),
        );
        let options = Options {
            limits: limits.clone(),
            models: DefaultModels { model: "script/echo".to_owned(), ..DefaultModels::default() },
            credentials: Default::default(),
            check_model: Box::new(|name| match name.split_once('/') {
                Some(_) => Ok(()),
                None => Err("write PROVIDER/MODEL".to_owned()),
            }),
            workspace_settings: ReadWorkspaceSettings::new(|_| Ok(WorkspaceSettings::default())),
            check_price: Box::new(|name| match name {
                "free/unpriced" => Err(format!("{name} has no price")),
                _ => Ok(()),
            }),
            services: Arc::clone(&services) as _,
            hooks: Arc::clone(&hooks),
            deltas: hands.deltas.clone(),
            log_lines_lost: || 0,
            loopback: true,
        };
        let app = App::new(host, access, options);
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), Arc::clone(&app)).unwrap();
        let address = server.address().unwrap().to_string();
        hooks.listens_at(&format!("http://{address}"));
        let (close, closed) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async {
            let _told = closed.await;
        }));
        Daemon { home, hands, services, app, address, limits, close, serving }
    }

    /// Ends it the way the daemon ends. The home stays.
    pub async fn stop(self) -> TempDir {
        self.app.close();
        self.app.host.shutdown(Duration::ZERO, "test").await;
        drop(self.close);
        self.serving.await.unwrap();
        self.home
    }

    /// The same home, served by a new daemon.
    pub async fn restart(self) -> Daemon {
        let limits = self.limits.clone();
        Daemon::on(self.stop().await, limits).await
    }

    pub fn client(&self) -> Client {
        Client::new(&format!("http://{}", self.address), ADMIN).unwrap()
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).await.unwrap()
    }

    /// With the headers that every good request has.
    pub fn good(&self, ask: Ask) -> Ask {
        let mut ask = ask;
        for (name, value) in [("Host", self.address.clone()), ("Authorization", format!("Bearer {ADMIN}"))] {
            if ask.named(name).is_none() {
                ask = ask.header(name, &value);
            }
        }
        ask
    }

    /// One request on a connection of its own, exactly as it is but for its `Host`.
    pub async fn send(&self, ask: Ask) -> Answer {
        let mut ask = ask.header("Connection", "close");
        if ask.named("Host").is_none() {
            ask = ask.header("Host", &self.address);
        }
        let answered = async {
            let mut stream = self.connect().await;
            ask.send(&mut stream).await;
            read_answer(&mut stream).await
        };
        let answer = soon(&format!("{} {}", ask.method, ask.path), answered).await;
        schema::check(&ask, &answer);
        answer
    }

    /// One request of the admin.
    pub async fn ask(&self, ask: Ask) -> Answer {
        self.send(self.good(ask)).await
    }

    pub async fn get(&self, path: &str) -> Value {
        self.ask(Ask::get(path)).await.is(200)
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask(Ask::post(path).json(body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.ask(Ask::new("PATCH", path).json(body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.ask(Ask::new("DELETE", path)).await
    }

    pub async fn create(&self, id: &str) -> Value {
        self.post("/v1/agents", json!({ "id": id })).await.is(201)
    }

    /// A stopped agent that has come to rest: what it records from here on, somebody asked for.
    pub async fn create_stopped(&self, id: &str) -> Value {
        let made = self.post("/v1/agents", json!({ "id": id, "start": false })).await.is(201);
        self.event(id, "scheduler.decision", |_| true).await;
        made
    }

    /// Stops one that runs, and waits until it has come to rest.
    pub async fn halt(&self, id: &str) {
        self.post(&format!("/v1/agents/{id}/stop"), json!({})).await.is(200);
        self.event(id, "scheduler.decision", |decision| decision["kind"] == "Stop").await;
    }

    pub async fn summary(&self, id: &str) -> Value {
        self.get(&format!("/v1/agents/{id}")).await
    }

    /// Queues a text, and gives the id of the message.
    pub async fn say(&self, id: &str, text: &str) -> String {
        let accepted = self.post(&format!("/v1/agents/{id}/messages"), json!({ "text": text })).await.is(202);
        accepted["message_id"].as_str().unwrap().to_owned()
    }

    /// Queues a text, and waits until it was worked on.
    pub async fn finish(&self, id: &str, text: &str) -> String {
        let message = self.say(id, text).await;
        self.event(id, "message.processed", |data| data["message_id"] == message.as_str()).await;
        message
    }

    /// Waits for an event of this kind, from the beginning of the agent's history on.
    pub async fn event(&self, id: &str, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut events = self.client().follow(Some(id), Some("0")).await.unwrap();
        while let Some(event) = soon(&format!("{kind} of {id}"), events.next()).await {
            // Text as it is spoken is no fact.
            if event.id.is_none() {
                continue;
            }
            let value: Value = serde_json::from_str(&event.data).unwrap();
            schema::conforms("Event", &value, "an event");
            if event.name == kind && wanted(&value["data"]) {
                return value;
            }
        }
        panic!("the stream of {id} ended before {kind}");
    }

    /// Everything that ever happened to an agent.
    pub async fn events(&self, id: &str) -> Vec<Value> {
        let (mut events, mut after) = (Vec::new(), json!("0"));
        while let Some(place) = after.as_str() {
            let page = self.get(&format!("/v1/agents/{id}/events?limit=1000&after={place}")).await;
            events.extend(page["items"].as_array().unwrap().iter().cloned());
            after = page["next"].clone();
        }
        events
    }

    /// The kinds of facts, without the decisions of the scheduler.
    pub async fn kinds(&self, id: &str) -> Vec<String> {
        let kinds = self.events(id).await.into_iter().map(|event| event["kind"].as_str().unwrap().to_owned());
        kinds.filter(|kind| kind != "scheduler.decision").collect()
    }

    pub async fn items(&self, path: &str) -> Vec<Value> {
        self.get(path).await["items"].as_array().unwrap().clone()
    }

    /// A token with less than everything.
    pub async fn token(&self, name: &str, scope: &str) -> String {
        let made = self.post("/v1/tokens", json!({ "name": name, "scope": scope })).await.is(201);
        made["token"].as_str().unwrap().to_owned()
    }
}
