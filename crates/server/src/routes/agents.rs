//! Agents: made, listed, seen, changed, explained, exported, archived.

use std::sync::Arc;

use abide_api::types::{AgentChange, AgentCreate, AgentItem, AgentSummary, BudgetView, Deleted, Exported, LimitsView};
use abide_api::{ErrorCode, Problem};
use abide_engine::RequestSummary;
use abide_engine::export::{ExportError, records};
use abide_engine::fold::fold_until;
use abide_engine::{AskError, Response};
use abide_kernel::budget::{Budget as KernelBudget, Limits as KernelLimits};
use abide_kernel::config::{Choice, Config, ConfigChange, DefaultModels, Identity};
use abide_kernel::decision::Decision;
use abide_kernel::explain::{self, FolderHolder};
use abide_kernel::id::AgentId;
use abide_kernel::input::Input;
use abide_kernel::limits;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::summary::agent_summary;
use abide_kernel::time::Time;
use abide_kernel::views::WithNulls;
use abide_kernel::views::agent::Surrounding;
use abide_kernel::views::why::Why;
use abide_kernel::vocabulary;
use abide_kernel::{AgentState, decide};
use abide_ledger::StreamId;

use super::models::model_of;
use super::page::{Page, PageBuilder, READ_BYTES};
use super::{RouteResult, agent, blocking, config_rules, credentials, json, reserve, workspaces};
use crate::agent_row::readable_agent_row;
use crate::app::App;
use crate::body;
use crate::call::Call;
use crate::idempotency::{KeyedRequest, claim_key};
use crate::problems;

/// In the place of a model: whatever the settings have, now and later.
const DEFAULT: &str = "default";

pub(super) async fn create(call: Call) -> RouteResult {
    let new: AgentCreate = body::parse_json(&call.body)?;
    let wrong = |detail: String, pointer: &str| Problem::new(ErrorCode::WrongFields, detail).pointer(pointer);
    let id = AgentId::new(&new.id).map_err(|error| wrong(error.to_string(), "/id"))?;
    let (answered, warning) = match claim_key(&call).await? {
        KeyedRequest::Repeated(answered) => (*answered, None),
        KeyedRequest::New(claim) => {
            let model_or_fallback = (new.model.is_some(), new.fallback.is_some());
            let settings = AgentChange {
                env: new.env,
                secrets: new.secrets,
                git_credentials: new.git_credentials,
                ssh_agent: new.ssh_agent,
                known_hosts: new.known_hosts,
                for_children: new.for_children,
                model: Some(new.model.unwrap_or_else(|| DEFAULT.to_owned())),
                workspace: new.workspace,
                force: new.force,
                role: None,
                instructions: new.instructions,
                network: new.network,
                budget: new.budget,
                fallback: Some(new.fallback.unwrap_or_else(|| vec![DEFAULT.to_owned()])),
            };
            let mut settings = validated_change(&call, settings).await?;
            let warning = add_workspace_settings(&call, &mut settings, model_or_fallback).await?;
            let defaults = Config { credentials: call.app.options.credentials.clone(), ..Config::default() };
            let config = defaults.with(settings.clone());
            config_rules::validate_config(&call.app, &config, false, &settings)?;
            // The settings' may not fit any more.
            credentials::validate_credentials(&call.app, &config.credentials)?;
            let role = new.role.unwrap_or(vocabulary::Role::Orchestrator);
            let identity = Identity { role, ..Identity::named(id.clone()) };
            let input = Input::Create { identity, config, start: new.start.unwrap_or(true) };
            let asked = call.app.host.ask_for_summary(&id, input, claim).await;
            let answered = asked.map_err(|error| {
                // A deleted agent keeps its name.
                let archived = matches!(&error, AskError::Refused(refusal) if refusal.code == ErrorCode::Archived);
                if archived {
                    return Problem::new(ErrorCode::Exists, format!("{id} was deleted, and its id is not used again"));
                }
                problems::ask(error, id.as_str())
            })?;
            (answered, warning)
        }
    };
    let mut summary = summary(&call.app, answered).await?;
    summary.warning = warning;
    Ok(json(201, &WithNulls(&summary)))
}

