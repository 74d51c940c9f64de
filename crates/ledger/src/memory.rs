//! The ledger in memory: for simulations and tests. The same promises as on disk, without threads, files or copies
//! of payloads.
//!
//! With manual sync it is also the simulator's disk: a commit is staged, `sync` makes everything staged durable and
//! answers, `crash` forgets what was not synced.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::watch;

use crate::commit::{Commit, Committed};
use crate::error::{CommitError, ReadError};
use crate::hash::{BlobId, Hash};
use crate::prepared::Prepared;
use crate::program::Program;
use crate::receipt::{Answer, Receipt};

mod import;
mod state;

pub(crate) use state::State;

#[cfg(feature = "planted")]
use crate::planted::Bug;

/// A cheap handle; clones share one ledger.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    /// The number of visible facts: what followers wait on.
    end: watch::Sender<u64>,
    redactions: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    /// `None` after a crash: handles from before it see a closed ledger.
    state: Option<State>,
    blobs: BTreeMap<BlobId, Arc<[u8]>>,
    sync: Sync,
    #[cfg(feature = "planted")]
    planted: Planted,
}

#[derive(Debug)]
enum Sync {
    /// A commit is durable when `commit` returns.
    AtOnce,
    /// In the order handed in; nothing of it is visible.
    Manual { staged: Vec<Staged> },
}

#[derive(Debug)]
struct Staged {
    prepared: Prepared,
    /// `None` when a planted bug has answered already.
    answer: Option<Answer>,
}

#[cfg(feature = "planted")]
#[derive(Debug, Default)]
struct Planted {
    bug: Option<Bug>,
    /// The state after a sync: only an early answer needs it.
    ahead: Option<State>,
}

impl Memory {
    #[must_use]
    pub fn new() -> Memory {
        Memory::with(State::default(), BTreeMap::new(), Sync::AtOnce)
    }

    #[must_use]
    pub fn with_manual_sync() -> Memory {
        Memory::with(State::default(), BTreeMap::new(), Sync::Manual { staged: Vec::new() })
    }

    fn with(state: State, blobs: BTreeMap<BlobId, Arc<[u8]>>, sync: Sync) -> Memory {
        let end = watch::Sender::new(state.len());
        let inner = Inner {
            state: Some(state),
            blobs,
            sync,
            #[cfg(feature = "planted")]
            planted: Planted::default(),
        };
        Memory(Arc::new(Shared { inner: Mutex::new(inner), end, redactions: AtomicU64::new(0) }))
    }

    pub(crate) fn commit(&self, commit: Commit) -> Receipt {
        let prepared = match Prepared::new(commit, &self.program()) {
            Ok(prepared) => prepared,
            Err(refusal) => return Receipt::ready(Err(refusal)),
        };
        let mut guard = self.inner();
        let inner = &mut *guard;
        let Some(state) = &mut inner.state else { return Receipt::ready(Err(CommitError::Closed)) };
        match &mut inner.sync {
            Sync::AtOnce => {
                let answer = state.commit(prepared);
                self.0.end.send_replace(state.len());
                Receipt::ready(answer)
            }
            Sync::Manual { staged } => {
                #[cfg(feature = "planted")]
                if inner.planted.bug == Some(Bug::EarlyAck) {
                    let ahead = inner.planted.ahead.get_or_insert_with(|| state.clone());
                    let answer = ahead.commit(prepared.clone());
                    staged.push(Staged { prepared, answer: None });
                    return Receipt::ready(answer);
                }
                let (answer, receipt) = Receipt::waiting();
                staged.push(Staged { prepared, answer: Some(answer) });
                receipt
            }
        }
    }

    /// Makes everything staged durable and visible, in order, then answers. Says how many commits that were.
    pub fn sync(&self) -> usize {
        let mut guard = self.inner();
        let inner = &mut *guard;
        let (Some(state), Sync::Manual { staged }) = (&mut inner.state, &mut inner.sync) else { return 0 };
        let staged = std::mem::take(staged);
        let count = staged.len();
        #[cfg(feature = "planted")]
        let loses_tail = {
            inner.planted.ahead = None;
            inner.planted.bug == Some(Bug::LostTail)
        };
        let mut answers = Vec::with_capacity(count);
        for Staged { prepared, answer } in staged {
            #[cfg(feature = "planted")]
            if loses_tail && answers.len() + 1 == count {
                answers.push((answer, state.clone().commit(prepared)));
                continue;
            }
            answers.push((answer, state.commit(prepared)));
        }
        self.0.end.send_replace(state.len());
        drop(guard);
        for (answer, result) in answers {
            if let Some(answer) = answer {
                answer.send(result, None);
            }
        }
        count
    }

