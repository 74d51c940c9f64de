//! A kind of stream that is no agent runs through the same loop, on a real disk: counters. A counter adds up numbers, some
//! of them later, and announces its total to the world.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use abide_engine::fold::rows_of_stored;
use abide_engine::idempotency::ClaimOutcome;
use abide_engine::machine::{Admitted, Machine, Signal};
use abide_engine::streams::kind::{BootOf, IdOf};
use abide_engine::{
    Actor, Agents, AskError, Clock, Engine, Request, StreamKind, Streams, TREE_AGENTS, fold, fold_until,
};
use abide_kernel::AgentState;
use abide_kernel::config::{Config, Identity};
use abide_kernel::fact::DecodeError;
use abide_kernel::id::{Fresh, Seq};
use abide_kernel::input as agent;
use abide_kernel::pack;
use abide_kernel::read_rows::Row;
use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::time::Time;
use abide_kernel::wake::Wake;
use abide_ledger::{Commit, Hash, Ledger, NewFact, Options, StreamId};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Notify;

use crate::world::{Mind, briefs, id as agent_id};

const KIND: &str = "counter";

#[derive(Debug, Clone, PartialEq)]
enum Input {
    Create,
    Add(u64),
    AddLater { after_ms: u64, amount: u64 },
    Announce,
    Announced { number: u64 },
    AnnouncementLost { number: u64 },
    TryAgain,
    Signal(Signal<()>),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Fact {
    Created,
    Added { amount: u64 },
    Postponed { until: Time, amount: u64 },
    AnnouncementAsked { number: u64 },
    Announced { number: u64 },
    AnnouncementCut { number: u64 },
    ClockFollowed,
    Quarantined { reason: String },
}

#[derive(Debug, PartialEq)]
struct Announce {
    number: u64,
    total: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Counter {
    name: String,
    seq: Seq,
    at: Time,
    total: u64,
    postponed: Option<(Time, u64)>,
    announcements: u64,
    announcing: Option<u64>,
    /// An announcement was cut off: it is made again.
    owes: bool,
    quarantined: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("fact {0} comes before the creation")]
struct NotCreated(Seq);

impl Counter {
    fn emit(&mut self, facts: &mut Vec<Fact>, now: Time, fact: Fact) {
        self.apply(now, &fact).unwrap();
        facts.push(fact);
    }

    fn begin_announcement(&mut self, facts: &mut Vec<Fact>, now: Time) -> Announce {
        let number = self.announcements + 1;
        self.emit(facts, now, Fact::AnnouncementAsked { number });
        Announce { number, total: self.total }
    }

    fn add_postponed(&mut self, facts: &mut Vec<Fact>, now: Time) {
        if let Some((_, amount)) = self.postponed.filter(|(until, _)| *until <= now) {
            self.emit(facts, now, Fact::Added { amount });
        }
    }
}

impl Machine for Counter {
    type Id = String;
    type Input = Input;
    type Fact = Fact;
    type Effect = Announce;
    type Answer = u64;
    type Summary = String;
    type Boot = ();
    type IllegalFact = NotCreated;

    const FINGERPRINT: &'static str = "counter-1";

    fn stream_id(id: &String) -> StreamId {
        StreamId::of_kind(KIND, id).unwrap()
    }

    fn id_of(stream: &StreamId) -> Option<String> {
        stream.name_in(KIND).map(ToOwned::to_owned)
    }

    fn empty(name: String) -> Counter {
        Counter {
            name,
            seq: 0,
            at: Time::EPOCH,
            total: 0,
            postponed: None,
            announcements: 0,
            announcing: None,
            owes: false,
            quarantined: false,
        }
    }

    fn id(&self) -> &String {
        &self.name
    }

    fn seq(&self) -> Seq {
        self.seq
    }

    fn apply(&mut self, at: Time, fact: &Fact) -> Result<(), NotCreated> {
        (self.seq, self.at) = (self.seq + 1, at);
        if (self.seq == 1) != matches!(fact, Fact::Created) {
            return Err(NotCreated(self.seq));
        }
        match fact {
            Fact::Created | Fact::ClockFollowed => {}
            Fact::Added { amount } => {
                self.total += amount;
                self.postponed = self.postponed.filter(|(_, postponed)| postponed != amount);
            }
            Fact::Postponed { until, amount } => self.postponed = Some((*until, *amount)),
            Fact::AnnouncementAsked { number } => {
                (self.announcements, self.announcing, self.owes) = (*number, Some(*number), false);
            }
            Fact::Announced { .. } => self.announcing = None,
            Fact::AnnouncementCut { .. } => (self.announcing, self.owes) = (None, true),
            Fact::Quarantined { .. } => self.quarantined = true,
        }
        Ok(())
    }

