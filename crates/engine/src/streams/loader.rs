//! Loading streams from the ledger, many at a time.
//!
//! A stream that has to be read while others are being read joins the next batch, and a batch is handed over whole. So when
//! a thousand agents come due together, all of them are read before the first begins its turn: reading is the small part,
//! and done one by one between the steps of the others, each would wait for most of their turns.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::Streams;
use crate::core::Core;
use crate::fold::LoadError;
use crate::streams::kind::{IdOf, StreamKind};

/// Threads that read: it is work for a core, not waiting.
const READERS: usize = 2;
/// Streams in a batch: what is read first waits for the last.
const BATCH: usize = 256;

pub(super) struct Loader<K: StreamKind>(Mutex<Queue<K>>);

struct Queue<K: StreamKind> {
    wanted: VecDeque<LoadRequest<K>>,
    readers: usize,
}

struct LoadRequest<K: StreamKind> {
    id: IdOf<K>,
    /// Whether what was in flight is to be cut. Not after a refused commit: whatever runs goes on.
    boot: bool,
    reply: oneshot::Sender<Read<K>>,
}

/// The loaded stream; or the panic of reading it, which is the panic of that stream's actor alone.
type Read<K> = std::thread::Result<Result<Core<<K as StreamKind>::Machine>, LoadError>>;

impl<K: StreamKind> Default for Loader<K> {
    fn default() -> Loader<K> {
        Loader(Mutex::new(Queue { wanted: VecDeque::new(), readers: 0 }))
    }
}

impl<K: StreamKind> Loader<K> {
    /// Puts one in line. True if a reader has to be started for it.
    fn enqueue(&self, wanted: LoadRequest<K>) -> bool {
        let mut queue = self.lock();
        queue.wanted.push_back(wanted);
        let starts = queue.readers < READERS;
        queue.readers += usize::from(starts);
        starts
    }

    /// The next batch; with nothing left, the reader is counted out.
    fn take_batch(&self) -> Vec<LoadRequest<K>> {
        let mut queue = self.lock();
        if queue.wanted.is_empty() {
            queue.readers -= 1;
        }
        let share = queue.wanted.len().min(BATCH);
        queue.wanted.drain(..share).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Queue<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a stream for its actor; one that does not exist yet is empty.
pub(super) async fn load<K: StreamKind>(
    streams: &Arc<Streams<K>>,
    id: &IdOf<K>,
    boot: bool,
) -> Result<Core<K::Machine>, LoadError> {
    if streams.engine.clock.is_simulated() {
        return read(streams, id, boot);
    }
    let (reply, answer) = oneshot::channel();
    if streams.loader.enqueue(LoadRequest { id: id.clone(), boot, reply }) {
        let streams = Arc::clone(streams);
        // It answers through the channels; nobody waits for its end.
        drop(tokio::task::spawn_blocking(move || read_all(&streams)));
    }
    match answer.await {
        Ok(Ok(read)) => read,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        // The runtime is going down, and so are we.
        Err(_) => std::future::pending().await,
    }
}

fn read_all<K: StreamKind>(streams: &Streams<K>) {
    loop {
        let batch = streams.loader.take_batch();
        if batch.is_empty() {
            return;
        }
        let one = |LoadRequest { id, boot, reply }| {
            (reply, std::panic::catch_unwind(AssertUnwindSafe(|| read(streams, &id, boot))))
        };
        let all: Vec<(oneshot::Sender<Read<K>>, Read<K>)> = batch.into_iter().map(one).collect();
        for (reply, read) in all {
            // Its actor may have ended with the host.
            let _unheard = reply.send(read);
        }
    }
}

fn read<K: StreamKind>(streams: &Streams<K>, id: &IdOf<K>, boot: bool) -> Result<Core<K::Machine>, LoadError> {
    if !boot {
        return Core::reload(&streams.engine.ledger, id);
    }
    let boot = streams.kind.boot(id);
    let core = Core::recover(&streams.engine.ledger, id, boot.clone())?;
    Ok(core.unwrap_or_else(|| Core::new(id.clone()).with_boot(boot)))
}
