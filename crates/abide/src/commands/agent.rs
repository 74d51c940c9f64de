//! `abide agent`: making, seeing and controlling agents.

mod control;
mod given;

use std::io::Read;
use std::path::Path;

use abide_api::Client;
use abide_api::types::{
    Abort, AgentChange, AgentCreate, AgentCredentials, AgentItem, AgentSummary, BudgetView, Execution, LimitsView,
    SandboxPart, Surroundings, UsageView, UsedView,
};
use abide_daemon::models::ECHO;
use abide_daemon::text::grouped;
use abide_effects::workspace::{nested_git_warning, shadow_warning};
use abide_kernel::budget::wall_in_words;
use abide_kernel::id::AgentId;
use abide_kernel::vocabulary::Posture;
use abide_private::read_regular_text;
use anyhow::Context;
use serde::Serialize;

use crate::budget::{in_words, limits};
use crate::cli::{AgentCommand, CreateArgs, NONE, PlaceArgs, SetArgs};
use crate::commands::plane;
use crate::connection::{self, block_on};
use crate::folder::absolute;
use crate::output::{Cell, Failed, Output, counted, one_line, table};
use control::Action;

pub fn run(command: AgentCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        AgentCommand::Create(args) => create(&args, place, out),
        AgentCommand::Set(args) => set(&args, place, out),
        AgentCommand::List => list(place, out),
        AgentCommand::Show { id } => show(&id, place, out),
        AgentCommand::Start(agents) => control::run(Action::Start, &agents, place, out),
        AgentCommand::Stop(agents) => control::run(Action::Stop, &agents, place, out),
        AgentCommand::Resume { id } => control::one(&id, "resume", place, out),
        AgentCommand::Pause { id } => control::one(&id, "pause", place, out),
        AgentCommand::Abort { id, exec } => abort(&id, exec, place, out),
        AgentCommand::Delete { id } => delete(&id, place, out),
    }
}

fn create(args: &CreateArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let given = given::change(&args.credentials, &AgentCredentials::default())?;
    let new = AgentCreate {
        env: given.env,
        secrets: given.secrets,
        git_credentials: given.git_credentials,
        ssh_agent: given.ssh_agent,
        known_hosts: given.known_hosts,
        for_children: given.for_children,
        id: args.id.to_string(),
        model: args.model.clone(),
        workspace: args.workspace.as_deref().map(absolute).transpose()?,
        force: args.force.then_some(true),
        role: args.role,
        instructions: args.instructions.as_deref().map(read).transpose()?,
        network: args.network.then_some(true),
        budget: (!args.budget.is_empty()).then(|| args.budget.over(&BudgetView::default())),
        fallback: args.fallback.as_deref().map(models),
        start: args.no_start.then_some(false),
    };
    let (made, around) = block_on(async {
        let made = client.create_agent(&new).await?;
        let around = match &new.workspace {
            Some(_) => client.surroundings(&new.id).await?,
            None => Surroundings::default(),
        };
        Ok((made, around))
    })?;
    out.result(&made, || {
        let (id, model) = (&made.identity.id, one_line(&made.model.name));
        let echo = if model == ECHO { ", which answers with what it is told" } else { "" };
        format!("made {id}, {}, with {model}{echo}\n", made.agent.status)
    })?;
    if let Some(warning) = &made.warning {
        out.note(warning);
    }
    for (_, warning) in writable(&around) {
        out.note(&warning);
    }
    given::note_network(&made, out);
    if let Some(held) = &made.execution.held_by {
        out.note(&one_line(&held.note));
    }
    if args.no_start {
        out.hint(&format!("start it with `abide agent start {}`", args.id));
    } else {
        out.hint(&format!("talk to it with `abide send {} TEXT --wait`", args.id));
    }
    Ok(())
}

