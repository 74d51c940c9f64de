//! `abide ledger verify`: whether everything is as it was written.

use abide_api::types::Verify;
use abide_daemon::text::grouped;
use abide_engine::upkeep;
use abide_ledger::Options;
use serde_json::Value;

use super::{AS_LONG_AS_IT_TAKES, number};
use crate::cli::PlaceArgs;
use crate::connection::{self, block_on};
use crate::home;
use crate::output::{Failed, Output, counted};

pub fn run(rebuild_rows: bool, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let value = match connection::find_if_any(place)? {
        Some(client) => {
            let client = client.with_timeout(AS_LONG_AS_IT_TAKES);
            block_on(async { Ok(client.verify_ledger(&Verify { rebuild_rows }).await?) })?
        }
        None => of_home(rebuild_rows, place, out)?,
    };
    let intact = value.get("intact").and_then(Value::as_bool).unwrap_or(false);
    let damage = lines(&value, "damage");
    let unlisted = number(&value, "more_damage");
    out.result(&value, || {
        let (facts, streams) = (counted(number(&value, "facts"), "fact"), counted(number(&value, "streams"), "stream"));
        let mut text = format!("checked {facts} of {streams}\n");
        for line in lines(&value, "redacted") {
            text.push_str(&format!("redacted: {line}\n"));
        }
        for line in &damage {
            text.push_str(&format!("damaged: {line}\n"));
        }
        if unlisted > 0 {
            text.push_str(&format!("… and {} more\n", grouped(unlisted)));
        }
        let outdated = number(&value, "outdated_rows");
        if outdated > 0 {
            let streams = counted(outdated, "stream");
            text.push_str(&format!(
                "to be rebuilt: the rows of {streams}, which another version made and which were not compared; a \
                 running daemon rebuilds them, and so does --rebuild-rows\n"
            ));
        }
        if intact {
            text.push_str("everything is intact\n");
        }
        text
    })?;
    if intact {
        return Ok(());
    }
    let places = counted(damage.len() as u64 + unlisted, "place");
    let message = format!("the ledger is damaged in {places}; what is not named can still be read and exported");
    Err(Failed::Found(message).into())
}

fn lines<'a>(value: &'a Value, name: &str) -> Vec<&'a str> {
    value.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn of_home(rebuild_rows: bool, place: &PlaceArgs, out: &Output) -> anyhow::Result<Value> {
    let options = if rebuild_rows { Options::default() } else { Options::read_only() };
    let ledger = home::open_existing(place, options)?;
    let report = upkeep::verify(&ledger, rebuild_rows, &mut |progress| out.progress(progress));
    out.clear_progress();
    Ok(report?)
}
