//! Plain worlds: several agents on the engine's core, one ledger on a disk that loses unsynced writes, virtual time,
//! crashes before and after every commit, and outcomes that are lost, late, doubled or out of order.

mod completion;
mod crash;
mod effects;
mod invariants;

use std::collections::BTreeMap;

use abide_engine::{Core, Outputs, Request};
use abide_kernel::budget::Budget;
use abide_kernel::config::{AgentLimits, Choice, Config, ConfigChange, Identity};
use abide_kernel::effect::{Effect, TurnEffect};
use abide_kernel::fact::Fact;
use abide_kernel::id::AgentId;
use abide_kernel::input::{Answer, BootContext, Input};
use abide_kernel::limits::CLOCK_SLACK_MS;
use abide_kernel::state::lifecycle::Control;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::HoldCause;
use abide_ledger::{Ledger, Memory};

pub(crate) use completion::check_nothing_left;
pub(crate) use invariants::check_time_bounds;

use crate::generators;
use crate::report::{Failure, Tally};
use crate::rng::Rng;
use crate::simulated_agent::SimulatedAgent;

pub(crate) const DAY_MS: i64 = 86_400_000;

/// The end of a run of one agent before it came to rest.
enum Interruption {
    Crash,
    Failed(String),
}

impl From<String> for Interruption {
    fn from(what: String) -> Interruption {
        Interruption::Failed(what)
    }
}

#[derive(Debug)]
pub struct Simulation {
    rng: Rng,
    now: Time,
    memory: Memory,
    ledger: Ledger,
    agents: BTreeMap<AgentId, SimulatedAgent>,
    /// Reports that arrive later than they should.
    late: Vec<(AgentId, Input)>,
    tokens: u64,
    calls: u64,
    tasks: u64,
    crash_percent: u64,
    weights: Vec<u64>,
    /// The settings' limits of agents in the running process.
    limits: AgentLimits,
    /// Whether somebody sets the clock, and by how much it is ahead.
    clock_is_set: bool,
    ahead_ms: u64,
    pub history: Vec<String>,
    /// How much of the history is kept to be shown.
    pub history_kept: usize,
    pub tally: Tally,
}

impl Simulation {
    #[must_use]
    pub fn new(seed: u64) -> Simulation {
        let mut rng = Rng::new(seed);
        let memory = Memory::with_manual_sync();
        // Every world has its own temper: some operations are common in one and absent in another.
        let weights = (0..12).map(|_| if rng.chance(15) { 0 } else { 1 + rng.below(10) }).collect();
        // Some worlds are calm, some have the odd crash, and in some the process hardly lives.
        let crash_percent = [0, 1, 3, 25][rng.weighted(&[3, 3, 3, 1])];
        Simulation {
            now: Time::from_ms(1_800_000_000_000),
            ledger: Ledger::Memory(memory.clone()),
            memory,
            agents: BTreeMap::new(),
            late: Vec::new(),
            tokens: 0,
            calls: 0,
            tasks: 0,
            crash_percent,
            weights,
            limits: generators::limits(&mut rng),
            clock_is_set: rng.chance(25),
            ahead_ms: 0,
            history: Vec::new(),
            history_kept: 60,
            tally: Tally::default(),
            rng,
        }
    }

    /// The disk, for bugs that are planted there.
    #[must_use]
    pub fn disk(&self) -> &Memory {
        &self.memory
    }

    pub fn run(&mut self, steps: u64) -> Result<(), Failure> {
        let outcome = self.live(steps).and_then(|()| self.run_to_completion());
        outcome.map_err(|what| Failure { what, history: std::mem::take(&mut self.history) })
    }

    fn note(&mut self, line: String) {
        if self.history.len() == self.history_kept {
            self.history.remove(0);
        }
        self.history.push(format!("{} {line}", self.now));
    }

    fn live(&mut self, steps: u64) -> Result<(), String> {
        let agents = 1 + self.rng.below(3);
        for number in 0..agents {
            self.create(number)?;
        }
        for _ in 0..steps {
            self.random_event()?;
        }
        if self.rng.chance(4) { self.run_endless_agent() } else { Ok(()) }
    }

