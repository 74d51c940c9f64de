//! `abide why`: what an agent does or waits for.

use std::path::Path;

use abide_api::types::{WaitingOn, Why};
use abide_kernel::decide;
use abide_kernel::decision::Decision;
use abide_kernel::explain::why;
use abide_kernel::fixture::{Files, Fixture};
use abide_kernel::id::{AgentId, Seq};
use abide_kernel::time::Time;
use serde::Serialize;

use super::agent;
use crate::cli::{PlaceArgs, WhyArgs};
use crate::commands::plane;
use crate::connection::{self, block_on};
use crate::folder;
use crate::output::{Cell, Output, one_line};

pub fn run(args: &WhyArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match (&args.fixture, &args.id) {
        (Some(dir), _) => of_fixture(dir, out),
        (None, Some(id)) => of_agent(id, args.at, args.export.as_deref(), place, out),
        (None, None) => of_all(place, out),
    }
}

fn of_fixture(dir: &Path, out: &Output) -> anyhow::Result<()> {
    let fixture = folder::load(dir)?;
    let why = why(&fixture.state, next(&fixture));
    out.result(&why, || text(&why))
}

/// The next decision. A replay leaves the queue aside, and an agent with a message in its queue has something to do.
fn next(fixture: &Fixture) -> Decision {
    let next = decide(&fixture.state, fixture.now);
    let idle = fixture.decision();
    // Without the queue in it, it is the same one, and the fixture's has the unknown events as evidence too.
    if (next.kind, next.reason) == (idle.kind, idle.reason) { idle } else { next }
}

fn of_agent(
    id: &AgentId,
    at: Option<Seq>,
    export: Option<&Path>,
    place: &PlaceArgs,
    out: &Output,
) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let (why, exported) = block_on(async {
        let why = client.why(id.as_str(), at).await?;
        let exported = match export {
            Some(_) => Some(client.export_agent(id.as_str()).await?),
            None => None,
        };
        Ok((why, exported))
    })?;
    if let (Some(dir), Some(exported)) = (export, exported) {
        save(dir, exported.files)?;
    }
    let dir = export.map(|dir| dir.display().to_string());
    out.result(&WhyShown { why: &why, dir }, || match export {
        None => text(&why),
        Some(dir) => {
            let dir = dir.display();
            format!("{}\nIts records are in {dir}; `abide why --fixture {dir}` explains them anywhere.\n", text(&why))
        }
    })
}

/// An explanation, and where the records are that were exported with it.
#[derive(Serialize)]
struct WhyShown<'a> {
    #[serde(flatten)]
    why: &'a Why,
    #[serde(skip_serializing_if = "Option::is_none")]
    dir: Option<String>,
}

/// Only the names that a fixture has are written: an answer must not choose places on this disk.
pub fn save(dir: &Path, files: std::collections::BTreeMap<String, String>) -> anyhow::Result<()> {
    let known = |name: &str| {
        let ledger = name.strip_prefix("ledger/").and_then(|name| name.strip_suffix(".jsonl"));
        ["agent.json", "expected.json"].contains(&name)
            || ledger.is_some_and(|name| abide_kernel::fixture::LEDGER_FILES.contains(&name))
    };
    if let Some(name) = files.keys().find(|name| !known(name)) {
        anyhow::bail!("the daemon sent a file called {name:?}, which no agent's records have; nothing was written");
    }
    let files: Files = files.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    folder::save(dir, &files)
}

fn of_all(place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let items: Vec<Why> = block_on(async {
        let mut items = Vec::new();
        for agent in agent::all(&client).await? {
            items.push(client.why(agent.id.as_str(), None).await?);
        }
        Ok(items)
    })?;
    out.result(&plane::page_of(&items), || {
        if items.is_empty() {
            return "no agents yet; make one with `abide agent create ID`\n".to_owned();
        }
        let row = |why: &Why| {
            vec![why.agent_id.as_str().into(), Cell::status(why.status.as_str()), why.sentence.as_str().into()]
        };
        out.columns(&["id", "status", "why"], &items.iter().map(row).collect::<Vec<_>>())
    })
}

fn text(why: &Why) -> String {
    let mut text = format!("{}\n", one_line(&why.sentence));
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{title}\n"));
            for line in lines {
                text.push_str(&format!("  {}\n", one_line(&line)));
            }
        }
    };
    let since = |on: &WaitingOn| match on.since {
        Some(time) if time > Time::EPOCH => format!("{}, since {time} (seq {})", on.what, on.seq),
        Some(_) | None => format!("{} (seq {})", on.what, on.seq),
    };
    list("Waiting on", why.waiting_on.iter().map(since).collect());
    list("What would wake it", why.would_wake.clone());
    list("To know", why.notes.clone());
    let decision = &why.decision;
    list(
        &format!("Because (decision {}, {}, at seq {})", decision.kind, decision.reason, why.at_seq),
        decision.evidence.clone(),
    );
    list("Ignored", decision.ignored.clone());
    text
}
