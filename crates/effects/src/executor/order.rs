//! In which order the calls of one round are carried out: as the model wrote them, because it means one to follow the
//! other. Calls that only look run beside each other; one that may change something runs alone.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use abide_kernel::id::ExecId;
use abide_kernel::vocabulary::SideEffect;
use tokio::sync::watch;

/// Calls that were handed out and are not done, by execution, in order.
#[derive(Debug, Default)]
pub(super) struct Order(Mutex<HashMap<ExecId, Vec<Handed>>>);

#[derive(Debug)]
struct Handed {
    looks: bool,
    /// Closed when the call is done, or was given up.
    done: watch::Receiver<()>,
}

/// A call's place in its round. It holds the place until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    before: Vec<watch::Receiver<()>>,
    _done: watch::Sender<()>,
}

impl Order {
    /// Takes the next place in the round. Must be called in the order of the calls.
    pub(super) fn next(&self, exec_id: &ExecId, side_effect: SideEffect) -> Slot {
        let looks = side_effect == SideEffect::ReadOnly;
        let (sender, done) = watch::channel(());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What is done leaves no trace, whichever execution it was of.
        all.retain(|_, handed| {
            handed.retain(|one| one.done.has_changed().is_ok());
            !handed.is_empty()
        });
        let handed = all.entry(exec_id.clone()).or_default();
        let before = handed.iter().filter(|one| !(looks && one.looks)).map(|one| one.done.clone()).collect();
        handed.push(Handed { looks, done });
        Slot { before, _done: sender }
    }
}

impl Slot {
    /// Comes back when everything that this call has to follow is done.
    pub(super) async fn comes(&mut self) {
        for before in &mut self.before {
            // Nothing is ever sent: it only ends.
            while before.changed().await.is_ok() {}
        }
    }
}