    fn snapshot(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap()
    }

    fn from_snapshot(bytes: &[u8]) -> Option<Counter> {
        pack::read_stored(bytes).ok()
    }

    fn records(&self) -> u64 {
        0
    }

    fn kind(_: &Fact) -> &'static str {
        "counter.fact"
    }

    fn encode(fact: &Fact) -> Vec<u8> {
        serde_json::to_vec(fact).unwrap()
    }

    fn decode(kind: &str, payload: &[u8]) -> Result<Fact, DecodeError> {
        let bad = |error: serde_json::Error| DecodeError::BadPayload { kind: kind.into(), problem: error.to_string() };
        pack::read_stored(payload).map_err(bad)
    }

    fn rows(seq: Seq, _: Time, fact: &Fact) -> Vec<Row> {
        match fact {
            Fact::Added { amount } => {
                vec![Row { plane: "added", id: format!("{seq:06}"), patch: json!({ "amount": amount }) }]
            }
            _ => Vec::new(),
        }
    }

    fn admit(&mut self, input: Input, now: Time, _: &mut Fresh) -> Result<Admitted<Counter>, Refusal> {
        let refused = |code: ErrorCode| Err(Refusal::new(code, code.word()));
        if (self.seq == 0) != (input == Input::Create) {
            return refused(ErrorCode::Exists);
        }
        let (mut facts, mut effects) = (Vec::new(), Vec::new());
        match input {
            Input::Create => self.emit(&mut facts, now, Fact::Created),
            Input::Add(amount) => self.emit(&mut facts, now, Fact::Added { amount }),
            Input::AddLater { after_ms, amount } => {
                self.emit(&mut facts, now, Fact::Postponed { until: now.plus_ms(after_ms), amount });
            }
            Input::Announce if self.announcing.is_some() => return refused(ErrorCode::UnderWay),
            Input::Announce => effects.push(self.begin_announcement(&mut facts, now)),
            Input::Announced { number } if self.announcing == Some(number) => {
                self.emit(&mut facts, now, Fact::Announced { number });
            }
            Input::AnnouncementLost { number } if self.announcing == Some(number) => {
                self.emit(&mut facts, now, Fact::AnnouncementCut { number });
            }
            Input::Announced { .. } | Input::AnnouncementLost { .. } | Input::TryAgain => {}
            Input::Signal(Signal::Boot(()) | Signal::Shutdown { .. }) => {
                if let Some(number) = self.announcing {
                    self.emit(&mut facts, now, Fact::AnnouncementCut { number });
                }
            }
            Input::Signal(Signal::FireDue) => self.add_postponed(&mut facts, now),
            Input::Signal(Signal::FollowClock) => self.emit(&mut facts, now, Fact::ClockFollowed),
            Input::Signal(Signal::Quarantine { reason }) => self.emit(&mut facts, now, Fact::Quarantined { reason }),
        }
        Ok(Admitted { facts, effects, answer: self.total })
    }

    fn decide(&mut self, now: Time, _: &mut Fresh) -> (Vec<Fact>, Vec<Announce>) {
        let mut facts = Vec::new();
        let owed = self.owes && !self.quarantined;
        let effects = owed.then(|| self.begin_announcement(&mut facts, now)).into_iter().collect();
        (facts, effects)
    }

    fn signal(signal: Signal<()>) -> Input {
        Input::Signal(signal)
    }

    fn creates(input: &Input) -> bool {
        *input == Input::Create
    }

    fn retries(input: &Input) -> bool {
        *input == Input::TryAgain
    }

    fn summary(&self, _: Time) -> String {
        format!("{} is at {}", self.name, self.total)
    }

    fn wake(&self) -> Wake {
        match (self.announcing.is_some() || self.owes, self.next_due()) {
            _ if self.quarantined => Wake::Never,
            (true, _) => Wake::AtOnce { why: "announcing" },
            (false, Some(due)) => Wake::At { due, why: "postponed" },
            (false, None) => Wake::Never,
        }
    }

    fn next_due(&self) -> Option<Time> {
        self.postponed.map(|(until, _)| until)
    }

    fn clock_was_set_back(&self, now: Time) -> bool {
        self.at.since_ms(now) > abide_kernel::limits::CLOCK_SLACK_MS
    }

