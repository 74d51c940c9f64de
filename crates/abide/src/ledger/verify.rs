use abide_ledger::Options;
use serde_json::json;

use crate::cli::HomeArgs;
use crate::home;
use crate::output::{Failed, Output, counted, grouped};

pub fn run(rebuild_rows: bool, args: &HomeArgs, out: &Output) -> anyhow::Result<()> {
    let options = if rebuild_rows { Options::default() } else { Options::read_only() };
    let ledger = home::open_existing(args, options)?;
    if rebuild_rows {
        ledger.rebuild_rows(&super::rows_of, &mut |progress| out.progress(progress))?;
    }
    let report = ledger.verify(&super::rows_of, &mut |progress| out.progress(progress));
    out.clear_progress();
    let damage: Vec<String> = report.damage.iter().map(ToString::to_string).collect();
    let redacted: Vec<String> = report.redacted.iter().map(|(stream, seq)| format!("{stream} at seq {seq}")).collect();
    let value = json!({
        "intact": report.is_intact(), "streams": report.streams, "facts": report.facts,
        "segments": report.segments, "blobs": report.blobs, "snapshots": report.snapshots, "rows": report.rows,
        "redacted": redacted, "damage": damage, "more_damage": report.unlisted,
    });
    out.result(&value, || {
        let (facts, streams) = (counted(report.facts, "fact"), counted(report.streams, "stream"));
        let mut text = format!("checked {facts} of {streams}\n");
        for line in &redacted {
            text.push_str(&format!("redacted: {line}\n"));
        }
        for line in &damage {
            text.push_str(&format!("damaged: {line}\n"));
        }
        if report.unlisted > 0 {
            text.push_str(&format!("… and {} more\n", grouped(report.unlisted)));
        }
        if report.is_intact() {
            text.push_str("everything is intact\n");
        }
        text
    })?;
    if report.is_intact() {
        return Ok(());
    }
    let count = report.damage.len() as u64 + report.unlisted;
    let places = counted(count, "place");
    let message = format!("the ledger is damaged in {places}; what is not named can still be read and exported");
    Err(Failed::Found(message).into())
}
