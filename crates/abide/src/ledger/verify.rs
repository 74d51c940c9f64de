use abide_ledger::Options;
use serde_json::json;

use crate::cli::HomeArgs;
use crate::home;
use crate::output::{Failed, Output, grouped};

pub fn run(args: &HomeArgs, out: &Output) -> anyhow::Result<()> {
    let ledger = home::open_existing(args, Options::read_only())?;
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
        let mut text = format!("checked {} facts of {} streams\n", grouped(report.facts), grouped(report.streams));
        for line in &redacted {
            text.push_str(&format!("redacted: {line}\n"));
        }
        for line in &damage {
            text.push_str(&format!("damaged: {line}\n"));
        }
        if report.unlisted > 0 {
            text.push_str(&format!("… and {} more\n", report.unlisted));
        }
        if report.is_intact() {
            text.push_str("everything is intact\n");
        }
        text
    })?;
    if report.is_intact() {
        return Ok(());
    }
    Err(Failed::Found("the ledger is damaged; agents that are not named above are not affected".to_owned()).into())
}
