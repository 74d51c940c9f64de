//! The feed: who follows a stream is told how far it has come, and reads from the ledger what is new to them.
//! So a slow follower costs nobody anything, and never sees what is not durable.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use abide_kernel::id::{AgentId, Seq};
use tokio::sync::watch;

#[derive(Debug)]
pub(super) struct Feed<I>(Arc<FollowedStream<I>>);

#[derive(Debug)]
struct FollowedStream<I> {
    heads: Mutex<HashMap<I, watch::Sender<Seq>>>,
    /// How many streams are followed: mostly none, and then publishing takes no lock.
    count: AtomicUsize,
}

/// One follower's view of where a stream ends.
#[derive(Debug)]
pub struct HeadWatch<I: Eq + Hash = AgentId> {
    id: I,
    head: watch::Receiver<Seq>,
    followed: Arc<FollowedStream<I>>,
}

impl<I> Default for Feed<I> {
    fn default() -> Feed<I> {
        Feed(Arc::new(FollowedStream { heads: Mutex::default(), count: AtomicUsize::new(0) }))
    }
}

impl<I: Clone + Eq + Hash> Feed<I> {
    pub fn subscribe(&self, id: &I) -> HeadWatch<I> {
        let mut heads = self.0.heads.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = heads.entry(id.clone()).or_insert_with(|| watch::Sender::new(0));
        let head = sender.subscribe();
        self.0.count.store(heads.len(), Ordering::SeqCst);
        drop(heads);
        HeadWatch { id: id.clone(), head, followed: Arc::clone(&self.0) }
    }

    /// Facts up to `seq` are durable.
    pub fn publish(&self, id: &I, seq: Seq) {
        if self.0.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let heads = self.0.heads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(head) = heads.get(id) {
            head.send_replace(seq);
        }
    }
}

impl<I: Eq + Hash> HeadWatch<I> {
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

impl<I: Eq + Hash> Drop for HeadWatch<I> {
    fn drop(&mut self) {
        let mut heads = self.followed.heads.lock().unwrap_or_else(PoisonError::into_inner);
        // This receiver still counts itself.
        if heads.get(&self.id).is_some_and(|head| head.receiver_count() <= 1) {
            heads.remove(&self.id);
            self.followed.count.store(heads.len(), Ordering::SeqCst);
        }
    }
}