    /// How many commits wait for the next sync.
    #[must_use]
    pub fn staged(&self) -> usize {
        match &self.inner().sync {
            Sync::AtOnce => 0,
            Sync::Manual { staged } => staged.len(),
        }
    }

    /// Power loss: what was not synced is gone, its receipts resolve to `Closed`, and so does everything else that is
    /// asked of the old handles. The new handle holds the durable part.
    #[must_use]
    pub fn crash(&self) -> Memory {
        self.crash_keeping(0)
    }

    /// Power loss in the middle of a sync: the first `kept` staged commits reached the disk, though nobody was told.
    #[must_use]
    pub fn crash_keeping(&self, kept: usize) -> Memory {
        let mut inner = self.inner();
        let mut state = inner.state.take().unwrap_or_default();
        let blobs = std::mem::take(&mut inner.blobs);
        let sync = match &mut inner.sync {
            Sync::AtOnce => Sync::AtOnce,
            Sync::Manual { staged } => {
                for (i, Staged { prepared, answer }) in std::mem::take(staged).into_iter().enumerate() {
                    if i < kept {
                        // Refused or not, nobody hears of it.
                        let _ = state.commit(prepared);
                    } else {
                        #[cfg(feature = "planted")]
                        if i == kept && inner.planted.bug == Some(Bug::PartialCommit) && prepared.appends.len() > 1 {
                            let mut torn = prepared;
                            torn.appends.truncate(1);
                            torn.wakes.clear();
                            torn.snapshots.clear();
                            let _ = state.commit(torn);
                        }
                    }
                    drop(answer);
                }
                Sync::Manual { staged: Vec::new() }
            }
        };
        #[cfg(feature = "planted")]
        let bug = inner.planted.bug;
        drop(inner);
        let survivor = Memory::with(state, blobs, sync);
        #[cfg(feature = "planted")]
        {
            survivor.inner().planted.bug = bug;
        }
        survivor
    }

    /// From now on, also after a crash, this ledger has the bug.
    #[cfg(feature = "planted")]
    pub fn plant(&self, bug: Bug) {
        self.inner().planted.bug = Some(bug);
    }

    /// Reads, of what is durable.
    pub(crate) fn with_state<T>(&self, read: impl FnOnce(&State) -> T) -> Result<T, ReadError> {
        self.inner().state.as_ref().map(read).ok_or(ReadError::Closed)
    }

    /// Changes that no commit makes: redaction, rebuilt rows, an import.
    pub(crate) fn with_state_mut<T>(&self, change: impl FnOnce(&mut State) -> T) -> Result<T, ReadError> {
        let mut inner = self.inner();
        let state = inner.state.as_mut().ok_or(ReadError::Closed)?;
        let result = change(state);
        self.0.end.send_replace(state.len());
        Ok(result)
    }

    pub(crate) fn redactions(&self) -> &AtomicU64 {
        &self.0.redactions
    }

    pub(crate) fn end(&self) -> watch::Receiver<u64> {
        self.0.end.subscribe()
    }

    pub(crate) fn put_blob(&self, bytes: &[u8]) -> BlobId {
        let id = BlobId(Hash::of(bytes));
        self.inner().blobs.entry(id).or_insert_with(|| Arc::from(bytes));
        id
    }

    pub(crate) fn get_blob(&self, id: &BlobId) -> Result<Vec<u8>, ReadError> {
        let inner = self.inner();
        let state = inner.state.as_ref().ok_or(ReadError::Closed)?;
        let bytes = inner.blobs.get(id).or_else(|| state.large_payload(id));
        bytes.map(|bytes| bytes.to_vec()).ok_or(ReadError::NoBlob(*id))
    }

    pub(crate) fn blob_ids(&self) -> Vec<BlobId> {
        let inner = self.inner();
        let mut ids: Vec<BlobId> = inner.blobs.keys().copied().collect();
        ids.extend(inner.state.iter().flat_map(State::large_payload_ids));
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// A ledger in memory never outlives its program, so there is no other version to tell apart.
    pub(crate) fn program(&self) -> Program {
        Program::default()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().expect("a thread panicked in the middle of a change")
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

/// The answer to a commit, and what a refusal leaves behind: nothing.
pub(crate) type Answered = Result<Committed, CommitError>;
