//! Live worlds: the engine's own host and loops, in simulated time, on a disk that forgets what was not synced. The
//! process dies at any moment, with everything it had in memory; what it had answered must be there when it is back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use abide_engine::fold::decode;
use abide_engine::{AskError, Clock, Host, Perform, Response, fold};
use abide_kernel::AgentState;
use abide_kernel::config::{Config, Identity};
use abide_kernel::effect::{CommandEffect, Effect, TimerCheckEffect, TurnEffect, WorkspaceEffect};
use abide_kernel::fact::{Fact, TaskCreated, TaskEnd};
use abide_kernel::id::{AgentId, TaskId};
use abide_kernel::input::{Answer, Checked, Input, NewMessage, Removal, Reply};
use abide_kernel::limits::CLOCK_SLACK_MS;
use abide_kernel::open_json::ToolOutput;
use abide_kernel::state::lifecycle::Control;
use abide_kernel::time::Time;
use abide_kernel::tool::RecordCall;
use abide_kernel::vocabulary::{ProviderError, TaskKind, TaskStatus, ToolStatus, WaitPolicy};
use abide_kernel::wake::{self, Wake};
use abide_ledger::{Cursor, Ledger, Memory};

use crate::generators;
use crate::plain::{DAY_MS, check_nothing_left, check_time_bounds};
use crate::report::{Failure, Tally};
use crate::rng::Rng;
use crate::simulated_agent::SimulatedAgent;

/// Steps of one live world.
pub const STEPS: u64 = 60;
/// The longest that the world looks away while nothing happens.
const LOOK_MS: u64 = 30_000;

/// The environment of the processes, which outlives each of them, and its position in the ledger.
struct Environment {
    rng: Rng,
    agents: BTreeMap<AgentId, SimulatedAgent>,
    seen: Cursor,
    /// From here on the model only says that it is done.
    friendly: bool,
    calls: u64,
    tasks: u64,
    /// Whether somebody sets the clock, and by how much it is ahead.
    clock_is_set: bool,
    ahead_ms: i64,
    tally: Tally,
    history: Vec<String>,
}

#[derive(Clone)]
struct SharedEnvironment(Arc<Mutex<Environment>>);

/// Why a process ended.
enum ProcessEnd {
    Crash,
    Done,
    Failed(String),
}

impl From<String> for ProcessEnd {
    fn from(what: String) -> ProcessEnd {
        ProcessEnd::Failed(what)
    }
}

/// One live world, through as many processes as it takes.
pub fn run(seed: u64, steps: u64) -> Result<Tally, Failure> {
    let shared = SharedEnvironment(Arc::new(Mutex::new(Environment {
        rng: Rng::new(seed),
        agents: BTreeMap::new(),
        seen: Cursor::START,
        friendly: false,
        calls: 0,
        tasks: 0,
        clock_is_set: false,
        ahead_ms: 0,
        tally: Tally::default(),
        history: Vec::new(),
    })));
    let crash_percent = [0, 2, 6, 20][shared.lock().rng.weighted(&[2, 3, 3, 1])];
    let clock_is_set = shared.lock().rng.chance(25);
    shared.lock().clock_is_set = clock_is_set;
    let mut memory = Memory::with_manual_sync();
    let mut now = Time::from_ms(1_800_000_000_000);
    let mut left = steps;
    loop {
        let ended = one_process(&shared, &memory, &mut now, &mut left, crash_percent, seed);
        match ended {
            ProcessEnd::Done => return Ok(shared.lock().tally),
            ProcessEnd::Failed(what) => {
                let history = std::mem::take(&mut shared.lock().history);
                return Err(Failure { what, history });
            }
            ProcessEnd::Crash => {
                let mut environment = shared.lock();
                environment.tally.crashes += 1;
                environment.note(now, "the process dies".to_owned());
                let kept = usize::try_from(environment.rng.below(3)).unwrap_or(0);
                for simulated in environment.agents.values_mut() {
                    simulated.processes.clear();
                }
                drop(environment);
                memory = memory.crash_keeping(kept);
            }
        }
    }
}

