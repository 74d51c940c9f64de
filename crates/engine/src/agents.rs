//! Agents as a kind of stream: what they have beside the loop. Agents make, stop and speak to each other, through the
//! mailboxes of the others only.
//!
//! An effect about another agent is a job here (`supervision`, `peers`); every other one is for `Perform`. An agent with
//! supervisors looks at the fence before it decides and before it begins an effect (`fencing`).

mod fence;
mod fencing;
mod index;
mod machine;
mod peers;
mod performing;
mod spawn_queue;
mod supervision;
mod ticket_queue;
mod tree_quota;

use std::sync::Arc;

use abide_kernel::effect::Effect;
use abide_kernel::fact::WorkspaceAttached;
use abide_kernel::id::{AgentId, ExecId, Seq};
use abide_kernel::input::{BootContext, Input, Refusal};
use abide_kernel::time::Time;
use abide_kernel::views::agent::AgentSummary;
use abide_kernel::wake::HELD;
use abide_kernel::{AgentState, Fact};
use abide_ledger::{Ledger, ReadError};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::core::Outputs;
use crate::streams::kind::StreamKind;
use crate::streams::{Actor, PendingRequest, Streams};

use fence::{Fence, PendingStop};
use index::AgentIndex;
pub use machine::RequestSummary;
use performing::Job;
use spawn_queue::SpawnQueue;
use ticket_queue::TicketQueue;
pub use tree_quota::TREE_AGENTS;
use tree_quota::TreeQuota;

/// Does what effects ask for. One call is one job; dropping the job ends it.
pub trait Perform: Send + Sync + 'static {
    /// `None` where there is nothing to do. What the job comes to is handed back to the agent.
    fn perform(&self, agent: &AgentId, effect: Effect) -> Option<BoxFuture<'static, Vec<Input>>>;

    /// These facts of the agent are durable: told in order, and before anything that follows from them is performed.
    fn recorded(&self, _agent: &AgentId, _facts: Vec<(Seq, Time, Fact)>) {}

    /// The rest of an agent in the world when it is read from its records.
    fn boot_context(&self, _agent: &AgentId) -> BootContext {
        BootContext::default()
    }

    /// The usage of a model call that was ended and can't report it itself.
    fn cut_off(&self, _agent: &AgentId, _exec_id: &ExecId) -> Vec<Input> {
        Vec::new()
    }

    /// The agent falls asleep.
    fn rests(&self, _agent: &AgentId) {}

    /// Completes the summary of an agent with what no records hold, as surfaces do.
    fn with_world(&self, _agent: &AgentId, summary: AgentSummary) -> BoxFuture<'static, AgentSummary> {
        Box::pin(std::future::ready(summary))
    }

    /// Makes a worktree of a folder for an agent: what has to be recorded.
    fn worktree(&self, _agent: &AgentId, _folder: String) -> BoxFuture<'static, Result<WorkspaceAttached, Refusal>> {
        Box::pin(std::future::ready(supervision::no_worktrees()))
    }
}

/// All agents of one home.
pub struct Agents {
    perform: Arc<dyn Perform>,
    fence: Arc<Fence>,
    tree_quota: TreeQuota,
    index: AgentIndex,
}

impl std::fmt::Debug for Agents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agents").field("fence", &self.fence).field("trees", &self.tree_quota).finish_non_exhaustive()
    }
}

/// Data of an agent's actor beside its state.
#[derive(Debug)]
pub struct Local {
    /// Children are made in order, and peers are spoken to in order.
    spawns: SpawnQueue,
    peer_calls: TicketQueue,
    /// Its supervisors, once it is known who they are.
    supervisors: Option<Vec<AgentId>>,
    /// Told when the fence has changed.
    fenced: watch::Receiver<()>,
    /// A stop of it that is not durable yet.
    stopping: Option<PendingStop>,
    /// Effects that wait for what comes of a stop above it.
    withheld: Vec<Effect>,
    /// The making of this agent by another one.
    creations: Vec<PendingRequest<Agents>>,
}

impl Agents {
    /// To be made before any agent is awake: a dismissed child must not begin anything.
    pub fn new(ledger: &Ledger, perform: Arc<dyn Perform>, tree_agents: u32) -> Result<Agents, ReadError> {
        let fence = Arc::new(Fence::read(ledger)?);
        Ok(Agents { perform, fence, tree_quota: TreeQuota::new(tree_agents), index: AgentIndex::default() })
    }