fn set(args: &SetArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let SetArgs { id: _, model, workspace, force: _, network, instructions, fallback, budget, credentials } = args;
    let unsaid = model.is_none() && workspace.is_none() && network.is_none() && instructions.is_none();
    if unsaid && fallback.is_none() && budget.is_empty() && credentials.is_empty() {
        let what = "say what to change: --model, --fallback, --workspace, --network, --instructions, --max-…, --daily-…, \
                    --env, --secret, --git-credential, --ssh-agent, --known-hosts or --for-children";
        return Err(Failed::Usage(what.to_owned()).into());
    }
    let client = connection::find(place)?;
    let mut change = AgentChange {
        model: args.model.clone(),
        workspace: args.workspace.as_deref().map(absolute).transpose()?,
        force: args.force.then_some(true),
        instructions: args.instructions.as_deref().map(read).transpose()?,
        network: args.network,
        fallback: fallback.as_deref().map(models),
        ..AgentChange::default()
    };
    let summary = block_on(async {
        if !budget.is_empty() || !credentials.is_empty() {
            let now = client.agent(args.id.as_str()).await?;
            // A change replaces all of a budget: what is not said is what it was.
            change.budget = (!budget.is_empty()).then(|| budget.over(&now.model.budget));
            given::add(&mut change, given::change(credentials, &now.execution.credentials.unwrap_or_default())?);
        }
        Ok(client.change_agent(args.id.as_str(), &change).await?)
    })?;
    out.result(&summary, || {
        let workspace = change.workspace.as_ref().map(|folder| format!("is to work in {}", one_line(folder)));
        let network = change.network.map(|on| format!("has network {}", on_or_off(on)));
        let whose = if summary.model.default { ", the default" } else { "" };
        let model = change.model.as_ref().map(|_| format!("thinks with {}{whose}", one_line(&summary.model.name)));
        let told = change.instructions.as_ref().map(|text| match text.is_empty() {
            true => "has no instructions".to_owned(),
            false => "has new instructions".to_owned(),
        });
        let limited = change.budget.as_ref().map(|budget| match in_words(budget) {
            Some(limits) => format!("may use {limits}"),
            None => "has no budget".to_owned(),
        });
        let others = change.fallback.as_ref().map(|models| match models.is_empty() {
            true => "has no other model when that fails".to_owned(),
            false if summary.model.fallback.is_empty() => "has no other model when that fails".to_owned(),
            false => format!("thinks with {} when that fails", one_line(&summary.model.fallback.join(", then "))),
        });
        let said = [model, others, workspace, network, told, limited, given::in_words(&change, &summary)];
        let changed: Vec<String> = said.into_iter().flatten().collect();
        format!("{} {}\n", summary.identity.id, changed.join(", "))
    })?;
    if !credentials.is_empty() {
        given::note_network(&summary, out);
    }
    Ok(())
}

/// A list as a person writes it; `none` is an empty one.
fn models(said: &[String]) -> Vec<String> {
    said.iter().filter(|model| *model != NONE).cloned().collect()
}

fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

pub fn read(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        return stdin();
    }
    match read_regular_text(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failed::NotFound(format!("{} does not exist", path.display())).into())
        }
        Err(error) => Err(error).with_context(|| format!("can't read {}; `-` is the standard input", path.display())),
    }
}

pub fn stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text).context("can't read stdin")?;
    Ok(text)
}

/// Every agent there is.
pub async fn all(client: &Client) -> anyhow::Result<Vec<AgentItem>> {
    Ok(client.all(|after| async move { client.agents(after.as_deref()).await }).await?)
}

fn list(place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let agents = block_on(all(&client))?;
    out.result(&plane::page_of(&agents), || {
        if agents.is_empty() {
            return "no agents yet; make one with `abide agent create ID`\n".to_owned();
        }
        let row = |agent: &AgentItem| {
            let AgentItem { id, status, role, model, created_at, .. } = agent;
            vec![
                id.as_str().into(),
                Cell::status(status.as_str()),
                role.as_str().into(),
                model.as_str().into(),
                created_at.map_or_else(String::new, |at| out.time(at)).into(),
            ]
        };
        out.columns(&["id", "status", "role", "model", "made"], &agents.iter().map(row).collect::<Vec<_>>())
    })
}

fn show(id: &AgentId, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let (summary, around) = block_on(async {
        let summary = client.agent(id.as_str()).await?;
        Ok((summary, client.surroundings(id.as_str()).await?))
    })?;
    out.result(&AgentShown { summary: &summary, surroundings: &around }, || picture(&summary, &around, out))
}

/// The picture of an agent, and what lies around it.
#[derive(Serialize)]
struct AgentShown<'a> {
    #[serde(flatten)]
    summary: &'a AgentSummary,
    surroundings: &'a Surroundings,
}

/// The documents call the posture of a stopped agent `archived`; an archived agent is another thing to people.
fn posture_in_words(posture: Posture) -> &'static str {
    if posture == Posture::Archived { "stopped" } else { posture.as_str() }
}

