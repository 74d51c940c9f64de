//! The fence: an agent whose supervisor stopped does nothing more, however far below it is, from the moment of the stop.
//!
//! Supervisors dismiss their children level by level, which takes commits and time. The fence does not: it holds the
//! dismissed children, and every supervised agent holds its own line of supervisors against it, before it decides and
//! again before it begins an effect. It is derived from the records: from the tasks that are `cancelling`, so that a new
//! process begins with the fence that the one before it had.
//!
//! A stop is raised here before its time is read, and an agent reads its time before it looks here. So nothing below a
//! stopped agent has a later time than the stop.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abide_kernel::AgentState;
use abide_kernel::id::AgentId;
use abide_kernel::vocabulary::TaskStatus;
use abide_kernel::wake::CHILDREN_CHANGING;
use abide_ledger::{Ledger, ReadError};
use tokio::sync::watch;

use crate::fold::fold;

#[derive(Debug, Default)]
pub(crate) struct Fence {
    marks: Mutex<Marks>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Marks {
    /// Agents with a stop that is not durable yet, and how many.
    stopping: HashMap<AgentId, usize>,
    /// Children that their supervisor wants no longer, and agents whose records can't be read.
    dismissed: HashSet<AgentId>,
}

/// Whether an agent may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FenceState {
    Open,
    /// A stop above it is being recorded: it waits for what comes of that.
    Pending,
    /// This agent, itself or above it, was dismissed.
    Closed(AgentId),
}

/// A stop that is on its way to the disk. Dropped, it is over: it became durable, or came to nothing.
#[derive(Debug)]
pub(crate) struct PendingStop {
    fence: Arc<Fence>,
    agent: AgentId,
}

impl Fence {
    /// The fence as the records have it.
    pub fn read(ledger: &Ledger) -> Result<Fence, ReadError> {
        let fence = Fence::default();
        for stream in ledger.wakes_because(CHILDREN_CHANGING)? {
            let Some(Ok(agent)) = stream.agent_name().map(AgentId::new) else { continue };
            match fold::<AgentState>(ledger, &agent) {
                Ok(state) => fence.dismiss(state.iter().flat_map(dismissed_by)),
                Err(error) => tracing::warn!(%agent, %error, "its dismissed children are not known"),
            }
        }
        Ok(fence)
    }

    fn lock(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Told whenever something was marked or a stop is over.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub fn check(&self, agent: &AgentId, supervisors: &[AgentId]) -> FenceState {
        if supervisors.is_empty() {
            return FenceState::Open;
        }
        let marks = self.lock();
        let mut line = std::iter::once(agent).chain(supervisors);
        if let Some(dismissed) = line.find(|agent| marks.dismissed.contains(*agent)) {
            return FenceState::Closed(dismissed.clone());
        }
        match supervisors.iter().any(|supervisor| marks.stopping.contains_key(supervisor)) {
            true => FenceState::Pending,
            false => FenceState::Open,
        }
    }

    /// Nobody below the agent goes on until this is dropped.
    pub fn stopping(self: &Arc<Fence>, agent: &AgentId) -> PendingStop {
        *self.lock().stopping.entry(agent.clone()).or_default() += 1;
        PendingStop { fence: Arc::clone(self), agent: agent.clone() }
    }

    pub fn dismiss(&self, agents: impl IntoIterator<Item = AgentId>) {
        let mut marks = self.lock();
        let before = marks.dismissed.len();
        marks.dismissed.extend(agents);
        let more = marks.dismissed.len() > before;
        drop(marks);
        if more {
            self.changed.send_replace(());
        }
    }

    /// It is gone, and so is everybody below it; or its records can be read again.
    pub fn forget(&self, agent: &AgentId) {
        self.lock().dismissed.remove(agent);
    }
}

impl Drop for PendingStop {
    fn drop(&mut self) {
        let mut marks = self.fence.lock();
        if let Some(count) = marks.stopping.get_mut(&self.agent) {
            *count -= 1;
            if *count == 0 {
                marks.stopping.remove(&self.agent);
            }
        }
        drop(marks);
        self.fence.changed.send_replace(());
    }
}

/// The children that an agent has dismissed, and that have not reported yet.
fn dismissed_by(state: &AgentState) -> impl Iterator<Item = AgentId> {
    let cancelling = state.planes.tasks.children().filter(|task| task.status == TaskStatus::Cancelling);
    cancelling.filter_map(|task| AgentId::new(task.child_agent_id.as_deref()?).ok())
}
