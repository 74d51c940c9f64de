//! Shared parts of all kinds of streams of one home: the ledger, the clock, the alarm, the keys of requests, and the
//! shutdown.

mod alarm;

use std::sync::Arc;
use std::time::Duration;

use abide_kernel::time::Time;
use abide_ledger::{Ledger, ReadError, StreamId};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

use crate::clock::{Clock, LatestRecorded};
use crate::idempotency::{ClaimOutcome, KeyLocks};
use crate::machine::{Machine, Signal};
use crate::meter::Meter;

/// How far a shutdown has come, and why there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    Open,
    /// Streams stop at their next safe point.
    Gently {
        reason: &'static str,
    },
    /// They stop now.
    AtOnce {
        reason: &'static str,
    },
}

impl Closing {
    /// The signal for streams; none while no shutdown has begun.
    pub fn signal<B>(self) -> Option<Signal<B>> {
        match self {
            Closing::Open => None,
            Closing::Gently { reason } => Some(Signal::Shutdown { at_once: false, reason: reason.to_owned() }),
            Closing::AtOnce { reason } => Some(Signal::Shutdown { at_once: true, reason: reason.to_owned() }),
        }
    }

    pub fn is_at_once(self) -> bool {
        matches!(self, Closing::AtOnce { .. })
    }
}

pub struct Engine {
    /// The runtime of actors. Callers may have a runtime of their own.
    pub(crate) runtime: Handle,
    pub(crate) ledger: Ledger,
    pub(crate) clock: Clock,
    pub(crate) keys: KeyLocks,
    pub(crate) meter: Meter,
    pub(crate) latest_recorded: LatestRecorded,
    /// A stream fell asleep, perhaps with an earlier deadline than any before.
    pub(crate) due_changed: Notify,
    pub(crate) closing: watch::Sender<Closing>,
    /// Actors that live.
    pub(crate) alive: watch::Sender<usize>,
}

/// Streams of one kind, whichever it is, as the wake index knows them.
pub trait Wakeable: Send + Sync + 'static {
    /// Wakes a stream of this kind. False if it is of another one.
    fn wake_stream(&self, stream: &StreamId) -> bool;

    /// Reasons in the wake index for which a new process loads a stream, although it is not due yet.
    fn loaded_at_start(&self) -> &'static [&'static str];
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("alive", &*self.alive.borrow()).finish_non_exhaustive()
    }
}

impl Engine {
    /// Must be called inside a runtime: it is the one that actors live on.
    #[must_use]
    pub fn new(ledger: Ledger, clock: Clock) -> Arc<Engine> {
        Arc::new(Engine {
            runtime: Handle::current(),
            ledger,
            clock,
            keys: KeyLocks::default(),
            meter: Meter::default(),
            latest_recorded: LatestRecorded::default(),
            due_changed: Notify::new(),
            closing: watch::Sender::new(Closing::Open),
            alive: watch::Sender::new(0),
        })
    }

    /// Takes up what was left: streams with something to decide now are woken, the others when they are due.
    pub fn start(self: &Arc<Engine>, kinds: Vec<Box<dyn Wakeable>>) -> Result<(), ReadError> {
        let open = self.ledger.wakes(Some(Time::MIN), usize::MAX)?.into_iter().map(|(stream, _)| stream);
        let mut woken: Vec<StreamId> = open.collect();
        for reason in kinds.iter().flat_map(|kind| kind.loaded_at_start()) {
            woken.extend(self.ledger.wakes_because(reason)?);
        }
        woken.iter().for_each(|stream| wake(&kinds, stream));
        alarm::spawn(Arc::clone(self), kinds);
        Ok(())
    }

    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// How many streams are awake.
    #[must_use]
    pub fn awake(&self) -> usize {
        *self.alive.borrow()
    }

    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow() != Closing::Open
    }

    /// The right to meet a request once, or what it was answered before.
    pub async fn claim<M: Machine>(
        self: &Arc<Engine>,
        key: StreamId,
        request: String,
    ) -> Result<ClaimOutcome<M>, ReadError> {
        let (engine, now) = (Arc::clone(self), self.clock.now());
        blocking(&self.clock, move || engine.keys.claim(&engine.ledger, key, request, now)).await
    }

    /// Lets every stream come to its next safe point, for at most `grace`; then cuts short what still runs. When this
    /// returns, everything that was answered is durable, and nothing runs. Streams that had something under way record
    /// the reason.
    pub async fn shutdown(&self, grace: Duration, reason: &'static str) {
        const AT_ONCE_FOR: Duration = Duration::from_secs(3);
        let mut alive = self.alive.subscribe();
        if grace > Duration::ZERO {
            self.closing.send_replace(Closing::Gently { reason });
            if tokio::time::timeout(grace, alive.wait_for(|alive| *alive == 0)).await.is_ok() {
                return;
            }
        }
        let reason = if grace > Duration::ZERO { "grace_over" } else { reason };
        self.closing.send_replace(Closing::AtOnce { reason });
        if tokio::time::timeout(AT_ONCE_FOR, alive.wait_for(|alive| *alive == 0)).await.is_err() {
            tracing::warn!(alive = *alive.borrow(), "streams were left running at the end");
        }
    }
}

/// Wakes a stream that the wake index names.
pub(crate) fn wake(kinds: &[Box<dyn Wakeable>], stream: &StreamId) {
    if !kinds.iter().any(|kind| kind.wake_stream(stream)) {
        tracing::warn!(%stream, "the wake index names a stream that nothing here runs");
    }
}

/// Runs what reads the disk where it holds nobody up. In simulated time it runs right here, so that a seed always means
/// the same order of things.
pub(crate) async fn blocking<T: Send + 'static>(clock: &Clock, work: impl FnOnce() -> T + Send + 'static) -> T {
    if clock.is_simulated() {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // It panicked, or the runtime is going down: either way, so are we.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}
