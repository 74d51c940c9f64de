//! How many agents each tree has. A tree is an agent that a person made, its founder, and every agent whose lineage
//! ends in it and that is not archived: children, children of children, and named agents that a model made.
//!
//! The number is derived: it is counted from the read rows before the first agent is made in this process, and kept in
//! step from then on. A place is taken before an agent is made, so that no two calls take the last one: when a model
//! answers with calls that make children it is promised some, and is refused the others, so that it hears of that as the
//! outcome of its call; when these calls are durable the places are those of the children.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abide_kernel::config::Identity;
use abide_kernel::id::AgentId;
use abide_kernel::input::{Input, Refusal};
use abide_kernel::read_rows::{AGENT_PLANE, AGENT_ROW, founder_of_row};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::tool::{Call, RecordCall, ToolCall};
use abide_ledger::{Ledger, ReadError};
use tokio::sync::OnceCell;

use super::Agents;
use crate::engine::blocking;
use crate::streams::Streams;

/// Agents below a founder, where the settings say nothing else.
pub const TREE_AGENTS: u32 = 256;

/// Streams that are looked through at a time.
const PAGE: usize = 1_000;

#[derive(Debug)]
pub(crate) struct TreeQuota {
    /// Zero is none, and then nothing is counted.
    bound: usize,
    counted: OnceCell<()>,
    members: Mutex<Members>,
}

#[derive(Debug, Default)]
struct Members {
    founders: HashMap<AgentId, AgentId>,
    /// Agents and promises, by founder.
    sizes: HashMap<AgentId, usize>,
    /// Places for children whose making is not durable yet: their supervisor's founder, and how many.
    promises: HashMap<AgentId, (AgentId, usize)>,
    /// Agents that were archived while nothing was counted yet: their rows may have been read before.
    gone: Option<HashSet<AgentId>>,
}

/// An agent whose model answers.
#[derive(Debug)]
pub(crate) struct Maker {
    pub id: AgentId,
    pub founder: AgentId,
    /// Children that it may still have itself.
    pub room: usize,
}

/// A place in a tree. Given back when it is dropped, unless it was kept.
pub(crate) struct Reservation {
    agents: Arc<Streams<Agents>>,
    agent: Option<AgentId>,
}

impl TreeQuota {
    pub fn new(bound: u32) -> TreeQuota {
        let members = Members { gone: Some(HashSet::new()), ..Members::default() };
        TreeQuota { bound: bound as usize, counted: OnceCell::new(), members: Mutex::new(members) }
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for an agent that is about to be made.
    pub async fn reserve(&self, agents: &Arc<Streams<Agents>>, identity: &Identity) -> Result<Reservation, Refusal> {
        let founder = identity.founder();
        if self.bound == 0 || founder == identity.id {
            return Ok(Reservation { agents: Arc::clone(agents), agent: None });
        }
        self.count(agents).await?;
        let mut members = self.lock();
        if !members.founders.contains_key(&identity.id) && members.size(&founder) >= self.bound {
            return Err(self.full(&founder));
        }
        members.add(identity.id.clone(), founder);
        drop(members);
        Ok(Reservation { agents: Arc::clone(agents), agent: Some(identity.id.clone()) })
    }

    /// Promises places to the calls of a reply that make children, and refuses those for which the tree has none. Calls
    /// beyond the children that the agent may have itself are not looked at: they are refused for that.
    pub async fn promise(&self, agents: &Arc<Streams<Agents>>, maker: &Maker, inputs: &mut [Input]) {
        for input in inputs.iter_mut().filter(|_| self.bound > 0) {
            let Input::FinishRound { reply, .. } = input else { continue };
            let mut calls: Vec<&mut Call> = reply.calls.iter_mut().filter(|call| makes_child(call)).collect();
            calls.truncate(maker.room);
            // Whoever makes the child counts again.
            if calls.is_empty() || self.count(agents).await.is_err() {
                continue;
            }
            let promised = self.lock().promise(maker, calls.len(), self.bound);
            for call in calls.into_iter().skip(promised) {
                call.parsed = ToolCall::Refused(self.full(&maker.founder));
            }
        }
    }

    /// The promise is over: these children are about to be made instead.
    pub fn redeem<'a>(&self, maker: &AgentId, children: impl Iterator<Item = &'a Identity>) {
        if self.bound == 0 {
            return;
        }
        let mut members = self.lock();
        members.break_promise(maker);
        // Before the count there is nothing to keep in step with.
        if members.gone.is_some() {
            return;
        }
        for child in children {
            let founder = child.founder();
            if members.size(&founder) < self.bound {
                members.add(child.id.clone(), founder);
            }
        }
    }

