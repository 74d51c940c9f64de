//! Streamed text of models, for listeners at this moment. It is no fact: the round that it belongs to will be recorded
//! whole, or not at all. So it is bounded, a listener that is too slow loses some of it, and without a listener nothing is
//! done.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abide_kernel::id::{AgentId, ExecId};
use abide_kernel::limits::clip;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// Pieces that wait for the slowest listener of an agent, and the largest of them: two megabytes in all.
const PIECES_MAX: usize = 256;
const PIECE_BYTES: usize = 8 << 10;

/// A piece of what a model says in one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    pub agent: AgentId,
    pub exec_id: ExecId,
    pub round: u32,
    pub text: String,
}

/// A cheap handle; clones share the listeners.
#[derive(Debug, Clone, Default)]
pub struct Deltas(Arc<Senders>);

#[derive(Debug, Default)]
struct Senders {
    /// By agent; none stands for all of them.
    senders: Mutex<HashMap<Option<AgentId>, broadcast::Sender<Arc<Delta>>>>,
    /// How many of them there are: mostly none, and then publishing takes no lock.
    count: AtomicUsize,
}

impl Senders {
    fn lock_senders(&self) -> MutexGuard<'_, HashMap<Option<AgentId>, broadcast::Sender<Arc<Delta>>>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pending text of one listener.
#[derive(Debug)]
pub struct Listener {
    agent: Option<AgentId>,
    heard: broadcast::Receiver<Arc<Delta>>,
    listened: Arc<Senders>,
}

impl Deltas {
    /// From now on, to one agent or to all.
    #[must_use]
    pub fn listen(&self, agent: Option<&AgentId>) -> Listener {
        let mut senders = self.0.lock_senders();
        let ear = senders.entry(agent.cloned()).or_insert_with(|| broadcast::Sender::new(PIECES_MAX));
        let heard = ear.subscribe();
        self.0.count.store(senders.len(), Ordering::SeqCst);
        drop(senders);
        Listener { agent: agent.cloned(), heard, listened: Arc::clone(&self.0) }
    }

    /// Publishes a piece of text. The caller publishes before it reports the round, so that a listener gets the text first.
    pub fn publish(&self, agent: &AgentId, exec_id: &ExecId, round: u32, text: &str) {
        if self.0.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let senders = self.0.lock_senders();
        let [one, all] = [Some(agent.clone()), None].map(|key| senders.get(&key).cloned());
        drop(senders);
        if one.is_none() && all.is_none() {
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            let piece = clip(rest, PIECE_BYTES);
            rest = &rest[piece.len()..];
            let (agent, exec_id, text) = (agent.clone(), exec_id.clone(), piece.to_owned());
            let delta = Arc::new(Delta { agent, exec_id, round, text });
            for ear in [&one, &all].into_iter().flatten() {
                // They may all have gone meanwhile.
                let _unheard = ear.send(Arc::clone(&delta));
            }
        }
    }
}

impl Listener {
    /// Waits for the next piece. Pieces that came too fast are left out.
    pub async fn next(&mut self) -> Arc<Delta> {
        loop {
            match self.heard.recv().await {
                Ok(delta) => return delta,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// The next piece, if there is one by now.
    pub fn take(&mut self) -> Option<Arc<Delta>> {
        loop {
            match self.heard.try_recv() {
                Ok(delta) => return Some(delta),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut senders = self.listened.lock_senders();
        // This receiver still counts itself.
        if senders.get(&self.agent).is_some_and(|ear| ear.receiver_count() <= 1) {
            senders.remove(&self.agent);
            self.listened.count.store(senders.len(), Ordering::SeqCst);
        }
    }
}
