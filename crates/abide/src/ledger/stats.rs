use abide_ledger::Options;
use serde_json::json;

use crate::cli::HomeArgs;
use crate::home;
use crate::output::{Output, grouped, table};

pub fn run(args: &HomeArgs, out: &Output) -> anyhow::Result<()> {
    let stats = home::open_existing(args, Options::read_only())?.stats()?;
    let value = json!({
        "streams": stats.streams, "facts": stats.facts, "bytes": stats.bytes,
        "blobs": stats.blobs, "blob_bytes": stats.blob_bytes,
        "segments": stats.segments, "segment_bytes": stats.segment_bytes,
        "snapshots": stats.snapshots, "database_bytes": stats.database_bytes,
    });
    out.result(&value, || {
        table(&[
            ("streams", grouped(stats.streams)),
            ("facts", grouped(stats.facts)),
            ("snapshots", grouped(stats.snapshots)),
            ("database", format!("{} bytes", grouped(stats.database_bytes))),
            ("segments", format!("{} ({} bytes)", grouped(stats.segments), grouped(stats.segment_bytes))),
            ("blobs", format!("{} ({} bytes)", grouped(stats.blobs), grouped(stats.blob_bytes))),
            ("on disk", format!("{} bytes", grouped(stats.bytes))),
        ])
    })
}
