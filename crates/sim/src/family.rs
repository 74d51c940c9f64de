//! Families: an agent, its children and theirs, in the engine's own host and in simulated time. The process dies at any
//! moment, people stop whom they like, and in the end there is no child without a supervisor, no supervisor that waits
//! for a child that is gone, and no worktree that nobody works in. At no time are there more of them than the settings
//! allow, and nothing begins below a child after it was dismissed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use abide_engine::{Clock, Host, HostOptions, Perform, fold};
use abide_kernel::AgentState;
use abide_kernel::budget::Budget;
use abide_kernel::config::{Config, ConfigChange, Identity};
use abide_kernel::effect::{Effect, TurnEffect, WorkspaceEffect};
use abide_kernel::fact::{Fact, WorkspaceAttached, Worktree};
use abide_kernel::id::{AgentId, CallId, Seq, TaskId};
use abide_kernel::input::{Input, NewMessage, Refusal, Removal, Reply};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::state::lifecycle::Control;
use abide_kernel::time::Time;
use abide_kernel::tool::{Call, RecordCall, ToolCall};
use abide_kernel::vocabulary::{ChildWorkspace, ProviderError, WaitKind, WorkspaceMode};
use abide_ledger::{Ledger, Memory, StreamId};

use crate::generators;
use crate::report::{Failure, Tally};
use crate::rng::Rng;

/// Steps of one family.
pub const STEPS: u64 = 40;
/// Children that the agent at the top has at most; each may have some of its own.
const CHILDREN: usize = 20;
/// The settings' limit of agents below the one at the top. Some families never come near it.
const TREE_AGENTS: [u32; 3] = [4, 12, 256];

type Job<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

/// The environment of the processes, which outlives each of them.
struct Environment {
    rng: Rng,
    worktrees: BTreeSet<String>,
    tree_agents: u32,
    /// When each child was first dismissed, and what agents began, as it became durable.
    children: BTreeMap<TaskId, AgentId>,
    dismissed: BTreeMap<AgentId, Time>,
    begun: Vec<(AgentId, Time, &'static str)>,
    friendly: bool,
    numbers: u64,
    tally: Tally,
    history: Vec<String>,
}

#[derive(Clone)]
struct SharedEnvironment(Arc<Mutex<Environment>>);

enum ProcessEnd {
    Crash,
    Failed(String),
}

impl<E: std::fmt::Display> From<E> for ProcessEnd {
    fn from(error: E) -> ProcessEnd {
        ProcessEnd::Failed(error.to_string())
    }
}

fn top_agent_id() -> Result<AgentId, ProcessEnd> {
    Ok(AgentId::new("top")?)
}

pub fn run(seed: u64, steps: u64) -> Result<Tally, Failure> {
    let shared = SharedEnvironment(Arc::new(Mutex::new(Environment {
        rng: Rng::new(seed),
        worktrees: BTreeSet::new(),
        tree_agents: TREE_AGENTS[0],
        children: BTreeMap::new(),
        dismissed: BTreeMap::new(),
        begun: Vec::new(),
        friendly: false,
        numbers: 0,
        tally: Tally::default(),
        history: Vec::new(),
    })));
    let tree_agents = TREE_AGENTS[shared.lock().rng.weighted(&[1, 2, 2])];
    shared.lock().tree_agents = tree_agents;
    let crash_per_mille = [0, 6, 25][shared.lock().rng.weighted(&[1, 2, 2])];
    let mut memory = Memory::with_manual_sync();
    let mut now = Time::from_ms(1_800_000_000_000);
    let mut left = steps;
    loop {
        match one_process(&shared, &memory, &mut now, &mut left, crash_per_mille, seed) {
            Ok(()) => return Ok(shared.lock().tally),
            Err(ProcessEnd::Failed(what)) => {
                return Err(Failure { what, history: std::mem::take(&mut shared.lock().history) });
            }
            Err(ProcessEnd::Crash) => {
                let kept = {
                    let mut environment = shared.lock();
                    environment.tally.crashes += 1;
                    environment.note(now, "the process dies".to_owned());
                    environment.rng.below(3)
                };
                memory = memory.crash_keeping(usize::try_from(kept).unwrap_or(0));
            }
        }
    }
}

fn one_process(
    shared: &SharedEnvironment,
    memory: &Memory,
    now: &mut Time,
    left: &mut u64,
    crash_per_mille: u64,
    seed: u64,
) -> Result<(), ProcessEnd> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let lived = runtime.block_on(async {
        let ledger = Ledger::Memory(memory.clone());
        remove_unbound_worktrees(shared, &ledger)?;
        let clock = Clock::simulated(*now, seed ^ *left);
        let options = HostOptions { tree_agents: shared.lock().tree_agents };
        let host = Host::start_with(ledger.clone(), Arc::new(shared.clone()), clock, options)?;
        let mut process = Process { shared: shared.clone(), memory: memory.clone(), ledger, host, crash_per_mille };
        let lived = process.live(left).await;
        *now = process.host.clock().now();
        lived
    });
    // Everything that still runs dies here, wherever it was.
    drop(runtime);
    lived
}

