//! `abide briefs`: what an agent told its operator.

use abide_api::client::page_query;
use abide_api::types::BriefView;
use abide_kernel::vocabulary::BriefKind;

use crate::cli::{LastArgs, PlaceArgs};
use crate::commands::plane;
use crate::connection::{self, block_on};
use crate::output::{Output, Paint, one_line, quoted};

pub fn run(args: &LastArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let id = args.id.as_str();
    let briefs = block_on(async {
        let client = &client;
        let page = |after: Option<String>| async move { client.briefs(id, &page_query(after.as_deref())).await };
        let mut briefs = client.all(page).await?;
        let from = args.last.map_or(0, |last| briefs.len().saturating_sub(last));
        Ok(briefs.split_off(from))
    })?;
    out.result(&plane::page_of(&briefs), || {
        if briefs.is_empty() {
            return format!("{id} has told nothing yet; `abide why {id}` says what it does\n");
        }
        briefs.iter().map(|brief| brief_text(brief, out)).collect::<Vec<_>>().join("\n")
    })
}

fn brief_text(brief: &BriefView, out: &Output) -> String {
    let paint = if brief.kind == BriefKind::Failure { Paint::Bad } else { Paint::Bold };
    let about = brief.message_id.as_ref().map(|id| format!("  to {}", one_line(id.as_str()))).unwrap_or_default();
    let cut = if brief.cut { " (cut)" } else { "" };
    let head = out.paint(paint, &format!("{}{cut}", brief.kind));
    format!("{head}  {}\n{}", out.paint(Paint::Dim, &format!("{}{about}", out.time(brief.at))), quoted(&brief.text))
}
