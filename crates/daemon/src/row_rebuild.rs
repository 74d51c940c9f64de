//! Rebuilding the read rows that another version of the program made, beside everything else that the daemon does.
//!
//! The rebuild runs in the background: a list of a stream that was not reached yet is folded from its facts when it is
//! asked for. The streams that are left when the daemon ends are rebuilt after its next start.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use abide_ledger::Ledger;

#[derive(Debug)]
pub struct RowRebuild {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RowRebuild {
    pub fn start(ledger: &Ledger) -> io::Result<RowRebuild> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ledger, stopped) = (ledger.clone(), Arc::clone(&stop));
        let thread = Builder::new().name("rows".to_owned()).spawn(move || rebuild(&ledger, &stopped))?;
        Ok(RowRebuild { stop, thread: Some(thread) })
    }
}

impl Drop for RowRebuild {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If it panicked, that was reported already, and the streams that are left stay marked.
            let _ended = thread.join();
        }
    }
}

fn rebuild(ledger: &Ledger, stop: &AtomicBool) {
    let outdated = match ledger.stats() {
        Ok(stats) => stats.outdated_rows,
        Err(error) => return tracing::warn!(%error, "can't tell whether rows have to be rebuilt"),
    };
    if outdated == 0 {
        return;
    }
    tracing::info!(streams = outdated, "rebuilding lists that another version made");
    match ledger.rebuild_outdated_rows(&|| stop.load(Ordering::Relaxed)) {
        Ok(rebuilt) => {
            for (stream, error) in &rebuilt.unreadable {
                tracing::warn!(%stream, error, "its lists stay as another version made them");
            }
            tracing::info!(streams = rebuilt.streams, "rebuilt lists that another version made");
        }
        Err(error) => tracing::warn!(%error, "lists that another version made are rebuilt after the next start"),
    }
}
