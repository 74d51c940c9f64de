//! The cost of a turn: in instructions, in time of a core, in bytes of the ledger; and the number of turns in a second.

#![allow(clippy::disallowed_methods, reason = "measurements make files as users do")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_engine::{Clock, Host, Perform};
use abide_kernel::AgentState;
use abide_kernel::config::{Config, Identity};
use abide_kernel::effect::{Effect, TurnEffect};
use abide_kernel::id::{AgentId, CallId};
use abide_kernel::input::{Input, NewMessage, Reply};
use abide_kernel::time::Time;
use abide_kernel::tool::{Call, RecordCall, ToolCall, When};
use abide_kernel::vocabulary::{CatchUp, WaitKind};
use abide_ledger::{Commit, Ledger, NewFact, Options, StreamId};
use serde_json::Value;

use crate::{Driver, agent, print};

/// Answers at once, as fast as anything can.
struct Echo;

impl Perform for Echo {
    fn perform(&self, _: &AgentId, effect: Effect) -> Option<futures_util::future::BoxFuture<'static, Vec<Input>>> {
        match effect {
            Effect::Turn(TurnEffect::CallModel { exec_id, round, call }) => {
                let reply = Reply { text: call.message.text.clone().unwrap_or_default(), ..Reply::default() };
                Some(Box::pin(async move { vec![Input::FinishRound { exec_id, round, reply }] }))
            }
            Effect::Turn(TurnEffect::RunTool { .. } | TurnEffect::AnswerCall { .. } | TurnEffect::EndExec { .. })
            | Effect::Command(_)
            | Effect::Workspace(_)
            | Effect::Child(_)
            | Effect::TimerCheck(_)
            | Effect::Trigger(_) => None,
        }
    }
}

fn message(number: usize) -> Input {
    Input::Queue(NewMessage { text: Some(format!("Please look at build {number}.")), ..NewMessage::default() })
}

fn create(id: &AgentId, start: bool) -> Input {
    Input::Create { identity: Identity::named(id.clone()), config: Config::default(), start }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

fn host(ledger: &Ledger) -> Host {
    Host::start(ledger.clone(), Arc::new(Echo), Clock::System).unwrap()
}

/// The turns of all, until each has had so many.
async fn until_turns(host: &Host, wanted: u64) {
    while host.meter().turns.get() < wanted || host.awake() > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
        if host.meter().turns.get() >= wanted {
            return;
        }
    }
}

/// Stopped agents with full queues, so that what is timed from their start is turns and nothing else.
async fn queued(host: &Host, agents: usize, messages: usize) -> Vec<AgentId> {
    let mut ids = Vec::new();
    for number in 0..agents {
        let id = agent(number as u64);
        host.ask(&id, create(&id, false)).await.unwrap();
        // In pieces: a box takes only so much at once.
        let mut asked = 0;
        while asked < messages {
            let piece = asked..messages.min(asked + 200);
            asked = piece.end;
            for answer in futures_util::future::join_all(piece.map(|number| host.ask(&id, message(number)))).await {
                answer.unwrap();
            }
        }
        ids.push(id);
    }
    ids
}

struct Run {
    per_second: f64,
    cpu_us: f64,
}

fn turns(agents: usize, messages: usize) -> Run {
    let home = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    let run = runtime.block_on(async {
        let host = host(&ledger);
        let ids = queued(&host, agents, messages).await;
        let (cpu, begin) = (cpu_time(), Instant::now());
        for id in &ids {
            host.ask(id, Input::Start).await.unwrap();
        }
        let wanted = (agents * messages) as u64;
        until_turns(&host, wanted).await;
        let took = begin.elapsed().as_secs_f64();
        let cpu = (cpu_time() - cpu).as_secs_f64();
        host.shutdown(Duration::from_secs(10), "test").await;
        let turns = wanted as f64;
        Run { per_second: turns / took, cpu_us: cpu * 1e6 / turns }
    });
    drop(runtime);
    run
}

