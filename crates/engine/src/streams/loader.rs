//! Reading agents from the ledger, many at a time.
//!
//! Whoever wants to be read while others are being read joins the next batch, and a batch is handed over whole. So when
//! a thousand agents come due together, all of them are read before the first begins its turn: reading is the small
//! part, and done one by one between the steps of the others, each would wait for most of their turns.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abide_kernel::id::AgentId;
use tokio::sync::oneshot;

use super::Shared;
use crate::core::Core;
use crate::fold::Damage;

/// Threads that read: it is work for a core, not waiting.
const READERS: usize = 2;
/// Agents in a batch: what is read first waits for the last.
const BATCH: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Loads(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    wanted: VecDeque<Wanted>,
    readers: usize,
}

#[derive(Debug)]
struct Wanted {
    agent: AgentId,
    /// Whether what was in flight is to be cut. Not after a refused commit: whatever runs goes on.
    boot: bool,
    reply: oneshot::Sender<Read>,
}

/// What was read; or the panic of reading it, which is the panic of that agent's loop and of nobody else's.
type Read = std::thread::Result<Result<Core, Damage>>;

impl Loads {
    /// Puts one in line. True if a reader has to be started for it.
    fn push(&self, wanted: Wanted) -> bool {
        let mut waiting = self.lock();
        waiting.wanted.push_back(wanted);
        let starts = waiting.readers < READERS;
        waiting.readers += usize::from(starts);
        starts
    }

    /// The next batch; with nothing left, the reader is counted out.
    fn take(&self) -> Vec<Wanted> {
        let mut waiting = self.lock();
        if waiting.wanted.is_empty() {
            waiting.readers -= 1;
        }
        let share = waiting.wanted.len().min(BATCH);
        waiting.wanted.drain(..share).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads an agent for its loop; one that does not exist yet is empty.
pub(crate) async fn load(shared: &Arc<Shared>, agent: &AgentId, boot: bool) -> Result<Core, Damage> {
    if shared.clock.is_simulated() {
        return read(shared, agent, boot);
    }
    let (reply, answer) = oneshot::channel();
    if shared.loads.push(Wanted { agent: agent.clone(), boot, reply }) {
        let shared = Arc::clone(shared);
        // It answers through the channels; nobody waits for its end.
        drop(tokio::task::spawn_blocking(move || read_all(&shared)));
    }
    match answer.await {
        Ok(Ok(read)) => read,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        // The runtime is going down, and so are we.
        Err(_) => std::future::pending().await,
    }
}

fn read_all(shared: &Shared) {
    loop {
        let batch = shared.loads.take();
        if batch.is_empty() {
            return;
        }
        let one = |Wanted { agent, boot, reply }| {
            (reply, std::panic::catch_unwind(AssertUnwindSafe(|| read(shared, &agent, boot))))
        };
        let all: Vec<(oneshot::Sender<Read>, Read)> = batch.into_iter().map(one).collect();
        for (reply, read) in all {
            // Its loop may have ended with the host.
            let _unheard = reply.send(read);
        }
    }
}

fn read(shared: &Shared, agent: &AgentId, boot: bool) -> Result<Core, Damage> {
    if !boot {
        return Core::reread(&shared.ledger, agent);
    }
    let remains = shared.perform.remains(agent);
    let core = Core::recover(&shared.ledger, agent, remains.clone())?;
    Ok(core.unwrap_or_else(|| Core::unborn(agent.clone()).following(remains)))
}