    /// An agent that this process reads. Forks of agents that a model made come to be without a place.
    pub fn add(&self, identity: &Identity) {
        let founder = identity.founder();
        let mut members = self.lock();
        // Before the count there is nothing to keep in step with.
        if self.bound > 0 && members.gone.is_none() && founder != identity.id {
            members.add(identity.id.clone(), founder);
        }
    }

    /// It was archived, or never made.
    pub fn remove(&self, agent: &AgentId) {
        if self.bound > 0 {
            self.lock().remove(agent);
        }
    }

    fn full(&self, founder: &AgentId) -> Refusal {
        let bound = self.bound;
        let detail = format!("{bound} agents come from {founder}, and no more may (tree_agents)");
        Refusal::new(ErrorCode::TreeFull, detail)
    }

    async fn count(&self, agents: &Arc<Streams<Agents>>) -> Result<(), Refusal> {
        let count = || async {
            let ledger = agents.engine.ledger.clone();
            let found = blocking(&agents.engine.clock, move || read(&ledger)).await?;
            self.lock().fill(found);
            Ok::<(), ReadError>(())
        };
        let failed =
            |error: ReadError| Refusal::new(ErrorCode::NotCounted, format!("the agents can't be counted: {error}"));
        self.counted.get_or_try_init(count).await.map_err(failed)?;
        Ok(())
    }
}

impl Members {
    fn size(&self, founder: &AgentId) -> usize {
        self.sizes.get(founder).copied().unwrap_or(0)
    }

    fn add(&mut self, agent: AgentId, founder: AgentId) {
        if self.founders.insert(agent, founder.clone()).is_none() {
            *self.sizes.entry(founder).or_default() += 1;
        }
    }

    fn remove(&mut self, agent: &AgentId) {
        if let Some(gone) = &mut self.gone {
            gone.insert(agent.clone());
        }
        if let Some(founder) = self.founders.remove(agent) {
            self.shrink(&founder, 1);
        }
    }

    fn shrink(&mut self, founder: &AgentId, by: usize) {
        if let Some(size) = self.sizes.get_mut(founder) {
            *size = size.saturating_sub(by);
            if *size == 0 {
                self.sizes.remove(founder);
            }
        }
    }

    fn promise(&mut self, maker: &Maker, wanted: usize, bound: usize) -> usize {
        self.break_promise(&maker.id);
        let promised = bound.saturating_sub(self.size(&maker.founder)).min(wanted);
        if promised > 0 {
            *self.sizes.entry(maker.founder.clone()).or_default() += promised;
            self.promises.insert(maker.id.clone(), (maker.founder.clone(), promised));
        }
        promised
    }

    fn break_promise(&mut self, maker: &AgentId) {
        if let Some((founder, promised)) = self.promises.remove(maker) {
            self.shrink(&founder, promised);
        }
    }

    fn fill(&mut self, found: Vec<(AgentId, AgentId)>) {
        let gone = self.gone.take().unwrap_or_default();
        for (agent, founder) in found.into_iter().filter(|(agent, _)| !gone.contains(agent)) {
            self.add(agent, founder);
        }
    }
}

impl Reservation {
    /// The agent is being made: from here on only its end, or that it was never made, gives the place back.
    pub(super) fn keep(mut self) {
        self.agent = None;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(agent) = &self.agent {
            self.agents.kind.tree_quota.remove(agent);
        }
    }
}

fn makes_child(call: &Call) -> bool {
    matches!(call.parsed, ToolCall::Record(RecordCall::SpawnChild { .. }))
}

/// Every agent that has a maker and is not archived, with its founder. One whose records are damaged is not counted.
fn read(ledger: &Ledger) -> Result<Vec<(AgentId, AgentId)>, ReadError> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let streams = ledger.streams(after.as_ref(), PAGE)?;
        for (stream, _) in &streams {
            // Agents come first among the streams.
            if stream.agent_name().is_none() {
                return Ok(found);
            }
            let rows = match ledger.rows(stream, AGENT_PLANE, None, 1) {
                Ok(rows) => rows,
                Err(ReadError::Damaged(_)) => continue,
                Err(error) => return Err(error),
            };
            let row = rows.into_iter().find(|row| row.id == AGENT_ROW && row.value["archived"] != true);
            found.extend(row.and_then(|row| founder_of_row(&row.value)).filter(|(agent, founder)| agent != founder));
        }
        match streams.into_iter().next_back() {
            Some((last, _)) => after = Some(last),
            None => return Ok(found),
        }
    }
}
