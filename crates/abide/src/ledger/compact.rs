use abide_kernel::time::Time;
use abide_ledger::{ArchivePolicy, Options};
use serde_json::json;

use crate::cli::HomeArgs;
use crate::output::{Output, counted, grouped};
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
        if report.facts == 0 {
            let small = max_bytes.map(|max| format!(", and they take no more than {} bytes", grouped(max)));
            let days = counted(older_than_days, "day");
            return format!("nothing to move: no fact is older than {days}{}\n", small.unwrap_or_default());
        }
        let (facts, segments) = (counted(report.facts, "fact"), counted(report.segments, "segment"));
        format!("moved {facts} into {segments} of {} bytes\n", grouped(report.bytes))
    })
}
