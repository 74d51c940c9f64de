//! The simulated world: many agents, one ledger on a disk that forgets what was not synced, virtual time, crashes
//! before and after every commit, and outcomes that are lost, late, doubled or out of order.

mod effects;
mod ending;

use std::collections::BTreeMap;

use abide_engine::{Core, Outputs, Request, fold, fold_until};
use abide_kernel::budget::Budget;
use abide_kernel::config::{AgentLimits, Choice, Config, ConfigChange, Identity};
use abide_kernel::effect::Effect;
use abide_kernel::fact::{Fact, Schedule, TaskEnd};
use abide_kernel::id::AgentId;
use abide_kernel::input::{Answer, Input, Remains};
use abide_kernel::limits::{CLOCK_SLACK_MS, PROVIDER_RETRY_MAX_MS};
use abide_kernel::state::lifecycle::Control;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{DecisionKind, HoldCause, TaskStatus, ToolStatus};
use abide_kernel::wake::{Wake, wake};
use abide_kernel::{AgentState, decide};
use abide_ledger::{Ledger, Memory, StreamId};

pub(crate) use ending::nothing_left;

use crate::agent::Inhabitant;
use crate::mind;
use crate::rng::Rng;

pub(crate) const DAY_MS: i64 = 86_400_000;

/// Something that must not happen, happened.
#[derive(Debug)]
pub struct Failure {
    pub what: String,
    pub history: Vec<String>,
}

/// What a run did, so that a reader sees that it did something.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub facts: u64,
    pub commits: u64,
    pub crashes: u64,
    pub turns: u64,
    pub messages: u64,
}

/// The process died in the middle of something.
struct Crashed;

enum Cut {
    Crash(Crashed),
    Failed(String),
}

impl From<String> for Cut {
    fn from(what: String) -> Cut {
        Cut::Failed(what)
    }
}

#[derive(Debug)]
pub struct World {
    rng: Rng,
    now: Time,
    memory: Memory,
    ledger: Ledger,
    agents: BTreeMap<AgentId, Inhabitant>,
    /// Reports that arrive later than they should.
    late: Vec<(AgentId, Input)>,
    tokens: u64,
    calls: u64,
    tasks: u64,
    crash_percent: u64,
    weights: Vec<u64>,
    /// What the settings of the running process allow every agent.
    limits: AgentLimits,
    /// Whether somebody sets the clock, and by how much it is ahead.
    clock_is_set: bool,
    ahead_ms: u64,
    pub history: Vec<String>,
    /// How much of the history is kept to be shown.
    pub history_kept: usize,
    pub tally: Tally,
}

