//! Which calls are made while keys fail, who is told, and who is released. Time is handed in: minutes pass in no time.

use abide_effects::model::remote::{Card, Protocol, Provider, Remote};
use abide_kernel::fact::{TurnTerminal, TurnsHeld, TurnsReleased};
use abide_kernel::id::{ExecId, MessageId};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

struct World {
    holds: KeyHolds,
    now: Instant,
}

#[derive(Debug, PartialEq)]
enum Call {
    /// The call was made, and its key refused.
    Asked { announce: bool },
    /// No call was made.
    NotAsked { minutes: u64, announce: bool },
}

impl World {
    fn new(suspicious: bool) -> World {
        World { holds: KeyHolds::new(suspicious), now: Instant::now() }
    }

    fn pass(&mut self, minutes: u32) {
        self.now += MINUTE * minutes;
    }

    fn begin(&self, name: &str, model: &str) -> Result<Attempt, RefusedCall> {
        self.holds.begin(&id(name), &remote(model), self.now)
    }

    fn not_asked(refused: &RefusedCall) -> Call {
        let retry_after = refused.failure.retry_after_ms.unwrap();
        Call::NotAsked { minutes: retry_after.div_ceil(60_000), announce: refused.announce }
    }

    /// A call whose key is refused, if it is made at all.
    fn refuse(&self, name: &str, model: &str) -> Call {
        self.refuse_with(name, model, auth())
    }

    fn refuse_with(&self, name: &str, model: &str, failure: ProviderFailure) -> Call {
        match self.begin(name, model) {
            Ok(attempt) => Call::Asked { announce: attempt.failed(&failure, self.now) },
            Err(refused) => World::not_asked(&refused),
        }
    }

    /// The same, recorded as a hold.
    fn hold(&self, name: &str, model: &str) -> Call {
        let call = self.refuse(name, model);
        self.record(name, vec![ended(TerminalKind::ProviderFailed), held(HoldCause::ModelKey)]);
        call
    }

    fn answer(&self, name: &str, model: &str) {
        self.begin(name, model).unwrap().worked();
        self.record(name, vec![ended(TerminalKind::Completed)]);
    }

    fn record(&self, name: &str, facts: Vec<Fact>) {
        let facts: Vec<_> = facts.into_iter().map(|fact| (1, Time::EPOCH, fact)).collect();
        self.holds.recorded(&id(name), &facts);
    }

    fn released(&self) -> Vec<String> {
        mem::take(&mut self.holds.lock().to_release).iter().map(ToString::to_string).collect()
    }
}

