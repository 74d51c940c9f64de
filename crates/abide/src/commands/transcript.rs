//! `abide transcript`: what was said and done, tool calls and their results included.

use abide_api::client::page_query;
use abide_api::types::TranscriptEntry;

use crate::cli::{LastArgs, PlaceArgs};
use crate::commands::plane;
use crate::connection::{self, block_on};
use crate::output::{Output, Paint, one_line, quoted, quoted_json};

/// The most that `last` takes.
const PAGE: usize = 1_000;
/// Bytes that are shown of one field of a call or a result.
const FIELD_BYTES: usize = 2_000;

pub fn run(args: &LastArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let id = args.id.as_str();
    let entries = block_on(async {
        let client = &client;
        let last = args.last.filter(|last| (1..=PAGE).contains(last));
        let page = |after: Option<String>| async move {
            // The first page may begin near the end; those after it go on from there.
            let query = match (&after, last) {
                (None, Some(last)) => format!("last={last}"),
                (after, _) => page_query(after.as_deref()),
            };
            client.transcript(id, &query).await
        };
        let mut entries = client.all(page).await?;
        let from = args.last.map_or(0, |last| entries.len().saturating_sub(last));
        Ok(entries.split_off(from))
    })?;
    out.result(&plane::page_of(&entries), || {
        if entries.is_empty() {
            return format!("{id} has said nothing yet; `abide send {id} TEXT --wait` asks it something\n");
        }
        entries.iter().map(|entry| entry_text(entry, out)).collect::<Vec<_>>().join("\n")
    })
}

fn entry_text(entry: &TranscriptEntry, out: &Output) -> String {
    let tool = entry.tool.as_deref().map(|tool| format!(" {}", one_line(tool))).unwrap_or_default();
    let status = entry.status.map(|status| format!(" ({status})")).unwrap_or_default();
    let kind = entry.kind.map(|kind| format!(" {kind}")).unwrap_or_default();
    let whose = entry.origin.as_ref().and_then(|origin| origin.id.as_deref());
    let whose = whose.map(|id| format!(" from {}", one_line(id))).unwrap_or_default();
    let head = format!("[{}] {}{kind}{whose}{tool}{status}", entry.seq, entry.role);
    let head = format!("{}  {}\n", out.paint(Paint::Bold, &head), out.paint(Paint::Dim, &out.time(entry.at)));
    let text = entry.text.as_deref().map(quoted).unwrap_or_default();
    let json = entry.json.as_ref().map(|json| quoted_json(json, FIELD_BYTES)).unwrap_or_default();
    format!("{head}{text}{json}")
}
