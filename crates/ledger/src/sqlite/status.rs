//! The part of a ledger that its writer and its readers share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::write_failure::LastWriteFailure;
use crate::error::Damage;
use crate::program::Program;

#[derive(Debug)]
pub(crate) struct Status {
    /// The rowid of the last durable fact.
    pub end: watch::Sender<u64>,
    pub write_failure: LastWriteFailure,
    /// False once no stream has rows that are to be rebuilt. Only the process that writes can know that.
    pub may_be_outdated: AtomicBool,
    /// Rows that were found damaged since the ledger was opened.
    pub damaged_rows: AtomicU64,
    /// Damage to rows that was reported and is not repaired yet, each with its stream. It is found again by every reader
    /// and every commit that comes by, and reported once.
    reported: Mutex<BTreeSet<(String, String)>>,
}

impl Default for Status {
    fn default() -> Status {
        Status {
            end: watch::Sender::new(0),
            write_failure: LastWriteFailure::default(),
            may_be_outdated: AtomicBool::new(true),
            damaged_rows: AtomicU64::new(0),
            reported: Mutex::default(),
        }
    }
}

impl Status {
    pub(crate) fn report_damaged_row(&self, program: &Program, stream: &str, damage: &Damage) {
        if self.reported().insert((stream.to_owned(), damage.to_string())) {
            self.damaged_rows.fetch_add(1, Ordering::Relaxed);
            (program.on_damage)(damage);
        }
    }

    /// The rows of a stream were rebuilt: damage to them is new damage from now on.
    pub(crate) fn forget_damaged_rows(&self, stream: &str) {
        self.reported().retain(|(damaged, _)| damaged != stream);
    }

    fn reported(&self) -> MutexGuard<'_, BTreeSet<(String, String)>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
