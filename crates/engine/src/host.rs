//! The host: all agents of one home. It wakes those that have something to do, lets the others sleep as rows in the
//! ledger, and is the only way to ask anything of any of them.
//!
//! An agent that is awake is one task that owns its state (`life`). An agent asleep is nothing here at all: no task,
//! no state, no entry. What brings it back is a post, or its place in the wake index (`wakes`).

mod directory;
mod feed;
mod fence;
mod in_order;
mod keys;
mod kin;
mod life;
mod loads;
mod neighbours;
mod roster;
mod spawn_line;
mod trees;
mod wakes;

use std::sync::Arc;
use std::time::Duration;

use abide_kernel::effect::Effect;
use abide_kernel::fact::WorkspaceAttached;
use abide_kernel::id::{AgentId, ExecId, Seq};
use abide_kernel::input::{Input, Refusal, Remains};
use abide_kernel::time::Time;
use abide_kernel::views::agent::AgentSummary;
use abide_kernel::wake::HELD;
use abide_kernel::{AgentState, Fact};
use abide_ledger::{Ledger, ReadError, StreamId};
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::clock::{Clock, LatestRecorded};
use crate::core::{Answered, Asked, Claim};
use crate::fold::{Damage, fold};
use crate::meter::Meter;

use directory::{Directory, Found};
use feed::Feed;
pub use feed::Heads;
use fence::Fence;
use keys::Keys;
pub use keys::{Claimed, Holding};
use loads::Loads;
use roster::Roster;
pub use trees::TREE_AGENTS;
use trees::Trees;

/// Does what effects ask for. One call is one job; dropping the job ends it.
pub trait Perform: Send + Sync + 'static {
    /// `None` where there is nothing to do. What the job comes to is handed back to the agent.
    fn perform(&self, agent: &AgentId, effect: Effect) -> Option<BoxFuture<'static, Vec<Input>>>;

    /// These facts of the agent are durable: told in order, and before anything that follows from them is performed.
    fn recorded(&self, _agent: &AgentId, _facts: Vec<(Seq, Time, Fact)>) {}

    /// What is left of an agent in the world when it is read from its records.
    fn remains(&self, _agent: &AgentId) -> Remains {
        Remains::default()
    }

    /// What a model call took that was ended, and can't say it itself any more.
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
        Box::pin(std::future::ready(kin::no_worktrees()))
    }
}

/// Why a question got no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// More is waiting for this agent than is good; nothing was recorded.
    #[error("the agent has more to take in than it can; try again in a moment")]
    Busy,
    #[error("its records can't be read: {0}")]
    Damaged(String),
    #[error("nothing was recorded: {0}")]
    Store(String),
    #[error("the daemon is shutting down; nothing was recorded")]
    Closing,
    #[error("the agent crashed while it took this in; whether it was recorded can be read from its events")]
    Crashed,
}

impl From<Damage> for AskError {
    fn from(damage: Damage) -> AskError {
        match damage.is_transient() {
            true => AskError::Store(damage.to_string()),
            false => AskError::Damaged(damage.to_string()),
        }
    }
}

/// Posts that may wait for one agent. A loop takes all of them into one commit, so this bounds a commit, too.
const POSTS_MAX: usize = 256;
/// How often a post finds its agent falling asleep before we call that a bug.
const TRIES_MAX: usize = 64;

type Look = Box<dyn FnOnce(&AgentState, Time) + Send>;

/// What is put into an agent's box.
pub(crate) enum Post {
    Ask {
        asked: Box<Asked>,
        reply: oneshot::Sender<Result<Answered, AskError>>,
        /// Where this makes an agent: the agent that has it made, and its supervisors. If one of them is stopped first, it
        /// is not made.
        under: Vec<AgentId>,
    },
    Look(Look),
    /// Something came due.
    Poke,
}

/// How far a shutdown has come, and why there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    Open,
    /// Turns stop at their next safe point.
    Gently {
        reason: &'static str,
    },
    /// They stop now.
    AtOnce {
        reason: &'static str,
    },
}

impl Closing {
    /// What agents are told; none while there is nothing to tell them.
    fn as_input(self) -> Option<Input> {
        match self {
            Closing::Open => None,
            Closing::Gently { reason } => Some(Input::Shutdown { at_once: false, reason: reason.to_owned() }),
            Closing::AtOnce { reason } => Some(Input::Shutdown { at_once: true, reason: reason.to_owned() }),
        }
    }

    fn is_at_once(self) -> bool {
        matches!(self, Closing::AtOnce { .. })
    }
}

pub(crate) struct Shared {
    /// Where agents live, whoever wakes them: those who ask may have a runtime of their own.
    pub runtime: Handle,
    pub ledger: Ledger,
    pub perform: Arc<dyn Perform>,
    pub clock: Clock,
    pub directory: Directory,
    pub feed: Feed,
    pub keys: Keys,
    pub meter: Meter,
    pub loads: Loads,
    pub fence: Arc<Fence>,
    pub trees: Trees,
    pub roster: Roster,
    pub latest_recorded: LatestRecorded,
    /// Somebody fell asleep, perhaps with an earlier deadline than any before.
    pub due_changed: Notify,
    pub closing: watch::Sender<Closing>,
    /// Loops that live.
    pub alive: watch::Sender<usize>,
}