/// Adds what `abide.toml` of the workspace sets and the request does not. Returns why the file is not used, if so.
async fn add_workspace_settings(
    call: &Call,
    settings: &mut ConfigChange,
    (has_model, has_fallback): (bool, bool),
) -> Result<Option<String>, Problem> {
    let Some(workspace) = settings.workspace.clone() else { return Ok(None) };
    let wrong = |detail: String| Problem::new(ErrorCode::WrongFields, detail).pointer("/workspace");
    let app = Arc::clone(&call.app);
    let read = blocking(move || app.options.workspace_settings.of(&workspace).map_err(wrong)).await?;
    let of_file = |problem: Problem| wrong(format!("{}: {}", read.file, problem.detail));
    if let Some(model) = read.model.clone().filter(|_| !has_model) {
        check_model(&call.app, &model, "/workspace").await.map_err(of_file)?;
        settings.model = Some(Choice::Own(model));
    }
    if let Some(mut fallback) = read.fallback.clone().filter(|_| !has_fallback) {
        check_fallback(&call.app, &fallback).await.map_err(of_file)?;
        // As of the settings' fallbacks, the one that the agent thinks with is left out.
        if let Some(Choice::Own(model) | Choice::Default(model)) = &settings.model {
            fallback.retain(|name| name != model);
        }
        settings.fallback = Some(Choice::Own(fallback));
    }
    Ok(read.warning)
}

/// The summary that an answer came with.
pub(super) async fn summary(app: &App, answered: Response) -> Result<AgentSummary, Problem> {
    match answered.summary {
        Some(RequestSummary::Agent(summary)) => Ok(with_world(app, *summary).await),
        Some(RequestSummary::Fork(_) | RequestSummary::Token { .. }) | None => {
            Err(Problem::new(ErrorCode::Crashed, "it was answered without a summary"))
        }
    }
}

/// Adds the parts of a summary that the daemon knows: the sandbox in effect, and the use of the disk.
async fn with_world(app: &App, mut summary: AgentSummary) -> AgentSummary {
    let services = &app.options.services;
    let (id, execution) = (&summary.identity.id, &summary.execution);
    let surrounding = Surrounding {
        sandbox: services.sandbox(execution.network),
        disk_bytes: services.disk_use(id).await,
        held_by: folder_holder(app, id, execution.cwd.clone()).await.map(|holder| holder.view()),
        // Prices are settings, which no agent's records hold.
        priced: (app.options.check_price)(&summary.model.name).is_ok(),
    };
    if let Some(credentials) = &mut summary.execution.credentials {
        credentials.missing = Some(services.missing_credentials(&(&*credentials).into()));
    }
    summary.surround(surrounding);
    summary
}

/// Who keeps the agent from writing in a folder that it works in, or may.
pub(super) async fn folder_holder(app: &App, id: &AgentId, folder: Option<String>) -> Option<FolderHolder> {
    let place = ToolPlacement { configured: Some(folder?), ..ToolPlacement::default() };
    app.options.services.folder_use(id, place).await.held_by
}