fn picture(summary: &AgentSummary, around: &Surroundings, out: &Output) -> String {
    let AgentSummary { identity, agent, decision, closure, model, execution, .. } = summary;
    let mut rows = vec![
        ("agent", format!("{} ({}, {})", identity.id, identity.kind, identity.role)),
        ("status", agent.status.to_string()),
        ("posture", posture_in_words(summary.scheduling_posture).to_owned()),
        ("decision", format!("{} ({})", decision.kind, decision.reason)),
        ("outcome", closure.outcome.map_or_else(|| "-".to_owned(), |outcome| outcome.to_string())),
        ("turns", grouped(agent.turn_index)),
        ("messages", format!("{} pending, {} parked", grouped(agent.pending), grouped(agent.parked))),
    ];
    let mut more = |name, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    more("waits for", closure.waiting_reason.map(|reason| reason.to_string()));
    more("running", agent.current_run_id.as_ref().map(ToString::to_string));
    more("work item", agent.current_work_item_id.as_ref().map(ToString::to_string));
    more("sleeps until", agent.sleeping_until.map(|until| out.time(until)));
    more("hint", summary.lifecycle.hint.clone());
    let some_of = |count: usize| (count > 0).then(|| grouped(count as u64));
    more("waits", some_of(summary.active_waiting_intents.len()));
    more("timers", some_of(summary.active_timers.len()));
    more("triggers", some_of(summary.active_external_triggers.len()));
    more("approvals", some_of(summary.pending_approvals.len()).map(|count| format!("{count} pending")));
    more("children", some_of(summary.active_children.len()));
    more("owed results", some_of(summary.owed_results.len()));
    more("commands", (execution.commands > 0).then(|| format!("{} running", grouped(execution.commands))));
    more("workspace", Some(workspace(execution)));
    more("held by", execution.held_by.as_ref().map(|held| one_line(&held.note)));
    more(
        "guides",
        listed(around.guides.iter().map(|guide| match guide.truncated {
            true => format!("{} (the first {} bytes)", guide.path, grouped(guide.bytes)),
            false => guide.path.clone(),
        })),
    );
    more("skills", listed(around.skills.iter().map(|skill| skill.name.clone())));
    for (name, warning) in writable(around) {
        more(name, Some(warning));
    }
    more("broken", listed(around.broken.iter().map(|broken| format!("{}: {}", broken.path, broken.problem))));
    more("network", Some(on_or_off(execution.network).to_owned()));
    for (name, value) in given::rows(execution.credentials.as_ref()) {
        more(name, Some(value));
    }
    more("sandbox", execution.sandbox.as_ref().map(sandbox));
    let disk = execution.disk_bytes.filter(|bytes| *bytes > 0);
    more("disk", disk.map(|bytes| format!("{} bytes in its own folders and worktrees", grouped(bytes))));
    let usage = &model.usage;
    let whose = if model.default { " (the default)" } else { "" };
    more("model", Some(format!("{}{whose}", model.name)));
    more("answered by", model.answered_by.clone().filter(|name| *name != model.name));
    more("last answer", model.cut.then(|| "cut: the model had written as much as it may".to_owned()));
    more("when it fails", (!model.fallback.is_empty()).then(|| model.fallback.join(", then ")));
    more("thinks with", Some(model.in_use.clone()).filter(|in_use| *in_use != model.name));
    more(
        "trouble",
        model.trouble.as_ref().map(|it| {
            format!("{}: {}: {} ({})", one_line(&it.model), it.error, one_line(&it.message), out.time(it.at))
        }),
    );
    let (input, output) = (grouped(usage.input_tokens), grouped(usage.output_tokens));
    let cached = cached(usage);
    let cost = cost(usage, model.priced);
    more("used", Some(format!("{input} tokens in ({cached}), {output} out, {cost}")));
    more("turns took", (model.wall_ms > 0).then(|| wall_in_words(model.wall_ms)));
    more("by children", used(&model.children));
    more("granted", limits(&model.granted));
    more("budget", in_words(&model.budget));
    let daily = model.budget.daily.as_ref().is_some_and(|daily| *daily != LimitsView::default());
    more("used today", used(&model.today).filter(|_| daily));
    more("last fact", Some(format!("seq {}", grouped(summary.at_seq))));
    table(&rows)
}