/// What the settings say about all agents together.
#[derive(Debug, Clone, Copy)]
pub struct HostOptions {
    /// Agents that one agent of a person may lead to at the same time. Zero is no bound.
    pub tree_agents: u32,
}

impl Default for HostOptions {
    fn default() -> HostOptions {
        HostOptions { tree_agents: TREE_AGENTS }
    }
}

/// A cheap handle; clones share the host.
#[derive(Clone)]
pub struct Host(Arc<Shared>);

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("alive", &*self.0.alive.borrow()).finish_non_exhaustive()
    }
}

impl Host {
    /// Takes up what was left: whoever has something to decide now is woken, the others when they are due.
    pub fn start(ledger: Ledger, perform: Arc<dyn Perform>, clock: Clock) -> Result<Host, ReadError> {
        Host::start_with(ledger, perform, clock, HostOptions::default())
    }

    pub fn start_with(
        ledger: Ledger,
        perform: Arc<dyn Perform>,
        clock: Clock,
        options: HostOptions,
    ) -> Result<Host, ReadError> {
        // Before anybody is awake: a dismissed child must not begin anything.
        let fence = Arc::new(Fence::read(&ledger)?);
        let open = ledger.wakes(Some(Time::MIN), usize::MAX)?.into_iter().map(|(stream, _)| stream);
        // An earlier process held their turns; this one knows of no reason to.
        let held = ledger.wakes_because(HELD)?;
        let woken: Vec<StreamId> = open.chain(held).collect();
        let host = Host(Arc::new(Shared {
            runtime: Handle::current(),
            ledger,
            perform,
            clock,
            directory: Directory::default(),
            feed: Feed::default(),
            keys: Keys::default(),
            meter: Meter::default(),
            loads: Loads::default(),
            fence,
            trees: Trees::new(options.tree_agents),
            roster: Roster::default(),
            latest_recorded: LatestRecorded::default(),
            due_changed: Notify::new(),
            closing: watch::Sender::new(Closing::Open),
            alive: watch::Sender::new(0),
        }));
        for stream in woken {
            host.0.wake_stream(&stream);
        }
        wakes::spawn(Arc::clone(&host.0));
        Ok(host)
    }

    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.0.meter
    }

    /// How many agents are awake.
    #[must_use]
    pub fn awake(&self) -> usize {
        *self.0.alive.borrow()
    }

    /// Asks, and waits until what came of it is durable.
    pub async fn ask(&self, agent: &AgentId, input: Input) -> Result<Answered, AskError> {
        self.put(agent, Asked::new(0, input), Vec::new()).await
    }

    /// The same, with a summary of the agent as the input left it, and perhaps a claim.
    pub async fn ask_for_summary(
        &self,
        agent: &AgentId,
        input: Input,
        claim: Option<Claim>,
    ) -> Result<Answered, AskError> {
        self.put(agent, Asked { claim, summary: true, ..Asked::new(0, input) }, Vec::new()).await
    }

    /// The same with a claim, and without a summary.
    pub async fn ask_once(&self, agent: &AgentId, input: Input, claim: Option<Claim>) -> Result<Answered, AskError> {
        self.put(agent, Asked { claim, ..Asked::new(0, input) }, Vec::new()).await
    }

    /// Makes an agent, unless one of these agents is stopped first.
    async fn make(&self, agent: &AgentId, input: Input, under: Vec<AgentId>) -> Result<Answered, AskError> {
        self.put(agent, Asked::new(0, input), under).await
    }

    async fn put(&self, agent: &AgentId, asked: Asked, under: Vec<AgentId>) -> Result<Answered, AskError> {
        if matches!(asked.input, Input::Start) && self.0.directory.try_again(agent) {
            self.0.fence.forget(agent);
        }
        let (reply, answer) = oneshot::channel();
        let mut post = Post::Ask { asked: Box::new(asked), reply, under };
        for _ in 0..TRIES_MAX {
            let (sender, id) = match self.0.find(agent)? {
                Found::Awake(sender) => (sender, agent),
                Found::Broken(reason) => return Err(AskError::Damaged(reason)),
            };
            match sender.try_send(post) {
                Ok(()) => return answer.await.unwrap_or(Err(AskError::Crashed)),
                Err(mpsc::error::TrySendError::Full(_)) => return Err(AskError::Busy),
                // It fell asleep under our hands: wake it again.
                Err(mpsc::error::TrySendError::Closed(back)) => post = back,
            }
            tokio::task::yield_now().await;
            tracing::trace!(agent = %id, "fell asleep while a post came in");
        }
        Err(AskError::Busy)
    }

    /// Looks at an agent's durable state, without waking it. `None`: there is no such agent.
    pub async fn look<T: Send + 'static>(
        &self,
        agent: &AgentId,
        look: impl FnOnce(&AgentState, Time) -> T + Send + 'static,
    ) -> Result<Option<T>, AskError> {
        match self.0.directory.get(agent) {
            Some(Found::Broken(reason)) => Err(AskError::Damaged(reason)),
            Some(Found::Awake(sender)) => {
                let (reply, seen) = oneshot::channel();
                let look_once = Arc::new(std::sync::Mutex::new(Some(look)));
                let given = Arc::clone(&look_once);
                let post = Post::Look(Box::new(move |state, now| {
                    let look = given.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
                    // Nobody may be waiting any more.
                    let _unseen = reply.send(look.filter(|_| state.seq > 0).map(|look| look(state, now)));
                }));
                if sender.send(post).await.is_ok()
                    && let Ok(seen) = seen.await
                {
                    return Ok(seen);
                }
                // It fell asleep or crashed before it looked: the ledger knows the rest.
                let look = look_once.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
                match look {
                    Some(look) => self.look_asleep(agent, look).await,
                    None => Err(AskError::Crashed),
                }
            }
            None => self.look_asleep(agent, look).await,
        }
    }

    async fn look_asleep<T: Send + 'static>(
        &self,
        agent: &AgentId,
        look: impl FnOnce(&AgentState, Time) -> T + Send + 'static,
    ) -> Result<Option<T>, AskError> {
        let (ledger, agent, now) = (self.0.ledger.clone(), agent.clone(), self.0.clock.now());
        let seen =
            blocking(&self.0.clock, move || fold(&ledger, &agent).map(|state| state.map(|state| look(&state, now))))
                .await;
        seen.map_err(AskError::from)
    }

    /// Whether this agent is left alone because its records can't be read. One that nobody asked for yet is not known
    /// to be.
    #[must_use]
    pub fn is_quarantined(&self, agent: &AgentId) -> bool {
        matches!(self.0.directory.get(agent), Some(Found::Broken(_)))
    }

    /// The next agents that are not archived, by name. The first call reads the rows of all agents.
    pub fn agents(&self, after: Option<&AgentId>, limit: usize) -> Result<Vec<AgentId>, ReadError> {
        self.0.roster.after(&self.0.ledger, after, limit)
    }

    /// An agent was made by other means than an input of its own: a fork.
    pub fn add_agent(&self, agent: &AgentId) {
        self.0.roster.join(agent);
    }

    /// The head of an agent's stream as it moves.
    #[must_use]
    pub fn follow(&self, agent: &AgentId) -> Heads {
        self.0.feed.subscribe(agent)
    }

    /// The right to meet a request once, or what it was answered before.
    pub async fn claim(&self, key: StreamId, request: String) -> Result<Claimed, ReadError> {
        let (shared, now) = (Arc::clone(&self.0), self.0.clock.now());
        blocking(&self.0.clock, move || keys::claim(&shared, key, request, now)).await
    }

    /// Lets every turn come to its next safe point, for at most `grace`; then cuts short what still runs. When this
    /// returns, everything that was answered is durable, and nothing runs. Agents that had something under way record
    /// the reason.
    pub async fn shutdown(&self, grace: Duration, reason: &'static str) {
        const AT_ONCE_FOR: Duration = Duration::from_secs(3);
        let mut alive = self.0.alive.subscribe();
        if grace > Duration::ZERO {
            self.0.closing.send_replace(Closing::Gently { reason });
            if tokio::time::timeout(grace, alive.wait_for(|alive| *alive == 0)).await.is_ok() {
                return;
            }
        }
        let reason = if grace > Duration::ZERO { "grace_over" } else { reason };
        self.0.closing.send_replace(Closing::AtOnce { reason });
        if tokio::time::timeout(AT_ONCE_FOR, alive.wait_for(|alive| *alive == 0)).await.is_err() {
            tracing::warn!(alive = *alive.borrow(), "agents were left running at the end");
        }
    }
}

