//! The cost of reading a ledger of a million facts, and of turns.

#![allow(clippy::disallowed_methods, reason = "measurements make files as users do")]
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "a bench prints")]

mod turns;

use std::path::Path;
use std::time::Instant;

use abide_engine::{Core, Request, fold_until};
use abide_kernel::AgentState;
use abide_kernel::config::{Config, Identity};
use abide_kernel::effect::{Effect, TurnEffect};
use abide_kernel::id::AgentId;
use abide_kernel::input::{BootContext, Input, NewMessage, Reply};
use abide_kernel::time::Time;
use abide_ledger::{Ledger, Options, StreamId};

const AGENTS: u64 = 1_000;
const OPEN: u64 = 10;
const FACTS: u64 = 1_000_000;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [flag, count, home] = wanted.as_slice()
        && flag == "--measure"
    {
        return turns::measured(count.parse().unwrap(), Path::new(home));
    }
    if let [flag, count, home] = wanted.as_slice()
        && flag == "--measure-hosted"
    {
        return turns::measured_hosted(count.parse().unwrap(), Path::new(home));
    }
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| name.starts_with(wanted.as_str()));
    if runs("engine.turn_flat") {
        turns::flat();
    }
    if runs("engine.turn_others") {
        turns::others();
    }
    if runs("scale.waits") {
        turns::waits();
    }
    if runs("engine.turn_cost") || runs("engine.turns_one") {
        turns::cost_and_one();
    }
    if runs("engine.turns_many") {
        turns::many();
    }
    if runs("engine.wake") {
        turns::wake();
    }
    if !runs("ledger.replay") && !runs("ledger.boot") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let facts = fill(home.path());
    if runs("ledger.replay") {
        replay(home.path(), facts);
    }
    if runs("ledger.boot") {
        boot(home.path());
    }
}

fn agent(number: u64) -> AgentId {
    AgentId::new(&format!("agent-{number}")).unwrap()
}

/// A home with a thousand agents that took messages and answered them; ten of them have one more message waiting.
fn fill(home: &Path) -> u64 {
    let ledger = Ledger::open(home, Options::default()).unwrap();
    let mut facts = 0;
    for number in 0..AGENTS {
        let id = agent(number);
        let mut core = Core::<AgentState>::new(id.clone());
        let mut driver =
            Driver { ledger: &ledger, core: &mut core, now: Time::from_ms(1_800_000_000_000), draws: number << 32 };
        driver.ask(Input::Create { identity: Identity::named(id), config: Config::default(), start: true });
        while driver.core.durable() < FACTS / AGENTS {
            driver.ask(Input::Queue(NewMessage {
                text: Some("Please look at the build.".to_owned()),
                ..NewMessage::default()
            }));
        }
        if number < OPEN {
            let message = NewMessage { text: Some("More.".to_owned()), ..NewMessage::default() };
            driver.core.ask(Request::new(1, Input::Queue(message)));
            driver.commit_once();
        }
        facts += core.durable();
    }
    facts
}

struct Driver<'a> {
    ledger: &'a Ledger,
    core: &'a mut Core,
    now: Time,
    draws: u64,
}

