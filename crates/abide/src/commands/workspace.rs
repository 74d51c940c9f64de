//! `abide workspace`: folders that an agent works in.

use std::path::Path;

use abide_api::types::{Workspace, WorkspaceAttach, WorkspaceMode};
use anyhow::Context;
use serde_json::json;

use super::plane::{self, Plane};
use crate::cli::{OfAgent, PlaceArgs, WorkspaceCommand};
use crate::connection::{self, block_on};
use crate::output::{Cell, Output, counted, gist, one_line};

const PLANE: Plane<Workspace> = Plane {
    route: "workspaces",
    titles: &["status", "mode", "here", "branch", "of"],
    id: |workspace| &workspace.root,
    row: |workspace, _| {
        let here = match (workspace.active, workspace.occupied) {
            (true, true) => "works here",
            (true, false) => "chosen",
            (false, _) => "-",
        };
        vec![
            Cell::status(&workspace.status),
            workspace.mode.as_str().into(),
            here.into(),
            plane::or_dash(workspace.branch.as_deref()),
            gist(&workspace.workspace, 80).into(),
        ]
    },
    empty: "has no workspace; it gets a folder of its own when it needs one, or `abide workspace attach --agent ID DIR`",
};

pub fn run(command: &WorkspaceCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        WorkspaceCommand::List(of) => plane::list(&PLANE, of, place, out),
        WorkspaceCommand::Attach { of, path, worktree } => attach(of, path, *worktree, place, out),
        WorkspaceCommand::Detach { of, path } => detach(of, path, place, out),
        WorkspaceCommand::Patches(of) => patches(of, place, out),
    }
}

/// The daemon has another folder than we have.
fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = path.canonicalize().or_else(|_| std::path::absolute(path))?;
    path.to_str().map(str::to_owned).with_context(|| format!("{} is not UTF-8", path.display()))
}

fn attach(of: &OfAgent, path: &Path, worktree: bool, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let mode = if worktree { WorkspaceMode::Worktree } else { WorkspaceMode::Direct };
    let attach = WorkspaceAttach { path: absolute(path)?, mode };
    let client = connection::find(place)?;
    let attached = block_on(async { Ok(client.attach_workspace(of.agent.as_str(), &attach).await?) })?;
    out.result(&json!(attached), || {
        let branch = attached.branch.as_ref().map(|branch| format!(", branch {branch}")).unwrap_or_default();
        let note = attached.note.as_ref().map(|note| format!("{}\n", one_line(note))).unwrap_or_default();
        format!("{} works in {}{branch}\n{note}", of.agent, one_line(&attached.root))
    })
}

fn detach(of: &OfAgent, path: &Path, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let root = absolute(path)?;
    let detached = block_on(async { Ok(client.detach_workspace(of.agent.as_str(), &root).await?) })?;
    out.result(&json!(detached), || {
        let root = one_line(&detached.root);
        match detached.removing {
            true => {
                format!("{root} goes once what is in it is saved; see: abide workspace list --agent {}\n", of.agent)
            }
            false => format!("{root} is detached; its files stay\n"),
        }
    })
}

fn patches(of: &OfAgent, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let page = block_on(async { Ok(client.patches(of.agent.as_str()).await?) })?;
    out.result(&json!(page), || {
        if page.items.is_empty() {
            return format!("nothing was saved of worktrees of {}\n", of.agent);
        }
        let rows: Vec<Vec<Cell>> = page
            .items
            .iter()
            .map(|patch| {
                let saved = patch.saved_at.as_deref().map_or_else(|| "-".to_owned(), |at| out.time(at));
                let files = counted(patch.files_total, "file");
                vec![one_line(&patch.path).into(), saved.into(), files.into(), plane::or_dash(patch.branch.as_deref())]
            })
            .collect();
        out.columns(&["patch", "saved", "holds", "branch"], &rows)
    })
}
