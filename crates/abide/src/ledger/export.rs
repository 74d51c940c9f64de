use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use abide_engine::fold::{decode, fold_until};
use abide_kernel::fixture::{self, History};
use abide_kernel::id::AgentId;
use abide_ledger::{Ledger, Options, Progress, StreamId};
use anyhow::Context;
use serde_json::json;

use crate::cli::{ExportArgs, HomeArgs};
use crate::output::{Failed, Output, counted};
use crate::{folder, home};

pub fn run(args: &ExportArgs, home: &HomeArgs, out: &Output) -> anyhow::Result<()> {
    let ledger = home::open_existing(home, Options::read_only())?;
    match (&args.full, &args.id, &args.dir) {
        (Some(file), _, _) => full(&ledger, file, out),
        (None, Some(id), Some(dir)) => agent(&ledger, id, dir, out),
        (None, _, _) => Err(Failed::Refused("say which agent and which folder, or --full FILE".to_owned()).into()),
    }
}

/// One agent as a fixture: its records as they are, and what happened as events.
fn agent(ledger: &Ledger, id: &AgentId, dir: &Path, out: &Output) -> anyhow::Result<()> {
    let stream = StreamId::agent(id);
    let Some(head) = ledger.head(&stream)? else {
        return Err(super::no_agent(ledger, id));
    };
    let state = fold_until(ledger, id, head.seq)?;
    let mut history = History::default();
    let mut after = 0;
    while after < head.seq {
        for recorded in ledger.read(&stream, after, 1_000)? {
            after = recorded.seq;
            history.add(recorded.seq, recorded.at, &decode(&stream, &recorded)?);
        }
        out.progress(Progress { what: "exporting", done: after, total: head.seq });
    }
    out.clear_progress();
    let now = state.at;
    folder::save(dir, &fixture::files(&state, now, history))?;
    let value = json!({ "agent_id": id, "facts": head.seq, "dir": dir.display().to_string() });
    out.result(&value, || format!("wrote {} of {id} to {}\n", counted(head.seq, "fact"), dir.display()))
}

/// The whole ledger, written beside its place and moved there when it is complete.
fn full(ledger: &Ledger, path: &Path, out: &Output) -> anyhow::Result<()> {
    if path.exists() {
        return Err(Failed::Refused(format!("{} exists; choose another name", path.display())).into());
    }
    let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
    name.push(format!(".{}.partial", std::process::id()));
    let partial = path.with_file_name(name);
    let written = (|| -> anyhow::Result<_> {
        let mut file = BufWriter::new(fs::File::create_new(&partial)?);
        let report = ledger.export_full(&mut file, &mut |progress| out.progress(progress))?;
        file.flush()?;
        file.get_ref().sync_all()?;
        fs::rename(&partial, path)?;
        Ok(report)
    })();
    out.clear_progress();
    let report = written
        .inspect_err(|_| drop(fs::remove_file(&partial)))
        .with_context(|| format!("can't write {}", path.display()))?;
    let value = json!({ "file": path.display().to_string(), "facts": report.facts, "streams": report.streams, "blobs": report.blobs });
    out.result(&value, || {
        let (facts, streams) = (counted(report.facts, "fact"), counted(report.streams, "stream"));
        format!("wrote {facts} of {streams} to {}\n", path.display())
    })
}
