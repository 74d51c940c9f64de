//! `abide ledger export`: one agent as a folder of records, or the whole ledger as one file.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use abide_api::Client;
use abide_engine::export;
use abide_kernel::id::AgentId;
use abide_ledger::{Ledger, Options, Progress};
use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};

use super::WHOLE_LEDGER_TIMEOUT;
use crate::cli::{ExportArgs, PlaceArgs};
use crate::commands::why;
use crate::connection::{self, block_on};
use crate::output::{Failed, Output, counted};
use crate::{folder, home};

pub fn run(args: &ExportArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let from = match connection::find_if_any(place)? {
        Some(client) => From::Daemon(client.with_timeout(WHOLE_LEDGER_TIMEOUT)),
        None => From::Home(home::open_existing(place, Options::read_only())?),
    };
    match (&args.full, &args.id, &args.dir) {
        (Some(file), _, _) => export_ledger(&from, file, out),
        (None, Some(id), Some(dir)) => export_agent(&from, id, dir, out),
        (None, _, _) => Err(Failed::Refused("say which agent and which folder, or --full FILE".to_owned()).into()),
    }
}

enum From {
    Home(Ledger),
    Daemon(Client),
}

/// The result of the export of one agent.
#[derive(Serialize)]
struct ExportedAgent<'a> {
    agent_id: &'a AgentId,
    facts: u64,
    dir: String,
}

/// The result of the export of the whole ledger.
#[derive(Serialize)]
struct ExportedLedger {
    file: String,
    #[serde(flatten)]
    counts: Counts,
}

/// One agent as a fixture: its records as they are, and what happened as events.
fn export_agent(from: &From, id: &AgentId, dir: &Path, out: &Output) -> anyhow::Result<()> {
    let facts = match from {
        From::Home(ledger) => agent_of_home(ledger, id, dir, out)?,
        From::Daemon(client) => {
            let exported = block_on(async { Ok(client.export_agent(id.as_str()).await?) })?;
            // Each fact is an event.
            let facts = exported.files.get("ledger/events.jsonl").map_or(0, |events| events.lines().count() as u64);
            why::save(dir, exported.files)?;
            facts
        }
    };
    out.result(&ExportedAgent { agent_id: id, facts, dir: dir.display().to_string() }, || {
        format!("wrote {} of {id} to {}\n", counted(facts, "fact"), dir.display())
    })
}

fn agent_of_home(ledger: &Ledger, id: &AgentId, dir: &Path, out: &Output) -> anyhow::Result<u64> {
    let exported = export::records(ledger, id, usize::MAX, &mut |progress| out.progress(progress));
    out.clear_progress();
    let Some((facts, files)) = exported? else {
        return Err(super::no_agent(ledger, id));
    };
    folder::save(dir, &files)?;
    Ok(facts)
}

/// The whole ledger, written beside its place and moved there when it is complete.
#[expect(clippy::disallowed_methods, reason = "the file is the user's, who named it")]
fn export_ledger(from: &From, path: &Path, out: &Output) -> anyhow::Result<()> {
    if path.exists() {
        return Err(Failed::Refused(format!("{} exists; choose another name", path.display())).into());
    }
    let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
    name.push(format!(".{}.partial", std::process::id()));
    let partial = path.with_file_name(name);
    let written = (|| -> anyhow::Result<Counts> {
        let mut file = BufWriter::new(File::create_new(&partial)?);
        let counts = match from {
            From::Home(ledger) => {
                let report = ledger.export_full(&mut file, &mut |progress| out.progress(progress))?;
                Counts { facts: report.facts, streams: report.streams, blobs: report.blobs }
            }
            From::Daemon(client) => download(client, &mut file, out)?,
        };
        file.flush()?;
        file.get_ref().sync_all()?;
        fs::rename(&partial, path)?;
        Ok(counts)
    })();
    out.clear_progress();
    let counts = written.inspect_err(|_| drop(fs::remove_file(&partial))).map_err(|error| {
        if Failed::is_of_daemon(&error) { error } else { error.context(format!("can't write {}", path.display())) }
    })?;
    let exported = ExportedLedger { file: path.display().to_string(), counts };
    out.result(&exported, || {
        let (facts, streams) = (counted(exported.counts.facts, "fact"), counted(exported.counts.streams, "stream"));
        format!("wrote {facts} of {streams} to {}\n", path.display())
    })
}

/// The counts in the last line of a full export.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Counts {
    facts: u64,
    streams: u64,
    blobs: u64,
}

/// The last line of a full export. A stream that broke off has none.
#[derive(Deserialize)]
struct LastLine {
    end: Counts,
}

/// Downloads the export. Its last line proves that it is complete.
fn download(client: &Client, file: &mut impl Write, out: &Output) -> anyhow::Result<Counts> {
    let mut line: Vec<u8> = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    let mut done = 0;
    let piece = |bytes: &[u8]| {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                last = std::mem::take(&mut line);
            }
        }
        done += bytes.len() as u64;
        out.progress(Progress { what: "exporting", done, total: 0 });
        file.write_all(bytes)
    };
    block_on(async { Ok(client.download("/v1/ledger/export", piece).await?) })??;
    let end = serde_json::from_slice::<LastLine>(&last).ok().filter(|_| line.is_empty());
    let end =
        end.ok_or_else(|| anyhow!("the export broke off before its end; try again")).context("from the daemon")?;
    Ok(end.end)
}