fn id(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

fn remote(name: &str) -> Model {
    let (provider, model) = name.split_once('/').unwrap();
    let (name, model, provider) = (name.to_owned(), model.to_owned(), provider.to_owned());
    let (protocol, base_url) = (Protocol::Chat, "http://127.0.0.1:9".to_owned());
    let provider = Arc::new(Provider { name: provider, protocol, base_url, key: None, key_env: None });
    let card = Card { window_tokens: 1, max_output_tokens: 1, context_tokens: 1, prices: None, images: false };
    Model::Remote(Remote { name, model, provider, card })
}

fn auth() -> ProviderFailure {
    ProviderFailure { error: ProviderError::Auth, ..ProviderFailure::invalid("status 401: no") }
}

fn held(cause: HoldCause) -> Fact {
    Fact::TurnsHeld(TurnsHeld { cause, until: Time::EPOCH, evidence: String::new() })
}

fn released() -> Fact {
    Fact::TurnsReleased(TurnsReleased { cause: HoldCause::ModelKey, evidence: String::new() })
}

fn ended(terminal_kind: TerminalKind) -> Fact {
    Fact::TurnTerminal(TurnTerminal {
        exec_id: ExecId::new("exec_1"),
        turn_index: 1,
        message_id: MessageId::new("msg_1"),
        terminal_kind,
        rounds: 1,
        last_assistant_message: None,
        checkpoint: false,
        tree: None,
        error: None,
        returned: true,
        cut: false,
        settles: Vec::new(),
    })
}

#[test]
fn a_key_is_tried_by_one_call_every_ten_minutes_and_told_once() {
    let mut world = World::new(false);
    assert_eq!(world.hold("a", "p/m"), Call::Asked { announce: true });
    world.pass(4);
    assert_eq!(world.hold("b", "p/other"), Call::NotAsked { minutes: 6, announce: false });
    world.pass(6);
    let trying = world.begin("b", "p/m").unwrap();
    assert_eq!(world.hold("a", "p/m"), Call::NotAsked { minutes: 10, announce: false });
    assert!(!trying.failed(&auth(), world.now), "it was told");
    drop(trying);
    world.pass(9);
    assert_eq!(world.refuse("c", "p/m"), Call::NotAsked { minutes: 1, announce: false });
    // A key of somebody else is not concerned.
    world.answer("c", "q/m");
    assert_eq!(world.released(), Vec::<String>::new());
}

#[test]
fn a_try_that_comes_to_nothing_is_left_to_the_next_agent() {
    let mut world = World::new(false);
    world.hold("a", "p/m");
    world.pass(10);
    drop(world.begin("a", "p/m").unwrap());
    let overloaded = ProviderFailure { error: ProviderError::Overloaded, ..auth() };
    assert_eq!(world.refuse_with("b", "p/m", overloaded), Call::Asked { announce: true });
    assert_eq!(world.refuse("c", "p/m"), Call::Asked { announce: false });
    assert_eq!(world.refuse("a", "p/m"), Call::NotAsked { minutes: 10, announce: false });
}

#[test]
fn a_key_that_works_releases_those_who_waited_for_it() {
    let mut world = World::new(false);
    world.hold("a", "p/m");
    world.hold("b", "p/m");
    world.hold("c", "q/m");
    world.refuse("d", "p/m");
    world.record("e", vec![held(HoldCause::HomeBudget)]);
    assert!(["a", "b", "c", "e"].iter().all(|name| world.holds.holds(&id(name))));
    assert!(!world.holds.holds(&id("d")));
    world.pass(10);
    world.answer("f", "p/m");
    assert_eq!(world.released(), ["a", "b"]);
    // The refusal of this one was on its way when the key came to work.
    world.record("d", vec![ended(TerminalKind::ProviderFailed), held(HoldCause::ModelKey)]);
    assert_eq!(world.released(), ["d"]);
    world.record("d", vec![released()]);
    assert!(!world.holds.holds(&id("d")));
    // The next failure is news.
    assert_eq!(world.hold("d", "p/m"), Call::Asked { announce: true });
    assert_eq!(world.released(), Vec::<String>::new());
}

#[test]
fn an_answer_that_began_before_the_key_failed_proves_nothing() {
    let mut world = World::new(false);
    let slow = world.begin("slow", "p/m").unwrap();
    world.pass(1);
    world.hold("a", "p/m");
    slow.worked();
    assert_eq!(world.released(), Vec::<String>::new());
    assert_eq!(world.refuse("b", "p/m"), Call::NotAsked { minutes: 10, announce: false });
    // A test by a person that began later does.
    world.pass(1);
    world.holds.worked(&remote("p/m"), world.now);
    assert_eq!(world.released(), ["a"]);
}

#[test]
fn an_agent_with_another_model_does_not_take_the_announcement_from_one_without() {
    let world = World::new(false);
    assert_eq!(world.refuse("rich", "p/m"), Call::Asked { announce: true });
    world.record("rich", vec![ended(TerminalKind::DeferredToFallback)]);
    assert_eq!(world.hold("a", "p/m"), Call::NotAsked { minutes: 10, announce: true });
    assert_eq!(world.hold("b", "p/m"), Call::NotAsked { minutes: 10, announce: false });
}

#[test]
fn an_announcement_whose_agent_was_stopped_is_made_by_another() {
    let mut world = World::new(false);
    world.refuse("gone", "p/m");
    assert_eq!(world.refuse("a", "p/m"), Call::NotAsked { minutes: 10, announce: false });
    world.pass(2);
    assert_eq!(world.refuse("a", "p/m"), Call::NotAsked { minutes: 8, announce: true });
}

#[test]
fn a_model_that_the_key_may_not_use_concerns_that_model_alone() {
    let mut world = World::new(false);
    let forbidden = || ProviderFailure { model_only: true, ..auth() };
    assert_eq!(world.refuse_with("a", "p/m", forbidden()), Call::Asked { announce: true });
    world.answer("b", "p/other");
    assert_eq!(world.refuse("c", "p/m"), Call::NotAsked { minutes: 10, announce: false });
    // A gateway that says it with 401: the key has answered for another model, and never for this one.
    assert_eq!(world.refuse("a", "p/third"), Call::Asked { announce: true });
    world.answer("b", "p/other");
    // A model that used to answer: the key itself does not work any more.
    assert_eq!(world.refuse("b", "p/other"), Call::Asked { announce: true });
    world.pass(1);
    assert_eq!(world.refuse("d", "p/fourth"), Call::NotAsked { minutes: 9, announce: false });
}

#[test]
fn after_agents_were_held_each_key_is_tried_before_all_use_it() {
    let world = World::new(true);
    let first = world.begin("a", "p/m").unwrap();
    assert_eq!(world.refuse("b", "p/m"), Call::NotAsked { minutes: 10, announce: false });
    world.record("b", vec![ended(TerminalKind::ProviderFailed), held(HoldCause::ModelKey)]);
    first.worked();
    drop(first);
    assert_eq!(world.released(), ["b"]);
    let (one, two) = (world.begin("a", "p/m").unwrap(), world.begin("b", "p/m").unwrap());
    one.worked();
    two.worked();
}
