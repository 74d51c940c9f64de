//! `abide ledger import`: reads a file that `export --full` wrote. The import is atomic.

use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::Path;

use abide_ledger::ImportError;
use anyhow::{Context, bail};
use serde::Serialize;

use crate::cli::PlaceArgs;
use crate::output::{Failed, Output, counted};
use crate::{connection, home};

#[derive(Serialize)]
struct Imported {
    facts: u64,
    streams: u64,
    blobs: u64,
}

pub fn run(path: &Path, args: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Failed::NotFound(format!("{} does not exist", path.display())).into());
        }
        Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
    };
    if path.is_dir() {
        bail!("{} is a folder; name a file that `abide ledger export --full` wrote", path.display());
    }
    let home = home::dir(args)?;
    if let Some(served) = connection::serving(&home)? {
        let (home, url) = (home.display(), served.url);
        let message =
            format!("a daemon serves {home} at {url}; `abide daemon stop` first, or import into another --home");
        return Err(Failed::Refused(message).into());
    }
    let ledger = home::open_or_create(args)?;
    let imported = ledger
        .import_full(&mut BufReader::new(file), &abide_engine::rows_of_stored, &mut |progress| out.progress(progress));
    out.clear_progress();
    if imported.is_err() {
        // Nothing was imported, so nothing is there that was not there before.
        ledger.discard_if_new();
    }
    let report = imported.map_err(|error| match error {
        ImportError::Exists { .. } | ImportError::NewerFacts { .. } => {
            Failed::Refused(format!("{}: {error}", path.display())).into()
        }
        ImportError::Line { .. } | ImportError::Commit(_) | ImportError::Read(_) | ImportError::Io(_) => {
            anyhow::Error::from(error).context(path.display().to_string())
        }
    })?;
    let imported = Imported { facts: report.facts, streams: report.streams, blobs: report.blobs };
    out.result(&imported, || {
        format!("imported {} of {}\n", counted(report.facts, "fact"), counted(report.streams, "stream"))
    })
}
