//! `abide ledger stats`: how much is in it.

use abide_daemon::text::grouped;
use abide_engine::upkeep;
use abide_ledger::Options;

use super::number;
use crate::cli::PlaceArgs;
use crate::connection::{self, block_on};
use crate::home;
use crate::output::{Output, counted, table};

pub fn run(place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let value = match connection::find_if_any(place)? {
        Some(client) => block_on(async { Ok(client.ledger_stats().await?) })?,
        None => upkeep::stats(&home::open_existing(place, Options::read_only())?)?,
    };
    out.result(&value, || {
        let count = |name| grouped(number(&value, name));
        let mut rows = vec![
            ("streams", count("streams")),
            ("facts", count("facts")),
            ("snapshots", count("snapshots")),
            ("database", format!("{} bytes", count("database_bytes"))),
            ("segments", format!("{} ({} bytes)", count("segments"), count("segment_bytes"))),
            ("blobs", format!("{} ({} bytes)", count("blobs"), count("blob_bytes"))),
            ("on disk", format!("{} bytes", count("bytes"))),
        ];
        let damaged = number(&value, "damaged_rows");
        rows.extend((damaged > 0).then(|| ("damaged", format!("{} of lists", counted(damaged, "row")))));
        table(&rows)
    })
}