impl Driver<'_> {
    /// Runs until the agent rests, answering every model call at once.
    fn ask(&mut self, input: Input) {
        self.ask_and_reply(input, || Reply {
            text: "The build is green; nothing to do.".to_owned(),
            ..Reply::default()
        });
    }

    /// The same, with what is answered.
    fn ask_and_reply(&mut self, input: Input, reply: impl Fn() -> Reply) {
        self.core.ask(Request::new(1, input));
        while self.commit_once() {
            for effect in self.core.take_outputs().effects {
                if let Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) = effect {
                    let reply = reply();
                    self.core.ask(Request::new(1, Input::FinishRound { exec_id, round, reply }));
                }
            }
        }
    }

    /// Everything that went out is on disk.
    fn wait(&self) {
        let facts = vec![abide_ledger::NewFact::new("Done", Vec::new())];
        let last = abide_ledger::Commit::append(StreamId::home(), 0, self.now, facts);
        // Once there, it may be there already; either way what came before it is.
        let _answered = self.ledger.commit(last).wait();
    }

    /// Commits go out one after another without waiting: only the last one has to be on disk when the bench begins.
    fn commit_once(&mut self) -> bool {
        self.draws += 1;
        self.now = self.now.plus_ms(10);
        let Some(commit) = self.core.poll(self.now, self.draws) else { return false };
        let receipt = self.ledger.commit(commit);
        self.core.committed();
        if self.draws.is_multiple_of(512) {
            receipt.wait().unwrap();
        }
        true
    }
}

/// All of it read, verified and folded; against reading and verifying alone.
///
/// A million facts a second leaves somewhat over half of the ten thousand instructions that a fact took as JSON: 3,000
/// to get a row out of SQLite, 2,000 for four blocks of BLAKE3, 3,000 to parse, 800 to apply, the rest to allocate and
/// free. Packed payloads take less of the second and the third, and that is not enough: what is left is mostly the row,
/// one for every fact. Link-time optimisation with one unit of code was measured, and saves three in a hundred.
fn replay(home: &Path, facts: u64) {
    let ledger = Ledger::open(home, Options::read_only()).unwrap();
    let mut read = 0;
    let reading = Instant::now();
    for number in 0..AGENTS {
        read += ledger.read(&StreamId::agent(&agent(number)), 0, usize::MAX).unwrap().len() as u64;
    }
    let baseline = per_second(read, reading);
    let folding = Instant::now();
    let mut folded = 0;
    for number in 0..AGENTS {
        let id = agent(number);
        let head = ledger.head(&StreamId::agent(&id)).unwrap().unwrap();
        folded += fold_until::<AgentState>(&ledger, &id, head.seq).unwrap().seq;
    }
    let value = per_second(folded, folding);
    assert_eq!((read, folded), (facts, facts));
    print(
        "ledger.replay",
        value,
        "facts/s, read and folded on one core",
        baseline,
        value / baseline,
        "value >= 1000000",
    );
}

fn per_second(count: u64, since: Instant) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a figure to look at")]
    let count = count as f64;
    count / since.elapsed().as_secs_f64()
}

/// Opening a home, asking who has something to do, and loading them; against the same with an empty home.
fn boot(home: &Path) {
    let empty = tempfile::tempdir().unwrap();
    drop(Ledger::open(empty.path(), Options::default()).unwrap());
    let time = |home: &Path| {
        let start = Instant::now();
        let ledger = Ledger::open(home, Options::default()).unwrap();
        let open = ledger.wakes(None, usize::MAX).unwrap();
        for (stream, _) in &open {
            let id = AgentId::new(stream.agent_name().unwrap()).unwrap();
            Core::<AgentState>::recover(&ledger, &id, BootContext::default()).unwrap().unwrap();
        }
        let time = start.elapsed().as_secs_f64() * 1e3;
        assert!(home == empty.path() || open.len() as u64 == OPEN, "{} agents are open", open.len());
        time
    };
    // In turns, so that a slow moment of the disk hits both alike.
    let (mut baselines, mut values): (Vec<f64>, Vec<f64>) = (0..31).map(|_| (time(empty.path()), time(home))).unzip();
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (baseline, value) = (median(&mut baselines), median(&mut values));
    print("ledger.boot", value, "ms with a million facts and ten agents open", baseline, value / baseline, "<= 3");
}

fn print(name: &str, value: f64, unit: &str, baseline: f64, ratio: f64, goal: &str) {
    println!(
        r#"{{"name":"{name}","value":{value:.2},"unit":"{unit}","baseline":{baseline:.2},"ratio":{ratio:.3},"goal":"{goal}"}}"#
    );
}
