//! All streams of one kind in one home. They are woken when they have something to do, and hibernate as rows in the
//! ledger; to ask is the only way to change one.
//!
//! A stream that is awake is one task that owns its state (`actor`). A stream asleep is nothing here at all: no task, no
//! state, no entry. What brings it back is an envelope in its mailbox, or its place in the wake index (`alarm`).

mod actor;
mod directory;
mod feed;
pub mod kind;
mod loader;
mod mailbox;

use std::sync::{Arc, Mutex, PoisonError};

use abide_kernel::input::Refusal;
use abide_kernel::time::Time;
use abide_ledger::StreamId;
use tokio::sync::{mpsc, oneshot};

use crate::core::Request;
use crate::engine::{Engine, Wakeable, blocking};
use crate::fold::{LoadError, fold};
use crate::idempotency::Response;
use crate::machine::Machine;
use crate::streams::kind::{IdOf, InputOf, StreamKind};

pub use actor::Actor;
use directory::{Directory, Entry};
use feed::Feed;
pub use feed::HeadWatch;
use loader::Loader;
pub(crate) use mailbox::Envelope;
pub use mailbox::PendingRequest;

/// Why a question got no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The mailbox is full; nothing was recorded.
    #[error("its mailbox is full, and nothing was recorded; try again in a moment")]
    Busy,
    #[error("its records can't be read: {0}")]
    Damaged(String),
    #[error("nothing was recorded: {0}")]
    Store(String),
    #[error("the daemon is shutting down; nothing was recorded")]
    Closing,
    #[error("its loop crashed while it took this in; whether it was recorded can be read from its events")]
    Crashed,
}

impl From<LoadError> for AskError {
    fn from(damage: LoadError) -> AskError {
        match damage.is_transient() {
            true => AskError::Store(damage.to_string()),
            false => AskError::Damaged(damage.to_string()),
        }
    }
}

/// How often an envelope finds its stream falling asleep before we call that a bug.
const TRIES_MAX: usize = 64;

pub struct Streams<K: StreamKind> {
    pub(crate) engine: Arc<Engine>,
    pub(crate) kind: K,
    directory: Directory<K>,
    feed: Feed<IdOf<K>>,
    loader: Loader<K>,
}

impl<K: StreamKind> std::fmt::Debug for Streams<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl<K: StreamKind> Streams<K> {
    #[must_use]
    pub fn new(engine: &Arc<Engine>, kind: K) -> Arc<Streams<K>> {
        Arc::new(Streams {
            engine: Arc::clone(engine),
            kind,
            directory: Directory::default(),
            feed: Feed::default(),
            loader: Loader::default(),
        })
    }

    /// For the wake index.
    #[must_use]
    pub fn wakeable(self: &Arc<Self>) -> Box<dyn Wakeable> {
        Box::new(Handle(Arc::clone(self)))
    }

    #[must_use]
    pub fn kind(&self) -> &K {
        &self.kind
    }

    /// Asks, and waits until what came of it is durable.
    pub async fn ask(self: &Arc<Self>, id: &IdOf<K>, input: InputOf<K>) -> Result<Response<K::Machine>, AskError> {
        self.submit(id, Request::new(0, input), K::Condition::default()).await
    }

    /// The same with all that may be said of an input; the token is ours to choose.
    pub async fn submit(
        self: &Arc<Self>,
        id: &IdOf<K>,
        request: Request<K::Machine>,
        condition: K::Condition,
    ) -> Result<Response<K::Machine>, AskError> {
        if K::Machine::retries(&request.input) && self.directory.clear_failure(id) {
            self.kind.retried(id);
        }
        let (reply, answer) = oneshot::channel();
        let mut envelope = Envelope::Request(PendingRequest { request: Box::new(request), reply, condition });
        for _ in 0..TRIES_MAX {
            let sender = match self.find(id)? {
                Entry::Awake(sender) => sender,
                Entry::Failed(reason) => return Err(AskError::Damaged(reason)),
            };
            match sender.try_send(envelope) {
                Ok(()) => return answer.await.unwrap_or(Err(AskError::Crashed)),
                Err(mpsc::error::TrySendError::Full(_)) => return Err(AskError::Busy),
                // It fell asleep under our hands: wake it again.
                Err(mpsc::error::TrySendError::Closed(back)) => envelope = back,
            }
            tokio::task::yield_now().await;
            tracing::trace!(stream = %id, "fell asleep while an envelope came in");
        }
        Err(AskError::Busy)
    }

