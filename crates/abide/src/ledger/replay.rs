use std::path::Path;

use abide_kernel::explain::why;
use abide_kernel::fixture::differences;
use anyhow::Context;
use serde_json::Value;

use crate::folder;
use crate::output::{Failed, Output, table};

pub fn run(dir: &Path, out: &Output) -> anyhow::Result<()> {
    let fixture = folder::load(dir)?;
    let printed = fixture.projection();
    let expected: Option<Value> = folder::read_if_there(&dir.join("expected.json"))?
        .map(|bytes| serde_json::from_slice(&bytes).context("expected.json is not JSON"))
        .transpose()?;
    out.result(&printed, || {
        let sentence = why(&fixture.state, fixture.decision()).sentence;
        let Value::Object(fields) = &printed else { return sentence };
        let rows: Vec<(&str, String)> = fields.iter().map(|(name, value)| (name.as_str(), plain(value))).collect();
        format!("{sentence}\n\n{}", table(&rows))
    })?;
    let found = expected.map(|expected| differences(&expected, &printed)).unwrap_or_default();
    if found.is_empty() {
        return Ok(());
    }
    Err(Failed::Found(format!("{} replays to something else:\n  {}", dir.display(), found.join("\n  "))).into())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}