/// A daemon removes worktrees without an agent when it starts: a crash cut them off while they were made.
fn remove_unbound_worktrees(shared: &SharedEnvironment, ledger: &Ledger) -> Result<(), ProcessEnd> {
    let bound: BTreeSet<String> = fold_all_agents(ledger)?
        .values()
        .flat_map(|state| state.planes.workspaces.attached().keys().cloned())
        .collect();
    shared.lock().worktrees.retain(|root| bound.contains(root));
    Ok(())
}

fn fold_all_agents(ledger: &Ledger) -> Result<BTreeMap<AgentId, AgentState>, ProcessEnd> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![top_agent_id()?];
    // A name says whose child it is, and numbers are given in order.
    while let Some(id) = waiting.pop() {
        let Some(state) = fold::<AgentState>(ledger, &id)? else { continue };
        for number in 1..=state.planes.tasks.children_made() {
            waiting.push(AgentId::new(&format!("{id}.{number}"))?);
        }
        all.insert(id, state);
    }
    Ok(all)
}

/// The turns of all of them. Those in which no model spoke count for nobody.
fn turns_of(all: &BTreeMap<AgentId, AgentState>) -> u64 {
    all.values().map(|state| state.used().turns).sum()
}

/// However many they are, and whatever each of them knows of the others: together they use no more than the top may.
fn check_budget(all: &BTreeMap<AgentId, AgentState>) -> Result<(), ProcessEnd> {
    let Some(max) = all.get(&top_agent_id()?).and_then(|state| state.definition.config.budget.max_turns) else {
        return Ok(());
    };
    let turns = turns_of(all);
    if turns <= max { Ok(()) } else { Err(ProcessEnd::Failed(format!("{turns} turns were taken of {max}"))) }
}

/// However many of them make children at the same time.
fn check_tree_size(all: &BTreeMap<AgentId, AgentState>, bound: u32) -> Result<(), ProcessEnd> {
    let there = all
        .values()
        .filter(|state| state.definition.identity.supervisor.is_some() && !state.lifecycle.archived)
        .count();
    if there <= bound as usize {
        Ok(())
    } else {
        Err(ProcessEnd::Failed(format!("{there} agents below the top of {bound}")))
    }
}

impl SharedEnvironment {
    fn lock(&self) -> MutexGuard<'_, Environment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Environment {
    /// A name says whose child it is.
    fn check_dismissals(&mut self) -> Result<(), ProcessEnd> {
        for (agent, at, what) in std::mem::take(&mut self.begun) {
            let above = self.dismissed.iter().find(|(dismissed, when)| {
                let is_it = agent == **dismissed || agent.as_str().starts_with(&format!("{dismissed}."));
                is_it && at > **when
            });
            if let Some((dismissed, when)) = above {
                return Err(ProcessEnd::Failed(format!(
                    "{agent}: {what} at {at}, and {dismissed} was dismissed at {when}"
                )));
            }
        }
        Ok(())
    }