/// Bytes of the ledger per turn, from the message's arrival to the agent's rest: pages in use once everything is in the
/// database, after many turns against after few.
fn bytes_per_turn() -> f64 {
    const MORE: u64 = 2_000;
    let used = |turns: u64| {
        let home = tempfile::tempdir().unwrap();
        make_history(home.path(), turns);
        let database = rusqlite::Connection::open(home.path().join("ledger.db")).unwrap();
        let pragma =
            |name: &str| database.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, f64>(0)).unwrap();
        (pragma("page_count") - pragma("freelist_count")) * pragma("page_size")
    };
    (used(200 + MORE) - used(200)) / MORE as f64
}

/// Of this process, all threads, in user and system mode.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program may hold blanks; it ends with the last bracket.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// One committer that waits for each of its commits.
fn commits_per_second(count: u64) -> f64 {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    let stream = StreamId::agent(&agent(0));
    let begin = Instant::now();
    for seq in 0..count {
        let facts = vec![NewFact::new("Said", vec![b'x'; 300])];
        ledger.commit(Commit::append(stream.clone(), seq, Time::from_ms(1), facts)).wait().unwrap();
    }
    count as f64 / begin.elapsed().as_secs_f64()
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

pub fn cost_and_one() {
    // In turns with their baseline, so that a slow moment of the disk hits both alike.
    let runs: Vec<(Run, f64)> = (0..3).map(|_| (turns(1, 3_000), commits_per_second(3_000))).collect();
    let of = |pick: fn(&Run) -> f64| median(runs.iter().map(|(run, _)| pick(run)).collect());
    let (one, commits) = (of(|run| run.per_second), median(runs.iter().map(|(_, commits)| *commits).collect()));
    print(
        "engine.turn_cost",
        of(|run| run.cpu_us),
        "us of a core per turn",
        1_000.0,
        of(|run| run.cpu_us) / 1_000.0,
        "<= 1",
    );
    let bytes = bytes_per_turn();
    print("engine.turn_cost.bytes", bytes, "bytes of the ledger per turn", 2_048.0, bytes / 2_048.0, "<= 1");
    print("engine.turns_one", one, "turns/s, baseline commits/s of one committer", commits, one / commits, ">= 0.25");
}

pub fn many() {
    let runs: Vec<(f64, f64)> = (0..3).map(|_| (turns(200, 50).per_second, turns(1, 3_000).per_second)).collect();
    let (many, one) = runs.into_iter().unzip::<f64, f64, Vec<_>, Vec<_>>();
    let (many, one) = (median(many), median(one));
    print("engine.turns_many", many, "turns/s of 200 agents, baseline turns_one", one, many / one, ">= 2");
}

/// How long after they were due do a thousand agents that slept begin their turns, all due in the same millisecond.
pub fn wake() {
    let (late, middle): (Vec<f64>, Vec<f64>) = (0..3).map(|_| wake_once()).unzip();
    let (late, middle) = (median(late), median(middle));
    let unit = "ms from due to turn started, p99 of 1000, baseline the median";
    print("engine.wake", late, unit, middle, late / 100.0, "<= 1");
}

fn wake_once() -> (f64, f64) {
    const AGENTS: u64 = 1_000;
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    let runtime = runtime();
    let mut late: Vec<f64> = runtime.block_on(async {
        let host = host(&ledger);
        let due = host.clock().now().plus_ms(12_000);
        for number in 0..AGENTS {
            let id = agent(number);
            host.ask(&id, create(&id, true)).await.unwrap();
            let act = RecordCall::CreateTimer {
                summary: "Look at the build.".to_owned(),
                when: When::At(due),
                catch_up: CatchUp::Latest,
                work_item_id: None,
                check: None,
            };
            host.ask(&id, Input::Act { by: "bench".to_owned(), act }).await.unwrap();
        }
        while host.awake() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(host.clock().now() < due, "the bench took too long to set up");
        until_turns(&host, AGENTS).await;
        host.shutdown(Duration::from_secs(10), "test").await;
        let started = |number| {
            let facts = ledger.read(&StreamId::agent(&agent(number)), 0, 1_000).unwrap();
            let started = facts.iter().find(|fact| &*fact.kind == "turn.started").unwrap();
            started.at.since_ms(due) as f64
        };
        (0..AGENTS).map(started).collect()
    });
    late.sort_by(f64::total_cmp);
    (late[late.len() * 99 / 100], late[late.len() / 2])
}

/// Instructions per turn with a long history against a short one. The history is made at full speed; the turns run
/// under callgrind, twice, and what opening and loading cost is the difference.
pub fn flat() {
    const LONG: u64 = 20_000;
    const SHORT: u64 = 200;
    let per_turn = |history: u64| {
        let home = tempfile::tempdir().unwrap();
        make_history(home.path(), history);
        let again = tempfile::tempdir().unwrap();
        copy(home.path(), again.path());
        let counted = |home: &Path, turns| counted("--measure", home, turns);
        let (few, more) = (counted(home.path(), 50), counted(again.path(), 250));
        (more - few) / 200.0
    };
    let (long, short) = (per_turn(LONG), per_turn(SHORT));
    print(
        "engine.turn_flat",
        long,
        "instructions per turn after 20000 turns, baseline after 200",
        short,
        long / short,
        "<= 1.1",
    );
}

/// Instructions per turn where ten thousand other agents wait for a person, for something outside or for a far time,
/// against none.
pub fn others() {
    const OTHERS: u64 = 10_000;
    let (many, none) = (per_turn_beside(OTHERS, |number| vec![wait(number)]), per_turn_beside(0, |_| Vec::new()));
    print(
        "engine.turn_others",
        many,
        "instructions per turn beside 10000 agents with an open wait, baseline beside none",
        none,
        many / none,
        "<= 1.1",
    );
}

/// The same where the store holds a hundred thousand waits and timers of others.
pub fn waits() {
    const OTHERS: u64 = 10_000;
    const EACH: u64 = 5;
    let acts = |number: u64| {
        let numbers = || (0..EACH).map(move |place| number * EACH + place);
        numbers().map(timer).chain(numbers().map(event)).collect()
    };
    let (many, none) = (per_turn_beside(OTHERS, acts), per_turn_beside(0, |_| Vec::new()));
    print(
        "scale.waits",
        many,
        "instructions per turn beside 50000 waits and 50000 timers of others, baseline beside none",
        none,
        many / none,
        "<= 1.1",
    );
}

/// The turns run in a host, with its alarm clock and its feed: all that could look at the others.
fn per_turn_beside(others: u64, acts: impl Fn(u64) -> Vec<RecordCall>) -> f64 {
    let home = tempfile::tempdir().unwrap();
    make_history(home.path(), 200);
    make_waiting(home.path(), others, acts);
    let again = tempfile::tempdir().unwrap();
    copy(home.path(), again.path());
    let counted = |home: &Path, turns| counted("--measure-hosted", home, turns);
    let (few, more) = (counted(home.path(), 100), counted(again.path(), 500));
    (more - few) / 400.0
}

/// Decades: no timer is due while this runs.
const FAR_MS: u64 = 10_000 * 24 * 3_600_000;

fn wait(number: u64) -> RecordCall {
    let (wake, after_ms) = match number % 3 {
        0 => (WaitKind::Operator, None),
        1 => return event(number),
        _ => (WaitKind::Timer, Some(FAR_MS)),
    };
    RecordCall::WaitFor { wake, resource: None, after_ms, work_item_id: None, reason: "the build".to_owned() }
}

fn event(number: u64) -> RecordCall {
    let (wake, resource) = (WaitKind::External, Some(format!("pull-request-{number}")));
    RecordCall::WaitFor { wake, resource, after_ms: None, work_item_id: None, reason: "the review".to_owned() }
}

fn timer(number: u64) -> RecordCall {
    RecordCall::CreateTimer {
        summary: format!("Look at build {number}."),
        when: When::AfterMs(FAR_MS + number),
        catch_up: CatchUp::Latest,
        work_item_id: None,
        check: None,
    }
}

/// So many agents that each had a message, and wait since then.
fn make_waiting(home: &Path, agents: u64, acts: impl Fn(u64) -> Vec<RecordCall>) {
    let ledger = Ledger::open(home, Options::default()).unwrap();
    for number in 1..=agents {
        let acts = acts(number);
        let call = |(place, act): (usize, &RecordCall)| Call {
            call_id: CallId::new(format!("call_{number}_{place}")),
            tool: "Act".to_owned(),
            input: Value::Null.into(),
            parsed: ToolCall::Record(act.clone()),
        };
        let calls: Vec<Call> = acts.iter().enumerate().map(call).collect();
        let id = agent(number);
        let mut core = abide_engine::Core::<AgentState>::new(id.clone());
        let (now, draws) = (Time::from_ms(1_750_000_000_000), number << 32);
        let mut driver = Driver { ledger: &ledger, core: &mut core, now, draws };
        driver.ask(create(&id, true));
        driver.ask_and_reply(message(0), || Reply { calls: calls.clone(), ..Reply::default() });
        // Now and then: what waits to be written is in memory.
        if number.is_multiple_of(100) || number == agents {
            driver.wait();
        }
        let state = core.state();
        let standing = state.planes.timers.active().values().filter(|timer| timer.waiting_intent_id.is_none()).count();
        assert_eq!(state.planes.waits.open().len() + standing, acts.len(), "{id} waits");
        assert!(state.turns.current.is_none(), "{id} rests");
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn make_history(home: &Path, turns: u64) {
    let ledger = Ledger::open(home, Options::default()).unwrap();
    let id = agent(0);
    let mut core = abide_engine::Core::<AgentState>::new(id.clone());
    let mut driver = Driver { ledger: &ledger, core: &mut core, now: Time::from_ms(1_700_000_000_000), draws: 0 };
    driver.ask(create(&id, true));
    for number in 0..turns {
        driver.ask(message(usize::try_from(number).unwrap()));
    }
    driver.wait();
}

fn counted(flag: &str, home: &Path, turns: u64) -> f64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().unwrap())
        .args([flag, &turns.to_string()])
        .arg(home)
        .output()
        .expect("valgrind is needed to count instructions: apt-get install valgrind");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = stderr.lines().find(|line| line.contains("Collected"));
    let number = line.and_then(|line| line.split_whitespace().last()?.replace(',', "").parse().ok());
    number.unwrap_or_else(|| panic!("callgrind gave no figure:\n{stderr}"))
}

/// The measured process: one agent with a past takes so many messages, one after another.
pub fn measured(turns: u64, home: &Path) {
    let ledger = Ledger::open(home, Options::default()).unwrap();
    let mut core =
        abide_engine::Core::<AgentState>::recover(&ledger, &agent(0), abide_kernel::input::BootContext::default())
            .unwrap()
            .unwrap();
    let mut driver = Driver { ledger: &ledger, core: &mut core, now: Time::from_ms(1_750_000_000_000), draws: 1 << 40 };
    for number in 0..turns {
        driver.ask(message(usize::try_from(number).unwrap()));
    }
    driver.wait();
}

/// The measured process: one agent with a past takes so many messages, in a host of its own. They are all there before
/// it starts, so that the turns are the only thing that is waited for.
pub fn measured_hosted(turns: u64, home: &Path) {
    let ledger = Ledger::open(home, Options::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let host = host(&ledger);
        let id = agent(0);
        host.ask(&id, Input::Stop).await.unwrap();
        for number in 0..turns {
            host.ask(&id, message(usize::try_from(number).unwrap())).await.unwrap();
        }
        host.ask(&id, Input::Start).await.unwrap();
        // Seldom: looking costs instructions, too.
        while host.meter().turns.get() < turns {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        host.shutdown(Duration::from_secs(60), "test").await;
    });
}