fn workspace(execution: &Execution) -> String {
    let Some(folder) = &execution.workspace else {
        return "none: it gets a folder of its own when it needs one".to_owned();
    };
    match (&execution.cwd, &execution.branch) {
        (Some(root), Some(branch)) => format!("{root} (branch {branch}, a worktree of {folder})"),
        (_, _) => folder.clone(),
    }
}

fn listed(things: impl Iterator<Item = String>) -> Option<String> {
    let things: Vec<String> = things.collect();
    (!things.is_empty()).then(|| things.join(", "))
}

/// Warnings about hooks and settings of the user's git that an agent can write, each with its topic.
pub fn writable(around: &Surroundings) -> Vec<(&'static str, String)> {
    let warning = |does: &str, path: &String| {
        format!("your git {does} from {}, which the agent can write; use a worktree", one_line(path))
    };
    let hooks = around.writable_hooks.iter().map(|folder| ("hooks", warning("runs hooks", folder)));
    let settings = around.writable_settings.iter().map(|file| ("settings", warning("reads settings", file)));
    let programs = around.writable_programs.iter().map(|program| {
        let (path, setting) = (one_line(&program.path), one_line(&program.setting));
        ("programs", format!("your git runs {path} ({setting} names it), which the agent can write; use a worktree"))
    });
    let shadowing = around.shadowing.iter().map(|folder| ("repository", shadow_warning(Path::new(&one_line(folder)))));
    let nested = around.nested.iter().map(|folder| ("repository", nested_git_warning(Path::new(&one_line(folder)))));
    hooks.chain(settings).chain(programs).chain(shadowing).chain(nested).collect()
}

/// Loud where nothing keeps its commands from anything.
fn sandbox(sandbox: &SandboxPart) -> String {
    let SandboxPart { mode, mechanism, enforced, problems, .. } = sandbox;
    if mechanism == "none" {
        let why = problems.last().map(|why| format!(" ({why})")).unwrap_or_default();
        return match mode.as_str() {
            "required" => format!("NONE WORKS HERE, and one is required: no command starts{why}"),
            _ => format!("NONE: nothing keeps its commands from your files and the network{why}"),
        };
    }
    let gaps = match problems.len() as u64 {
        0 => String::new(),
        gaps => format!("; {}, see `abide doctor`", counted(gaps, "gap")),
    };
    format!("{mechanism}: {}{gaps}", enforced.join(", "))
}

/// How much of what it read came from its provider's cache.
fn cached(usage: &UsageView) -> String {
    let cached = grouped(usage.cached_tokens);
    match (usage.cached_tokens * 100).checked_div(usage.input_tokens) {
        Some(share) => format!("{cached} cached, {share} %"),
        None => format!("{cached} cached"),
    }
}

/// What is not known is not free. What models with a price took before is said all the same.
fn cost(usage: &UsageView, priced: bool) -> String {
    match (priced, usage.cost_usd > 0.0) {
        (true, _) => format!("${:.4}", usage.cost_usd),
        (false, true) => format!("${:.4} and what its model took, which has no price", usage.cost_usd),
        (false, false) => "no price".to_owned(),
    }
}

/// `3 turns, 1,200 tokens, $0.0100, 0.12 h`; none where nothing was used.
pub fn used(used: &UsedView) -> Option<String> {
    let UsedView { turns, wall_ms, usage } = used;
    let tokens = usage.input_tokens + usage.output_tokens;
    let said = || {
        let (turns, tokens) = (counted(*turns, "turn"), grouped(tokens));
        format!("{turns}, {tokens} tokens, ${:.4}, {}", usage.cost_usd, wall_in_words(*wall_ms))
    };
    (*turns > 0 || tokens > 0).then(said)
}

fn abort(id: &AgentId, exec: Option<String>, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let abort = Abort { exec_id: exec };
    let summary = block_on(async { Ok(client.abort(id.as_str(), &abort).await?) })?;
    status(&summary, out)
}

fn status(summary: &AgentSummary, out: &Output) -> anyhow::Result<()> {
    out.result(&summary, || status_line(summary))
}

fn status_line(summary: &AgentSummary) -> String {
    format!("{} is {}\n", summary.identity.id, summary.agent.status)
}

fn delete(id: &AgentId, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let deleted = block_on(async { Ok(client.delete_agent(id.as_str()).await?) })?;
    out.result(&deleted, || format!("{id} is archived; its past stays in the ledger\n"))
}
