//! Folders that agents work in.

use abide_api::types::{Detached, Scope, WorkspaceAttach, WorkspaceFetch, WorkspaceView};
use abide_api::{ErrorCode, Problem};
use abide_kernel::id::AgentId;
use abide_kernel::input::Input;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::tool::RecordCall;

use super::agents::folder_holder;
use super::lifecycle::asked;
use super::planes::act_result;
use super::{RouteResult, agent, json, page};
use crate::body;
use crate::call::Call;
use crate::idempotency::{KeyedRequest, claim_key};
use crate::problems;
use crate::services::FolderScope;

pub(super) async fn attach(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let WorkspaceAttach { path, mode, force } = body::parse_json(&call.body)?;
    let reach = reach(&call, force)?;
    known(&call, &id).await?;
    let answer = match claim_key(&call).await? {
        KeyedRequest::Repeated(answered) => answered.answer,
        KeyedRequest::New(claim) => {
            let attached = call.app.options.services.attach(&id, path, mode, reach).await;
            let attached = attached.map_err(|refusal| problems::of_field(refusal, "/path"))?;
            let asked = call.app.host.ask_once(&id, Input::UseWorkspace(attached), claim).await;
            asked.map_err(|error| problems::ask(error, id.as_str()))?.answer
        }
    };
    let mut workspace: WorkspaceView = act_result(answer)?;
    let holder = folder_holder(&call.app, &id, Some(workspace.root.clone())).await;
    workspace.held_by = holder.map(|holder| holder.view());
    Ok(json(201, &workspace))
}

/// How far the caller may reach. `force` is for admins: it would otherwise be a way around the roots.
pub(super) fn reach(call: &Call, force: Option<bool>) -> Result<FolderScope, Problem> {
    match (call.caller.scope, force.unwrap_or(false)) {
        (Scope::Admin, true) => Ok(FolderScope::System),
        (Scope::Admin, false) => Ok(FolderScope::Beyond),
        (Scope::Operator | Scope::Observer, false) => Ok(FolderScope::Roots),
        (scope @ (Scope::Operator | Scope::Observer), true) => {
            let detail = format!("force takes the scope admin; the token {} has {scope:?}", call.caller.name);
            let hint = "leave force out, or ask for a token with that scope";
            Err(Problem::new(ErrorCode::Scope, detail.to_lowercase()).hint(hint).pointer("/force"))
        }
    }
}

async fn known(call: &Call, id: &AgentId) -> Result<(), Problem> {
    let there = call.app.host.inspect(id, |state, _| !state.lifecycle.archived).await;
    match there.map_err(|error| problems::ask(error, id.as_str()))? {
        Some(true) => Ok(()),
        Some(false) => Err(problems::deleted(id.as_str())),
        None => Err(problems::no_agent(id.as_str())),
    }
}

pub(super) async fn detach(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let discard = match call.query.text("discard") {
        None | Some("false") => false,
        Some("true") => true,
        Some(other) => {
            let detail = format!("discard is {other:?}");
            return Err(Problem::new(ErrorCode::BadQuery, detail).hint("give true or false"));
        }
    };
    let act = RecordCall::DetachWorkspace { folder: call.param("item").to_owned(), discard };
    let detached: Detached = act_result(asked(&call, &id, Input::Act { by: call.caller.name.clone(), act }).await?)?;
    Ok(json(200, &detached))
}

/// Of an agent that is gone, too: commits of a child's worktree outlive the child.
pub(super) async fn fetch(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let WorkspaceFetch { branch } = body::parse_json_or_default(&call.body)?;
    let folder = call.param("item").to_owned();
    let wanted = folder.clone();
    let bound = call.app.host.inspect(&id, move |state, _| state.planes.workspaces.find(&wanted).cloned()).await;
    let bound = bound.map_err(|error| problems::ask(error, id.as_str()))?;
    let bound = bound.ok_or_else(|| problems::no_agent(id.as_str()))?;
    let fetched = call.app.options.services.fetch_branch(&id, bound, folder, branch).await;
    Ok(json(200, &fetched.map_err(problems::of_refusal)?))
}

pub(super) async fn patches(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let limit = call.query.limit()?;
    // Patches of a child's worktree outlive the child.
    let there = call.app.host.inspect(&id, |_, _| ()).await.map_err(|error| problems::ask(error, id.as_str()))?;
    there.ok_or_else(|| problems::no_agent(id.as_str()))?;
    let patches = call.app.options.services.patches(&id).await;
    let patches = patches.map_err(|refusal| problems::refused(refusal, id.as_str()))?;
    let after = call.query.text("after").unwrap_or_default();
    // In the order of their names.
    let rest = patches.into_iter().skip_while(|patch| patch.name.as_str() <= after);
    Ok(page::of_items(rest, limit, |patch| patch.name.clone()))
}

pub(super) fn transfers(call: &Call) -> RouteResult {
    let limit = call.query.limit()?;
    let mut transfers = call.app.options.services.transfers();
    transfers.sort_by(|a, b| a.repository.cmp(&b.repository));
    let after = call.query.text("after").unwrap_or_default();
    let rest = transfers.into_iter().skip_while(|transfer| transfer.repository.as_str() <= after);
    Ok(page::of_items(rest, limit, |transfer| transfer.repository.clone()))
}

pub(super) async fn surroundings(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let place =
        call.app.host.inspect(&id, |state, _| (!state.lifecycle.archived).then(|| ToolPlacement::of(state))).await;
    let place = place.map_err(|error| problems::ask(error, id.as_str()))?.flatten();
    let place = place.ok_or_else(|| problems::no_agent(id.as_str()))?;
    let around = call.app.options.services.surroundings(&id, place).await;
    let around = around.map_err(|refusal| problems::refused(refusal, id.as_str()))?;
    Ok(json(200, &around))
}
