//! The feed: who follows an agent is told how far its stream has come, and reads from the ledger what is new to them.
//! So a slow follower costs nobody anything, and never sees what is not durable.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use abide_kernel::id::{AgentId, Seq};
use tokio::sync::watch;

#[derive(Debug, Default)]
pub(crate) struct Feed(Arc<Followed>);

#[derive(Debug, Default)]
struct Followed {
    heads: Mutex<HashMap<AgentId, watch::Sender<Seq>>>,
    /// How many agents are followed: mostly none, and then publishing takes no lock.
    count: AtomicUsize,
}

/// One follower's view of where a stream ends.
#[derive(Debug)]
pub struct Heads {
    agent: AgentId,
    head: watch::Receiver<Seq>,
    followed: Arc<Followed>,
}

impl Feed {
    pub fn subscribe(&self, agent: &AgentId) -> Heads {
        let mut heads = self.0.heads.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = heads.entry(agent.clone()).or_insert_with(|| watch::Sender::new(0));
        let head = sender.subscribe();
        self.0.count.store(heads.len(), Ordering::SeqCst);
        drop(heads);
        Heads { agent: agent.clone(), head, followed: Arc::clone(&self.0) }
    }

    /// Facts up to `seq` are durable.
    pub fn publish(&self, agent: &AgentId, seq: Seq) {
        if self.0.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let heads = self.0.heads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(head) = heads.get(agent) {
            head.send_replace(seq);
        }
    }
}

impl Heads {
    /// Whether something was published that this follower has not been told of; it is told by this.
    pub fn take_moved(&mut self) -> bool {
        let moved = self.head.has_changed().unwrap_or_default();
        if moved {
            self.head.borrow_and_update();
        }
        moved
    }

    /// Waits until something was published that this follower has not been told of.
    pub async fn moved(&mut self) {
        if self.head.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Heads {
    fn drop(&mut self) {
        let mut heads = self.followed.heads.lock().unwrap_or_else(PoisonError::into_inner);
        // This receiver still counts itself.
        if heads.get(&self.agent).is_some_and(|head| head.receiver_count() <= 1) {
            heads.remove(&self.agent);
            self.followed.count.store(heads.len(), Ordering::SeqCst);
        }
    }
}
