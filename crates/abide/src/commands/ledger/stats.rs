//! `abide ledger stats`: the size of the ledger.

use abide_daemon::text::grouped;
use abide_engine::upkeep;
use abide_ledger::Options;

use crate::cli::PlaceArgs;
use crate::connection::{self, block_on};
use crate::home;
use crate::output::{Output, counted, table};

pub fn run(place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let stats = match connection::find_if_any(place)? {
        Some(client) => block_on(async { Ok(client.ledger_stats().await?) })?,
        None => upkeep::stats(&home::open_existing(place, Options::read_only())?)?,
    };
    out.result(&stats, || {
        let mut rows = vec![
            ("streams", grouped(stats.streams)),
            ("facts", grouped(stats.facts)),
            ("snapshots", grouped(stats.snapshots)),
            ("database", format!("{} bytes", grouped(stats.database_bytes))),
            ("segments", format!("{} ({} bytes)", grouped(stats.segments), grouped(stats.segment_bytes))),
            ("blobs", format!("{} ({} bytes)", grouped(stats.blobs), grouped(stats.blob_bytes))),
            ("on disk", format!("{} bytes", grouped(stats.bytes))),
        ];
        let damaged = stats.damaged_rows;
        rows.extend((damaged > 0).then(|| ("damaged", format!("{} of lists", counted(damaged, "row")))));
        table(&rows)
    })
}