    fn note(&mut self, now: Time, line: String) {
        if self.history.len() == 200 {
            self.history.remove(0);
        }
        self.history.push(format!("{now} {line}"));
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn act(&mut self, agent: &AgentId) -> RecordCall {
        let modes = [ChildWorkspace::Inherit, ChildWorkspace::Worktree];
        let for_child = !agent.as_str().contains('.') || self.rng.chance(30);
        match self.rng.weighted(&[if for_child { 6 } else { 1 }, 4, 2, 1]) {
            0 => RecordCall::SpawnChild {
                message: "do it".to_owned(),
                workspace_mode: *self.rng.pick(&modes).unwrap_or(&ChildWorkspace::Inherit),
                model: None,
                instructions: None,
                work_item_id: None,
            },
            1 => RecordCall::WaitFor {
                wake: WaitKind::Task,
                resource: None,
                after_ms: None,
                work_item_id: None,
                reason: "the others".to_owned(),
            },
            2 => RecordCall::WaitFor {
                wake: WaitKind::Timer,
                resource: None,
                after_ms: Some(self.rng.below(60_000)),
                work_item_id: None,
                reason: "a while".to_owned(),
            },
            _ => RecordCall::NotifyOperator { text: "still here".to_owned() },
        }
    }

    fn reply(&mut self, agent: &AgentId) -> Reply {
        let text = "Done.".to_owned();
        if self.friendly || self.rng.chance(40) {
            return Reply { text, ..Reply::default() };
        }
        let mut calls = Vec::new();
        for _ in 0..self.rng.below(3) + 1 {
            let act = self.act(agent);
            let call_id = CallId::new(format!("call_{}", self.number()));
            calls.push(Call {
                call_id,
                tool: generators::tool_name(&act).to_owned(),
                input: serde_json::json!({ "act": format!("{act:?}") }).into(),
                parsed: ToolCall::Record(act),
            });
        }
        Reply { text, calls, ..Reply::default() }
    }

    fn outcome(&mut self, agent: &AgentId, effect: Effect) -> Vec<Input> {
        match effect {
            Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) if !self.friendly && self.rng.chance(5) => {
                let error = *self.rng.pick(ProviderError::ALL).unwrap_or(&ProviderError::Timeout);
                let jitter = generators::jitter(&mut self.rng);
                vec![Input::FailRound {
                    exec_id,
                    round,
                    error,
                    retry_after_ms: None,
                    message: "no".into(),
                    carry: None,
                    jitter,
                    spent: generators::spent(jitter),
                    announce: true,
                }]
            }
            Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) => {
                vec![Input::FinishRound { exec_id, round, reply: self.reply(agent) }]
            }
            Effect::Workspace(WorkspaceEffect::Release { workspace, action }) => {
                vec![Input::ReleaseWorkspace { workspace, action, error: None }]
            }
            Effect::Workspace(WorkspaceEffect::RemoveWorktree { workspace }) => {
                self.worktrees.remove(&workspace.root);
                vec![Input::FinishRemoval { root: workspace.root, removal: Ok(Removal::default()) }]
            }
            Effect::Turn(TurnEffect::RunTool { .. } | TurnEffect::AnswerCall { .. } | TurnEffect::EndExec { .. })
            | Effect::Command(_)
            | Effect::TimerCheck(_)
            | Effect::Trigger(_)
            | Effect::Child(_) => Vec::new(),
        }
    }
}

impl Perform for SharedEnvironment {
    fn perform(&self, agent: &AgentId, effect: Effect) -> Option<Job<Vec<Input>>> {
        let (shared, agent) = (self.clone(), agent.clone());
        let wait = self.lock().rng.below(3_000);
        Some(Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            shared.lock().outcome(&agent, effect)
        }))
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "only what begins or is dismissed is of interest")]
    fn recorded(&self, agent: &AgentId, facts: Vec<(Seq, Time, Fact)>) {
        let mut environment = self.lock();
        for (seq, at, fact) in facts {
            environment.note(at, format!("{agent}: {seq:>4} {}", fact.kind()));
            match fact {
                Fact::TaskCreated(task) => {
                    let child = task.child_agent_id.as_deref().and_then(|child| AgentId::new(child).ok());
                    environment.children.extend(child.map(|child| (task.task_id, child)));
                }
                Fact::TaskCancelling(task) => {
                    if let Some(child) = environment.children.get(&task.task_id).cloned() {
                        environment.dismissed.entry(child).or_insert(at);
                    }
                }
                Fact::AgentCreated(_) | Fact::TurnStarted(_) | Fact::RoundStarted(_) | Fact::ToolStarted(_) => {
                    environment.begun.push((agent.clone(), at, fact.kind()));
                }
                _ => {}
            }
        }
    }

    fn worktree(&self, agent: &AgentId, folder: String) -> Job<Result<WorkspaceAttached, Refusal>> {
        let (shared, agent) = (self.clone(), agent.clone());
        let wait = self.lock().rng.below(500);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            let mut environment = shared.lock();
            if environment.rng.chance(10) {
                return Err(Refusal::new(ErrorCode::Io, "the disk is full").with_hint("free some room"));
            }
            let root = format!("/worktrees/{agent}/{}", environment.number());
            environment.worktrees.insert(root.clone());
            let worktree =
                Worktree { branch: format!("abide/{agent}"), base_commit: "c0".into(), repo: folder.clone() };
            let (mode, worktree) = (WorkspaceMode::Worktree, Some(worktree));
            Ok(WorkspaceAttached { workspace: folder, root, mode, worktree, note: None })
        })
    }
}