fn one_process(
    shared: &SharedEnvironment,
    memory: &Memory,
    now: &mut Time,
    left: &mut u64,
    crash_percent: u64,
    seed: u64,
) -> ProcessEnd {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return ProcessEnd::Failed(format!("no runtime: {error}")),
    };
    let outcome = runtime.block_on(async {
        let clock = Clock::simulated(*now, seed ^ *left);
        let ledger = Ledger::Memory(memory.clone());
        let host = match Host::start(ledger.clone(), Arc::new(shared.clone()), clock) {
            Ok(host) => host,
            Err(error) => return ProcessEnd::Failed(error.to_string()),
        };
        let mut process = Process { shared: shared.clone(), memory: memory.clone(), ledger, host, crash_percent };
        let ended = process.live(left).await.err().unwrap_or(ProcessEnd::Done);
        *now = process.host.clock().now();
        ended
    });
    // Everything that still runs dies here, wherever it was.
    drop(runtime);
    outcome
}

impl SharedEnvironment {
    fn lock(&self) -> MutexGuard<'_, Environment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Environment {
    fn note(&mut self, now: Time, line: String) {
        if self.history.len() == 200 {
            self.history.remove(0);
        }
        self.history.push(format!("{now} {line}"));
    }

    fn new_process(&mut self, agent: &AgentId) -> TaskId {
        self.tasks += 1;
        let task_id = TaskId::new(format!("task_{}", self.tasks));
        if let Some(simulated) = self.agents.get_mut(agent) {
            simulated.processes.insert(task_id.clone());
        }
        task_id
    }

    /// The reports of the environment on an effect.
    fn outcome(&mut self, agent: &AgentId, effect: Effect) -> Vec<Input> {
        let Some(simulated) = self.agents.get(agent) else { return Vec::new() };
        match effect {
            Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) if self.friendly => {
                let reply = Reply { text: "Done.".to_owned(), ..Reply::default() };
                vec![Input::FinishRound { exec_id, round, reply }]
            }
            Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) if self.rng.chance(10) => {
                let error = *self.rng.pick(ProviderError::ALL).unwrap_or(&ProviderError::Timeout);
                let retry_after_ms = self.rng.chance(50).then(|| self.rng.below(100_000));
                let (message, jitter) = ("no".to_owned(), generators::jitter(&mut self.rng));
                let (carry, spent, announce) = (None, generators::spent(jitter), jitter % 2 == 0);
                vec![Input::FailRound {
                    exec_id,
                    round,
                    error,
                    retry_after_ms,
                    message,
                    carry,
                    jitter,
                    spent,
                    announce,
                }]
            }
            Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) => {
                let reply = generators::reply(&mut self.rng, &simulated.shadow, &mut self.calls);
                vec![Input::FinishRound { exec_id, round, reply }]
            }
            Effect::Turn(
                TurnEffect::RunTool { exec_id, call_id, .. } | TurnEffect::AnswerCall { exec_id, call_id, .. },
            ) => {
                let reads = generators::reads(&mut self.rng, &simulated.shadow);
                let status = if self.rng.chance(80) { ToolStatus::Completed } else { ToolStatus::Failed };
                let result = ToolOutput::default();
                let finish =
                    Input::FinishTool { exec_id: exec_id.clone(), call_id: call_id.clone(), status, result, reads };
                if self.friendly || self.rng.chance(50) {
                    return vec![finish];
                }
                let task_id = self.new_process(agent);
                let created = TaskCreated {
                    task_id: task_id.clone(),
                    task_kind: TaskKind::Command,
                    wait_policy: WaitPolicy::Background,
                    summary: "build".to_owned(),
                    command: None,
                    workdir: None,
                    tty: false,
                    accepts_input: false,
                    work_item_id: None,
                    child_agent_id: None,
                    child: None,
                    recovery: None,
                    exec_id: Some(exec_id),
                    call_id: Some(call_id),
                };
                vec![Input::CreateTask(created), Input::RunTask { task_id, recovery: None }, finish]
            }
            Effect::Command(CommandEffect::End { task_id, .. }) => {
                if let Some(simulated) = self.agents.get_mut(agent) {
                    simulated.processes.remove(&task_id);
                }
                let end = TaskEnd { task_id, ..TaskEnd::default() };
                vec![Input::EndTask { status: TaskStatus::Cancelled, end }]
            }
            Effect::Workspace(WorkspaceEffect::Release { workspace, action }) => {
                vec![Input::ReleaseWorkspace { workspace, action, error: None }]
            }
            Effect::Workspace(WorkspaceEffect::RemoveWorktree { workspace }) => {
                vec![Input::FinishRemoval { root: workspace.root, removal: Ok(Removal::default()) }]
            }
            Effect::TimerCheck(TimerCheckEffect::Run { timer_id, due, .. }) => {
                let exit_code = i32::from(!self.friendly && self.rng.chance(50));
                let checked = Checked::Exited { exit_code, output: String::new() };
                vec![Input::FinishCheck { timer_id, due, checked }]
            }
            Effect::Turn(TurnEffect::EndExec { .. })
            | Effect::TimerCheck(TimerCheckEffect::End { .. })
            | Effect::Command(
                CommandEffect::Start { .. } | CommandEffect::Await { .. } | CommandEffect::Close { .. },
            )
            | Effect::Child(_)
            | Effect::Trigger(_) => Vec::new(),
        }
    }
}