    fn is_busy(&self) -> bool {
        self.announcing.is_some()
    }
}

/// What the world does with announcements, by the total that is announced.
#[derive(Debug, Default)]
struct Counters {
    /// These are made when the test says so.
    held: Mutex<HashMap<u64, Arc<Notify>>>,
    heard: Mutex<Vec<(String, u64)>>,
}

/// The total that crashes the loop which announces it.
const CRASHES: u64 = 13;

impl StreamKind for Counters {
    type Machine = Counter;
    type Local = ();
    type Condition = ();
    type Job = u64;

    fn local(&self) {}

    fn boot(&self, _: &IdOf<Counters>) -> BootOf<Counters> {}

    fn perform(actor: &mut Actor<Counters>, Announce { number, total }: Announce) {
        assert!(total != CRASHES, "as it was told");
        let counters = Arc::clone(actor.streams());
        let (name, hold) = (actor.id().clone(), counters.kind().held.lock().unwrap().get(&total).cloned());
        let announced = async move {
            if let Some(hold) = hold {
                hold.notified().await;
            }
            counters.kind().heard.lock().unwrap().push((name, total));
            vec![Input::Announced { number }]
        };
        actor.start(number, Box::pin(announced));
    }

    fn lost(number: u64, _: &str) -> Vec<Input> {
        vec![Input::AnnouncementLost { number }]
    }
}

/// One process: an engine that runs counters and nothing else.
struct Process {
    engine: Arc<Engine>,
    counters: Arc<Streams<Counters>>,
    ledger: Ledger,
}

fn open(home: &Path) -> Ledger {
    Ledger::open(home, Options::default()).unwrap()
}

impl Process {
    fn start(home: &Path, counters: Counters) -> Process {
        let ledger = open(home);
        let engine = Engine::new(ledger.clone(), Clock::System);
        let counters = Streams::new(&engine, counters);
        engine.start(vec![counters.wakeable()]).unwrap();
        Process { engine, counters, ledger }
    }

    async fn ask(&self, name: &str, input: Input) -> Result<u64, AskError> {
        self.counters.ask(&name.to_owned(), input).await.map(|answered| answered.answer)
    }

