//! The jobs of an actor. A job is one effect under way; what it comes to is reported to the stream.

use futures_util::future::BoxFuture;
use tokio::task::{AbortHandle, Id, JoinError};

use super::Actor;
use super::recovery::panic_text;
use crate::streams::kind::{InputOf, StreamKind};

/// A job under way, and what has to be said if it is lost.
pub(super) struct Running<J> {
    handle: AbortHandle,
    job: J,
}

impl<K: StreamKind> Actor<K> {
    /// Starts a job. Where it ends with nothing to report, it is reported lost.
    pub fn start(&mut self, job: K::Job, work: BoxFuture<'static, Vec<InputOf<K>>>) {
        let handle = self.jobs.spawn(work);
        self.running.insert(handle.id(), Running { handle, job });
    }

    /// The jobs under way.
    pub fn running(&self) -> impl Iterator<Item = &K::Job> {
        self.running.values().map(|running| &running.job)
    }

    pub fn end_jobs(&mut self, which: impl Fn(&K::Job) -> bool) {
        for running in self.running.values().filter(|running| which(&running.job)) {
            running.handle.abort();
        }
    }

    pub(super) fn take_outcome(&mut self, done: Result<(Id, Vec<InputOf<K>>), JoinError>) {
        match done {
            Ok((id, inputs)) => {
                let running = self.running.remove(&id);
                let silent = inputs.is_empty();
                self.report(inputs);
                if let Some(running) = running.filter(|_| silent) {
                    self.report(K::lost(running.job, "it came to no result"));
                }
            }
            Err(error) => {
                let Some(running) = self.running.remove(&error.id()) else { return };
                match error.try_into_panic() {
                    Ok(panic) => {
                        tracing::error!(stream = %self.id, reason = panic_text(&*panic), "a job crashed");
                        self.report(K::lost(running.job, "it crashed"));
                    }
                    // A job that was ended on purpose has no result, but its usage may have to be recorded.
                    Err(_) => self.report(self.streams.kind.aborted(&self.id, running.job)),
                }
            }
        }
    }
}
