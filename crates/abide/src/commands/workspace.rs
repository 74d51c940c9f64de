//! `abide workspace`: folders that an agent works in.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use abide_api::Client;
use abide_api::types::{Event, FetchedBranch, Patch, WorkspaceAttach, WorkspaceFetch, WorkspaceMode, WorkspaceView};
use abide_kernel::id::AgentId;
use abide_kernel::vocabulary::WorkspaceStatus;
use abide_ledger::Progress;

use super::plane;
use crate::cli::{OfAgent, PlaceArgs, WorkspaceCommand};
use crate::connection::{self, block_on};
use crate::folder::absolute;
use crate::output::{Cell, Output, counted, gist, one_line};

pub fn run(command: &WorkspaceCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        WorkspaceCommand::List(of) => list(of, place, out),
        WorkspaceCommand::Attach { of, path, worktree, force } => {
            let mode = if *worktree { WorkspaceMode::Worktree } else { WorkspaceMode::Direct };
            let attach = WorkspaceAttach { path: absolute(path)?, mode, force: force.then_some(true) };
            self::attach(of, &attach, place, out)
        }
        WorkspaceCommand::Detach { of, path, discard } => detach(of, path, *discard, place, out),
        WorkspaceCommand::Fetch { of, branch, path } => fetch(of, branch.clone(), path.as_deref(), place, out),
        WorkspaceCommand::Patches(of) => patches(of, place, out),
    }
}

/// The folders come last and whole: they are long, and what `detach` takes.
fn list(of: &OfAgent, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let items: Vec<WorkspaceView> = block_on(plane::items(&client, &of.agent, "workspaces"))?;
    out.result(&plane::page_of(&items), || {
        let agent = &of.agent;
        if items.is_empty() {
            return format!(
                "{agent} has taken no folder yet; `abide agent show {agent}` says where it will work, and \
                 `abide workspace attach --agent {agent} DIR` gives it another\n"
            );
        }
        out.columns(&["status", "mode", "here", "branch", "root"], &items.iter().map(row).collect::<Vec<_>>())
    })
}

fn row(workspace: &WorkspaceView) -> Vec<Cell> {
    let here = match (workspace.active, workspace.occupied) {
        (true, true) => "works here",
        (true, false) => "chosen",
        (false, _) => "-",
    };
    let mut root = workspace.root.clone();
    if workspace.root != workspace.workspace {
        root.push_str(&format!(", of {}", workspace.workspace));
    }
    if let Some(why) = workspace.kept.as_ref().filter(|_| workspace.status == WorkspaceStatus::Attached) {
        root.push_str(&format!("; could not be removed: {}", gist(why, 200)));
    }
    if let Some(patch) = &workspace.patch {
        root.push_str(&format!("; saved in {patch}"));
    }
    vec![
        Cell::status(workspace.status.as_str()),
        workspace.mode.as_str().into(),
        here.into(),
        plane::or_dash(workspace.branch.as_deref()),
        root.into(),
    ]
}

fn attach(of: &OfAgent, attach: &WorkspaceAttach, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    // The first worktree of a large repository copies its history.
    let client = connection::find(place)?;
    let patient = client.clone().with_timeout(ATTACH_TIMEOUT);
    let attached = block_on(async {
        tokio::select! {
            attached = patient.attach_workspace(of.agent.as_str(), attach) => Ok(attached?),
            never = show_transfer(&client, Path::new(&attach.path), out) => match never {},
        }
    });
    out.clear_progress();
    let attached = attached?;
    out.result(&attached, || {
        let branch =
            attached.branch.as_ref().map(|branch| format!(", branch {}", one_line(branch))).unwrap_or_default();
        let note = attached.note.as_ref().map(|note| format!("{}\n", one_line(note))).unwrap_or_default();
        let held = attached.held_by.as_ref().map(|held| format!("{}\n", one_line(&held.note))).unwrap_or_default();
        format!("{} works in {}{branch}\n{note}{held}", of.agent, one_line(&attached.root))
    })
}

/// Shows how far the history of a repository is copied, for as long as that is asked for.
async fn show_transfer(client: &Client, folder: &Path, out: &Output) -> Infallible {
    loop {
        tokio::time::sleep(BETWEEN).await;
        // A daemon that does not answer fails the attachment, and that says why.
        let Ok(transfers) = client.transfers().await else { continue };
        // Another link to the same folder would not be found: then nothing is shown.
        let Some(transfer) = transfers.items.iter().find(|it| folder.starts_with(&it.repository)) else { continue };
        let what = match transfer.phase.as_str() {
            "counting" => "counting objects",
            "receiving" => "copying objects",
            "resolving" => "resolving deltas",
            _ => "checking history",
        };
        out.progress(Progress { what, done: transfer.done, total: transfer.total });
    }
}