impl Perform for SharedEnvironment {
    fn perform(
        &self,
        agent: &AgentId,
        effect: Effect,
    ) -> Option<std::pin::Pin<Box<dyn Future<Output = Vec<Input>> + Send>>> {
        if matches!(effect, Effect::Trigger(_)) {
            return None;
        }
        let (shared, agent) = (self.clone(), agent.clone());
        let wait = self.lock().rng.below(3_000);
        Some(Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            shared.lock().outcome(&agent, effect)
        }))
    }
}

struct Process {
    shared: SharedEnvironment,
    memory: Memory,
    ledger: Ledger,
    host: Host,
    crash_percent: u64,
}

type ReceivedAnswers = Arc<Mutex<Vec<(AgentId, Result<Response, AskError>)>>>;

impl Process {
    async fn live(&mut self, left: &mut u64) -> Result<(), ProcessEnd> {
        let answers = ReceivedAnswers::default();
        self.pass(1, &answers).await?;
        self.create_missing(&answers).await?;
        while *left > 0 {
            *left -= 1;
            self.set_clock();
            self.random_event(&answers);
            let span = {
                let rng = &mut self.shared.lock().rng;
                [1, 50, 2_000, 120_000][rng.weighted(&[4, 4, 3, 1])]
            };
            self.pass(span, &answers).await?;
        }
        self.run_to_completion(&answers).await
    }

    /// Now and then a clock that is ahead is put right, and one that is right is a century or a day ahead, or a day behind.
    fn set_clock(&self) {
        let mut environment = self.shared.lock();
        if !environment.clock_is_set || !environment.rng.chance(8) {
            return;
        }
        let ms = match environment.rng.below(3) {
            _ if environment.ahead_ms > 0 => -environment.ahead_ms,
            0 => 100 * 365 * DAY_MS,
            1 => DAY_MS,
            _ => -DAY_MS,
        };
        environment.ahead_ms = ms.max(0);
        environment.note(self.host.clock().now(), format!("the clock is set by {ms} ms"));
        self.host.clock().set_by_ms(ms);
    }

    /// The clock is ahead for long enough to fall asleep by it, and right from then on. Soon nobody waits for a time that
    /// was recorded while it was not.
    async fn put_clock_right(&mut self, answers: &ReceivedAnswers) -> Result<(), ProcessEnd> {
        if !self.shared.lock().clock_is_set {
            return Ok(());
        }
        let mut ahead_ms = std::mem::take(&mut self.shared.lock().ahead_ms);
        if ahead_ms == 0 {
            ahead_ms = 100 * 365 * DAY_MS;
            self.host.clock().set_by_ms(ahead_ms);
        }
        self.pass(30_000, answers).await?;
        self.host.clock().set_by_ms(-ahead_ms);
        self.pass(15_000, answers).await?;
        let now = self.host.clock().now().plus_ms(CLOCK_SLACK_MS);
        let left = self.ledger.waits_recorded_after(now).map_err(|error| error.to_string())?;
        let environment = self.shared.lock();
        // A stopped agent hears of it when it is started.
        for simulated in environment.agents.values().filter(|simulated| simulated.shadow.lifecycle.is_runnable()) {
            check_time_bounds(&simulated.shadow, self.host.clock().now())?;
        }
        if left.is_empty() {
            Ok(())
        } else {
            Err(ProcessEnd::Failed(format!("{left:?} wait for a time of the future")))
        }
    }

    /// Agents whose creation is not on disk: nobody was told that they exist.
    async fn create_missing(&mut self, answers: &ReceivedAnswers) -> Result<(), ProcessEnd> {
        for number in 0..2 {
            let id = AgentId::new(&format!("a{number}")).map_err(|error| error.to_string())?;
            self.shared.lock().agents.entry(id.clone()).or_insert_with(|| SimulatedAgent::new(id.clone()));
            if self.shared.lock().agents[&id].shadow.seq == 0 {
                let identity = Identity::named(id.clone());
                self.ask(&id, Input::Create { identity, config: Config::default(), start: true }, answers);
            }
        }
        self.pass(10, answers).await
    }

