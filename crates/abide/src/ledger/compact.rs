use abide_kernel::time::Time;
use abide_ledger::{ArchivePolicy, Options};
use serde_json::json;

use crate::cli::HomeArgs;
use crate::output::{Output, grouped};
use crate::{clock, home};

pub fn run(older_than_days: u64, max_bytes: Option<u64>, args: &HomeArgs, out: &Output) -> anyhow::Result<()> {
    let ledger = home::open_existing(args, Options::default())?;
    let ms = i64::try_from(older_than_days.saturating_mul(24 * 3_600_000)).unwrap_or(i64::MAX);
    let older_than = Time::from_ms(clock::now().as_ms().saturating_sub(ms));
    let policy = ArchivePolicy { older_than: Some(older_than), max_bytes };
    let report = ledger.archive(policy, &mut |progress| out.progress(progress));
    out.clear_progress();
    let report = report?;
    let value = json!({ "segments": report.segments, "facts": report.facts, "bytes": report.bytes });
    out.result(&value, || {
        format!(
            "moved {} facts into {} segments of {} bytes\n",
            grouped(report.facts),
            report.segments,
            grouped(report.bytes)
        )
    })
}