    /// The model of one agent makes itself work without end, and nobody says anything else.
    fn run_endless_agent(&mut self) -> Result<(), String> {
        let ids: Vec<AgentId> = self.agents.keys().cloned().collect();
        let Some(id) = self.rng.pick(&ids).cloned() else { return Ok(()) };
        self.note(format!("-- {id} makes itself work"));
        self.tally.messages += 1;
        let input = generators::incoming_input(&mut self.rng, &self.agents[&id].shadow);
        self.ask(&id, input)?;
        for _ in 0..160 {
            let Some(simulated) = self.agents.get_mut(&id).filter(|it| !it.effects.is_empty()) else { break };
            let effect = simulated.effects.remove(0);
            let inputs = if let Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) = effect {
                let reply = generators::endless_reply(&simulated.shadow, &mut self.calls);
                vec![Input::FinishRound { exec_id, round, reply }]
            } else {
                self.outcome(&id, effect)
            };
            for input in inputs {
                self.ask(&id, input)?;
            }
        }
        Ok(())
    }

    fn create(&mut self, number: u64) -> Result<(), String> {
        let id = AgentId::new(&format!("a{number}")).map_err(|error| error.to_string())?;
        let mut simulated = SimulatedAgent::new(id.clone());
        simulated.core = Some(Core::new(id.clone()).with_boot(self.settings()));
        self.agents.insert(id.clone(), simulated);
        let budget = generators::budget(&mut self.rng);
        let (model, fallback) = ("first/model".to_owned(), generators::fallback(&mut self.rng));
        let config = Config { model, budget, fallback, ..Config::default() };
        let start = !self.rng.chance(10);
        self.ask(&id, Input::Create { identity: Identity::named(id.clone()), config, start })
    }

    fn random_event(&mut self) -> Result<(), String> {
        let ids: Vec<AgentId> = self.agents.keys().cloned().collect();
        let Some(id) = self.rng.pick(&ids).cloned() else { return Ok(()) };
        match self.rng.weighted(&self.weights.clone()) {
            0 | 1 => {
                let input = generators::incoming_input(&mut self.rng, &self.agents[&id].shadow);
                self.tally.messages += 1;
                self.ask(&id, input)
            }
            2..=4 => self.report_effect(&id),
            5 => self.end_some_process(&id),
            6 => self.pass_time(),
            7 => {
                let body = self.rng.chance(30).then(|| "news".to_owned());
                let resource =
                    self.rng.chance(40).then(|| generators::hinted_resource(&mut self.rng, &self.agents[&id].shadow));
                let source = Some(format!("source_{}", self.rng.below(2)));
                self.ask(&id, Input::Wake { reason: "look".to_owned(), source, resource, body })
            }
            8 => {
                let act = generators::operator_act(&mut self.rng, &self.agents[&id].shadow);
                self.ask(&id, Input::Act { by: "operator".to_owned(), act })
            }
            9 => self.control(&id),
            10 => self.ask_rare(&id),
            _ => match self.late.pop() {
                Some((id, input)) => self.ask(&id, input),
                None => self.hibernate(&id),
            },
        }
    }

    fn control(&mut self, id: &AgentId) -> Result<(), String> {
        let stopped = self.agents[id].shadow.lifecycle.control != Control::Runnable;
        let input = match self.rng.below(8) {
            0..=3 if stopped => Input::Start,
            0..=3 => Input::Stop,
            4 => Input::Start,
            5 => Input::Abort { exec_id: None },
            6 if self.rng.chance(30) => return self.shut_down_and_restart(),
            _ => {
                // Somebody aborts, believing that an execution of the past still runs.
                let exec_id = self.agents[id].shadow.turns.current.as_ref().map(|turn| turn.exec_id.clone());
                Input::Abort { exec_id }
            }
        };
        self.ask(id, input)
    }

    /// Every agent is asked to shut down; then the process ends, with nothing in flight or with something.
    fn shut_down_and_restart(&mut self) -> Result<(), String> {
        self.note("shutdown of all".to_owned());
        let ids: Vec<AgentId> = self.agents.keys().cloned().collect();
        for id in &ids {
            let at_once = self.rng.chance(30);
            self.ask(id, Input::Shutdown { at_once, reason: "SIGTERM".to_owned() })?;
        }
        for id in &ids {
            while self.rng.chance(80) && !self.agents[id].effects.is_empty() {
                self.report_effect(id)?;
            }
        }
        self.crash(0)
    }

    fn ask_rare(&mut self, id: &AgentId) -> Result<(), String> {
        let input = match self.rng.below(7) {
            0 => Input::Compact { compacted_messages: 3, summary: None, through: None, usage: None },
            1 => match &self.agents[id].shadow.turns.current {
                Some(turn) => {
                    Input::Checkpoint { exec_id: turn.exec_id.clone(), recap: "so far".to_owned(), through_round: None }
                }
                None => return Ok(()),
            },
            2 => Input::OccupyWorkspace { workspace: "ws".to_owned() },
            3 => Input::RecordRuntimeError { error: "something broke".to_owned() },
            6 => {
                let cause = *self.rng.pick(HoldCause::ALL).unwrap_or(&HoldCause::ModelKey);
                Input::ReleaseTurns { cause, evidence: "mended".to_owned() }
            }
            4 => {
                let model = (!self.rng.chance(50)).then(|| Choice::Own(generators::model(&mut self.rng)));
                let fallback = Choice::Own(generators::fallback(&mut self.rng));
                let change = ConfigChange { model, fallback: Some(fallback), ..ConfigChange::default() };
                Input::Configure { change: Box::new(change) }
            }
            _ => {
                let budget = if self.rng.chance(80) { Budget::default() } else { generators::budget(&mut self.rng) };
                let change = ConfigChange { budget: Some(budget), ..ConfigChange::default() };
                Input::Configure { change: Box::new(change) }
            }
        };
        self.ask(id, input)
    }

    /// Hands an input to an agent, waking it if need be, and lets it run until it rests.
    fn ask(&mut self, id: &AgentId, input: Input) -> Result<(), String> {
        self.note(format!("{id}: {}", brief(&input)));
        self.tokens += 1;
        let token = self.tokens;
        let queues = matches!(input, Input::Queue(_) | Input::Deliver { .. });
        if !self.load_agent(id)? {
            return Ok(());
        }
        if let Some(simulated) = self.agents.get_mut(id) {
            if queues {
                simulated.asked.insert(token);
            }
            if let Some(core) = &mut simulated.core {
                core.ask(Request::new(token, input));
            }
        }
        self.drive(id)
    }

    /// The settings, as an agent gets them when it is loaded.
    fn settings(&self) -> BootContext {
        BootContext { limits: Some(self.limits), ..BootContext::default() }
    }

    /// Makes sure that the agent is in memory. False if it does not exist.
    fn load_agent(&mut self, id: &AgentId) -> Result<bool, String> {
        let settings = self.settings();
        let Some(simulated) = self.agents.get_mut(id) else { return Ok(false) };
        if simulated.core.is_some() {
            return Ok(true);
        }
        let recovered = Core::recover(&self.ledger, id, settings.clone()).map_err(|damage| damage.to_string())?;
        match recovered {
            Some(core) => simulated.core = Some(core),
            None => {
                // Its creation never became durable: nobody was told that it exists.
                simulated.core = Some(Core::new(id.clone()).with_boot(settings));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs one agent until it rests, however often the process dies on the way.
    fn drive(&mut self, id: &AgentId) -> Result<(), String> {
        match self.drive_until_rest(id) {
            Ok(()) => Ok(()),
            Err(Interruption::Failed(what)) => Err(what),
            Err(Interruption::Crash) => {
                let keep = usize::try_from(self.rng.below(3)).unwrap_or(0);
                self.crash(keep)
            }
        }
    }

    fn drive_until_rest(&mut self, id: &AgentId) -> Result<(), Interruption> {
        for _ in 0..600 {
            let (now, entropy) = (self.now, self.rng.next());
            let Some(core) = self.agents.get_mut(id).and_then(|simulated| simulated.core.as_mut()) else {
                return Ok(());
            };
            let commit = core.poll(now, entropy);
            let early = core.take_outputs();
            self.publish(id, early)?;
            let Some(commit) = commit else {
                return self.check_at_rest(id).map_err(Interruption::Failed);
            };
            self.maybe_crash()?;
            let mut receipt = self.ledger.commit(commit);
            let mut result = receipt.try_take();
            if result.is_none() {
                self.maybe_crash()?;
                self.memory.sync();
                result = receipt.try_take();
            }
            match result {
                Some(Ok(_)) => {}
                other => return Err(Interruption::Failed(format!("a commit was not taken: {other:?}"))),
            }
            self.tally.commits += 1;
            let Some(core) = self.agents.get_mut(id).and_then(|simulated| simulated.core.as_mut()) else {
                return Ok(());
            };
            core.committed();
            let outputs = core.take_outputs();
            self.publish(id, outputs)?;
            // After an early answer the disk may still not know of it.
            self.maybe_crash()?;
            self.memory.sync();
        }
        Err(Interruption::Failed("the agent does not come to rest".to_owned()))
    }

    fn maybe_crash(&mut self) -> Result<(), Interruption> {
        if self.rng.below(1_000) < self.crash_percent * 10 { Err(Interruption::Crash) } else { Ok(()) }
    }

    /// Publishes durable facts, answers their callers and queues their effects.
    fn publish(&mut self, id: &AgentId, outputs: Outputs) -> Result<(), String> {
        let count = outputs.facts.len();
        for (index, (seq, at, fact)) in outputs.facts.iter().enumerate() {
            self.tally.facts += 1;
            self.tally.turns += u64::from(matches!(fact, Fact::TurnStarted(_)));
            self.note(format!("{id}:   {seq} {}", shown(fact)));
            if let Some(simulated) = self.agents.get_mut(id) {
                simulated.observe(*seq, *at, fact, index + 1 == count)?;
            }
        }
        let now = self.now;
        let Some(simulated) = self.agents.get_mut(id) else { return Ok(()) };
        for (token, answer) in outputs.answers {
            let answer = answer.map(|answered| answered.answer);
            if let (true, Ok(Answer::Queued { message_id })) = (simulated.asked.remove(&token), answer) {
                simulated.acknowledged.insert(message_id);
            }
        }
        simulated.effects.extend(outputs.effects);
        if count > 0 { simulated.compare(now) } else { Ok(()) }
    }

    fn hibernate(&mut self, id: &AgentId) -> Result<(), String> {
        let Some(simulated) = self.agents.get_mut(id) else { return Ok(()) };
        let quiet =
            simulated.effects.is_empty() && simulated.processes.is_empty() && simulated.shadow.turns.current.is_none();
        if quiet && simulated.shadow.seq > 0 {
            simulated.core = None;
        }
        Ok(())
    }

    fn pass_time(&mut self) -> Result<(), String> {
        if self.clock_is_set && self.rng.chance(30) {
            return self.set_clock();
        }
        let ms = match self.rng.below(4) {
            0 => self.rng.below(200),
            1 => self.rng.below(20_000),
            2 => self.rng.below(1_000_000),
            3 if self.rng.chance(5) => self.rng.below(48 * 3_600_000),
            _ => {
                let next = self.agents.values().filter_map(|simulated| simulated.model.next_wake()).min();
                next.map_or(0, |next| next.since_ms(self.now))
            }
        };
        self.now = self.now.plus_ms(ms);
        self.note(format!("-- {ms} ms pass"));
        self.look_at_clock()
    }

    /// A clock that is ahead is put right; one that is right is a century or a day ahead from here on, or a day behind.
    fn set_clock(&mut self) -> Result<(), String> {
        let ms = match self.rng.below(3) {
            _ if self.ahead_ms > 0 => -i64::try_from(std::mem::take(&mut self.ahead_ms)).unwrap_or(i64::MAX),
            0 => 100 * 365 * DAY_MS,
            1 => DAY_MS,
            _ => -DAY_MS,
        };
        self.ahead_ms = u64::try_from(ms).unwrap_or(0);
        self.now = Time::from_ms(self.now.as_ms() + ms);
        self.note(format!("-- the clock is set by {ms} ms"));
        self.look_at_clock()?;
        let left =
            self.ledger.waits_recorded_after(self.now.plus_ms(CLOCK_SLACK_MS)).map_err(|error| error.to_string())?;
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?} wait for a time that was recorded in the future")) }
    }

    /// Those that are awake look at once, the others when the wake index says so.
    fn look_at_clock(&mut self) -> Result<(), String> {
        let awake: Vec<AgentId> =
            self.agents.values().filter(|simulated| simulated.core.is_some()).map(|i| i.id.clone()).collect();
        for id in awake {
            self.drive(&id)?;
        }
        self.boot()
    }
}

fn brief(input: &Input) -> String {
    let text = format!("{input:?}");
    abide_kernel::limits::clip(&text, 160).to_owned()
}

fn shown(fact: &Fact) -> String {
    let payload = String::from_utf8_lossy(&fact.encode()).into_owned();
    format!("{} {}", fact.kind(), abide_kernel::limits::clip(&payload, 240))
}