    /// Asks without waiting for the answer, as a client does that may never hear it.
    fn ask(&self, id: &AgentId, input: Input, answers: &ReceivedAnswers) {
        let (host, id, answers) = (self.host.clone(), id.clone(), Arc::clone(answers));
        // It ends with its process, answered or not.
        tokio::spawn(async move {
            let answer = host.ask(&id, input).await;
            answers.lock().unwrap_or_else(PoisonError::into_inner).push((id, answer));
        });
    }

    fn random_event(&self, answers: &ReceivedAnswers) {
        let mut environment = self.shared.lock();
        let environment = &mut *environment;
        let ids: Vec<AgentId> = environment.agents.keys().cloned().collect();
        let Some(id) = environment.rng.pick(&ids).cloned() else { return };
        let shadow = &environment.agents[&id].shadow;
        let rng = &mut environment.rng;
        let input = match rng.weighted(&[10, 4, 3, 3, 2, 1]) {
            0 => {
                environment.tally.messages += 1;
                generators::incoming_input(rng, shadow)
            }
            1 => Input::Act { by: "operator".to_owned(), act: generators::operator_act(rng, shadow) },
            2 => {
                let source = Some(format!("source_{}", rng.below(2)));
                let body = rng.chance(30).then(|| "news".to_owned());
                Input::Wake { reason: "look".to_owned(), source, resource: None, body }
            }
            3 if shadow.lifecycle.control == Control::Runnable && rng.chance(50) => Input::Stop,
            3 => Input::Start,
            4 => {
                let processes: Vec<TaskId> = environment.agents[&id].processes.iter().cloned().collect();
                let Some(task_id) = rng.pick(&processes).cloned() else { return };
                let status = if rng.chance(75) { TaskStatus::Completed } else { TaskStatus::Failed };
                Input::EndTask { status, end: TaskEnd { task_id, exit_code: Some(0), ..TaskEnd::default() } }
            }
            _ => Input::Abort { exec_id: None },
        };
        if let (Input::EndTask { end, .. }, Some(simulated)) = (&input, environment.agents.get_mut(&id)) {
            simulated.processes.remove(&end.task_id);
        }
        let line = format!("{id}: {input:?}");
        environment.note(self.host.clock().now(), line.chars().take(160).collect());
        self.ask(&id, input, answers);
    }

    /// Lets time pass, syncing the disk whenever something waits for it, and looks at what became durable.
    async fn pass(&mut self, span_ms: u64, answers: &ReceivedAnswers) -> Result<(), ProcessEnd> {
        let (mut left, mut glance) = (span_ms, 1);
        while left > 0 {
            let this = glance.min(left);
            tokio::time::sleep(Duration::from_millis(this)).await;
            left -= this;
            glance = (glance * 2).min(LOOK_MS);
            if self.memory.staged() > 0 {
                self.maybe_crash()?;
                self.memory.sync();
                glance = 1;
                // The commit is durable, and its caller has not been told yet.
                self.maybe_crash()?;
            }
            self.observe()?;
            self.check_answers(answers)?;
        }
        Ok(())
    }

    fn maybe_crash(&self) -> Result<(), ProcessEnd> {
        let crashes = self.shared.lock().rng.below(1_000) < self.crash_percent;
        if crashes { Err(ProcessEnd::Crash) } else { Ok(()) }
    }

    /// Everything that became durable, checked as an observer can.
    fn observe(&self) -> Result<(), ProcessEnd> {
        let mut environment = self.shared.lock();
        let environment = &mut *environment;
        let mut follow = self.ledger.follow(environment.seen);
        let mut facts = Vec::new();
        loop {
            let batch = follow.next_batch(1_000).map_err(|error| error.to_string())?;
            if batch.is_empty() {
                break;
            }
            facts.extend(batch);
        }
        environment.seen = follow.cursor();
        // A sync makes whole commits durable, so the last fact of each stream ends one.
        let mut last = BTreeMap::new();
        for (index, (_, stream, _)) in facts.iter().enumerate() {
            last.insert(stream.clone(), index);
        }
        for (index, (_, stream, recorded)) in facts.iter().enumerate() {
            let Some(Ok(id)) = stream.agent_name().map(AgentId::new) else { continue };
            let fact = decode::<AgentState>(stream, recorded).map_err(|damage| damage.to_string())?;
            environment.tally.facts += 1;
            environment.tally.turns += u64::from(matches!(fact, Fact::TurnStarted(_)));
            let line = format!("{id}:   {} {}", recorded.seq, fact.kind());
            environment.note(recorded.at, line);
            if let Some(simulated) = environment.agents.get_mut(&id) {
                simulated.observe(recorded.seq, recorded.at, &fact, last[stream] == index)?;
            }
        }
        Ok(())
    }

