//! Live worlds: the engine's own host and loops, in simulated time, on a disk that forgets what was not synced. The
//! process dies at any moment, with everything it had in memory; what it had answered must be there when it is back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use abide_engine::fold::decode;
use abide_engine::{AskError, Clock, Host, Perform, Response, fold};
use abide_kernel::AgentState;
use abide_kernel::config::{Config, Identity};
use abide_kernel::effect::Effect;
use abide_kernel::fact::{Fact, TaskCreated, TaskEnd};
use abide_kernel::id::{AgentId, TaskId};
use abide_kernel::input::{Answer, Checked, Input, NewMessage, Removal, Reply};
use abide_kernel::limits::CLOCK_SLACK_MS;
use abide_kernel::state::lifecycle::Control;
use abide_kernel::time::Time;
use abide_kernel::tool::RecordCall;
use abide_kernel::vocabulary::{ProviderError, TaskKind, TaskStatus, ToolStatus, WaitPolicy};
use abide_kernel::wake::{self, Wake};
use abide_ledger::{Cursor, Ledger, Memory};

use crate::agent::Inhabitant;
use crate::mind;
use crate::rng::Rng;
use crate::world::{DAY_MS, Failure, Tally, nothing_left, nothing_too_far_ahead};

/// Steps of one live world.
pub const STEPS: u64 = 60;
/// The longest that the world looks away while nothing happens.
const LOOK_MS: u64 = 30_000;