    /// Looks at a stream's durable state, without waking it. `None`: there is no such stream.
    pub async fn inspect<T: Send + 'static>(
        &self,
        id: &IdOf<K>,
        look: impl FnOnce(&K::Machine, Time) -> T + Send + 'static,
    ) -> Result<Option<T>, AskError> {
        match self.directory.get(id) {
            Some(Entry::Failed(reason)) => Err(AskError::Damaged(reason)),
            Some(Entry::Awake(sender)) => {
                let (reply, seen) = oneshot::channel();
                let look_once = Arc::new(Mutex::new(Some(look)));
                let given = Arc::clone(&look_once);
                let envelope = Envelope::Inspect(Box::new(move |state: &K::Machine, now| {
                    let look = given.lock().unwrap_or_else(PoisonError::into_inner).take();
                    // The caller may be gone.
                    let _unseen = reply.send(look.filter(|_| state.seq() > 0).map(|look| look(state, now)));
                }));
                if sender.send(envelope).await.is_ok()
                    && let Ok(seen) = seen.await
                {
                    return Ok(seen);
                }
                // It fell asleep or crashed before it looked: the ledger knows the rest.
                let look = look_once.lock().unwrap_or_else(PoisonError::into_inner).take();
                match look {
                    Some(look) => self.inspect_asleep(id, look).await,
                    None => Err(AskError::Crashed),
                }
            }
            None => self.inspect_asleep(id, look).await,
        }
    }

    async fn inspect_asleep<T: Send + 'static>(
        &self,
        id: &IdOf<K>,
        look: impl FnOnce(&K::Machine, Time) -> T + Send + 'static,
    ) -> Result<Option<T>, AskError> {
        let (ledger, id, now) = (self.engine.ledger.clone(), id.clone(), self.engine.clock.now());
        let read = move || fold(&ledger, &id).map(|state| state.map(|state| look(&state, now)));
        blocking(&self.engine.clock, read).await.map_err(AskError::from)
    }

    /// Whether this stream is left alone because its records can't be read. One that nobody asked for yet is not known
    /// to be.
    #[must_use]
    pub fn has_failed(&self, id: &IdOf<K>) -> bool {
        matches!(self.directory.get(id), Some(Entry::Failed(_)))
    }

    /// The head of a stream as it moves.
    #[must_use]
    pub fn follow(&self, id: &IdOf<K>) -> HeadWatch<IdOf<K>> {
        self.feed.subscribe(id)
    }

    /// The stream's mailbox; wakes it if it sleeps.
    fn find(self: &Arc<Self>, id: &IdOf<K>) -> Result<Entry<K>, AskError> {
        if self.engine.is_closing() {
            return Err(AskError::Closing);
        }
        Ok(self.directory.get_or_wake(id, |mailbox| actor::spawn(Arc::clone(self), id.clone(), mailbox)))
    }

    /// Sees to it that a stream looks at what is due.
    pub(crate) fn wake(self: &Arc<Self>, id: &IdOf<K>) {
        if let Ok(Entry::Awake(sender)) = self.find(id) {
            // A full mailbox is read soon, and a closed one is woken by what closed it.
            let _already = sender.try_send(Envelope::CheckDue);
        }
    }

    /// Nothing can be asked of this stream until it is tried again.
    fn give_up(&self, id: &IdOf<K>, reason: &str) {
        self.directory.mark_failed(id, reason.to_owned());
        self.kind.failed(id);
    }
}

/// The streams of a kind as the alarm holds them.
struct Handle<K: StreamKind>(Arc<Streams<K>>);

impl<K: StreamKind> Wakeable for Handle<K> {
    fn wake_stream(&self, stream: &StreamId) -> bool {
        let id = K::Machine::id_of(stream);
        if let Some(id) = &id {
            self.0.wake(id);
        }
        id.is_some()
    }

    fn loaded_at_start(&self) -> &'static [&'static str] {
        K::LOADED_AT_START
    }
}