    /// Every answered message is on disk.
    fn check_answers(&self, answers: &ReceivedAnswers) -> Result<(), ProcessEnd> {
        let answers = std::mem::take(&mut *answers.lock().unwrap_or_else(PoisonError::into_inner));
        let mut environment = self.shared.lock();
        for (id, answer) in answers {
            let Some(simulated) = environment.agents.get_mut(&id) else { continue };
            match answer {
                Ok(Response { answer: Answer::Queued { message_id }, .. }) => {
                    simulated.acknowledged.insert(message_id);
                    simulated.check_nothing_lost()?;
                }
                Ok(_) | Err(AskError::Refused(_)) => {}
                Err(error) => return Err(ProcessEnd::Failed(format!("{id} answered {error:?}"))),
            }
        }
        Ok(())
    }

    /// Without crashes, and with people who help, everything is finished and every agent asleep in the end.
    async fn run_to_completion(&mut self, answers: &ReceivedAnswers) -> Result<(), ProcessEnd> {
        self.crash_percent = 0;
        self.shared.lock().friendly = true;
        self.put_clock_right(answers).await?;
        let ids: Vec<AgentId> = self.shared.lock().agents.keys().cloned().collect();
        let mut span = 5_000;
        for _ in 0..400 {
            self.pass(span, answers).await?;
            let mut quiet = true;
            span = 5_000;
            for id in &ids {
                let paced = self.shared.lock().agents[id].shadow.pace_ends().is_some();
                // Messages that a provider or the agent's pace holds back come at their time.
                quiet &= self.shared.lock().agents[id].shadow.planes.queue.next_not_before().is_none() && !paced;
                if paced {
                    span = 600_000;
                }
                if let Some(input) = self.friendly_input(id) {
                    quiet = false;
                    self.ask(id, input, answers);
                }
            }
            if quiet && self.host.awake() == 0 {
                return self.check_at_rest(&ids);
            }
        }
        Err(ProcessEnd::Failed(format!("{} agents are still awake", self.host.awake())))
    }

    /// The next input of a person who helps the agent to finish, if there is one.
    fn friendly_input(&self, id: &AgentId) -> Option<Input> {
        let environment = self.shared.lock();
        let state = &environment.agents[id].shadow;
        let act = |act| Some(Input::Act { by: "operator".to_owned(), act });
        if state.lifecycle.control != Control::Runnable {
            return Some(Input::Start);
        }
        if let Some(held) = &state.lifecycle.turns_held {
            return Some(Input::ReleaseTurns { cause: held.cause, evidence: "mended".to_owned() });
        }
        if let Some(timer_id) = state.planes.timers.active().keys().next().cloned() {
            return act(RecordCall::CancelTimer { timer_id });
        }
        if let Some(task_id) = state.planes.tasks.open().keys().next().cloned() {
            let end = TaskEnd { task_id, ..TaskEnd::default() };
            return Some(Input::EndTask { status: TaskStatus::Completed, end });
        }
        if let Some(waiting_intent_id) = state.planes.waits.open().keys().next().cloned() {
            return act(RecordCall::CancelWait { waiting_intent_id });
        }
        if let Some(work_item_id) = state.planes.work.items().keys().next().cloned() {
            return act(RecordCall::CompleteWorkItem { work_item_id, report: "closed".to_owned() });
        }
        if state.planes.tasks.owed().values().any(|task| task.held) {
            return Some(Input::Queue(NewMessage { text: Some("and?".to_owned()), ..NewMessage::default() }));
        }
        None
    }

    fn check_at_rest(&self, ids: &[AgentId]) -> Result<(), ProcessEnd> {
        let environment = self.shared.lock();
        for id in ids {
            let simulated = &environment.agents[id];
            let folded = fold::<AgentState>(&self.ledger, id).map_err(|damage| damage.to_string())?;
            if folded.as_ref() != Some(&simulated.shadow) {
                return Err(ProcessEnd::Failed(format!("{id} reads otherwise than it was seen")));
            }
            simulated.compare(self.host.clock().now())?;
            check_nothing_left(simulated)?;
            if let Wake::AtOnce { why } = wake::compute_wake(&simulated.shadow) {
                return Err(ProcessEnd::Failed(format!("{id} sleeps with something to do: {why}")));
            }
        }
        Ok(())
    }
}
