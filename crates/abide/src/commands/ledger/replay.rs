//! `abide ledger replay`: the state that the records of a folder fold to.

use std::path::Path;

use abide_kernel::fixture::differences;
use anyhow::{Context, bail};
use serde_json::Value;

use crate::folder;
use crate::output::{Failed, Output, table};

pub fn run(dir: &Path, out: &Output) -> anyhow::Result<()> {
    let fixture = folder::load(dir)?;
    let expected = expected(dir)?;
    let printed = fixture.projection();
    out.result(&printed, || {
        let fields = printed.as_object().into_iter().flatten();
        table(&fields.map(|(name, value)| (name.as_str(), plain(value))).collect::<Vec<_>>())
    })?;
    let found = expected.map(|expected| differences(&expected, &printed)).unwrap_or_default();
    if found.is_empty() {
        return Ok(());
    }
    let what = format!("{} replays to something else than its expected.json says", dir.display());
    Err(Failed::Differs { what, differences: found }.into())
}

fn expected(dir: &Path) -> anyhow::Result<Option<Value>> {
    let path = dir.join("expected.json");
    let Some(bytes) = folder::read_if_there(&path)? else { return Ok(None) };
    let expected: Value = serde_json::from_slice(&bytes).with_context(|| format!("{} is not JSON", path.display()))?;
    if !expected.is_object() {
        bail!("{} is not a JSON object: it takes keys of the projection, each with what it should be", path.display());
    }
    Ok(Some(expected))
}

fn plain(value: &Value) -> String {
    match (value.as_str(), value.as_array()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(items)) if !items.is_empty() => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        (None, Some(_)) => "-".to_owned(),
        (None, None) if value.is_null() => "-".to_owned(),
        (None, None) => value.to_string(),
    }
}
