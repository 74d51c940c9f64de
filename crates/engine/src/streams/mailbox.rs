//! Envelopes in the mailbox of a stream that is awake.

use std::sync::Arc;

use abide_kernel::time::Time;
use tokio::sync::{mpsc, oneshot};

use super::AskError;
use crate::core::Request;
use crate::idempotency::{KeyLock, Response};
use crate::machine::Machine;
use crate::streams::kind::StreamKind;

/// Envelopes that may wait for one stream. An actor takes all of them into one commit, so this bounds a commit, too.
pub(super) const MAILBOX_MAX: usize = 256;

/// The reading end of a mailbox.
pub(super) type Mailbox<K> = mpsc::Receiver<Envelope<K>>;

pub(super) type Reply<M> = oneshot::Sender<Result<Response<M>, AskError>>;

pub(super) type Inspect<M> = Box<dyn FnOnce(&M, Time) + Send>;

pub(crate) enum Envelope<K: StreamKind> {
    Request(PendingRequest<K>),
    Inspect(Inspect<K::Machine>),
    /// Something came due.
    CheckDue,
}

/// An input on its way to a stream.
pub struct PendingRequest<K: StreamKind> {
    pub(crate) request: Box<Request<K::Machine>>,
    pub(super) reply: Reply<K::Machine>,
    pub(crate) condition: K::Condition,
}

/// Who waits for an answer; and, for a request under a key, the key, which is not let go before it is known.
pub(super) struct Waiter<M: Machine> {
    reply: Reply<M>,
    hold: Option<Arc<KeyLock>>,
}

impl<K: StreamKind> std::fmt::Debug for PendingRequest<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingRequest").field("request", &self.request).finish_non_exhaustive()
    }
}

impl<K: StreamKind> PendingRequest<K> {
    pub(super) fn split(self) -> (Request<K::Machine>, Waiter<K::Machine>) {
        let hold = self.request.claim.as_ref().and_then(|claim| claim.hold.clone());
        (*self.request, Waiter { reply: self.reply, hold })
    }

    /// Answers an input that nothing comes of.
    pub(crate) fn refuse(self, error: AskError) {
        // With the key of the request: see `Waiter::answer`.
        drop(self.request);
        // The asker may have gone.
        let _unheard = self.reply.send(Err(error));
    }
}

impl<M: Machine> Waiter<M> {
    /// Answers the caller. The key is released first, so that the caller may ask again under the same key at once.
    pub fn answer(self, answer: Result<Response<M>, AskError>) {
        drop(self.hold);
        // The asker may have gone; what it asked for is done all the same.
        let _unheard = self.reply.send(answer);
    }
}

/// Answers an envelope that can't be delivered. An inspection reads the ledger then.
pub(super) fn refuse<K: StreamKind>(envelope: Envelope<K>, error: &AskError) {
    if let Envelope::Request(pending) = envelope {
        pending.refuse(error.clone());
    }
}

/// Closes the mailbox, and answers everybody whose envelope is still in it.
pub(super) fn refuse_all<K: StreamKind>(mailbox: &mut Mailbox<K>, error: &AskError) {
    mailbox.close();
    while let Ok(envelope) = mailbox.try_recv() {
        refuse(envelope, error);
    }
}
