//! `abide ledger verify`: checks that the ledger is as it was written.

use abide_api::types::{LedgerVerification, Verify};
use abide_daemon::text::grouped;
use abide_engine::upkeep;
use abide_ledger::Options;

use super::WHOLE_LEDGER_TIMEOUT;
use crate::cli::PlaceArgs;
use crate::connection::{self, block_on};
use crate::home;
use crate::output::{Failed, Output, counted};

pub fn run(rebuild_rows: bool, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let report = match connection::find_if_any(place)? {
        Some(client) => {
            let client = client.with_timeout(WHOLE_LEDGER_TIMEOUT);
            block_on(async { Ok(client.verify_ledger(&Verify { rebuild_rows }).await?) })?
        }
        None => verify_home(rebuild_rows, place, out)?,
    };
    out.result(&report, || {
        let (facts, streams) = (counted(report.facts, "fact"), counted(report.streams, "stream"));
        let mut text = format!("checked {facts} of {streams}\n");
        for line in &report.redacted {
            text.push_str(&format!("redacted: {line}\n"));
        }
        for line in &report.damage {
            text.push_str(&format!("damaged: {line}\n"));
        }
        if report.more_damage > 0 {
            text.push_str(&format!("… and {} more\n", grouped(report.more_damage)));
        }
        if report.outdated_rows > 0 {
            let streams = counted(report.outdated_rows, "stream");
            text.push_str(&format!(
                "to be rebuilt: the rows of {streams}, which another version made and which were not compared; a \
                 running daemon rebuilds them, and so does --rebuild-rows\n"
            ));
        }
        if report.intact {
            text.push_str("everything is intact\n");
        }
        text
    })?;
    if report.intact {
        return Ok(());
    }
    let places = counted(report.damage.len() as u64 + report.more_damage, "place");
    let message = format!("the ledger is damaged in {places}; what is not named can still be read and exported");
    Err(Failed::Found(message).into())
}

fn verify_home(rebuild_rows: bool, place: &PlaceArgs, out: &Output) -> anyhow::Result<LedgerVerification> {
    let options = if rebuild_rows { Options::default() } else { Options::read_only() };
    let ledger = home::open_existing(place, options)?;
    let report = upkeep::verify(&ledger, rebuild_rows, &mut |progress| out.progress(progress));
    out.clear_progress();
    Ok(report?)
}