struct Process {
    shared: SharedEnvironment,
    memory: Memory,
    ledger: Ledger,
    host: Host,
    crash_per_mille: u64,
}

impl Process {
    async fn live(&mut self, left: &mut u64) -> Result<(), ProcessEnd> {
        self.pass(1).await?;
        if self.ledger.head(&StreamId::agent(&top_agent_id()?))?.is_none() {
            let budget = generators::family_budget(&mut self.shared.lock().rng);
            let config = Config { workspace: Some("/work".to_owned()), budget, ..Config::default() };
            self.ask(
                &top_agent_id()?,
                Input::Create { identity: Identity::named(top_agent_id()?), config, start: true },
            );
            self.pass(10).await?;
        }
        while *left > 0 {
            *left -= 1;
            self.random_event()?;
            let span = [1, 50, 2_000, 120_000][self.shared.lock().rng.weighted(&[4, 4, 3, 1])];
            self.pass(span).await?;
        }
        self.run_to_completion().await
    }

    fn ask(&self, id: &AgentId, input: Input) {
        let (host, id) = (self.host.clone(), id.clone());
        let line = format!("{id}: {input:?}").chars().take(120).collect();
        self.shared.lock().note(host.clock().now(), line);
        // It ends with its process, answered or not.
        tokio::spawn(async move { host.ask(&id, input).await });
    }

    fn random_event(&self) -> Result<(), ProcessEnd> {
        let all = fold_all_agents(&self.ledger)?;
        check_budget(&all)?;
        let mut environment = self.shared.lock();
        check_tree_size(&all, environment.tree_agents)?;
        environment.check_dismissals()?;
        let rng = &mut environment.rng;
        let ids: Vec<AgentId> = all.keys().cloned().collect();
        let chosen = rng.pick(&ids).cloned().unwrap_or(top_agent_id()?);
        let tasks: Vec<TaskId> =
            all.get(&chosen).into_iter().flat_map(|state| state.planes.tasks.open().keys().cloned()).collect();
        let made = all.get(&top_agent_id()?).map_or(0, |state| state.planes.tasks.children().count());
        let (id, input) = match rng.weighted(&[8, 2, 3, 2, 1]) {
            0 if made < CHILDREN => {
                (top_agent_id()?, Input::Queue(NewMessage { text: Some("go on".to_owned()), ..NewMessage::default() }))
            }
            1 => (top_agent_id()?, if rng.chance(50) { Input::Stop } else { Input::Start }),
            2 => match rng.pick(&tasks).cloned() {
                Some(task_id) => {
                    (chosen, Input::Act { by: "somebody".to_owned(), act: RecordCall::StopTask { task_id } })
                }
                None => return Ok(()),
            },
            3 => (chosen, Input::Stop),
            _ => (chosen, Input::Abort { exec_id: None }),
        };
        drop(environment);
        self.ask(&id, input);
        Ok(())
    }

    /// Lets time pass, syncing the disk whenever something waits for it.
    async fn pass(&mut self, span_ms: u64) -> Result<(), ProcessEnd> {
        let (mut left, mut glance) = (span_ms, 1);
        while left > 0 {
            let this = glance.min(left);
            tokio::time::sleep(Duration::from_millis(this)).await;
            left -= this;
            glance = (glance * 2).min(30_000);
            if self.memory.staged() > 0 {
                self.maybe_crash()?;
                self.shared.lock().tally.commits += self.memory.sync() as u64;
                glance = 1;
                self.maybe_crash()?;
            }
        }
        Ok(())
    }