/// What outlives a process: the world outside, and what it has seen of the disk.
struct Outside {
    rng: Rng,
    agents: BTreeMap<AgentId, Inhabitant>,
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
struct World(Arc<Mutex<Outside>>);

/// Why a process ended.
enum Ended {
    Crash,
    Done,
    Failed(String),
}

impl From<String> for Ended {
    fn from(what: String) -> Ended {
        Ended::Failed(what)
    }
}

/// One live world, through as many processes as it takes.
pub fn run(seed: u64, steps: u64) -> Result<Tally, Failure> {
    let world = World(Arc::new(Mutex::new(Outside {
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
    let crash_percent = [0, 2, 6, 20][world.outside().rng.weighted(&[2, 3, 3, 1])];
    let clock_is_set = world.outside().rng.chance(25);
    world.outside().clock_is_set = clock_is_set;
    let mut memory = Memory::with_manual_sync();
    let mut now = Time::from_ms(1_800_000_000_000);
    let mut left = steps;
    loop {
        let ended = one_process(&world, &memory, &mut now, &mut left, crash_percent, seed);
        match ended {
            Ended::Done => return Ok(world.outside().tally),
            Ended::Failed(what) => {
                let history = std::mem::take(&mut world.outside().history);
                return Err(Failure { what, history });
            }
            Ended::Crash => {
                let mut outside = world.outside();
                outside.tally.crashes += 1;
                outside.note(now, "the process dies".to_owned());
                let kept = usize::try_from(outside.rng.below(3)).unwrap_or(0);
                for inhabitant in outside.agents.values_mut() {
                    inhabitant.processes.clear();
                }
                drop(outside);
                memory = memory.crash_keeping(kept);
            }
        }
    }
}

fn one_process(world: &World, memory: &Memory, now: &mut Time, left: &mut u64, crash_percent: u64, seed: u64) -> Ended {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Ended::Failed(format!("no runtime: {error}")),
    };
    let outcome = runtime.block_on(async {
        let clock = Clock::simulated(*now, seed ^ *left);
        let ledger = Ledger::Memory(memory.clone());
        let host = match Host::start(ledger.clone(), Arc::new(world.clone()), clock) {
            Ok(host) => host,
            Err(error) => return Ended::Failed(error.to_string()),
        };
        let mut process = Process { world: world.clone(), memory: memory.clone(), ledger, host, crash_percent };
        let ended = process.live(left).await.err().unwrap_or(Ended::Done);
        *now = process.host.clock().now();
        ended
    });
    // Everything that still runs dies here, wherever it was.
    drop(runtime);
    outcome
}

impl World {
    fn outside(&self) -> MutexGuard<'_, Outside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outside {
    fn note(&mut self, now: Time, line: String) {
        if self.history.len() == 200 {
            self.history.remove(0);
        }
        self.history.push(format!("{now} {line}"));
    }

    fn new_process(&mut self, agent: &AgentId) -> TaskId {
        self.tasks += 1;
        let task_id = TaskId::new(format!("task_{}", self.tasks));
        if let Some(inhabitant) = self.agents.get_mut(agent) {
            inhabitant.processes.insert(task_id.clone());
        }
        task_id
    }

    /// What the world makes of an effect.
    fn outcome(&mut self, agent: &AgentId, effect: Effect) -> Vec<Input> {
        let Some(inhabitant) = self.agents.get(agent) else { return Vec::new() };
        match effect {
            Effect::CallModel { exec_id, round, .. } if self.friendly => {
                let reply = Reply { text: "Done.".to_owned(), ..Reply::default() };
                vec![Input::FinishRound { exec_id, round, reply }]
            }
            Effect::CallModel { exec_id, round, .. } if self.rng.chance(10) => {
                let error = *self.rng.pick(ProviderError::ALL).unwrap_or(&ProviderError::Timeout);
                let retry_after_ms = self.rng.chance(50).then(|| self.rng.below(100_000));
                let (message, jitter) = ("no".to_owned(), mind::jitter(&mut self.rng));
                let (carry, spent, announce) = (None, mind::spent(jitter), jitter % 2 == 0);
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
            Effect::CallModel { exec_id, round, .. } => {
                let reply = mind::reply(&mut self.rng, &inhabitant.shadow, &mut self.calls);
                vec![Input::FinishRound { exec_id, round, reply }]
            }
            Effect::RunTool { exec_id, call_id, .. } | Effect::AnswerCall { exec_id, call_id, .. } => {
                let reads = mind::reads(&mut self.rng, &inhabitant.shadow);
                let status = if self.rng.chance(80) { ToolStatus::Completed } else { ToolStatus::Failed };
                let result = serde_json::Value::Null;
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
            Effect::EndTask { task_id, .. } => {
                if let Some(inhabitant) = self.agents.get_mut(agent) {
                    inhabitant.processes.remove(&task_id);
                }
                let end = TaskEnd { task_id, ..TaskEnd::default() };
                vec![Input::EndTask { status: TaskStatus::Cancelled, end }]
            }
            Effect::ReleaseWorkspace { workspace, action } => {
                vec![Input::ReleaseWorkspace { workspace, action, error: None }]
            }
            Effect::RemoveWorktree { workspace } => {
                vec![Input::FinishRemoval { root: workspace.root, removal: Ok(Removal::default()) }]
            }
            Effect::RunCheck { timer_id, due, .. } => {
                let exit_code = i32::from(!self.friendly && self.rng.chance(50));
                let checked = Checked::Exited { exit_code, output: String::new() };
                vec![Input::FinishCheck { timer_id, due, checked }]
            }
            Effect::EndExec { .. }
            | Effect::EndCheck { .. }
            | Effect::StartTask { .. }
            | Effect::AwaitTask { .. }
            | Effect::CloseTask { .. }
            | Effect::SpawnChild { .. }
            | Effect::DismissChild { .. }
            | Effect::ReportToSupervisor { .. }
            | Effect::ForgetSecret { .. } => Vec::new(),
        }
    }
}

impl Perform for World {
    fn perform(
        &self,
        agent: &AgentId,
        effect: Effect,
    ) -> Option<std::pin::Pin<Box<dyn Future<Output = Vec<Input>> + Send>>> {
        if matches!(effect, Effect::ForgetSecret { .. }) {
            return None;
        }
        let (world, agent) = (self.clone(), agent.clone());
        let wait = self.outside().rng.below(3_000);
        Some(Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            world.outside().outcome(&agent, effect)
        }))
    }
}

struct Process {
    world: World,
    memory: Memory,
    ledger: Ledger,
    host: Host,
    crash_percent: u64,
}

type Asked = Arc<Mutex<Vec<(AgentId, Result<Response, AskError>)>>>;

impl Process {
    async fn live(&mut self, left: &mut u64) -> Result<(), Ended> {
        let asked = Asked::default();
        self.pass(1, &asked).await?;
        self.create_missing(&asked).await?;
        while *left > 0 {
            *left -= 1;
            self.set_clock();
            self.step(&asked);
            let span = {
                let rng = &mut self.world.outside().rng;
                [1, 50, 2_000, 120_000][rng.weighted(&[4, 4, 3, 1])]
            };
            self.pass(span, &asked).await?;
        }
        self.come_to_an_end(&asked).await
    }

    /// Now and then a clock that is ahead is put right, and one that is right is a century or a day ahead, or a day behind.
    fn set_clock(&self) {
        let mut outside = self.world.outside();
        if !outside.clock_is_set || !outside.rng.chance(8) {
            return;
        }
        let ms = match outside.rng.below(3) {
            _ if outside.ahead_ms > 0 => -outside.ahead_ms,
            0 => 100 * 365 * DAY_MS,
            1 => DAY_MS,
            _ => -DAY_MS,
        };
        outside.ahead_ms = ms.max(0);
        outside.note(self.host.clock().now(), format!("the clock is set by {ms} ms"));
        self.host.clock().set_by_ms(ms);
    }

    /// The clock is ahead for long enough to fall asleep by it, and right from then on. Soon nobody waits for a time that
    /// was recorded while it was not.
    async fn put_clock_right(&mut self, asked: &Asked) -> Result<(), Ended> {
        if !self.world.outside().clock_is_set {
            return Ok(());
        }
        let mut ahead_ms = std::mem::take(&mut self.world.outside().ahead_ms);
        if ahead_ms == 0 {
            ahead_ms = 100 * 365 * DAY_MS;
            self.host.clock().set_by_ms(ahead_ms);
        }
        self.pass(30_000, asked).await?;
        self.host.clock().set_by_ms(-ahead_ms);
        self.pass(15_000, asked).await?;
        let now = self.host.clock().now().plus_ms(CLOCK_SLACK_MS);
        let left = self.ledger.waits_recorded_after(now).map_err(|error| error.to_string())?;
        let outside = self.world.outside();
        // A stopped agent hears of it when it is started.
        for inhabitant in outside.agents.values().filter(|inhabitant| inhabitant.shadow.is_runnable()) {
            nothing_too_far_ahead(&inhabitant.shadow, self.host.clock().now())?;
        }
        if left.is_empty() { Ok(()) } else { Err(Ended::Failed(format!("{left:?} wait for a time of the future"))) }
    }

    /// Agents whose creation is not on disk: nobody was told that they exist.
    async fn create_missing(&mut self, asked: &Asked) -> Result<(), Ended> {
        for number in 0..2 {
            let id = AgentId::new(&format!("a{number}")).map_err(|error| error.to_string())?;
            self.world.outside().agents.entry(id.clone()).or_insert_with(|| Inhabitant::new(id.clone()));
            if self.world.outside().agents[&id].shadow.seq == 0 {
                let identity = Identity::named(id.clone());
                self.ask(&id, Input::Create { identity, config: Config::default(), start: true }, asked);
            }
        }
        self.pass(10, asked).await
    }

    /// Asks without waiting for the answer, as a client does that may never hear it.
    fn ask(&self, id: &AgentId, input: Input, asked: &Asked) {
        let (host, id, asked) = (self.host.clone(), id.clone(), Arc::clone(asked));
        // It ends with its process, answered or not.
        tokio::spawn(async move {
            let answer = host.ask(&id, input).await;
            asked.lock().unwrap_or_else(PoisonError::into_inner).push((id, answer));
        });
    }

    fn step(&self, asked: &Asked) {
        let mut outside = self.world.outside();
        let outside = &mut *outside;
        let ids: Vec<AgentId> = outside.agents.keys().cloned().collect();
        let Some(id) = outside.rng.pick(&ids).cloned() else { return };
        let shadow = &outside.agents[&id].shadow;
        let rng = &mut outside.rng;
        let input = match rng.weighted(&[10, 4, 3, 3, 2, 1]) {
            0 => {
                outside.tally.messages += 1;
                mind::ingress(rng, shadow)
            }
            1 => Input::Act { by: "operator".to_owned(), act: mind::operator_act(rng, shadow) },
            2 => {
                let source = Some(format!("source_{}", rng.below(2)));
                let body = rng.chance(30).then(|| "news".to_owned());
                Input::Wake { reason: "look".to_owned(), source, resource: None, body }
            }
            3 if shadow.control == Control::Runnable && rng.chance(50) => Input::Stop,
            3 => Input::Start,
            4 => {
                let processes: Vec<TaskId> = outside.agents[&id].processes.iter().cloned().collect();
                let Some(task_id) = rng.pick(&processes).cloned() else { return };
                let status = if rng.chance(75) { TaskStatus::Completed } else { TaskStatus::Failed };
                Input::EndTask { status, end: TaskEnd { task_id, exit_code: Some(0), ..TaskEnd::default() } }
            }
            _ => Input::Abort { exec_id: None },
        };
        if let (Input::EndTask { end, .. }, Some(inhabitant)) = (&input, outside.agents.get_mut(&id)) {
            inhabitant.processes.remove(&end.task_id);
        }
        let line = format!("{id}: {input:?}");
        outside.note(self.host.clock().now(), line.chars().take(160).collect());
        self.ask(&id, input, asked);
    }

    /// Lets time pass, syncing the disk whenever something waits for it, and looks at what became durable.
    async fn pass(&mut self, span_ms: u64, asked: &Asked) -> Result<(), Ended> {
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
                // The disk knows; whoever waits does not yet.
                self.maybe_crash()?;
            }
            self.observe()?;
            self.heard(asked)?;
        }
        Ok(())
    }

    fn maybe_crash(&self) -> Result<(), Ended> {
        let crashes = self.world.outside().rng.below(1_000) < self.crash_percent;
        if crashes { Err(Ended::Crash) } else { Ok(()) }
    }

    /// Everything that became durable, checked as an observer can.
    fn observe(&self) -> Result<(), Ended> {
        let mut outside = self.world.outside();
        let outside = &mut *outside;
        let mut follow = self.ledger.follow(outside.seen);
        let mut facts = Vec::new();
        loop {
            let batch = follow.next_batch(1_000).map_err(|error| error.to_string())?;
            if batch.is_empty() {
                break;
            }
            facts.extend(batch);
        }
        outside.seen = follow.cursor();
        // A sync makes whole commits durable, so the last fact of each stream ends one.
        let mut last = BTreeMap::new();
        for (index, (_, stream, _)) in facts.iter().enumerate() {
            last.insert(stream.clone(), index);
        }
        for (index, (_, stream, recorded)) in facts.iter().enumerate() {
            let Some(Ok(id)) = stream.agent_name().map(AgentId::new) else { continue };
            let fact = decode::<AgentState>(stream, recorded).map_err(|damage| damage.to_string())?;
            outside.tally.facts += 1;
            outside.tally.turns += u64::from(matches!(fact, Fact::TurnStarted(_)));
            let line = format!("{id}:   {} {}", recorded.seq, fact.kind());
            outside.note(recorded.at, line);
            if let Some(inhabitant) = outside.agents.get_mut(&id) {
                inhabitant.observe(recorded.seq, recorded.at, &fact, last[stream] == index)?;
            }
        }
        Ok(())
    }

    /// What was answered is on disk.
    fn heard(&self, asked: &Asked) -> Result<(), Ended> {
        let answers = std::mem::take(&mut *asked.lock().unwrap_or_else(PoisonError::into_inner));
        let mut outside = self.world.outside();
        for (id, answer) in answers {
            let Some(inhabitant) = outside.agents.get_mut(&id) else { continue };
            match answer {
                Ok(Response { answer: Answer::Queued { message_id }, .. }) => {
                    inhabitant.acknowledged.insert(message_id);
                    inhabitant.nothing_lost()?;
                }
                Ok(_) | Err(AskError::Refused(_)) => {}
                Err(error) => return Err(Ended::Failed(format!("{id} answered {error:?}"))),
            }
        }
        Ok(())
    }

    /// Nothing crashes any more, everybody is friendly, and in the end nothing may be left over, and nobody awake.
    async fn come_to_an_end(&mut self, asked: &Asked) -> Result<(), Ended> {
        self.crash_percent = 0;
        self.world.outside().friendly = true;
        self.put_clock_right(asked).await?;
        let ids: Vec<AgentId> = self.world.outside().agents.keys().cloned().collect();
        let mut span = 5_000;
        for _ in 0..400 {
            self.pass(span, asked).await?;
            let mut quiet = true;
            span = 5_000;
            for id in &ids {
                let paced = self.world.outside().agents[id].shadow.pace_ends().is_some();
                // What is held back by a provider or by its pace comes when its time comes.
                quiet &= self.world.outside().agents[id].shadow.queue.next_not_before().is_none() && !paced;
                if paced {
                    span = 600_000;
                }
                if let Some(input) = self.mend(id) {
                    quiet = false;
                    self.ask(id, input, asked);
                }
            }
            if quiet && self.host.awake() == 0 {
                return self.at_rest(&ids);
            }
        }
        Err(Ended::Failed(format!("{} agents are still awake", self.host.awake())))
    }

    /// What a friendly person would do next for an agent, if anything.
    fn mend(&self, id: &AgentId) -> Option<Input> {
        let outside = self.world.outside();
        let state = &outside.agents[id].shadow;
        let act = |act| Some(Input::Act { by: "operator".to_owned(), act });
        if state.control != Control::Runnable {
            return Some(Input::Start);
        }
        if let Some(held) = &state.held {
            return Some(Input::ReleaseTurns { cause: held.cause, evidence: "mended".to_owned() });
        }
        if let Some(timer_id) = state.timers.active().keys().next().cloned() {
            return act(RecordCall::CancelTimer { timer_id });
        }
        if let Some(task_id) = state.tasks.open().keys().next().cloned() {
            let end = TaskEnd { task_id, ..TaskEnd::default() };
            return Some(Input::EndTask { status: TaskStatus::Completed, end });
        }
        if let Some(waiting_intent_id) = state.waits.open().keys().next().cloned() {
            return act(RecordCall::CancelWait { waiting_intent_id });
        }
        if let Some(work_item_id) = state.work.items().keys().next().cloned() {
            return act(RecordCall::CompleteWorkItem { work_item_id, report: "closed".to_owned() });
        }
        if state.tasks.owed().values().any(|task| task.held) {
            return Some(Input::Queue(NewMessage { text: Some("and?".to_owned()), ..NewMessage::default() }));
        }
        None
    }

    fn at_rest(&self, ids: &[AgentId]) -> Result<(), Ended> {
        let outside = self.world.outside();
        for id in ids {
            let inhabitant = &outside.agents[id];
            let folded = fold::<AgentState>(&self.ledger, id).map_err(|damage| damage.to_string())?;
            if folded.as_ref() != Some(&inhabitant.shadow) {
                return Err(Ended::Failed(format!("{id} reads otherwise than it was seen")));
            }
            inhabitant.compare(self.host.clock().now())?;
            nothing_left(inhabitant)?;
            if let Wake::AtOnce { why } = wake::wake(&inhabitant.shadow) {
                return Err(Ended::Failed(format!("{id} sleeps with something to do: {why}")));
            }
        }
        Ok(())
    }
}
