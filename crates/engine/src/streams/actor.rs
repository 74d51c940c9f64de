//! The actor of one stream that is awake: take in what is in the mailbox, admit it, decide, commit, act, and rest.
//!
//! The actor owns the stream's state, its jobs and its mailbox. It hibernates when it has rested for a moment with nothing
//! under way; what it was is then in the ledger alone. If a commit is refused, nothing of it happened: askers are told,
//! the state is read again, and what the world has reported is put to it once more.

mod jobs;
mod recovery;
mod rest;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

use super::mailbox::{Mailbox, Waiter, refuse_all};
use super::{AskError, Envelope, PendingRequest, Streams};
use crate::core::{Core, Request};
use crate::engine::Closing;
use crate::streams::kind::{IdOf, InputOf, StreamKind};
use jobs::Running;
use recovery::{ActorEnd, CRASHES_MAX, conclude, load_with_retry};

pub struct Actor<K: StreamKind> {
    pub(crate) streams: Arc<Streams<K>>,
    pub(crate) id: IdOf<K>,
    pub(crate) core: Core<K::Machine>,
    pub(crate) local: K::Local,
    mailbox: Mailbox<K>,
    closing: watch::Receiver<Closing>,
    /// Who waits for which answer.
    waiters: HashMap<u64, Waiter<K::Machine>>,
    tokens: u64,
    jobs: JoinSet<Vec<InputOf<K>>>,
    running: HashMap<Id, Running<K::Job>>,
    /// Reports of the world, until they are durable.
    reported: Vec<InputOf<K>>,
    refused: usize,
    told_to_close: Closing,
}

impl<K: StreamKind> std::fmt::Debug for Actor<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Actor").field("id", &self.id).field("core", &self.core).finish_non_exhaustive()
    }
}

/// Starts the actor of a stream. Whatever happens in it, the directory hears of its end.
pub(super) fn spawn<K: StreamKind>(streams: Arc<Streams<K>>, id: IdOf<K>, mailbox: Mailbox<K>) {
    let runtime = streams.engine.runtime.clone();
    let entry = DirectoryEntry::new(streams, id);
    runtime.spawn(async move {
        let DirectoryEntry { streams, id } = &entry;
        let outcome = AssertUnwindSafe(run_actor(Arc::clone(streams), id.clone(), mailbox)).catch_unwind().await;
        let ended = AssertUnwindSafe(conclude(streams, id, outcome)).catch_unwind().await;
        if ended.is_err() {
            // To tell of the end is not worth a stream: it is read again, as after any other crash.
            streams.directory.remove_closed(id);
            if streams.directory.crashes(id) < CRASHES_MAX {
                streams.wake(id);
            }
        }
    });
}

/// The entry of one actor in the directory, and its place among those that are counted. However the actor ends, a panic
/// included, its entry goes: a mailbox that nobody empties would keep the stream from being read again.
struct DirectoryEntry<K: StreamKind> {
    streams: Arc<Streams<K>>,
    id: IdOf<K>,
}

impl<K: StreamKind> DirectoryEntry<K> {
    fn new(streams: Arc<Streams<K>>, id: IdOf<K>) -> DirectoryEntry<K> {
        streams.engine.alive.send_modify(|alive| *alive += 1);
        DirectoryEntry { streams, id }
    }
}

impl<K: StreamKind> Drop for DirectoryEntry<K> {
    fn drop(&mut self) {
        self.streams.directory.remove_closed(&self.id);
        self.streams.engine.alive.send_modify(|alive| *alive -= 1);
    }
}

