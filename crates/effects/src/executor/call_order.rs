//! The order of the calls of one round: as the model wrote them, because it means one to follow the other. Read-only
//! calls run beside each other; a call that may change something runs alone.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use abide_kernel::id::ExecId;
use abide_kernel::vocabulary::SideEffect;
use tokio::sync::watch;

/// Calls that were handed out and are not done, by execution, in order.
#[derive(Debug, Default)]
pub(super) struct CallOrder(Mutex<HashMap<ExecId, Vec<PendingCall>>>);

#[derive(Debug)]
struct PendingCall {
    looks: bool,
    /// Closed when the call is done, or was given up.
    done: watch::Receiver<()>,
}

/// A call's place in its round. It holds the place until it is dropped.
#[derive(Debug)]
pub(super) struct CallSlot {
    before: Vec<watch::Receiver<()>>,
    _done: watch::Sender<()>,
}

impl CallOrder {
    /// Takes the next place in the round. Must be called in the order of the calls.
    pub(super) fn enqueue(&self, exec_id: &ExecId, side_effect: SideEffect) -> CallSlot {
        let looks = side_effect == SideEffect::ReadOnly;
        let (sender, done) = watch::channel(());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Calls that are done are removed, of every execution.
        all.retain(|_, handed| {
            handed.retain(|one| one.done.has_changed().is_ok());
            !handed.is_empty()
        });
        let handed = all.entry(exec_id.clone()).or_default();
        let before = handed.iter().filter(|one| !(looks && one.looks)).map(|one| one.done.clone()).collect();
        handed.push(PendingCall { looks, done });
        CallSlot { before, _done: sender }
    }
}

impl CallSlot {
    /// Waits until every call before this one is done.
    pub(super) async fn wait(&mut self) {
        for before in &mut self.before {
            // Nothing is ever sent: it only ends.
            while before.changed().await.is_ok() {}
        }
    }
}
