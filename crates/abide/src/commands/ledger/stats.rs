//! `abide ledger stats`: how much is in it.

use abide_ledger::Options;
use serde_json::{Value, json};

use super::number;
use crate::cli::PlaceArgs;
use crate::connection::{self, block_on};
use crate::home;
use crate::output::{Output, grouped, table};

pub fn run(place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let value = match connection::find_if_any(place)? {
        Some(client) => block_on(async { Ok(client.ledger_stats().await?) })?,
        None => of_home(place)?,
    };
    out.result(&value, || {
        let count = |name| grouped(number(&value, name));
        table(&[
            ("streams", count("streams")),
            ("facts", count("facts")),
            ("snapshots", count("snapshots")),
            ("database", format!("{} bytes", count("database_bytes"))),
            ("segments", format!("{} ({} bytes)", count("segments"), count("segment_bytes"))),
            ("blobs", format!("{} ({} bytes)", count("blobs"), count("blob_bytes"))),
            ("on disk", format!("{} bytes", count("bytes"))),
        ])
    })
}

fn of_home(place: &PlaceArgs) -> anyhow::Result<Value> {
    let stats = home::open_existing(place, Options::read_only())?.stats()?;
    Ok(json!({
        "streams": stats.streams, "facts": stats.facts, "bytes": stats.bytes,
        "blobs": stats.blobs, "blob_bytes": stats.blob_bytes,
        "segments": stats.segments, "segment_bytes": stats.segment_bytes,
        "snapshots": stats.snapshots, "database_bytes": stats.database_bytes,
    }))
}
