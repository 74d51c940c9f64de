//! `abide ledger compact`: moves old facts into compressed segments.

use abide_api::types::{Compact, LedgerCompaction};
use abide_daemon::text::grouped;
use abide_engine::upkeep;
use abide_ledger::Options;

use super::WHOLE_LEDGER_TIMEOUT;
use crate::cli::PlaceArgs;
use crate::connection::{self, block_on};
use crate::output::{Output, counted};
use crate::{clock, home};

pub fn run(older_than_days: u64, max_bytes: Option<u64>, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let report = match connection::find_if_any(place)? {
        Some(client) => {
            let client = client.with_timeout(WHOLE_LEDGER_TIMEOUT);
            let compact = Compact { older_than_days: Some(older_than_days), max_bytes };
            block_on(async { Ok(client.compact_ledger(&compact).await?) })?
        }
        None => compact_home(older_than_days, max_bytes, place, out)?,
    };
    out.result(&report, || {
        if report.facts == 0 {
            let small = max_bytes.map(|max| format!(", and they take no more than {} bytes", grouped(max)));
            let days = counted(older_than_days, "day");
            return format!("nothing to move: no fact is older than {days}{}\n", small.unwrap_or_default());
        }
        let (facts, segments) = (counted(report.facts, "fact"), counted(report.segments, "segment"));
        format!("moved {facts} into {segments} of {} bytes\n", grouped(report.bytes))
    })
}

fn compact_home(
    older_than_days: u64,
    max_bytes: Option<u64>,
    place: &PlaceArgs,
    out: &Output,
) -> anyhow::Result<LedgerCompaction> {
    let ledger = home::open_existing(place, Options::default())?;
    let report =
        upkeep::compact(&ledger, clock::now(), older_than_days, max_bytes, &mut |progress| out.progress(progress));
    out.clear_progress();
    Ok(report?)
}
