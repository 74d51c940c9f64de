//! `abide ledger compact`: old facts move into compressed segments.

use abide_api::types::Compact;
use abide_kernel::time::Time;
use abide_ledger::{ArchivePolicy, Options};
use serde_json::{Value, json};

use super::{AS_LONG_AS_IT_TAKES, number};
use crate::cli::PlaceArgs;
use crate::connection::{self, block_on};
use crate::output::{Output, counted, grouped};
use crate::{clock, home};

pub fn run(older_than_days: u64, max_bytes: Option<u64>, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let value = match connection::find_if_any(place)? {
        Some(client) => {
            let client = client.with_timeout(AS_LONG_AS_IT_TAKES);
            let compact = Compact { older_than_days: Some(older_than_days), max_bytes };
            block_on(async { Ok(client.compact_ledger(&compact).await?) })?
        }
        None => of_home(older_than_days, max_bytes, place, out)?,
    };
    out.result(&value, || {
        let facts = number(&value, "facts");
        if facts == 0 {
            let small = max_bytes.map(|max| format!(", and they take no more than {} bytes", grouped(max)));
            let days = counted(older_than_days, "day");
            return format!("nothing to move: no fact is older than {days}{}\n", small.unwrap_or_default());
        }
        let (facts, segments) = (counted(facts, "fact"), counted(number(&value, "segments"), "segment"));
        format!("moved {facts} into {segments} of {} bytes\n", grouped(number(&value, "bytes")))
    })
}

fn of_home(older_than_days: u64, max_bytes: Option<u64>, place: &PlaceArgs, out: &Output) -> anyhow::Result<Value> {
    let ledger = home::open_existing(place, Options::default())?;
    let ms = i64::try_from(older_than_days.saturating_mul(24 * 3_600_000)).unwrap_or(i64::MAX);
    let older_than = Time::from_ms(clock::now().as_ms().saturating_sub(ms));
    let policy = ArchivePolicy { older_than: Some(older_than), max_bytes };
    let report = ledger.archive(policy, &mut |progress| out.progress(progress));
    out.clear_progress();
    let report = report?;
    Ok(json!({ "segments": report.segments, "facts": report.facts, "bytes": report.bytes }))
}
