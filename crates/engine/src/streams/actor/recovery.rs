//! How a stream comes back after its records could not be read, a commit was refused, or its actor crashed; and when it is
//! quarantined instead.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use abide_ledger::CommitError;
use futures_util::FutureExt;
use tokio::sync::watch;

use super::super::loader::load;
use super::super::mailbox::{Mailbox, refuse, refuse_all};
use super::super::{AskError, Envelope, Streams};
use super::Actor;
use crate::core::{Core, Request};
use crate::engine::Closing;
use crate::machine::{Machine, Signal};
use crate::streams::kind::{IdOf, StreamKind};

/// Crashes in a row, with no rest between, before a stream is left alone.
pub(super) const CRASHES_MAX: u32 = 3;
/// Waits after a refused commit; the last one repeats.
const REFUSED_WAIT: [Duration; 4] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(5)];

/// How an actor ended, other than by falling asleep.
pub(super) enum ActorEnd {
    Closed,
    /// The directory has been told already: a caller that hears of the damage must find the stream marked as failed.
    Damaged(String),
}

/// Handles the end of an actor.
pub(super) async fn conclude<K: StreamKind>(
    streams: &Arc<Streams<K>>,
    id: &IdOf<K>,
    outcome: std::thread::Result<Result<(), ActorEnd>>,
) {
    match outcome {
        Ok(Ok(()) | Err(ActorEnd::Closed)) => {}
        Ok(Err(ActorEnd::Damaged(reason))) => {
            streams.engine.meter.quarantined.add(1);
            tracing::error!(stream = %id, reason, "left alone: its records can't be read");
            K::damaged(streams, id);
        }
        Err(panic) => crashed(streams, id, &panic_text(&*panic)).await,
    }
}

/// The message of a panic.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no reason given".to_owned())
}

/// A crash is recovered from like any other end: by reading the stream again, which cuts what was in flight. One that
/// keeps crashing is quarantined, and the others go on.
async fn crashed<K: StreamKind>(streams: &Arc<Streams<K>>, id: &IdOf<K>, reason: &str) {
    streams.engine.meter.crashes.add(1);
    let crashes = streams.directory.count_crash(id);
    tracing::error!(stream = %id, reason, crashes, "the loop of a stream crashed");
    streams.directory.remove_closed(id);
    if crashes < CRASHES_MAX {
        streams.wake(id);
        return;
    }
    streams.engine.meter.quarantined.add(1);
    let reason = format!("it crashed {crashes} times in a row: {reason}");
    let recorded = AssertUnwindSafe(quarantine(streams, id, reason.clone())).catch_unwind().await;
    if !matches!(recorded, Ok(true)) {
        streams.give_up(id, &reason);
    }
    streams.directory.forget_crashes(id);
}

/// Records the quarantine, if the stream can be read at all.
async fn quarantine<K: StreamKind>(streams: &Arc<Streams<K>>, id: &IdOf<K>, reason: String) -> bool {
    let Ok(mut core) = load(streams, id, false).await else { return false };
    let _guard = streams.kind.quarantine_guard(id);
    core.ask(Request::new(0, K::Machine::signal(Signal::Quarantine { reason })));
    let engine = &streams.engine;
    while let Some(commit) = core.poll(engine.clock.now(), engine.clock.entropy()) {
        if engine.ledger.commit(commit).await.is_err() {
            return false;
        }
        core.committed();
        streams.feed.publish(id, core.durable());
    }
    let effects = core.take_outputs().effects;
    K::quarantined(streams, core.state(), effects);
    true
}

/// Reads the stream. While the store can't be read, callers that asked before an attempt are told that it failed, and the
/// stream is read again. Envelopes that were taken from the mailbox by then come with the stream.
pub(super) async fn load_with_retry<K: StreamKind>(
    streams: &Arc<Streams<K>>,
    id: &IdOf<K>,
    boot: bool,
    (mailbox, first): (&mut Mailbox<K>, Option<Envelope<K>>),
    closing: &mut watch::Receiver<Closing>,
) -> Result<(Core<K::Machine>, Vec<Envelope<K>>), ActorEnd> {
    let (mut attempt, mut taken) = (0, Vec::from_iter(first));
    loop {
        while let Ok(envelope) = mailbox.try_recv() {
            taken.push(envelope);
        }
        let damage = match load(streams, id, boot).await {
            Ok(core) => return Ok((core, taken)),
            Err(damage) => damage,
        };
        let (reason, transient) = (damage.to_string(), damage.is_transient());
        let error = AskError::from(damage);
        if !transient {
            streams.give_up(id, &reason);
        }
        taken.drain(..).for_each(|envelope| refuse(envelope, &error));
        if !transient {
            return Err(ActorEnd::Damaged(reason));
        }
        tracing::warn!(stream = %id, reason, "a stream could not be read; it is tried again");
        let wait = REFUSED_WAIT[attempt.min(REFUSED_WAIT.len() - 1)];
        attempt += 1;
        // Callers do not wait meanwhile: the next attempt answers them.
        let envelope = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing != Closing::Open) => {
                refuse_all(mailbox, &AskError::Closing);
                return Err(ActorEnd::Closed);
            }
            envelope = mailbox.recv() => envelope,
            () = tokio::time::sleep(wait) => None,
        };
        taken.extend(envelope);
    }
}

impl<K: StreamKind> Actor<K> {
    /// Reloads the state after a refused commit, of which nothing was kept. Callers get the error.
    pub(super) async fn reload_after_refusal(&mut self, error: CommitError) -> Result<(), ActorEnd> {
        K::refused(&mut self.local);
        self.streams.engine.meter.commits_refused.add(1);
        tracing::warn!(stream = %self.id, %error, "a commit was refused");
        let damage = if let CommitError::Damaged(damage) = &error { Some(damage.to_string()) } else { None };
        if let Some(reason) = &damage {
            self.streams.give_up(&self.id, reason);
        }
        for (_, waiter) in self.waiters.drain() {
            waiter.answer(Err(AskError::Store(error.to_string())));
        }
        if let Some(reason) = damage {
            return Err(ActorEnd::Damaged(reason));
        }
        let wait = REFUSED_WAIT[self.refused.min(REFUSED_WAIT.len() - 1)];
        self.refused += 1;
        // Callers do not wait meanwhile: they are refused at once, or go on at once.
        let envelope = tokio::select! {
            biased;
            envelope = self.mailbox.recv() => envelope,
            () = tokio::time::sleep(wait) => None,
        };
        let from = (&mut self.mailbox, envelope);
        let (core, taken) = load_with_retry(&self.streams, &self.id, false, from, &mut self.closing).await?;
        self.core = core;
        let reported = std::mem::take(&mut self.reported);
        self.report(reported);
        taken.into_iter().for_each(|envelope| self.receive(envelope));
        Ok(())
    }
}