    /// The next agents that are not archived, by name. The first call reads the rows of all agents.
    pub fn names(&self, ledger: &Ledger, after: Option<&AgentId>, limit: usize) -> Result<Vec<AgentId>, ReadError> {
        self.index.page(ledger, after, limit)
    }

    /// An agent was made by other means than an input of its own: a fork.
    pub fn add(&self, agent: &AgentId) {
        self.index.add(agent);
    }
}

impl StreamKind for Agents {
    type Machine = AgentState;
    type Local = Local;
    /// Where an agent is made by another one: that one and its supervisors. If one of them is stopped first, it is not
    /// made.
    type Condition = Vec<AgentId>;
    type Job = Job;

    /// An earlier process held the turns of these; this one knows of no reason to.
    const LOADED_AT_START: &'static [&'static str] = &[HELD];

    fn local(&self) -> Local {
        Local {
            spawns: SpawnQueue::default(),
            peer_calls: TicketQueue::default(),
            supervisors: None,
            fenced: self.fence.subscribe(),
            stopping: None,
            withheld: Vec::new(),
            creations: Vec::new(),
        }
    }

    fn boot(&self, agent: &AgentId) -> BootContext {
        self.perform.boot_context(agent)
    }

    fn perform(actor: &mut Actor<Agents>, effect: Effect) {
        actor.begin_effect(effect);
    }

    fn lost(job: Job, why: &str) -> Vec<Input> {
        performing::lost(job, why)
    }

    fn aborted(&self, agent: &AgentId, job: Job) -> Vec<Input> {
        match job {
            Job::Round { exec_id, .. } => self.perform.cut_off(agent, &exec_id),
            Job::Call { .. } | Job::Task { .. } | Job::Check { .. } | Job::Other => Vec::new(),
        }
    }

    fn loaded(actor: &mut Actor<Agents>) {
        if actor.core.exists() {
            actor.streams.kind.tree_quota.add(&actor.core.state().definition.identity);
        }
    }

    fn defer(actor: &mut Actor<Agents>, pending: PendingRequest<Agents>) -> Option<PendingRequest<Agents>> {
        if pending.condition.is_empty() {
            return Some(pending);
        }
        actor.local.creations.push(pending);
        None
    }

    fn before_step(actor: &mut Actor<Agents>) {
        actor.raise_fence();
    }

    fn may_step(actor: &mut Actor<Agents>) -> bool {
        actor.pass_fence()
    }

    async fn gate_changed(local: &mut Local) {
        if local.looks_at_fence() {
            // The fence is there for as long as the host.
            let _there = local.fenced.changed().await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    fn may_rest(actor: &Actor<Agents>) -> bool {
        actor.local.withheld.is_empty()
    }

    fn released(actor: &mut Actor<Agents>, outputs: &Outputs<AgentState>) {
        actor.keep_in_step(outputs);
    }

    fn recorded(agents: &Streams<Agents>, agent: &AgentId, facts: Vec<(Seq, Time, Fact)>) {
        let turns = facts.iter().filter(|(_, _, fact)| matches!(fact, Fact::TurnStarted(_))).count();
        agents.engine.meter.turns.add(turns as u64);
        agents.kind.perform.recorded(agent, facts);
    }

    fn refused(local: &mut Local) {
        local.stopping = None;
    }

    fn hibernated(&self, agent: &AgentId) {
        self.perform.rests(agent);
    }

    fn retried(&self, agent: &AgentId) {
        self.fence.forget(agent);
    }

    fn failed(&self, agent: &AgentId) {
        // Its children can't be stopped or heard any more.
        self.fence.dismiss([agent.clone()]);
    }

    fn damaged(agents: &Arc<Streams<Agents>>, agent: &AgentId) {
        tokio::spawn(supervision::report_damage(Arc::clone(agents), agent.clone()));
    }

    fn quarantine_guard(&self, agent: &AgentId) -> impl Send + 'static {
        self.fence.stopping(agent)
    }

    fn quarantined(agents: &Arc<Streams<Agents>>, state: &AgentState, effects: Vec<Effect>) {
        agents.kind.fence.dismiss(fencing::dismissed(&effects));
        tokio::spawn(supervision::dismiss_children_of(Arc::clone(agents), state.id().clone(), effects));
        // A child that crashes has nothing more to say, and somebody waits for it.
        if let Some(supervisor) = state.definition.identity.supervisor.clone() {
            tokio::spawn(supervision::report_quarantine(Arc::clone(agents), state.id().clone(), supervisor));
        }
    }
}