    fn maybe_crash(&self) -> Result<(), ProcessEnd> {
        let crashes = self.shared.lock().rng.below(1_000) < self.crash_per_mille;
        if crashes { Err(ProcessEnd::Crash) } else { Ok(()) }
    }

    /// From here on every model does its work and every person helps, and no child is left in the end.
    async fn run_to_completion(&mut self) -> Result<(), ProcessEnd> {
        self.crash_per_mille = 0;
        self.shared.lock().friendly = true;
        for _ in 0..400 {
            self.pass(10_000).await?;
            let all = fold_all_agents(&self.ledger)?;
            let Some(state) = all.get(&top_agent_id()?) else { continue };
            check_budget(&all)?;
            check_tree_size(&all, self.shared.lock().tree_agents)?;
            self.shared.lock().check_dismissals()?;
            // Agents that were held for a model key go on once it works again.
            for (id, held) in all.iter().filter_map(|(id, state)| Some((id, state.lifecycle.turns_held.as_ref()?))) {
                self.ask(id, Input::ReleaseTurns { cause: held.cause, evidence: "mended".to_owned() });
            }
            if state.lifecycle.control != Control::Runnable {
                self.ask(&top_agent_id()?, Input::Start);
            } else if !state.definition.config.budget.is_none() {
                let change = ConfigChange { budget: Some(Budget::default()), ..ConfigChange::default() };
                self.ask(&top_agent_id()?, Input::Configure { change: Box::new(change) });
            } else if let Some(wait) = state.planes.waits.open().values().find(|wait| wait.kind == WaitKind::Operator) {
                let act = RecordCall::CancelWait { waiting_intent_id: wait.waiting_intent_id.clone() };
                self.ask(&top_agent_id()?, Input::Act { by: "somebody".to_owned(), act });
            } else if state.planes.tasks.owed().values().any(|task| task.held) {
                self.ask(
                    &top_agent_id()?,
                    Input::Queue(NewMessage { text: Some("and?".into()), ..NewMessage::default() }),
                );
            } else if self.host.awake() == 0
                && all.values().all(|state| state.lifecycle.archived || state.next_due().is_none())
            {
                return self.check_no_child_left(&all);
            }
        }
        Err(ProcessEnd::Failed(format!("{} agents are still awake", self.host.awake())))
    }

    fn check_no_child_left(&self, all: &BTreeMap<AgentId, AgentState>) -> Result<(), ProcessEnd> {
        let mut environment = self.shared.lock();
        environment.tally.turns += all.values().map(|state| state.turns.last_index).sum::<u64>();
        environment.tally.facts += all.values().map(|state| state.seq).sum::<u64>();
        let fail = |what: String| Err(ProcessEnd::Failed(what));
        let turns = turns_of(all);
        if let Some(state) = all.get(&top_agent_id()?)
            && state.used_with_children().turns != turns
        {
            return fail(format!("{turns} turns were taken, {:?} are accounted for", state.used_with_children()));
        }
        for (id, state) in all {
            if let Some(supervisor) =
                state.definition.identity.supervisor.as_ref().filter(|_| !state.lifecycle.archived)
            {
                return fail(format!("{id} is still there, of {} in {}", supervisor.task_id, supervisor.agent_id));
            }
            if let Some(task) = state.planes.tasks.open().values().next() {
                let child = task.child_agent_id.as_deref().and_then(|child| all.get(&AgentId::new(child).ok()?));
                let child = child.map(|state| (state.status(), state.decision(), &state.lifecycle.leaving));
                return fail(format!("{id} waits for {} ({}), which is {child:?}", task.task_id, task.status));
            }
            if state.definition.identity.supervisor.is_none() && !state.planes.tasks.owed().is_empty() {
                return fail(format!("{id} has {} results that no turn read", state.planes.tasks.owed().len()));
            }
        }
        match environment.worktrees.first() {
            Some(root) => fail(format!("{root} is left over")),
            None => Ok(()),
        }
    }
}
