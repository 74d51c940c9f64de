//! The host: all agents of one home, for surfaces. It is the only way to ask anything of an agent.

use std::sync::Arc;
use std::time::Duration;

use abide_kernel::AgentState;
use abide_kernel::id::AgentId;
use abide_kernel::input::Input;
use abide_kernel::time::Time;
use abide_ledger::{Ledger, ReadError, StreamId};

use crate::agents::{Agents, Perform, TREE_AGENTS};
use crate::clock::Clock;
use crate::core::Request;
use crate::engine::Engine;
use crate::idempotency::{Claim, ClaimOutcome, Response};
use crate::meter::Meter;
use crate::streams::{AskError, HeadWatch, Streams};

/// Settings for all agents together.
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
#[derive(Debug, Clone)]
pub struct Host {
    engine: Arc<Engine>,
    agents: Arc<Streams<Agents>>,
}

impl Host {
    /// Starts the host: agents with something to decide are woken now, the others when they are due.
    pub fn start(ledger: Ledger, perform: Arc<dyn Perform>, clock: Clock) -> Result<Host, ReadError> {
        Host::start_with(ledger, perform, clock, HostOptions::default())
    }

    pub fn start_with(
        ledger: Ledger,
        perform: Arc<dyn Perform>,
        clock: Clock,
        options: HostOptions,
    ) -> Result<Host, ReadError> {
        let agents = Agents::new(&ledger, perform, options.tree_agents)?;
        let engine = Engine::new(ledger, clock);
        let agents = Streams::new(&engine, agents);
        engine.start(vec![agents.wakeable()])?;
        Ok(Host { engine, agents })
    }

    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        self.engine.ledger()
    }

    #[must_use]
    pub fn clock(&self) -> &Clock {
        self.engine.clock()
    }

    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.engine.meter()
    }

    /// How many agents are awake.
    #[must_use]
    pub fn awake(&self) -> usize {
        self.engine.awake()
    }

    /// Asks, and waits until what came of it is durable.
    pub async fn ask(&self, agent: &AgentId, input: Input) -> Result<Response, AskError> {
        self.agents.ask(agent, input).await
    }

    /// The same, with a summary of the agent as the input left it, and perhaps a claim.
    pub async fn ask_for_summary(
        &self,
        agent: &AgentId,
        input: Input,
        claim: Option<Claim>,
    ) -> Result<Response, AskError> {
        self.agents.submit(agent, Request { claim, summary: true, ..Request::new(0, input) }, Vec::new()).await
    }

    /// The same with a claim, and without a summary.
    pub async fn ask_once(&self, agent: &AgentId, input: Input, claim: Option<Claim>) -> Result<Response, AskError> {
        self.agents.submit(agent, Request { claim, ..Request::new(0, input) }, Vec::new()).await
    }

    /// Looks at an agent's durable state, without waking it. `None`: there is no such agent.
    pub async fn inspect<T: Send + 'static>(
        &self,
        agent: &AgentId,
        look: impl FnOnce(&AgentState, Time) -> T + Send + 'static,
    ) -> Result<Option<T>, AskError> {
        self.agents.inspect(agent, look).await
    }

    /// Whether this agent is left alone because its records can't be read. One that nobody asked for yet is not known
    /// to be.
    #[must_use]
    pub fn is_quarantined(&self, agent: &AgentId) -> bool {
        self.agents.has_failed(agent)
    }

    /// The next agents that are not archived, by name. The first call reads the rows of all agents.
    pub fn agents(&self, after: Option<&AgentId>, limit: usize) -> Result<Vec<AgentId>, ReadError> {
        self.agents.kind().names(self.engine.ledger(), after, limit)
    }

    /// An agent was made by other means than an input of its own: a fork.
    pub fn add_agent(&self, agent: &AgentId) {
        self.agents.kind().add(agent);
    }

    /// The head of an agent's stream as it moves.
    #[must_use]
    pub fn follow(&self, agent: &AgentId) -> HeadWatch {
        self.agents.follow(agent)
    }

    /// The right to meet a request once, or what it was answered before.
    pub async fn claim(&self, key: StreamId, request: String) -> Result<ClaimOutcome, ReadError> {
        self.engine.claim(key, request).await
    }

    /// Lets every turn come to its next safe point, for at most `grace`; then cuts short what still runs. When this
    /// returns, everything that was answered is durable, and nothing runs. Agents that had something under way record
    /// the reason.
    pub async fn shutdown(&self, grace: Duration, reason: &'static str) {
        self.engine.shutdown(grace, reason).await;
    }
}