async fn run_actor<K: StreamKind>(
    streams: Arc<Streams<K>>,
    id: IdOf<K>,
    mut mailbox: Mailbox<K>,
) -> Result<(), ActorEnd> {
    streams.engine.meter.loads.add(1);
    let (mut closing, local) = (streams.engine.closing.subscribe(), streams.kind.local());
    let (core, taken) = match load_with_retry(&streams, &id, true, (&mut mailbox, None), &mut closing).await {
        Ok(loaded) => loaded,
        Err(ActorEnd::Closed) => return Err(ActorEnd::Closed),
        Err(ActorEnd::Damaged(reason)) => {
            refuse_all(&mut mailbox, &AskError::Damaged(reason.clone()));
            return Err(ActorEnd::Damaged(reason));
        }
    };
    let mut actor = Actor {
        streams,
        id,
        core,
        local,
        mailbox,
        closing,
        waiters: HashMap::new(),
        tokens: 0,
        jobs: JoinSet::new(),
        running: HashMap::new(),
        reported: Vec::new(),
        refused: 0,
        told_to_close: Closing::Open,
    };
    K::loaded(&mut actor);
    taken.into_iter().for_each(|envelope| actor.receive(envelope));
    let outcome = actor.run().await;
    if let Err(ActorEnd::Damaged(reason)) = &outcome {
        refuse_all(&mut actor.mailbox, &AskError::Damaged(reason.clone()));
    }
    outcome
}

impl<K: StreamKind> Actor<K> {
    #[must_use]
    pub fn id(&self) -> &IdOf<K> {
        &self.id
    }

    #[must_use]
    pub fn streams(&self) -> &Arc<Streams<K>> {
        &self.streams
    }

    /// The state, including facts of a commit that is still under way.
    #[must_use]
    pub fn state(&self) -> &K::Machine {
        self.core.state()
    }

    /// Puts what the world reports to the stream, until it is durable.
    pub fn report(&mut self, inputs: Vec<InputOf<K>>) {
        for input in &inputs {
            self.core.ask(Request::new(0, input.clone()));
        }
        self.reported.extend(inputs);
    }

    async fn run(&mut self) -> Result<(), ActorEnd> {
        loop {
            self.drain_mailbox();
            K::before_step(self);
            let (now, entropy) = (self.streams.engine.clock.now(), self.streams.engine.clock.entropy());
            if !K::may_step(self) {
                K::gate_changed(&mut self.local).await;
                continue;
            }
            let Some(commit) = self.core.poll(now, entropy) else {
                self.release_outputs();
                if K::may_rest(self) && self.rest(now).await? {
                    return Ok(());
                }
                continue;
            };
            match self.streams.engine.ledger.commit(commit).await {
                Ok(_) => {
                    self.core.committed();
                    self.streams.engine.latest_recorded.note(now);
                    self.reported.clear();
                    self.refused = 0;
                    self.streams.engine.meter.commits.add(1);
                    self.release_outputs();
                }
                Err(error) => self.reload_after_refusal(error).await?,
            }
        }
    }

    /// Everything in the mailbox, without waiting.
    fn drain_mailbox(&mut self) {
        while let Ok(envelope) = self.mailbox.try_recv() {
            self.receive(envelope);
        }
        while let Some(done) = self.jobs.try_join_next_with_id() {
            self.take_outcome(done);
        }
    }

    fn receive(&mut self, envelope: Envelope<K>) {
        match envelope {
            Envelope::Request(pending) => {
                if let Some(pending) = K::defer(self, pending) {
                    self.admit(pending);
                }
            }
            // Between commits the state is what the ledger says.
            Envelope::Inspect(look) => look(self.core.state(), self.streams.engine.clock.now()),
            Envelope::CheckDue => {}
        }
    }

    /// Has an input admitted with the next step.
    pub(crate) fn admit(&mut self, pending: PendingRequest<K>) {
        self.tokens += 1;
        let (request, waiter) = pending.split();
        self.waiters.insert(self.tokens, waiter);
        self.core.ask(Request { token: self.tokens, ..request });
    }

    /// Publishes facts, answers requests and performs effects, after the commit.
    fn release_outputs(&mut self) {
        let outputs = self.core.take_outputs();
        K::released(self, &outputs);
        if !outputs.facts.is_empty() {
            self.streams.engine.meter.facts.add(outputs.facts.len() as u64);
            self.streams.feed.publish(&self.id, self.core.durable());
            K::recorded(&self.streams, &self.id, outputs.facts);
        }
        for (token, answer) in outputs.answers {
            if let Some(waiter) = self.waiters.remove(&token) {
                waiter.answer(answer.map_err(AskError::Refused));
            }
        }
        for effect in outputs.effects {
            K::perform(self, effect);
        }
    }
}