fn detach(of: &OfAgent, path: &Path, discard: bool, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let root = absolute(path)?;
    let (detached, became, evidence) = block_on(async {
        let detached = client.detach_workspace(of.agent.as_str(), &root, discard).await?;
        let became = if detached.removing { removed(&client, &of.agent, &detached.root).await? } else { None };
        let evidence = evidence_of_removal(&client, &of.agent, &detached.root).await?;
        Ok((detached, became, evidence))
    })?;
    out.result(&detached, || {
        let root = one_line(&detached.root);
        match (detached.removing, &became) {
            (false, _) => format!("{root} is detached; its files stay\n"),
            (true, Some(WorkspaceView { status: WorkspaceStatus::Removed, patch, .. })) => match patch {
                _ if discard => format!("{root} is gone, with what was in it\n"),
                Some(patch) => {
                    let more = besides(&evidence, &[&detached.root, patch]);
                    format!("{root} is gone; what was not committed is saved in {}\n{more}", one_line(patch))
                }
                None => format!("{root} is gone\n{}", besides(&evidence, &[&detached.root])),
            },
            (true, Some(WorkspaceView { kept: Some(why), .. })) => {
                format!("{root} stays, it could not be removed: {}\n", one_line(why))
            }
            (true, Some(_) | None) => {
                format!("{root} goes once what is in it is saved; see: abide workspace list --agent {}\n", of.agent)
            }
        }
    })
}

fn fetch(
    of: &OfAgent,
    branch: Option<String>,
    path: Option<&Path>,
    place: &PlaceArgs,
    out: &Output,
) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let given = path.map(absolute).transpose()?;
    let fetched = block_on(async {
        let root = match given {
            Some(root) => root,
            None => only_repository(plane::items(&client, &of.agent, "workspaces").await?, &of.agent)?,
        };
        Ok(client.fetch_workspace(of.agent.as_str(), &root, &WorkspaceFetch { branch }).await?)
    })?;
    out.result(&fetched, || {
        let repository = one_line(&fetched.repository);
        let line = |one: &FetchedBranch| {
            let commit = one.commit.get(..12).unwrap_or(&one.commit);
            let (branch, commit) = (one_line(&one.branch), one_line(commit));
            let news = if one.changed { "is now at" } else { "was already at" };
            format!("{branch} {news} {commit} in {repository}\n")
        };
        fetched.branches.iter().map(line).collect()
    })
}

/// The worktree that is there; else the repository of those that were.
fn only_repository(all: Vec<WorkspaceView>, agent: &AgentId) -> anyhow::Result<String> {
    let worktrees: Vec<WorkspaceView> = all.into_iter().filter(|one| one.mode == WorkspaceMode::Worktree).collect();
    let there: Vec<&WorkspaceView> = worktrees.iter().filter(|one| one.status == WorkspaceStatus::Attached).collect();
    let mut names: Vec<&str> = match there.as_slice() {
        [] => worktrees.iter().map(|one| one.workspace.as_str()).collect(),
        there => there.iter().map(|one| one.root.as_str()).collect(),
    };
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => anyhow::bail!("{agent} has had no worktree, so there is no branch to fetch"),
        several => anyhow::bail!("{agent} has several worktrees; name one of {}", several.join(", ")),
    }
}

/// How long a worktree may take to be made, as git may for one answer.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(1_800);

/// How often one asks whether a worktree is gone: most go in a moment, and a large one goes without anybody waiting for
/// it.
const ASKED: u32 = 200;
/// The time between two questions about something that is under way.
const BETWEEN: Duration = Duration::from_millis(50);

/// The outcome of a worktree that is being removed; none if the removal takes long.
async fn removed(client: &Client, agent: &AgentId, root: &str) -> anyhow::Result<Option<WorkspaceView>> {
    for _ in 0..ASKED {
        let all: Vec<WorkspaceView> = plane::items(client, agent, "workspaces").await?;
        if let Some(one) = all.into_iter().find(|one| one.root == root && one.status != WorkspaceStatus::Removing) {
            return Ok(Some(one));
        }
        tokio::time::sleep(BETWEEN).await;
    }
    Ok(None)
}

/// The lines of evidence that are about none of these paths, because the headline says them already.
fn besides(evidence: &[String], said: &[&str]) -> String {
    let news = evidence.iter().filter(|line| !said.iter().any(|path| line.contains(path)));
    news.map(|line| one_line(line) + "\n").collect()
}

/// The evidence recorded when a worktree was removed, in sentences. It is among the agent's newest events.
async fn evidence_of_removal(client: &Client, agent: &AgentId, root: &str) -> anyhow::Result<Vec<String>> {
    let newest = client.events(agent.as_str(), "last=200").await?.items;
    let is_it = |event: &&Event| event.kind == "worktree.removed" && event.data["root"] == root;
    let lines = newest.iter().rev().find(is_it).and_then(|event| event.data["evidence"].as_array());
    Ok(lines.into_iter().flatten().filter_map(|line| line.as_str().map(str::to_owned)).collect())
}

fn patches(of: &OfAgent, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let patches: Vec<Patch> = block_on(plane::items(&client, &of.agent, "patches"))?;
    out.result(&plane::page_of(&patches), || {
        if patches.is_empty() {
            return format!("nothing was saved of worktrees of {}\n", of.agent);
        }
        let rows: Vec<Vec<Cell>> = patches
            .iter()
            .map(|patch| {
                let saved = patch.saved_at.as_deref().map_or_else(|| "-".to_owned(), |at| out.time_of(at));
                let files = counted(patch.files_total, "file");
                vec![one_line(&patch.path).into(), saved.into(), files.into(), plane::or_dash(patch.branch.as_deref())]
            })
            .collect();
        out.columns(&["patch", "saved", "holds", "branch"], &rows)
    })
}
