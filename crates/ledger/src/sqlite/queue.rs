//! The queue of the writer. It is bounded: while it is full, `commit` blocks its caller, which lasts one transaction.
//!
//! Refusing instead would make every caller write the same retry; an unbounded queue would turn a slow disk into
//! memory. The bound counts commits, not bytes: large payloads are on disk as blobs before they come here.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, mpsc};

use super::writer::Writer;
use crate::prepared::Prepared;
use crate::receipt::Answer;

/// Four times the most committers we measure with; about as many facts as one sync can be kept waiting for.
const BOUND: usize = 4096;

#[derive(Debug)]
pub(crate) enum Job {
    Commit {
        prepared: Prepared,
        answer: Answer,
    },
    /// Maintenance takes the writer over, so that one thread at a time owns the only writing connection.
    Lend {
        to: mpsc::Sender<Writer>,
        back: mpsc::Receiver<Writer>,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    taken: Condvar,
    /// How many wait, to be looked at without the lock.
    length: AtomicUsize,
}

/// Looks in vain before the writer stops waiting for more company.
const PATIENCE: usize = 4;

#[derive(Debug, Default)]
struct Waiting {
    jobs: Vec<Job>,
    closed: bool,
}

impl Queue {
    /// False, and the job dropped, when the ledger is closing.
    pub(crate) fn push(&self, job: Job) -> bool {
        let mut waiting = self.lock();
        while waiting.jobs.len() >= BOUND && !waiting.closed {
            waiting = self.taken.wait(waiting).expect("the queue's lock is never held across a panic");
        }
        if waiting.closed {
            return false;
        }
        waiting.jobs.push(job);
        // The writer sleeps only on an empty queue: later arrivals need not wake it again.
        let first = waiting.jobs.len() == 1;
        self.length.store(waiting.jobs.len(), Ordering::Relaxed);
        drop(waiting);
        if first {
            self.arrived.notify_one();
        }
        true
    }

    /// Everything that queued up, in order; `None` once closed and empty. `spare` gives its room back for reuse.
    ///
    /// Takes the queued jobs. Callers that were just answered are about to commit again: taking the first to arrive alone
    /// would spend a sync on it, so while the queue still grows the writer lets others go first, up to `company`. There is
    /// no wait by the clock.
    pub(crate) fn take(&self, mut spare: Vec<Job>, company: usize) -> Option<Vec<Job>> {
        spare.clear();
        let mut waiting = self.lock();
        while waiting.jobs.is_empty() {
            if waiting.closed {
                return None;
            }
            waiting = self.arrived.wait(waiting).expect("the queue's lock is never held across a panic");
        }
        if waiting.jobs.len() < company {
            drop(waiting);
            self.gather(company);
            waiting = self.lock();
        }
        std::mem::swap(&mut waiting.jobs, &mut spare);
        self.length.store(0, Ordering::Relaxed);
        drop(waiting);
        self.taken.notify_all();
        Some(spare)
    }

    fn gather(&self, company: usize) {
        let (mut seen, mut in_vain) = (0, 0);
        while seen < company && in_vain < PATIENCE {
            std::thread::yield_now();
            let length = self.length.load(Ordering::Relaxed);
            in_vain = if length > seen { 0 } else { in_vain + 1 };
            seen = length;
        }
    }

    /// Whether nothing more is taken in.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Closes the queue. Queued jobs are still done; new ones are refused.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
        self.taken.notify_all();
    }

    /// The writer is gone: callers that still wait get an error.
    pub(crate) fn abandon(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        waiting.jobs.clear();
        drop(waiting);
        self.taken.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("the queue's lock is never held across a panic")
    }
}
