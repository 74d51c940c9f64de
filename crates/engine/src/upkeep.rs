//! What is said of the ledger as a whole, the same by whoever has it open: a daemon for its callers, or the command line
//! where none serves the home.

use abide_kernel::time::Time;
use abide_ledger::{ArchiveError, ArchivePolicy, CommitError, Ledger, Progress, ReadError};
use serde_json::{Value, json};

use crate::program::rows_of_stored;

/// Facts older than this many days move when nobody says otherwise.
pub const OLDER_THAN_DAYS: u64 = 30;

const DAY_MS: u64 = 24 * 3_600_000;

/// How much is in it.
pub fn stats(ledger: &Ledger) -> Result<Value, ReadError> {
    let stats = ledger.stats()?;
    Ok(json!({
        "streams": stats.streams, "facts": stats.facts, "bytes": stats.bytes,
        "blobs": stats.blobs, "blob_bytes": stats.blob_bytes,
        "segments": stats.segments, "segment_bytes": stats.segment_bytes,
        "snapshots": stats.snapshots, "database_bytes": stats.database_bytes,
        "outdated_rows": stats.outdated_rows, "unreadable_rows": stats.unreadable_rows,
        "damaged_rows": stats.damaged_rows,
    }))
}

/// Whether everything is as it was written. `rebuild_rows` first makes the rows again, from the facts. Streams whose rows
/// another version made are counted as `outdated_rows`, and their rows are not compared.
pub fn verify(ledger: &Ledger, rebuild_rows: bool, progress: &mut dyn FnMut(Progress)) -> Result<Value, CommitError> {
    if rebuild_rows {
        ledger.rebuild_rows(&rows_of_stored, progress)?;
    }
    let report = ledger.verify(&rows_of_stored, progress);
    let damage: Vec<String> = report.damage.iter().map(ToString::to_string).collect();
    let redacted: Vec<String> = report.redacted.iter().map(|(stream, seq)| format!("{stream} at seq {seq}")).collect();
    Ok(json!({
        "intact": report.is_intact(), "streams": report.streams, "facts": report.facts,
        "segments": report.segments, "blobs": report.blobs, "snapshots": report.snapshots, "rows": report.rows,
        "outdated_rows": report.outdated_rows, "redacted": redacted, "damage": damage, "more_damage": report.unlisted,
    }))
}

/// Moves old facts into compressed segments.
pub fn compact(
    ledger: &Ledger,
    now: Time,
    older_than_days: u64,
    max_bytes: Option<u64>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Value, ArchiveError> {
    let ms = i64::try_from(older_than_days.saturating_mul(DAY_MS)).unwrap_or(i64::MAX);
    let older_than = Time::from_ms(now.as_ms().saturating_sub(ms));
    let report = ledger.archive(ArchivePolicy { older_than: Some(older_than), max_bytes }, progress)?;
    Ok(json!({ "segments": report.segments, "facts": report.facts, "bytes": report.bytes }))
}