impl World {
    #[must_use]
    pub fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let memory = Memory::with_manual_sync();
        // Every world has its own temper: some operations are common in one and absent in another.
        let weights = (0..12).map(|_| if rng.chance(15) { 0 } else { 1 + rng.below(10) }).collect();
        // Some worlds are calm, some have the odd crash, and in some the process hardly lives.
        let crash_percent = [0, 1, 3, 25][rng.weighted(&[3, 3, 3, 1])];
        World {
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
            limits: mind::limits(&mut rng),
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
        let outcome = self.live(steps).and_then(|()| self.come_to_an_end());
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
            self.step()?;
        }
        if self.rng.chance(4) { self.run_away() } else { Ok(()) }
    }

    /// The model of one agent makes itself work without end, and nobody says anything else.
    fn run_away(&mut self) -> Result<(), String> {
        let ids: Vec<AgentId> = self.agents.keys().cloned().collect();
        let Some(id) = self.rng.pick(&ids).cloned() else { return Ok(()) };
        self.note(format!("-- {id} makes itself work"));
        self.tally.messages += 1;
        let input = mind::ingress(&mut self.rng, &self.agents[&id].shadow);
        self.ask(&id, input)?;
        for _ in 0..160 {
            let Some(inhabitant) = self.agents.get_mut(&id).filter(|it| !it.effects.is_empty()) else { break };
            let effect = inhabitant.effects.remove(0);
            let inputs = if let Effect::CallModel { exec_id, round, .. } = effect {
                let reply = mind::endless_reply(&inhabitant.shadow, &mut self.calls);
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
        let mut inhabitant = Inhabitant::new(id.clone());
        inhabitant.core = Some(Core::new(id.clone()).with_boot(self.settings()));
        self.agents.insert(id.clone(), inhabitant);
        let budget = mind::budget(&mut self.rng);
        let (model, fallback) = ("first/model".to_owned(), mind::fallback(&mut self.rng));
        let config = Config { model, budget, fallback, ..Config::default() };
        let start = !self.rng.chance(10);
        self.ask(&id, Input::Create { identity: Identity::named(id.clone()), config, start })
    }

    fn step(&mut self) -> Result<(), String> {
        let ids: Vec<AgentId> = self.agents.keys().cloned().collect();
        let Some(id) = self.rng.pick(&ids).cloned() else { return Ok(()) };
        match self.rng.weighted(&self.weights.clone()) {
            0 | 1 => {
                let input = mind::ingress(&mut self.rng, &self.agents[&id].shadow);
                self.tally.messages += 1;
                self.ask(&id, input)
            }
            2..=4 => self.report_effect(&id),
            5 => self.end_some_process(&id),
            6 => self.pass_time(),
            7 => {
                let body = self.rng.chance(30).then(|| "news".to_owned());
                let resource = self.rng.chance(40).then(|| mind::hinted(&mut self.rng, &self.agents[&id].shadow));
                let source = Some(format!("source_{}", self.rng.below(2)));
                self.ask(&id, Input::Wake { reason: "look".to_owned(), source, resource, body })
            }
            8 => {
                let act = mind::operator_act(&mut self.rng, &self.agents[&id].shadow);
                self.ask(&id, Input::Act { by: "operator".to_owned(), act })
            }
            9 => self.control(&id),
            10 => self.odds_and_ends(&id),
            _ => match self.late.pop() {
                Some((id, input)) => self.ask(&id, input),
                None => self.hibernate(&id),
            },
        }
    }

    fn control(&mut self, id: &AgentId) -> Result<(), String> {
        let stopped = self.agents[id].shadow.control != Control::Runnable;
        let input = match self.rng.below(8) {
            0..=3 if stopped => Input::Start,
            0..=3 => Input::Stop,
            4 => Input::Start,
            5 => Input::Abort { exec_id: None },
            6 if self.rng.chance(30) => return self.restart_cleanly(),
            _ => {
                // Somebody aborts, believing that an execution of the past still runs.
                let exec_id = self.agents[id].shadow.turn.as_ref().map(|turn| turn.exec_id.clone());
                Input::Abort { exec_id }
            }
        };
        self.ask(id, input)
    }

    /// Every agent is asked to shut down; then the process ends, with nothing in flight or with something.
    fn restart_cleanly(&mut self) -> Result<(), String> {
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

    fn odds_and_ends(&mut self, id: &AgentId) -> Result<(), String> {
        let input = match self.rng.below(7) {
            0 => Input::Compact { compacted_messages: 3, summary: None, through: None, usage: None },
            1 => match &self.agents[id].shadow.turn {
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
                let model = (!self.rng.chance(50)).then(|| Choice::Own(mind::model(&mut self.rng)));
                let fallback = Choice::Own(mind::fallback(&mut self.rng));
                let change = ConfigChange { model, fallback: Some(fallback), ..ConfigChange::default() };
                Input::Configure { change: Box::new(change) }
            }
            _ => {
                let budget = if self.rng.chance(80) { Budget::default() } else { mind::budget(&mut self.rng) };
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
        if !self.awake(id)? {
            return Ok(());
        }
        if let Some(inhabitant) = self.agents.get_mut(id) {
            if queues {
                inhabitant.asked.insert(token);
            }
            if let Some(core) = &mut inhabitant.core {
                core.ask(Request::new(token, input));
            }
        }
        self.drive(id)
    }

    /// What an agent hears of the settings when it is read.
    fn settings(&self) -> Remains {
        Remains { limits: Some(self.limits), ..Remains::default() }
    }

    /// Makes sure that the agent is in memory. False if it does not exist.
    fn awake(&mut self, id: &AgentId) -> Result<bool, String> {
        let settings = self.settings();
        let Some(inhabitant) = self.agents.get_mut(id) else { return Ok(false) };
        if inhabitant.core.is_some() {
            return Ok(true);
        }
        let recovered = Core::recover(&self.ledger, id, settings.clone()).map_err(|damage| damage.to_string())?;
        match recovered {
            Some(core) => inhabitant.core = Some(core),
            None => {
                // Its creation never became durable: nobody was told that it exists.
                inhabitant.core = Some(Core::new(id.clone()).with_boot(settings));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs one agent until it rests, however often the process dies on the way.
    fn drive(&mut self, id: &AgentId) -> Result<(), String> {
        match self.drive_until_rest(id) {
            Ok(()) => Ok(()),
            Err(Cut::Failed(what)) => Err(what),
            Err(Cut::Crash(Crashed)) => {
                let keep = usize::try_from(self.rng.below(3)).unwrap_or(0);
                self.crash(keep)
            }
        }
    }

    fn drive_until_rest(&mut self, id: &AgentId) -> Result<(), Cut> {
        for _ in 0..600 {
            let (now, entropy) = (self.now, self.rng.next());
            let Some(core) = self.agents.get_mut(id).and_then(|inhabitant| inhabitant.core.as_mut()) else {
                return Ok(());
            };
            let commit = core.poll(now, entropy);
            let early = core.take_outputs();
            self.hand_out(id, early)?;
            let Some(commit) = commit else {
                return self.at_rest(id).map_err(Cut::Failed);
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
                other => return Err(Cut::Failed(format!("a commit was not taken: {other:?}"))),
            }
            self.tally.commits += 1;
            let Some(core) = self.agents.get_mut(id).and_then(|inhabitant| inhabitant.core.as_mut()) else {
                return Ok(());
            };
            core.committed();
            let outputs = core.take_outputs();
            self.hand_out(id, outputs)?;
            // After an early answer the disk may still not know of it.
            self.maybe_crash()?;
            self.memory.sync();
        }
        Err(Cut::Failed("the agent does not come to rest".to_owned()))
    }

    fn maybe_crash(&mut self) -> Result<(), Cut> {
        if self.rng.below(1_000) < self.crash_percent * 10 { Err(Cut::Crash(Crashed)) } else { Ok(()) }
    }

    /// What is durable is published, answered and performed.
    fn hand_out(&mut self, id: &AgentId, outputs: Outputs) -> Result<(), String> {
        let count = outputs.facts.len();
        for (index, (seq, at, fact)) in outputs.facts.iter().enumerate() {
            self.tally.facts += 1;
            self.tally.turns += u64::from(matches!(fact, Fact::TurnStarted(_)));
            self.note(format!("{id}:   {seq} {}", shown(fact)));
            if let Some(inhabitant) = self.agents.get_mut(id) {
                inhabitant.observe(*seq, *at, fact, index + 1 == count)?;
            }
        }
        let now = self.now;
        let Some(inhabitant) = self.agents.get_mut(id) else { return Ok(()) };
        for (token, answer) in outputs.answers {
            let answer = answer.map(|answered| answered.answer);
            if let (true, Ok(Answer::Queued { message_id })) = (inhabitant.asked.remove(&token), answer) {
                inhabitant.acknowledged.insert(message_id);
            }
        }
        inhabitant.effects.extend(outputs.effects);
        if count > 0 { inhabitant.compare(now) } else { Ok(()) }
    }

    /// What must hold whenever an agent has nothing to do.
    fn at_rest(&mut self, id: &AgentId) -> Result<(), String> {
        let now = self.now;
        let inhabitant = &self.agents[id];
        inhabitant.nothing_lost()?;
        let state = &inhabitant.shadow;
        if state.seq == 0 {
            return Ok(());
        }
        let decision = decide(state, now);
        let idle = decision.kind.is_rest() || matches!(decision.kind, DecisionKind::Stop | DecisionKind::Noop);
        if !idle {
            return Err(format!("at rest with {decision:?} undone"));
        }
        self.wake_is_indexed(id)?;
        let state = &self.agents[id].shadow;
        nothing_due(state, now)?;
        nothing_too_far_ahead(state, now)?;
        if self.rng.chance(5) {
            self.replays_to(id, &state.clone())?;
        }
        Ok(())
    }

    /// Whatever can come due by itself is in the wake index, no later than that.
    fn wake_is_indexed(&self, id: &AgentId) -> Result<(), String> {
        let inhabitant = &self.agents[id];
        if !inhabitant.shadow.is_runnable() || inhabitant.shadow.turn.is_some() {
            return Ok(());
        }
        let Some(due) = inhabitant.model.next_wake() else { return Ok(()) };
        let stream = StreamId::agent(id);
        let wakes = self.ledger.wakes(None, usize::MAX).map_err(|error| error.to_string())?;
        let entry = wakes.iter().find(|(known, _)| *known == stream);
        let fits = entry.is_some_and(|(_, wake)| wake.due.is_none_or(|known| known <= due));
        if fits { Ok(()) } else { Err(format!("{due} is due for {id}, the wake index says {entry:?}")) }
    }

    fn replays_to(&self, id: &AgentId, state: &AgentState) -> Result<(), String> {
        let replayed = fold_until::<AgentState>(&self.ledger, id, state.seq).map_err(|damage| damage.to_string())?;
        if replayed != *state {
            return Err(format!("{id} replayed to seq {} is another", state.seq));
        }
        let loaded = fold::<AgentState>(&self.ledger, id).map_err(|damage| damage.to_string())?;
        let behind = loaded.as_ref().map(|state| state.seq);
        if behind < Some(state.seq) {
            Err(format!("{id} loads at {behind:?}, {} is durable", state.seq))
        } else {
            Ok(())
        }
    }

    /// The process dies: what was not synced is gone, or some of it, and nobody was told.
    fn crash(&mut self, keep: usize) -> Result<(), String> {
        self.note(format!("-- crash, keeping {keep} staged commits"));
        self.tally.crashes += 1;
        // The next process may have other settings.
        if self.rng.chance(15) {
            self.limits = mind::limits(&mut self.rng);
        }
        self.memory = self.memory.crash_keeping(keep);
        self.ledger = Ledger::Memory(self.memory.clone());
        let ids: Vec<AgentId> = self.agents.keys().cloned().collect();
        for id in &ids {
            let Some(inhabitant) = self.agents.get_mut(id) else { continue };
            inhabitant.core = None;
            inhabitant.asked.clear();
            let lost = std::mem::take(&mut inhabitant.effects);
            let processes = std::mem::take(&mut inhabitant.processes);
            // A report may still be on its way from a process that outlived us.
            for task_id in processes {
                if self.rng.chance(20) {
                    let end = TaskEnd { task_id, ..TaskEnd::default() };
                    self.late.push((id.clone(), Input::EndTask { status: TaskStatus::Completed, end }));
                }
            }
            for effect in lost {
                if let (Effect::RunTool { exec_id, call_id, .. }, true) = (effect, self.rng.chance(20)) {
                    let result = serde_json::Value::Null;
                    let status = ToolStatus::Completed;
                    self.late.push((id.clone(), Input::FinishTool { exec_id, call_id, status, result, reads: None }));
                }
            }
            self.catch_up(id)?;
            self.agents[id].nothing_lost()?;
        }
        self.boot()
    }

    /// Facts that reached the disk although nobody was told.
    fn catch_up(&mut self, id: &AgentId) -> Result<(), String> {
        let stream = StreamId::agent(id);
        let after = self.agents[id].shadow.seq;
        let head = self.ledger.head(&stream).map_err(|error| error.to_string())?.map_or(0, |head| head.seq);
        if head < after {
            return Err(format!("{id} had {after} durable facts, {head} are left"));
        }
        let tail = self.ledger.read(&stream, after, usize::MAX).map_err(|error| error.to_string())?;
        for recorded in tail {
            let payload = recorded.payload.stored().unwrap_or_default();
            let fact = Fact::decode(&recorded.kind, payload).map_err(|error| error.to_string())?;
            self.note(format!("{id}:   {} {} (unacknowledged)", recorded.seq, shown(&fact)));
            let ends = recorded.seq == head;
            if let Some(inhabitant) = self.agents.get_mut(id) {
                inhabitant.observe(recorded.seq, recorded.at, &fact, ends)?;
            }
        }
        let shadow = self.agents[id].shadow.clone();
        if shadow.seq > 0 { self.replays_to(id, &shadow) } else { Ok(()) }
    }

    /// Loads what the wake index names as due or cut off; everybody else sleeps on.
    fn boot(&mut self) -> Result<(), String> {
        let wakes = self.ledger.wakes(Some(self.now), usize::MAX).map_err(|error| error.to_string())?;
        let ahead = self.ledger.waits_recorded_after(self.now).map_err(|error| error.to_string())?;
        for stream in wakes.into_iter().map(|(stream, _)| stream).chain(ahead) {
            let Some(id) = stream.agent_name().and_then(|name| AgentId::new(name).ok()) else { continue };
            if self.agents.get(&id).is_some_and(|inhabitant| inhabitant.core.is_none()) && self.awake(&id)? {
                self.drive(&id)?;
            }
        }
        Ok(())
    }

    fn hibernate(&mut self, id: &AgentId) -> Result<(), String> {
        let Some(inhabitant) = self.agents.get_mut(id) else { return Ok(()) };
        let quiet =
            inhabitant.effects.is_empty() && inhabitant.processes.is_empty() && inhabitant.shadow.turn.is_none();
        if quiet && inhabitant.shadow.seq > 0 {
            inhabitant.core = None;
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
                let next = self.agents.values().filter_map(|inhabitant| inhabitant.model.next_wake()).min();
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
            self.agents.values().filter(|inhabitant| inhabitant.core.is_some()).map(|i| i.id.clone()).collect();
        for id in awake {
            self.drive(&id)?;
        }
        self.boot()
    }
}

/// Whatever was to last for a while lasts no longer than that, whatever the clock showed when it began.
pub(crate) fn nothing_too_far_ahead(state: &AgentState, now: Time) -> Result<(), String> {
    let now = now.plus_ms(CLOCK_SLACK_MS);
    let timer = state.timers.active().values().find(|timer| {
        let longest = match timer.schedule {
            Schedule::Once { .. } => timer.after_ms,
            Schedule::Every { every_ms, .. } => Some(every_ms),
            Schedule::Cron { .. } => None,
        };
        longest.zip(timer.next_fire_at).is_some_and(|(ms, next)| next > now.plus_ms(ms))
    });
    let deadline = state.approvals.pending().values().find(|approval| {
        approval.deadline_ms.zip(approval.deadline).is_some_and(|(ms, deadline)| deadline > now.plus_ms(ms))
    });
    let offer = state.work.next_offer().filter(|offer| *offer > now.plus_ms(600_000));
    let backoff = state.queue.next_not_before().filter(|time| *time > now.plus_ms(PROVIDER_RETRY_MAX_MS));
    let pace = state.pace_ends().filter(|ends| *ends > now.plus_ms(3_600_000));
    match (timer, deadline, offer.or(backoff).or(pace)) {
        (None, None, None) => Ok(()),
        found => Err(format!("too far ahead of {now}: {found:?}")),
    }
}

/// The index promises nothing for now: an agent at rest that is due would be looked at for ever.
fn nothing_due(state: &AgentState, now: Time) -> Result<(), String> {
    if !state.is_runnable() || state.turn.is_some() {
        return Ok(());
    }
    match wake(state) {
        Wake::Never
        | Wake::AtOnce { why: "tasks_running" | "worktree_removing" | "children_changing" | "check_running" } => Ok(()),
        Wake::At { due, .. } if due > now => Ok(()),
        promised @ (Wake::At { .. } | Wake::AtOnce { .. }) => Err(format!("at rest, but the index says {promised:?}")),
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
