//! The streams that are awake, with their mailboxes, and those that can't be woken. The one lock of a kind, held for
//! moments.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::Envelope;
use super::mailbox::{MAILBOX_MAX, Mailbox};
use crate::streams::kind::{IdOf, StreamKind};

pub(super) struct Directory<K: StreamKind> {
    entries: Mutex<HashMap<IdOf<K>, Entry<K>>>,
    /// Crashes of a stream since it last came to rest.
    crashes: Mutex<HashMap<IdOf<K>, u32>>,
}

pub(super) enum Entry<K: StreamKind> {
    Awake(mpsc::Sender<Envelope<K>>),
    /// Its records can't be read, or it crashes whenever it is woken. `Machine::retries` says what tries it again.
    Failed(String),
}

impl<K: StreamKind> Clone for Entry<K> {
    fn clone(&self) -> Entry<K> {
        match self {
            Entry::Awake(sender) => Entry::Awake(sender.clone()),
            Entry::Failed(reason) => Entry::Failed(reason.clone()),
        }
    }
}

impl<K: StreamKind> Default for Directory<K> {
    fn default() -> Directory<K> {
        Directory { entries: Mutex::default(), crashes: Mutex::default() }
    }
}

impl<K: StreamKind> Directory<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<IdOf<K>, Entry<K>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_crashes(&self) -> MutexGuard<'_, HashMap<IdOf<K>, u32>> {
        self.crashes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, id: &IdOf<K>) -> Option<Entry<K>> {
        self.lock().get(id).cloned()
    }

    pub fn get_or_wake(&self, id: &IdOf<K>, wake: impl FnOnce(Mailbox<K>)) -> Entry<K> {
        let mut entries = self.lock();
        if let Some(entry) = entries.get(id) {
            return entry.clone();
        }
        let (sender, mailbox) = mpsc::channel(MAILBOX_MAX);
        entries.insert(id.clone(), Entry::Awake(sender.clone()));
        wake(mailbox);
        Entry::Awake(sender)
    }

    /// Removes the entry if the mailbox is empty; else hands back what was in it, and puts a new mailbox in its place.
    pub fn fall_asleep(&self, id: &IdOf<K>, mailbox: &mut Mailbox<K>) -> Vec<Envelope<K>> {
        let mut entries = self.lock();
        // From here on nothing can be put into it; a later caller wakes the stream again, after this lock.
        mailbox.close();
        let mut left = Vec::new();
        while let Ok(envelope) = mailbox.try_recv() {
            left.push(envelope);
        }
        if left.is_empty() {
            entries.remove(id);
        } else {
            let (sender, receiver) = mpsc::channel(MAILBOX_MAX);
            entries.insert(id.clone(), Entry::Awake(sender));
            *mailbox = receiver;
        }
        left
    }

    /// The actor of this stream is gone, however it went. The mailbox of the next one, if there is one, is open and stays.
    pub fn remove_closed(&self, id: &IdOf<K>) {
        let mut entries = self.lock();
        if matches!(entries.get(id), Some(Entry::Awake(sender)) if sender.is_closed()) {
            entries.remove(id);
        }
    }

    pub fn mark_failed(&self, id: &IdOf<K>, reason: String) {
        self.lock().insert(id.clone(), Entry::Failed(reason));
    }

    /// Counts one more crash, and says how often it has crashed since it last came to rest.
    pub fn count_crash(&self, id: &IdOf<K>) -> u32 {
        let mut crashes = self.lock_crashes();
        let count = crashes.entry(id.clone()).or_default();
        *count += 1;
        *count
    }

    pub fn crashes(&self, id: &IdOf<K>) -> u32 {
        self.lock_crashes().get(id).copied().unwrap_or(0)
    }

    pub fn forget_crashes(&self, id: &IdOf<K>) {
        self.lock_crashes().remove(id);
    }

    /// Forgets that a stream could not be woken. True if it could not.
    pub fn clear_failure(&self, id: &IdOf<K>) -> bool {
        let mut entries = self.lock();
        let failed = matches!(entries.get(id), Some(Entry::Failed(_)));
        if failed {
            entries.remove(id);
        }
        failed
    }
}