    async fn until(&self, name: &str, wanted: impl Fn(&[Fact]) -> bool) -> Vec<Fact> {
        loop {
            let facts = facts(&self.ledger, name);
            if wanted(&facts) {
                return facts;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn until_asleep(&self) {
        while self.engine.awake() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn facts(ledger: &Ledger, name: &str) -> Vec<Fact> {
    let stream = Counter::stream_id(&name.to_owned());
    let decode = |recorded| abide_engine::fold::decode::<Counter>(&stream, &recorded).unwrap();
    ledger.read(&stream, 0, usize::MAX).unwrap().into_iter().map(decode).collect()
}

/// Runs a process until `work` is done, and kills it there.
fn kill_after<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let bounded = async { tokio::time::timeout(Duration::from_secs(20), work).await };
    runtime.block_on(bounded).expect("what the test waits for did not happen")
}

#[test]
fn a_counter_hibernates_and_its_due_time_wakes_it() {
    let home = tempfile::tempdir().unwrap();
    kill_after(async {
        let process = Process::start(home.path(), Counters::default());
        process.ask("a", Input::Create).await.unwrap();
        process.ask("a", Input::AddLater { after_ms: 1_600, amount: 3 }).await.unwrap();
        process.until_asleep().await;
        assert!(!facts(&process.ledger, "a").contains(&Fact::Added { amount: 3 }), "it slept before it was due");
        let wakes = process.ledger.wakes(None, 10).unwrap();
        assert!(matches!(&wakes[..], [(stream, wake)] if stream.as_str() == "counter/a" && wake.why == "postponed"));
        assert_eq!(process.engine.meter().loads.get(), 1);
        process.until("a", |facts| facts.contains(&Fact::Added { amount: 3 })).await;
        assert_eq!(process.engine.meter().loads.get(), 2, "it was read again, and nobody asked");
        process.until_asleep().await;
        assert_eq!(process.ledger.wakes(None, 10).unwrap(), []);
        let seen = process.counters.look(&"a".to_owned(), |counter, _| counter.total).await.unwrap();
        assert_eq!((seen, process.engine.awake()), (Some(3), 0), "to look wakes nobody");
    });
}

#[test]
fn an_effect_that_was_in_flight_when_the_process_died_is_cut_and_made_again() {
    let home = tempfile::tempdir().unwrap();
    kill_after(async {
        let never = HashMap::from([(5, Arc::new(Notify::new()))]);
        let process = Process::start(home.path(), Counters { held: Mutex::new(never), ..Counters::default() });
        process.ask("a", Input::Create).await.unwrap();
        process.ask("a", Input::Add(5)).await.unwrap();
        process.ask("a", Input::Announce).await.unwrap();
    });
    kill_after(async {
        let process = Process::start(home.path(), Counters::default());
        let facts = process.until("a", |facts| facts.contains(&Fact::Announced { number: 2 })).await;
        let announced = [
            Fact::AnnouncementAsked { number: 1 },
            Fact::AnnouncementCut { number: 1 },
            Fact::AnnouncementAsked { number: 2 },
            Fact::Announced { number: 2 },
        ];
        assert_eq!(facts[2..], announced, "nobody asked: it was in the wake index");
        assert_eq!(*process.counters.kind().heard.lock().unwrap(), [("a".to_owned(), 5)]);
    });
}

#[test]
fn a_refused_commit_is_told_to_askers_and_keeps_what_the_world_reported() {
    let home = tempfile::tempdir().unwrap();
    kill_after(async {
        let announce = Arc::new(Notify::new());
        let held = HashMap::from([(5, Arc::clone(&announce))]);
        let process = Process::start(home.path(), Counters { held: Mutex::new(held), ..Counters::default() });
        process.ask("a", Input::Create).await.unwrap();
        process.ask("a", Input::Add(5)).await.unwrap();
        process.ask("a", Input::Announce).await.unwrap();
        let from_outside = |expected| {
            let fact = NewFact::new("counter.fact", Counter::encode(&Fact::Added { amount: 100 }));
            let stream = Counter::stream_id(&"a".to_owned());
            let commit = Commit::append(stream, expected, process.engine.clock().now(), vec![fact]);
            process.ledger.commit(commit).wait().unwrap();
        };
        from_outside(3);
        assert!(matches!(process.ask("a", Input::Add(1)).await, Err(AskError::Store(_))));
        assert_eq!(process.ask("a", Input::Add(1)).await.unwrap(), 106, "the refused input is forgotten");
        from_outside(5);
        announce.notify_one();
        let facts = process.until("a", |facts| facts.contains(&Fact::Announced { number: 1 })).await;
        assert_eq!(facts[5..], [Fact::Added { amount: 100 }, Fact::Announced { number: 1 }]);
        assert_eq!(process.engine.meter().commits_refused.get(), 2);
        assert_eq!(process.counters.kind().heard.lock().unwrap().len(), 1, "what ran was not ended, nor run again");
    });
}

#[test]
fn a_counter_that_keeps_crashing_is_quarantined_and_one_that_does_not_read_is_tried_again() {
    let home = tempfile::tempdir().unwrap();
    kill_after(async {
        let process = Process::start(home.path(), Counters::default());
        process.ask("a", Input::Create).await.unwrap();
        process.ask("b", Input::Create).await.unwrap();
        process.ask("a", Input::Add(CRASHES)).await.unwrap();
        process.ask("a", Input::Announce).await.unwrap();
        let quarantined = |facts: &[Fact]| facts.iter().any(|fact| matches!(fact, Fact::Quarantined { .. }));
        process.until("a", quarantined).await;
        assert_eq!((process.engine.meter().crashes.get(), process.engine.meter().quarantined.get()), (3, 1));
        assert_eq!(process.ask("b", Input::Add(1)).await.unwrap(), 1);

        let bad = StreamId::of_kind(KIND, "c").unwrap();
        let fact = NewFact::new("counter.fact", br#"{"Subtracted":1}"#.to_vec());
        process.ledger.commit(Commit::append(bad, 0, process.engine.clock().now(), vec![fact])).wait().unwrap();
        for input in [Input::Add(1), Input::Add(1), Input::TryAgain] {
            assert!(matches!(process.ask("c", input).await, Err(AskError::Damaged(_))));
        }
        // Askers are answered a moment before it is known to everybody.
        while !process.counters.has_failed(&"c".to_owned()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let loads = process.engine.meter().loads.get();
        assert!(matches!(process.ask("c", Input::Add(1)).await, Err(AskError::Damaged(_))));
        assert_eq!(process.engine.meter().loads.get(), loads, "only what tries again reads it again");
    });
}

#[test]
fn requests_are_met_once_and_a_state_is_its_snapshot_and_its_rows_are_its_facts() {
    let home = tempfile::tempdir().unwrap();
    let key = StreamId::key(Hash::of(b"once"));
    kill_after(async {
        let process = Process::start(home.path(), Counters::default());
        let name = "a".to_owned();
        let mut head = process.counters.follow(&name);
        process.ask("a", Input::Create).await.unwrap();
        head.moved().await;
        let claim = match process.engine.claim::<Counter>(key.clone(), "add 2".to_owned()).await.unwrap() {
            ClaimOutcome::New(claim) => Some(claim),
            other => panic!("{other:?}"),
        };
        let asked = Request { claim, summary: true, ..Request::new(0, Input::Add(2)) };
        let answered = process.counters.submit(&name, asked, ()).await.unwrap();
        assert_eq!((answered.answer, answered.seq, answered.summary.as_deref()), (2, 2, Some("a is at 2")));
        match process.engine.claim::<Counter>(key, "add 2".to_owned()).await.unwrap() {
            ClaimOutcome::Completed(before) => assert_eq!(before, answered),
            other => panic!("{other:?}"),
        }
        for _ in 0..60 {
            process.ask("a", Input::Add(1)).await.unwrap();
        }
        let loaded = process.ledger.load(&Counter::stream_id(&name), Counter::FINGERPRINT).unwrap().unwrap();
        assert!(loaded.snapshot.is_some() && loaded.tail.len() < 60, "{} facts", loaded.tail.len());
        let folded = fold::<Counter>(&process.ledger, &name).unwrap();
        assert_eq!(folded, fold_until(&process.ledger, &name, loaded.head.seq).ok());
        let rows = process.ledger.rows(&Counter::stream_id(&name), "added", None, 100).unwrap();
        assert_eq!(rows.len(), 61);
        let rows_of = |stream: &StreamId, recorded: &_| rows_of_stored::<Counter>(stream, recorded).unwrap_or_default();
        let report = process.ledger.verify(&rows_of, &mut |_| ());
        assert!(report.is_intact() && report.rows == 61, "{report:?}");
    });
}

/// One wake index, one alarm and one shutdown for both.
#[test]
fn agents_and_counters_live_in_one_home() {
    let home = tempfile::tempdir().unwrap();
    let both = |counters| {
        let ledger = open(home.path());
        let agents = Agents::new(&ledger, Arc::new(Mind::default()), TREE_AGENTS).unwrap();
        let engine = Engine::new(ledger.clone(), Clock::System);
        let (agents, counters) = (Streams::new(&engine, agents), Streams::new(&engine, counters));
        engine.start(vec![agents.wakeable(), counters.wakeable()]).unwrap();
        (agents, Process { engine, counters, ledger })
    };
    let say = |text: &str| {
        agent::Input::Queue(agent::NewMessage { text: Some(text.to_owned()), ..agent::NewMessage::default() })
    };
    kill_after(async {
        let never = HashMap::from([(5, Arc::new(Notify::new()))]);
        let (agents, process) = both(Counters { held: Mutex::new(never), ..Counters::default() });
        // The same name: streams of two kinds have nothing to do with each other.
        let identity = Identity::named(agent_id("a"));
        let create = agent::Input::Create { identity, config: Config::default(), start: true };
        agents.ask(&agent_id("a"), create).await.unwrap();
        process.ask("a", Input::Create).await.unwrap();
        process.ask("a", Input::Add(5)).await.unwrap();
        process.ask("a", Input::Announce).await.unwrap();
        agents.ask(&agent_id("a"), say("never answer")).await.unwrap();
    });
    kill_after(async {
        let (agents, process) = both(Counters::default());
        process.until("a", |facts| facts.contains(&Fact::Announced { number: 2 })).await;
        let agent = agent_id("a");
        let turns = agents.look(&agent, |state: &AgentState, _| state.turns.current.is_some());
        assert_eq!(turns.await.unwrap(), Some(true), "both were woken: its message replays");
        let index: Vec<String> = process.ledger.wakes(None, 10).unwrap().iter().map(|(s, _)| s.to_string()).collect();
        assert_eq!(index, ["agent/a"]);
        let names = agents.kind().names(&process.ledger, None, 10).unwrap();
        assert_eq!(names, [agent_id("a")]);
        process.engine.shutdown(Duration::ZERO, "SIGTERM").await;
        assert_eq!(process.engine.awake(), 0);
        assert!(matches!(process.ask("a", Input::Add(1)).await, Err(AskError::Closing)));
        assert!(briefs(&process.ledger, "a").is_empty());
    });
}
