//! Upkeep of the ledger as a whole, for the process that has it open: the daemon, or the command line if no daemon runs.

use abide_kernel::time::Time;
use abide_kernel::views::ledger::{LedgerCompaction, LedgerStats, LedgerVerification};
use abide_ledger::{ArchiveBounds, ArchiveError, CommitError, Ledger, Progress, ReadError, Stats};

use crate::program::rows_of_stored;

/// The default age in days from which facts are moved.
pub const OLDER_THAN_DAYS: u64 = 30;

const DAY_MS: u64 = 24 * 3_600_000;

pub fn stats(ledger: &Ledger) -> Result<LedgerStats, ReadError> {
    let Stats {
        streams,
        facts,
        bytes,
        database_bytes,
        blobs,
        blob_bytes,
        segments,
        segment_bytes,
        snapshots,
        outdated_rows,
        unreadable_rows,
        damaged_rows,
    } = ledger.stats()?;
    Ok(LedgerStats {
        streams,
        facts,
        bytes,
        blobs,
        blob_bytes,
        segments,
        segment_bytes,
        snapshots,
        database_bytes,
        outdated_rows,
        unreadable_rows,
        damaged_rows,
    })
}

/// Checks that everything is as it was written. `rebuild_rows` first rebuilds the rows from the facts. Streams whose rows
/// another version made are counted as `outdated_rows`, and their rows are not compared.
pub fn verify(
    ledger: &Ledger,
    rebuild_rows: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<LedgerVerification, CommitError> {
    if rebuild_rows {
        ledger.rebuild_rows(&rows_of_stored, progress)?;
    }
    let report = ledger.verify(&rows_of_stored, progress);
    Ok(LedgerVerification {
        intact: report.is_intact(),
        streams: report.streams,
        facts: report.facts,
        segments: report.segments,
        blobs: report.blobs,
        snapshots: report.snapshots,
        rows: report.rows,
        outdated_rows: report.outdated_rows,
        redacted: report.redacted.iter().map(|(stream, seq)| format!("{stream} at seq {seq}")).collect(),
        damage: report.damage.iter().map(ToString::to_string).collect(),
        more_damage: report.unlisted,
    })
}

/// Moves old facts into compressed segments.
pub fn compact(
    ledger: &Ledger,
    now: Time,
    older_than_days: u64,
    max_bytes: Option<u64>,
    progress: &mut dyn FnMut(Progress),
) -> Result<LedgerCompaction, ArchiveError> {
    let ms = i64::try_from(older_than_days.saturating_mul(DAY_MS)).unwrap_or(i64::MAX);
    let older_than = Time::from_ms(now.as_ms().saturating_sub(ms));
    let report = ledger.archive(ArchiveBounds { older_than: Some(older_than), max_bytes }, progress)?;
    Ok(LedgerCompaction { segments: report.segments, facts: report.facts, bytes: report.bytes })
}