/// A change that makes sense, or what is wrong with it.
async fn validated_change(call: &Call, change: AgentChange) -> Result<ConfigChange, Problem> {
    let app = &call.app;
    let credentials = credentials::change(call, &change)?;
    let wrong = |detail: String, pointer: &str| Problem::new(ErrorCode::WrongFields, detail).pointer(pointer);
    let defaults = &app.options.models;
    let model = change.model.map(|model| match model.as_str() {
        DEFAULT => Choice::Default(defaults.model.clone()),
        _ => Choice::Own(model),
    });
    if let Some(Choice::Own(model) | Choice::Default(model)) = &model {
        check_model(app, model, "/model").await?;
    }
    let fallback = change.fallback.map(|models| match models.as_slice() {
        [only] if only == DEFAULT => Choice::Default(defaults.fallback.clone()),
        _ => Choice::Own(models),
    });
    if let Some(Choice::Own(models)) = &fallback {
        check_fallback(app, models).await?;
    }
    let (reach, mut workspace) = (workspaces::reach(call, change.force)?, None);
    if let Some(given) = change.workspace {
        if given.len() > limits::LINE_BYTES {
            return Err(wrong("the path of the workspace is too long".to_owned(), "/workspace"));
        }
        // It may be gone when it is needed, which is said then; a wrong one is said now, while somebody is there.
        let real = app.options.services.check_workspace(given, reach).await;
        let real = real.map_err(|refusal| match refusal.code.status() {
            403 => problems::of_field(refusal, "/workspace"),
            _ => wrong(refusal.message, "/workspace").hint(refusal.hint),
        });
        workspace = Some(real?);
    }
    if change.instructions.as_ref().is_some_and(|text| text.len() > limits::TEXT_BYTES) {
        let detail = format!("instructions have at most {} bytes", limits::TEXT_BYTES);
        return Err(wrong(detail, "/instructions"));
    }
    let budget = change.budget.map(|budget| kernel_budget(&budget)).transpose()?;
    Ok(ConfigChange {
        model,
        workspace,
        instructions: change.instructions.map(|text| (!text.is_empty()).then_some(text)),
        network: change.network,
        budget,
        fallback,
        role: change.role,
        credentials,
    })
}

async fn check_fallback(app: &Arc<App>, fallback: &[String]) -> Result<(), Problem> {
    let wrong = |detail: String, pointer: &str| Problem::new(ErrorCode::WrongFields, detail).pointer(pointer);
    if fallback.len() > limits::FALLBACK_MAX {
        return Err(wrong(format!("{} models at most are tried after the first", limits::FALLBACK_MAX), "/fallback"));
    }
    for (index, model) in fallback.iter().enumerate() {
        let pointer = format!("/fallback/{index}");
        check_model(app, model, &pointer).await?;
    }
    Ok(())
}

async fn check_model(app: &Arc<App>, model: &str, pointer: &str) -> Result<(), Problem> {
    let wrong = |detail: String| Problem::new(ErrorCode::WrongFields, detail).pointer(pointer);
    if model.len() > limits::LINE_BYTES {
        return Err(wrong("the name of the model is too long".to_owned()));
    }
    let (checked, model) = (Arc::clone(app), model.to_owned());
    let problem = blocking(move || Ok((checked.options.check_model)(&model))).await?;
    problem.map_err(wrong)
}

fn kernel_budget(budget: &BudgetView) -> Result<KernelBudget, Problem> {
    let BudgetView { max_turns, max_tokens, max_usd, max_wall_ms, daily } = budget;
    let max_micro_usd = micro_usd(*max_usd, "/budget/max_usd")?;
    let daily = daily.as_ref().map(|limits| kernel_limits(limits, "/budget/daily")).transpose()?.unwrap_or_default();
    let (max_turns, max_tokens, max_wall_ms) = (*max_turns, *max_tokens, *max_wall_ms);
    Ok(KernelBudget { max_turns, max_tokens, max_micro_usd, max_wall_ms, daily })
}

