//! The content of notices, the number of attempts, and the log line of a notice that is given up. Time here is the
//! runtime's, which is paused: minutes between attempts pass in no time.

use std::sync::Arc;

use abide_engine::{Clock, Perform};
use abide_kernel::budget::Budget;
use abide_kernel::config::{Config, Identity};
use abide_kernel::effect::{Effect, TurnEffect};
use abide_kernel::id::AgentId;
use abide_kernel::input::{Input, NewMessage, Reply};
use abide_ledger::Ledger;
use serde_json::Value;

use super::*;

type Job = std::pin::Pin<Box<dyn Future<Output = Vec<Input>> + Send>>;

/// Always says the same.
struct Mute;

impl Perform for Mute {
    #[allow(clippy::wildcard_enum_match_arm, reason = "only turns are of interest here")]
    fn perform(&self, _: &AgentId, effect: Effect) -> Option<Job> {
        match effect {
            Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) => {
                let reply = Reply { text: "So be it.".to_owned(), ..Reply::default() };
                Some(Box::pin(async move { vec![Input::FinishRound { exec_id, round, reply }] }))
            }
            _ => None,
        }
    }
}

struct World {
    home: tempfile::TempDir,
    host: Host,
    _notifier: Notifier,
}

impl World {
    /// Tells by this command, in which `$HERE` is a folder.
    fn telling_by(command: &str) -> World {
        let home = tempfile::tempdir().unwrap();
        let ledger = Ledger::memory();
        let since = ledger.end().unwrap();
        let noon = "2026-03-01T12:00:00Z".parse().unwrap();
        let host = Host::start(ledger, Arc::new(Mute), Clock::simulated(noon, 7)).unwrap();
        let command = Some(command.replace("$HERE", &home.path().display().to_string()));
        let chosen = NotifyOptions {
            command,
            webhook: None,
            on: NoticeKind::USUAL.to_vec(),
            hidden: HiddenVariables::default(),
        };
        let notifier = start(home.path(), &host, chosen, since).unwrap();
        World { home, host, _notifier: notifier }
    }

    async fn create(&self, name: &str, budget: Budget) {
        let id = AgentId::new(name).unwrap();
        let config = Config { budget, ..Config::default() };
        self.ask(name, Input::Create { identity: Identity::named(id), config, start: true }).await;
    }

    async fn ask(&self, name: &str, input: Input) {
        self.host.ask(&AgentId::new(name).unwrap(), input).await.unwrap();
    }

    /// The place, once it is like this.
    async fn until(&self, is_it: impl Fn(&SinkProgress) -> bool) -> SinkProgress {
        let path = SinkProgress::file(self.home.path(), "command");
        loop {
            if let Some(place) = SinkProgress::read(&path).filter(&is_it) {
                return place;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.home.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_notice_is_given_up_after_five_attempts_and_the_next_one_is_told() {
    let command = "echo $ABIDE_AGENT >> $HERE/tried; test $ABIDE_AGENT = good";
    let world = World::telling_by(command);
    for name in ["bad", "good"] {
        world.create(name, Budget::default()).await;
        world.ask(name, Input::Quarantine { reason: "as the test has it".to_owned() }).await;
    }
    let begun = world.host.clock().now();
    let place = world.until(|place| place.sent == 1).await;
    assert_eq!(world.lines("tried"), ["bad", "bad", "bad", "bad", "bad", "good"]);
    assert_eq!((place.failed, world.host.meter().notify_failed.get(), world.host.meter().notified.get()), (1, 1, 1));
    let failure = place.last_failure.unwrap();
    assert_eq!(failure.error, "the command ended with exit code 1");
    let waited = failure.at.since_ms(begun);
    assert!((86_000..90_000).contains(&waited), "{waited} ms: a minute and a half");
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_and_a_quarantine_are_told() {
    let world = World::telling_by("cat >> $HERE/told");
    world.create("spender", Budget { max_turns: Some(1), ..Budget::default() }).await;
    world.create("sick", Budget::default()).await;
    for text in ["one", "two", "three"] {
        let message = NewMessage { text: Some(text.to_owned()), ..NewMessage::default() };
        world.ask("spender", Input::Queue(message)).await;
    }
    world.until(|place| place.sent == 1).await;
    world.ask("sick", Input::Quarantine { reason: "as the test has it".to_owned() }).await;
    world.until(|place| place.sent == 2).await;
    let told: Vec<Value> = world.lines("told").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<String> = told
        .iter()
        .map(|told| format!("{}: {}", told["kind"].as_str().unwrap(), told["text"].as_str().unwrap()))
        .collect();
    assert!(shown[0].starts_with("failure: spender has used up its budget"), "{shown:?}");
    assert_eq!(shown[1], "failure: sick is left alone, because its records can't be trusted: as the test has it");
    assert_eq!(shown.len(), 2, "a spent budget is told once, whatever comes in: {shown:?}");
}