impl Shared {
    /// The agent's box; wakes it if it sleeps.
    fn find(self: &Arc<Shared>, agent: &AgentId) -> Result<Found, AskError> {
        if *self.closing.borrow() != Closing::Open {
            return Err(AskError::Closing);
        }
        Ok(self.directory.get_or_wake(agent, |posts| life::spawn(Arc::clone(self), agent.clone(), posts)))
    }

    /// Sees to it that an agent looks at what is due.
    pub(crate) fn wake(self: &Arc<Shared>, agent: &AgentId) {
        if let Ok(Found::Awake(sender)) = self.find(agent) {
            // A full box is read soon, and a closed one is woken by what closed it.
            let _already = sender.try_send(Post::Poke);
        }
    }

    fn wake_stream(self: &Arc<Shared>, stream: &StreamId) {
        match stream.agent_name().map(AgentId::new) {
            Some(Ok(agent)) => self.wake(&agent),
            Some(Err(_)) | None => tracing::warn!(%stream, "the wake index names a stream that is no agent's"),
        }
    }
}

/// Runs what reads the disk where it holds nobody up. In simulated time it runs right here, so that a seed always means
/// the same order of things.
async fn blocking<T: Send + 'static>(clock: &Clock, work: impl FnOnce() -> T + Send + 'static) -> T {
    if clock.is_simulated() {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // It panicked, or the runtime is going down: either way, so are we.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}