/// Limits as the kernel has them; `pointer` says where they stand in the request.
pub(super) fn kernel_limits(limits: &LimitsView, pointer: &str) -> Result<KernelLimits, Problem> {
    let LimitsView { max_turns, max_tokens, max_usd, max_wall_ms } = limits;
    let max_micro_usd = micro_usd(*max_usd, &format!("{pointer}/max_usd"))?;
    Ok(KernelLimits { max_turns: *max_turns, max_tokens: *max_tokens, max_micro_usd, max_wall_ms: *max_wall_ms })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked first")]
fn micro_usd(usd: Option<f64>, pointer: &str) -> Result<Option<u64>, Problem> {
    match usd {
        None => Ok(None),
        // It would be rounded to nothing, and hold the agent at once.
        Some(usd) if usd > 0.0 && usd < 1e-6 => {
            let detail = "money is counted in millionths of a dollar: max_usd is 0.000001 at least, or 0";
            Err(Problem::new(ErrorCode::WrongFields, detail).pointer(pointer))
        }
        Some(usd) if (0.0..=1e9).contains(&usd) => Ok(Some((usd * 1e6).round() as u64)),
        Some(_) => Err(Problem::new(ErrorCode::WrongFields, "max_usd goes from 0 to 1000000000").pointer(pointer)),
    }
}

pub(super) async fn list(call: Call) -> RouteResult {
    let limit = call.query.limit()?;
    let after = match call.query.text("after") {
        None => None,
        Some(after) => {
            let id = AgentId::new(after);
            Some(id.map_err(|_| Problem::new(ErrorCode::BadCursor, format!("{after:?} is no place in this list")))?)
        }
    };
    let reserved = reserve(&call, READ_BYTES).await?;
    let app = call.app;
    let page = blocking(move || page(&app, after.as_ref(), limit)).await?;
    Ok(page.into_response(Some(reserved)))
}

/// One page of agents that are not archived. Those that sleep are shown from their row, without being read.
fn page(app: &App, after: Option<&AgentId>, limit: usize) -> Result<Page, Problem> {
    let ledger = app.host.ledger();
    let unreadable = |error| problems::unreadable(&error);
    let mut page = PageBuilder::new(limit);
    let mut last: Option<String> = None;
    let mut place = after.cloned();
    loop {
        let agents = app.host.agents(place.as_ref(), limit).map_err(unreadable)?;
        for id in &agents {
            let stream = StreamId::agent(id);
            place = Some(id.clone());
            let Some(head) = ledger.head(&stream).map_err(unreadable)? else { continue };
            let row = readable_agent_row(ledger, &stream).map_err(unreadable)?.unwrap_or_default();
            // The row shows the state before the agent became unreadable.
            let quarantined = app.host.is_quarantined(id);
            let stopped = vocabulary::Status::Stopped;
            let item = AgentItem {
                id: id.clone(),
                status: row.status.filter(|_| !quarantined).unwrap_or(stopped),
                kind: row.kind.unwrap_or(vocabulary::AgentKind::Named),
                role: row.role.unwrap_or(vocabulary::Role::Orchestrator),
                model: model_of(&row, &app.options.models),
                created_at: row.created_at,
                seq: head.seq,
            };
            if !page.push(&item) {
                return Ok(page.finish(last.as_deref()));
            }
            last = Some(item.id.to_string());
        }
        if agents.len() < limit {
            return Ok(page.finish(None));
        }
    }
}

/// An agent without models of its own that has not been awake since the settings changed is shown as it will wake.
fn summary_of(state: &AgentState, models: &DefaultModels, now: Time) -> AgentSummary {
    let config = state.definition.config.following(models);
    if config == state.definition.config {
        return agent_summary(state, now);
    }
    let mut state = state.clone();
    state.definition.config = config;
    agent_summary(&state, now)
}

pub(super) async fn show(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let models = call.app.options.models.clone();
    let seen = call
        .app
        .host
        .inspect(&id, move |state, now| (!state.lifecycle.archived).then(|| summary_of(state, &models, now)))
        .await;
    match seen.map_err(|error| problems::ask(error, id.as_str()))? {
        Some(Some(summary)) => Ok(json(200, &WithNulls(&with_world(&call.app, summary).await))),
        Some(None) => Err(problems::deleted(id.as_str())),
        None => Err(problems::no_agent(id.as_str())),
    }
}

pub(super) async fn change(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let change: AgentChange = body::parse_json(&call.body)?;
    let change = Box::new(validated_change(&call, change).await?);
    config_rules::validate_change(&call.app, &id, &change).await?;
    let asked = call.app.host.ask_for_summary(&id, Input::Configure { change }, None).await;
    let answered = asked.map_err(|error| problems::ask(error, id.as_str()))?;
    Ok(json(200, &WithNulls(&summary(&call.app, answered).await?)))
}

pub(super) async fn delete(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let asked = call.app.host.ask(&id, Input::Archive).await;
    asked.map_err(|error| problems::ask(error, id.as_str()))?;
    Ok(json(200, &Deleted { id: id.to_string(), archived: true }))
}

pub(super) async fn why(call: Call) -> RouteResult {
    let id = agent(&call)?;
    if let Some(at) = call.query.number("at")? {
        let (app, named) = (call.app.clone(), id.clone());
        let why = blocking(move || {
            let ledger = app.host.ledger();
            let head = ledger.head(&StreamId::agent(&named)).map_err(|error| problems::unreadable(&error))?;
            let head = head.ok_or_else(|| problems::no_agent(named.as_str()))?;
            if at == 0 || at > head.seq {
                return Err(Problem::new(
                    ErrorCode::NoSuchMoment,
                    format!("{named} has {} facts, there is no {at}", head.seq),
                ));
            }
            let state = fold_until(ledger, &named, at)
                .map_err(|damage| problems::damaged(named.as_str(), &damage.to_string()))?;
            let decision = decide(&state, state.at);
            Ok(explain::why(&state, decision))
        })
        .await?;
        return Ok(json(200, &why));
    }
    let look = |state: &AgentState, now| {
        (!state.lifecycle.archived).then(|| (explain::why(state, decide(state, now)), ToolPlacement::of(state)))
    };
    match call.app.host.inspect(&id, look).await {
        Ok(Some(Some((mut why, place)))) => {
            explain::add_folder_use(&mut why, &call.app.options.services.folder_use(&id, place).await);
            Ok(json(200, &why))
        }
        Ok(Some(None)) => Err(problems::deleted(id.as_str())),
        Ok(None) => Err(problems::no_agent(id.as_str())),
        // An unreadable agent can still be explained.
        Err(AskError::Damaged(reason)) => Ok(json(200, &damaged(&call.app, &id, &reason))),
        Err(error) => Err(problems::ask(error, id.as_str())),
    }
}

fn damaged(app: &App, id: &AgentId, reason: &str) -> Why {
    let decision = Decision {
        boundary: vocabulary::Boundary::Bootstrap,
        evidence: vec![reason.to_owned()],
        ..Decision::new(vocabulary::DecisionKind::Stop, vocabulary::Reason::Quarantined)
    };
    Why {
        agent_id: id.to_string(),
        at_seq: app.host.ledger().head(&StreamId::agent(id)).ok().flatten().map_or(0, |head| head.seq),
        status: vocabulary::Status::Stopped,
        scheduling_posture: vocabulary::Posture::Unknown,
        decision: decision.into(),
        waiting_on: Vec::new(),
        would_wake: Vec::new(),
        notes: Vec::new(),
        sentence: format!(
            "{id} is quarantined because its records can't be read: {reason}. See `abide ledger verify`; `abide agent \
             start {id}` tries it again."
        ),
    }
}

/// Of the facts of one export: all of it is in memory until it is answered, and clients take as much.
const EXPORT_MAX: usize = 64 << 20;

pub(super) async fn export(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let app = call.app.clone();
    // Never closed.
    let _one_at_a_time = call.app.exports.acquire().await.ok();
    let files = blocking(move || {
        let exported = records(app.host.ledger(), &id, EXPORT_MAX, &mut |_| ());
        let exported = exported.map_err(|error| match error {
            ExportError::Damage(damage) => problems::damaged(id.as_str(), &damage.to_string()),
            ExportError::TooLarge { .. } => Problem::new(ErrorCode::ExportTooLarge, error.to_string()),
        })?;
        exported.map(|(_, files)| files).ok_or_else(|| problems::no_agent(id.as_str()))
    })
    .await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let files = files.into_iter().map(|(name, bytes)| (name, text(bytes))).collect();
    Ok(json(200, &Exported { files }))
}
