use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::Context;
use serde_json::json;

use crate::cli::HomeArgs;
use crate::home;
use crate::output::{Output, grouped};

pub fn run(path: &Path, args: &HomeArgs, out: &Output) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| format!("can't read {}", path.display()))?;
    let ledger = home::open_or_create(args)?;
    let imported =
        ledger.import_full(&mut BufReader::new(file), &super::rows_of, &mut |progress| out.progress(progress));
    out.clear_progress();
    let report = imported.with_context(|| format!("{}: nothing was imported", path.display()))?;
    let value = json!({ "facts": report.facts, "streams": report.streams, "blobs": report.blobs });
    out.result(&value, || format!("imported {} facts of {} streams\n", grouped(report.facts), grouped(report.streams)))
}
